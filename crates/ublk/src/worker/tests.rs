//! Workers on a channel of the tests.

use std::collections::{BTreeMap, VecDeque};

use f2fs_device::{MemoryDevice, ZoneLayout, ZoneState, ZonedDevice};
use f2fs_sync::PlainArc;
use proptest::prelude::*;
use zerocopy::FromBytes;

use super::*;
use crate::abi::op;

const DEPTH: u16 = 8;
const MAX_IO_BYTES: u32 = 64 << 10;

/// A ring of descriptors, as the driver's.
#[derive(Default)]
struct Fake {
    waiting: VecDeque<(Descriptor, Vec<u8>)>,
    tags: BTreeMap<u16, (Descriptor, Vec<u8>)>,
    free: Vec<u16>,
    /// In the order of their ends: the request, its data, its result and sector.
    done: Vec<(Descriptor, Vec<u8>, i32, u64)>,
}

impl Channel for &mut Fake {
    fn arrive(&mut self, wish: Wish, arrived: &mut Vec<u16>) -> io::Result<()> {
        assert!(wish == Wish::NOTHING || self.tags.is_empty(), "it sleeps with requests in its hands");
        while let (Some(&tag), false) = (self.free.last(), self.waiting.is_empty()) {
            self.free.pop();
            self.tags.insert(tag, self.waiting.pop_front().unwrap());
            arrived.push(tag);
        }
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.waiting.is_empty() && self.tags.is_empty()
    }

    fn descriptor(&self, tag: u16) -> Descriptor {
        self.tags[&tag].0
    }

    fn take(&mut self, _tag: u16, blocks: usize) -> AlignedBuf {
        AlignedBuf::new(blocks)
    }

    fn fetch(&mut self, tag: u16, buf: &mut AlignedBuf) -> io::Result<()> {
        let data = &self.tags[&tag].1;
        let len = data.len().min(buf.len());
        buf.as_bytes_mut()[..len].copy_from_slice(&data[..len]);
        Ok(())
    }

    fn deliver(&mut self, tag: u16, bytes: &[u8]) -> io::Result<()> {
        self.tags.get_mut(&tag).unwrap().1 = bytes.to_vec();
        Ok(())
    }

    fn give_back(&mut self, _tag: u16, _buf: AlignedBuf) {}

    fn commit(&mut self, tag: u16, result: i32, sector: u64) {
        let (descriptor, data) = self.tags.remove(&tag).expect("a tag is committed once");
        self.free.push(tag);
        self.done.push((descriptor, data, result, sector));
    }
}

fn request(op_flags: u32, start_sector: u64, count: u32) -> Descriptor {
    Descriptor { op_flags, count, start_sector, address: 0 }
}

/// Has a worker do all requests.
fn run(backend: &Backend, requests: Vec<(Descriptor, Vec<u8>)>) -> (Fake, QueueCounts) {
    let mut fake = Fake { waiting: requests.into(), free: (0..DEPTH).collect(), ..Fake::default() };
    let counts = Worker::new(&mut fake, backend, DEPTH, MAX_IO_BYTES).run().unwrap();
    (fake, counts)
}

/// Has a worker do one.
fn one(backend: &Backend, descriptor: Descriptor, data: &[u8]) -> (Vec<u8>, i32, u64) {
    let (mut fake, _) = run(backend, vec![(descriptor, data.to_vec())]);
    let (_, data, result, sector) = fake.done.pop().unwrap();
    (data, result, sector)
}

fn memory() -> Backend {
    Backend::Plain(PlainArc::new(MemoryDevice::new(1024)))
}

fn zoned() -> (Backend, PlainArc<ZonedDevice<MemoryDevice>>) {
    let layout = ZoneLayout::new(256).with_conventional(1).with_limits(1, 0);
    let device = PlainArc::new(ZonedDevice::new(MemoryDevice::new(1024), layout).unwrap());
    (Backend::Zoned(device.clone()), device)
}

#[test]
fn data_go_through() {
    let backend = memory();
    let data = vec![7; 8192];
    assert_eq!(one(&backend, request(op::WRITE, 8, 16), &data).1, 8192);
    assert_eq!(one(&backend, request(op::WRITE | op::FUA, 24, 8), &data[..4096]).1, 4096);
    assert_eq!(one(&backend, request(op::READ, 8, 24), &[]), (vec![7; 12288], 12288, 0));
    assert_eq!(one(&backend, request(op::WRITE_ZEROES, 16, 8), &[]).1, 0);
    assert_eq!(one(&backend, request(op::DISCARD, 24, 8), &[]).1, 0);
    let (read, ..) = one(&backend, request(op::READ, 8, 24), &[]);
    assert!(read[..4096].iter().all(|&byte| byte == 7) && read[4096..].iter().all(|&byte| byte == 0));
    assert_eq!(one(&backend, request(op::FLUSH, 0, 0), &[]).1, 0);
}

#[test]
fn long_zeros_are_written_in_parts() {
    let backend = memory();
    for start in (0..1024).step_by(16) {
        assert_eq!(one(&backend, request(op::WRITE, start * 8, 128), &vec![9; 65536]).1, 65536);
    }
    assert_eq!(one(&backend, request(op::WRITE_ZEROES, 8, 1000 * 8), &[]).1, 0);
    let byte = |block: u64| backend.device().read(block, 1).unwrap().as_bytes()[0];
    assert_eq!([byte(0), byte(1), byte(600), byte(1000), byte(1001)], [9, 0, 0, 0, 9]);
}

#[test]
fn a_batch_is_one_entry() {
    let requests = (0..800).map(|i| (request(op::READ, i % 1024 * 8, 8), Vec::new())).collect();
    let (fake, counts) = run(&memory(), requests);
    assert_eq!(fake.done.len(), 800);
    assert!(fake.done.iter().all(|&(.., result, _)| result == 4096));
    assert_eq!((counts.requests, counts.failed), (800, 0));
    assert!(counts.entries <= 800 / u64::from(DEPTH) + 2, "{counts:?}");
}

#[test]
fn zones_do_all_that_the_kernel_asks() {
    let (backend, device) = zoned();
    let write = |sector, byte| one(&backend, request(op::WRITE, sector, 8), &[byte; 4096]).1;
    assert_eq!(write(2048, 1), 4096);
    assert_eq!(write(2048, 2), -errno::EIO, "a write off the pointer");
    assert_eq!(one(&backend, request(op::ZONE_APPEND, 2048, 8), &[3; 4096]), (vec![3; 4096], 4096, 2056));
    assert_eq!(one(&backend, request(op::ZONE_OPEN, 2048, 0), &[]).1, 0);
    assert_eq!(device.zone(1).unwrap().state, ZoneState::ExplicitlyOpen);
    assert_eq!(write(4096, 4), -errno::ETOOMANYREFS, "no more zones may be open");
    assert_eq!(one(&backend, request(op::ZONE_CLOSE, 2048, 0), &[]).1, 0);
    assert_eq!(one(&backend, request(op::ZONE_FINISH, 4096, 0), &[]).1, 0);
    let (report, result, _) = one(&backend, request(op::REPORT_ZONES, 2048, 99), &[]);
    assert_eq!(result, MAX_IO_BYTES as i32);
    let zones: Vec<ZoneRecord> = report.chunks(64).map(|bytes| ZoneRecord::read_from_bytes(bytes).unwrap()).collect();
    let seen: Vec<_> = zones.iter().map(|zone| (zone.start, zone.write_pointer, zone.condition)).collect();
    assert_eq!(seen, [(2048, 2064, 4), (4096, 6144, 14), (6144, 6144, 1)]);
    assert_eq!(one(&backend, request(op::ZONE_RESET, 2048, 0), &[]).1, 0);
    assert_eq!(device.zone(1).unwrap().state, ZoneState::Empty);
    assert_eq!(one(&backend, request(op::ZONE_RESET_ALL, 0, 0), &[]).1, 0);
    assert_eq!(device.zone(2).unwrap().state, ZoneState::Empty);
    assert_eq!(one(&backend, request(op::ZONE_RESET, 0, 0), &[]).1, -errno::EIO, "a conventional zone");
}

proptest! {
    /// Every request is answered once, whatever it asks for.
    #[test]
    fn hostile_requests_are_answered(raw in prop::collection::vec((any::<u32>(), 0..24u32, any::<u32>(), any::<u64>(), 0..1100u64), 1..60)) {
        for backend in [memory(), zoned().0] {
            let mut requests = Vec::new();
            for &(op_flags, operation, count, start, near) in &raw {
                for (op_flags, start) in [(op_flags, start), (operation, near * 8), (operation | op::FUA, start)] {
                    requests.push((request(op_flags, start, count), vec![1; 64]));
                    requests.push((request(op_flags, start, count % 20 * 8), vec![1; 64]));
                }
            }
            let asked = requests.len();
            let (fake, counts) = run(&backend, requests);
            prop_assert_eq!(fake.done.len(), asked);
            prop_assert_eq!(counts.requests as usize, asked);
        }
    }
}

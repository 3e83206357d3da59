//! Workers on a channel of the tests.

use f2fs_device::{MemoryDevice, ZoneLayout, ZoneState, ZonedDevice};
use f2fs_sync::{PlainArc, atomic::Ordering};
use proptest::prelude::*;
use zerocopy::FromBytes;

use self::fake::{Fake, in_file};
use super::*;
use crate::abi::{Descriptor, op};

mod fake;

/// Requests, and the data that they bring or are to give.
type Asked = Vec<(Descriptor, Vec<u8>)>;

const DEPTH: u16 = 8;
const MAX_IO_BYTES: u32 = 64 << 10;

fn request(op_flags: u32, start_sector: u64, count: u32) -> Descriptor {
    Descriptor { op_flags, count, start_sector, address: 0 }
}

/// Has a worker do all requests.
fn run(backend: &Backend, requests: Asked) -> (Fake, QueueCounts) {
    run_on(Fake::default(), backend, requests)
}

fn run_on(fake: Fake, backend: &Backend, requests: Asked) -> (Fake, QueueCounts) {
    let mut fake = Fake { waiting: requests.into(), free: (0..DEPTH).collect(), ..fake };
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

/// Writes of 1 to 3 blocks with a content of their own, and reads of all that they wrote.
fn writes_and_reads() -> (Asked, Asked) {
    let places = || (0..300u64).map(|i| (i * 3, i % 3 + 1));
    let content = |start: u64, blocks: u64| {
        (start..start + blocks).flat_map(|block| [(block % 251) as u8 + 1; 4096]).collect::<Vec<u8>>()
    };
    let ask = |op: u32, (start, blocks): (u64, u64)| request(op, start * 8, blocks as u32 * 8);
    let writes = places().map(|place| (ask(op::WRITE, place), content(place.0, place.1))).collect();
    let reads = places().map(|place| (ask(op::READ, place), content(place.0, place.1))).collect();
    (writes, reads)
}

/// What reads must give, whatever way the data go, and whatever fails on it that the device itself can do.
fn all_are_right(backend: &Backend, fake: impl Fn() -> Fake) -> (QueueCounts, QueueCounts) {
    let (writes, reads) = writes_and_reads();
    let (_, wrote) = run_on(fake(), backend, writes);
    let asked = reads.iter().map(|(descriptor, _)| (*descriptor, Vec::new())).collect();
    let (fake, read) = run_on(fake(), backend, asked);
    let mut seen: Vec<_> = fake.done.iter().map(|(descriptor, data, ..)| (*descriptor, data.clone())).collect();
    seen.sort_by_key(|(descriptor, _)| descriptor.start_sector);
    assert!(seen == reads, "not what was written");
    assert_eq!((wrote.requests, wrote.failed, read.requests, read.failed), (300, 0, 300, 0));
    (wrote, read)
}

/// A channel whose requests of so many sectors and more lend their pages.
fn lending(device: &PlainArc<fake::InFile>, from: u32, fails: usize) -> Fake {
    Fake { file: Some(device.blocks.clone()), is_apart: true, lends_from: Some(from), fails, ..Fake::default() }
}

#[test]
fn a_file_is_read_and_written_with_the_entries_that_are_made_anyway() {
    for is_apart in [false, true] {
        let device = in_file(true);
        let backend = Backend::Plain(device.clone());
        let fake = || Fake { file: Some(device.blocks.clone()), is_apart, ..Fake::default() };
        let (wrote, read) = all_are_right(&backend, fake);
        assert_eq!(device.own.load(Ordering::Relaxed), 0, "the device had nothing to do");
        let most = 300 * if is_apart { 3 } else { 2 } / u64::from(DEPTH) + 8;
        assert!(wrote.entries <= most && read.entries <= most, "{wrote:?} {read:?}");
        let durable = (request(op::WRITE | op::FUA, 0, 8), vec![5; 4096]);
        assert_eq!(run_on(fake(), &backend, vec![durable]).1.failed, 0);
        assert_eq!(device.own.load(Ordering::Relaxed), 1, "what is to be durable is the device's");
    }
}

#[test]
fn what_does_not_go_by_the_file_the_device_does() {
    for (takes_writes, fails) in [(true, 7), (true, 1), (false, 0), (false, 3)] {
        let device = in_file(takes_writes);
        let fake = || Fake { file: Some(device.blocks.clone()), fails, ..Fake::default() };
        all_are_right(&Backend::Plain(device.clone()), fake);
        assert!(device.own.load(Ordering::Relaxed) > 80, "{fails}");
    }
}

/// Requests of one block go by copy here, and those of two and three without.
#[test]
fn requests_that_lend_their_pages_need_no_copy() {
    let cases = [(0, 300, 0), (16, 200, 200), (u32::MAX, 0, 600)];
    for ((from, lent, copied), is_linked) in cases.into_iter().flat_map(|case| [(case, false), (case, true)]) {
        let device = in_file(true);
        let backend = Backend::Plain(device.clone());
        let fake = || Fake { is_linked, ..lending(&device, from, 0) };
        all_are_right(&backend, fake);
        assert_eq!(device.own.load(Ordering::Relaxed), 0, "the device had nothing to do");
        let (_, reads) = writes_and_reads();
        let asked: Asked = reads.iter().map(|(descriptor, _)| (*descriptor, Vec::new())).collect();
        let (read, counts) = run_on(fake(), &backend, asked);
        assert_eq!((read.lent, read.copied), (lent, copied), "from {from} sectors on");
        assert!(counts.entries <= 300 * 3 / u64::from(DEPTH) + 8, "{counts:?}");
        let durable = (request(op::WRITE | op::FUA, 0, 32), vec![5; 16384]);
        let (wrote, counts) = run_on(fake(), &backend, vec![durable]);
        assert_eq!((wrote.lent, counts.failed), (0, 0));
        assert_eq!(device.own.load(Ordering::Relaxed), 1, "what is to be durable is the device's");
    }
}

/// A file that fails is asked by the device as well, by a copy, and its answer is the one that counts.
#[test]
fn what_does_not_go_without_a_copy_goes_by_one() {
    for (fails, is_linked) in [1, 3, 7].into_iter().flat_map(|fails| [(fails, false), (fails, true)]) {
        let device = in_file(true);
        let backend = Backend::Plain(device.clone());
        let (writes, reads) = writes_and_reads();
        let asked = reads.iter().map(|(descriptor, _)| (*descriptor, Vec::new())).collect();
        // Copies between the request and memory must not fail here, so only what is lent does.
        let fake = || Fake { only_lent_fails: true, is_linked, ..lending(&device, 0, fails) };
        let (wrote, counts) = run_on(fake(), &backend, writes);
        assert_eq!((wrote.done.len(), counts.failed), (300, 0));
        let (read, counts) = run_on(fake(), &backend, asked);
        assert_eq!((read.done.len(), counts.failed), (300, 0));
        let mut seen: Vec<_> = read.done.iter().map(|(descriptor, data, ..)| (*descriptor, data.clone())).collect();
        seen.sort_by_key(|(descriptor, _)| descriptor.start_sector);
        assert!(seen == reads, "not what was written");
        assert!(read.lent >= 300 / fails && device.own.load(Ordering::Relaxed) >= 300 / fails, "{fails}");
    }
}

/// A device that takes no writes by its file gets them by copies.
#[test]
fn what_the_file_does_not_take_goes_by_a_copy() {
    let device = in_file(false);
    all_are_right(&Backend::Plain(device.clone()), || lending(&device, 0, 0));
    assert_eq!(device.own.load(Ordering::Relaxed), 300, "all writes are the device's");
    // One that is no file at all has none to give.
    all_are_right(&memory(), || Fake { is_apart: true, lends_from: Some(0), ..Fake::default() });
}

#[test]
fn what_is_read_to_other_memory_is_no_answer() {
    let (writes, reads) = writes_and_reads();
    for (is_apart, requests, failed) in
        [(false, writes.clone(), 0), (false, reads.clone(), 300), (true, writes, 0), (true, reads, 0)]
    {
        let fake = Fake { is_apart, strangers: true, ..Fake::default() };
        assert_eq!(run_on(fake, &memory(), requests).1.failed, failed, "{is_apart}");
    }
}

#[test]
fn data_that_are_apart_are_fetched_and_delivered() {
    let fake = |fails| Fake { is_apart: true, fails, ..Fake::default() };
    all_are_right(&memory(), || fake(0));
    let (writes, reads) = writes_and_reads();
    for requests in [writes, reads] {
        let (done, counts) = run_on(fake(5), &memory(), requests);
        assert_eq!((done.done.len(), counts.failed), (300, 60), "those that could not be moved");
    }
    let (backend, _) = zoned();
    let append = (request(op::ZONE_APPEND, 2048, 8), vec![3; 4096]);
    let (fake, _) = run_on(fake(0), &backend, vec![append.clone(), append]);
    let ends: Vec<_> = fake.done.iter().map(|&(.., result, sector)| (result, sector)).collect();
    assert_eq!(ends, [(4096, 2048), (4096, 2056)]);
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
            for fails in [0, 2] {
                let apart = Fake { is_apart: fails > 0, fails, ..Fake::default() };
                let (fake, counts) = run_on(apart, &backend, requests.clone());
                prop_assert_eq!(fake.done.len(), asked);
                prop_assert_eq!(counts.requests as usize, asked);
            }
        }
    }
}

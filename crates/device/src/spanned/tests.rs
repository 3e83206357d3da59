//! Several devices behave as one of their size.

use proptest::prelude::*;

use super::*;
use crate::{AlignedBuf, Completion, MemoryDevice};

fn memory(blocks: u64) -> PlainArc<MemoryDevice> {
    PlainArc::new(MemoryDevice::new(blocks))
}

fn spanned(sizes: &[u64]) -> (SpannedDevice, Vec<PlainArc<MemoryDevice>>) {
    let devices: Vec<_> = sizes.iter().map(|blocks| memory(*blocks)).collect();
    let parts =
        devices.iter().map(|device| (device.clone() as PlainArc<dyn BlockDevice>, device.info().blocks)).collect();
    (SpannedDevice::new(parts).unwrap(), devices)
}

/// The effects of a batch on a device: results, and the data that was read.
fn outcome(device: &dyn BlockDevice, requests: Vec<Request>) -> Vec<(Result<(), DeviceError>, u64, Vec<u8>)> {
    let shown = |completion: Completion| {
        let read = completion.request.bufs.iter().flat_map(|buf| buf.as_bytes().to_vec()).collect();
        (completion.result, completion.request.start, read)
    };
    device.submit(requests).wait().into_iter().map(shown).collect()
}

#[derive(Clone, Debug)]
struct Plan {
    op: u8,
    start: u64,
    bufs: Vec<u64>,
    fill: u8,
}

fn request(plan: &Plan) -> Request {
    let total = plan.bufs.iter().sum();
    let bufs = plan.bufs.iter().enumerate().map(|(index, blocks)| {
        AlignedBuf::from_bytes(&vec![plan.fill.wrapping_add(index as u8); *blocks as usize * crate::BLOCK_SIZE])
    });
    match plan.op {
        0 => Request::vectored(Op::Read, plan.start, bufs.collect()),
        1 => Request::vectored(Op::Write, plan.start, bufs.collect()),
        2 => Request::vectored(Op::WriteFua, plan.start, bufs.collect()),
        _ => Request::discard(plan.start, total),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_same_as_one_device(
        sizes in prop::collection::vec(0..9u64, 1..5),
        plans in prop::collection::vec(
            (0..3u8, 0..30u64, prop::collection::vec(0..6u64, 1..4), any::<u8>())
                .prop_map(|(op, start, bufs, fill)| Plan { op, start, bufs, fill }),
            1..20,
        ),
    ) {
        let (whole, _) = spanned(&sizes);
        let one = memory(sizes.iter().sum());
        // One after the other, since requests of a batch have no order.
        for plan in &plans {
            prop_assert_eq!(outcome(&whole, vec![request(plan)]), outcome(&*one, vec![request(plan)]), "{:?}", plan);
            let (split, alone) = (whole.execute(request(plan)), one.execute(request(plan)));
            prop_assert_eq!(split.result, alone.result);
        }
        let all = Request::read(0, AlignedBuf::new(one.info().blocks as usize));
        prop_assert_eq!(outcome(&whole, vec![all.clone()]), outcome(&*one, vec![all]));
    }
}

#[test]
fn a_batch_across_borders_comes_back_in_order() {
    let (whole, devices) = spanned(&[3, 1, 4]);
    let requests =
        (0..4).map(|i| Request::write(2 * i, AlignedBuf::from_bytes(&[i as u8 + 1; 8192])).with_tag(i)).collect();
    let tags: Vec<_> =
        whole.submit(requests).wait().iter().map(|done| (done.request.tag, done.request.start)).collect();
    assert_eq!(tags, [(0, 0), (1, 2), (2, 4), (3, 6)]);
    let first_bytes = |device: &MemoryDevice, blocks| -> Vec<u8> {
        (0..blocks).map(|block| device.read(block, 1).unwrap().as_bytes()[0]).collect()
    };
    assert_eq!(first_bytes(&devices[0], 3), [1, 1, 2]);
    assert_eq!(first_bytes(&devices[1], 1), [2]);
    assert_eq!(first_bytes(&devices[2], 4), [3, 3, 4, 4]);
    assert_eq!(whole.info().parts, [(3, 3), (1, 1), (4, 4)]);
}

#[test]
fn what_cannot_be_one_device() {
    let (first, second) = (memory(8), memory(8));
    let part = |device: &PlainArc<MemoryDevice>, blocks| (device.clone() as PlainArc<dyn BlockDevice>, blocks);
    let refused = |parts| SpannedDevice::new(parts).unwrap_err().to_string();
    assert_eq!(refused(Vec::new()), "no device was given");
    let short = refused(vec![part(&first, 8), part(&second, 9)]);
    assert!(short.ends_with("has 8 blocks, not the 9 that it should have"), "{short}");
    for twice in [vec![part(&first, 8), part(&first, 8)], vec![part(&second, 1), part(&first, 8), part(&first, 8)]] {
        assert!(refused(twice).ends_with("is given twice"));
    }
    let claim = second.claims().exclusive("a test").unwrap();
    assert!(refused(vec![part(&first, 8), part(&second, 8)]).contains("by a test, for writing"));
    drop(claim);
    let whole = SpannedDevice::new(vec![part(&first, 8), part(&second, 8)]).unwrap();
    assert!(second.claims().shared("another").is_err(), "the second is claimed by the whole");
    let _first = whole.claims().exclusive("a volume").unwrap();
    assert!(first.claims().shared("another").is_err(), "claims of the whole are those of the first");
    drop(whole);
    let _second = second.claims().exclusive("another").unwrap();
}

#[test]
fn zones_are_those_of_the_devices_in_their_places() {
    use crate::{ZoneChange, ZoneLayout, ZoneState, ZonedDevice};
    let zoned = |blocks: u64, zone: u64| -> PlainArc<dyn BlockDevice> {
        let layout = ZoneLayout::new(zone).with_capacity(zone / 2).with_limits(3, 0);
        PlainArc::new(ZonedDevice::new(MemoryDevice::new(blocks), layout).unwrap())
    };
    let plain: PlainArc<dyn BlockDevice> = memory(10);
    let whole =
        SpannedDevice::new(vec![(plain.clone(), 10), (zoned(32, 8), 32), (memory(5), 5), (zoned(32, 8), 16)]).unwrap();
    let limits = whole.info().zones.unwrap();
    assert_eq!((limits.zone_blocks, limits.max_open, whole.info().supports_discard), (8, 3, true));
    let starts =
        |from, count| -> Vec<u64> { whole.report_zones(from, count).unwrap().iter().map(|zone| zone.start).collect() };
    assert_eq!(starts(0, 99), [10, 18, 26, 34, 47, 55], "the last device is used by half");
    assert_eq!(
        (starts(11, 2), starts(18, 1), starts(43, 1), starts(63, 1)),
        (vec![10, 18], vec![18], vec![47], vec![])
    );
    whole.write_slice(18, b"at the pointer").unwrap();
    let error = whole.write_slice(50, b"not there").unwrap_err();
    assert_eq!(
        (error.start, error.to_string().contains("zone 0 can only be written at its write pointer, block 0")),
        (50, true),
        "{error}"
    );
    assert_eq!(whole.report_zones(18, 1).unwrap()[0].write_pointer(), Some(19));
    whole.change_zone(18, ZoneChange::Finish).unwrap();
    assert_eq!(whole.report_zones(18, 1).unwrap()[0].state, ZoneState::Full);
    whole.change_zone(18, ZoneChange::Reset).unwrap();
    assert_eq!(whole.report_zones(18, 1).unwrap()[0].state, ZoneState::Empty);
    let error = whole.change_zone(3, ZoneChange::Reset).unwrap_err();
    assert_eq!(error.kind, DeviceErrorKind::Unsupported);
    let error = whole.change_zone(48, ZoneChange::Reset).unwrap_err();
    assert_eq!(error.start, 48, "{error}");
    whole.discard(0, 10).unwrap();
    assert_eq!(whole.discard(9, 2).unwrap_err().kind, DeviceErrorKind::Unsupported);
    let differ = SpannedDevice::new(vec![(plain, 10), (zoned(32, 8), 32), (zoned(32, 16), 32)]).unwrap_err();
    assert!(matches!(differ, SpanError::ZonesDiffer { device: 2, .. }), "{differ}");
}

/// A device that says of each request that it went well, and gives no buffers back.
#[derive(Debug)]
struct Keeping(MemoryDevice);

impl BlockDevice for Keeping {
    fn info(&self) -> &DeviceInfo {
        self.0.info()
    }

    fn claims(&self) -> &Claims {
        self.0.claims()
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        let keep = |request: Request| {
            let request = Request { bufs: Vec::new(), ..request };
            Completion { request, result: Ok(()) }
        };
        Ticket::ready(requests.into_iter().map(keep).collect())
    }
}

#[test]
fn a_piece_that_comes_back_with_other_buffers_is_an_error() {
    let parts: Vec<(PlainArc<dyn BlockDevice>, u64)> =
        vec![(memory(4), 4), (PlainArc::new(Keeping(MemoryDevice::new(4))), 4)];
    let device = SpannedDevice::new(parts).unwrap();
    for request in [Request::read(2, AlignedBuf::new(4)), Request::write(2, AlignedBuf::new(4))] {
        let error = device.execute(request).result.unwrap_err();
        assert_eq!((error.kind, error.start, error.blocks), (DeviceErrorKind::OtherBuffers, 4, 2));
    }
}

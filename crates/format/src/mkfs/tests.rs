//! Numbers that mkfs.f2fs 1.15 gave, and options that it refuses. The comparison with the tool itself is in
//! `f2fs-volume`.

use alloc::collections::BTreeSet;
use alloc::string::ToString;
use proptest::prelude::*;

use super::*;

const MIB: u64 = 1 << 20;

fn plan(bytes: u64, change: impl FnOnce(&mut FormatOptions)) -> Result<VolumePlan, FormatError> {
    let mut options = FormatOptions::default();
    change(&mut options);
    VolumePlan::new(&options, bytes)
}

#[test]
fn a_gibibyte() {
    let plan = plan(1 << 30, |_| {}).unwrap();
    let geometry = &plan.geometry;
    assert_eq!((geometry.segment_count, geometry.main_segments, geometry.sections), (511, 502, 502));
    assert_eq!((geometry.sit_segments, geometry.nat_segments, geometry.ssa_segments), (2, 4, 1));
    assert_eq!((geometry.main_blkaddr.0, geometry.cp_payload), (5120, 0));
    let checkpoint = &plan.checkpoint;
    assert_eq!((checkpoint.reserved_segments, checkpoint.overprovision_segments), (39, 68));
    assert_eq!((checkpoint.user_blocks, checkpoint.free_segments), (222_208, 496));
    assert!((plan.overprovision - 6.36).abs() < 0.001);
}

/// The results of mkfs.f2fs 1.15 for sizes that take it too long for a test: sections, segments, SIT, NAT, SSA and main
/// segments, payload; user blocks, reserved and overprovision segments; warm and cold data log.
#[test]
fn terabytes() {
    type Change = fn(&mut FormatOptions);
    let cases: [(u64, Change, [u64; 12]); 5] = [
        (1 << 40, |_| {}, [523_141, 524_287, 38, 82, 1024, 523_141, 0, 266_798_080, 1007, 2051, 261_569, 130_784]),
        (
            4 << 40,
            |o| o.large_nat_bitmap = true,
            [2_091_064, 2_097_151, 150, 1842, 4093, 2_091_064, 15, 1_068_527_104, 2008, 4097, 1_045_531, 522_765],
        ),
        (
            17_592_181_850_112,
            |_| {},
            [8_371_504, 8_388_605, 596, 120, 16_383, 8_371_504, 5, 4_282_016_256, 4008, 8191, 4_185_751, 2_092_875],
        ),
        (
            (1 << 44) - 4096,
            |o| (o.segs_per_sec, o.large_nat_bitmap) = (8, true),
            // mkfs.f2fs: 7 x 512 user blocks more, for the segments behind the last zone.
            [
                1_045_531,
                8_388_592,
                596,
                7374,
                16_372,
                8_364_248,
                62,
                4_269_899_776,
                12_072,
                24_600,
                4_182_112,
                2_091_048,
            ],
        ),
        (
            9 << 40,
            |o| (o.segs_per_sec, o.secs_per_zone, o.overprovision) = (4, 2, Some(2.0)),
            [1_177_226, 4_718_584, 336, 120, 9222, 4_708_904, 3, 2_362_523_136, 432, 94_601, 2_354_440, 1_177_216],
        ),
    ];
    for (bytes, change, expected) in cases {
        let plan = plan(bytes, change).unwrap();
        let (geometry, checkpoint) = (&plan.geometry, &plan.checkpoint);
        let segment = |log| checkpoint.log(log).segment.0;
        let small = [
            geometry.sections,
            geometry.segment_count,
            geometry.sit_segments,
            geometry.nat_segments,
            geometry.ssa_segments,
            geometry.main_segments,
            geometry.cp_payload,
        ];
        let reserve = [checkpoint.reserved_segments, checkpoint.overprovision_segments];
        let logs = [segment(LogType::WarmData), segment(LogType::ColdData)];
        let mut found: Vec<u64> = small.map(u64::from).to_vec();
        found.push(checkpoint.user_blocks);
        found.extend(reserve.into_iter().chain(logs).map(u64::from));
        assert_eq!(found, expected, "{bytes} bytes");
    }
}

#[test]
fn a_device_that_ends_within_a_zone() {
    let plan = plan(1 << 30, |options| (options.segs_per_sec, options.secs_per_zone) = (3, 5)).unwrap();
    assert_eq!((plan.geometry.segment_count, plan.geometry.main_segments), (495, 480));
    let checkpoint = &plan.checkpoint;
    assert_eq!((checkpoint.reserved_segments, checkpoint.overprovision_segments), (112, 148));
    // mkfs.f2fs: 476 and 334 * 512, two segments more than the main area has.
    assert_eq!((checkpoint.free_segments, checkpoint.user_blocks), (474, 332 * 512));
}

/// Zones that hold less than they are long: a percentage that leaves users nothing is an error, whatever it is.
#[test]
fn any_percentage_of_zones_that_hold_little() {
    let zones = |capacity| DeviceZones {
        zone_blocks: 4096,
        conventional: 4,
        capacities: (0..40).map(|zone| if zone < 4 { 4096 } else { capacity }).collect(),
    };
    let mut refused = 0;
    for (capacity, percent) in
        [512, 1024, 4096].into_iter().flat_map(|capacity| (1..1000).map(move |at| (capacity, at)))
    {
        let made = plan(40 * 16 * MIB, |options| {
            options.features = Features::BLKZONED;
            options.zones = alloc::vec![Some(zones(capacity))];
            options.overprovision = Some(f64::from(percent) / 10.0);
        });
        match made {
            Ok(plan) => assert!(plan.checkpoint.user_blocks < 40 * 4096, "{}", plan.checkpoint.user_blocks),
            Err(_) => refused += 1,
        }
    }
    assert!((300..2000).contains(&refused), "{refused}");
}

#[test]
fn sizes_and_options_that_do_not_fit() {
    let smallest = match plan(10 * MIB, |_| {}).unwrap_err() {
        FormatError::Layout { what: "bytes of the device", found, min, .. } => {
            assert_eq!(found, 10 * MIB);
            min
        }
        error => panic!("{error}"),
    };
    assert!(plan(smallest, |_| {}).is_ok() && plan(smallest - 1, |_| {}).is_err());
    // With large sections there are sizes between two that are enough: the next one is told.
    let large = |bytes| plan(bytes, |options| options.segs_per_sec = 16);
    let next = match large(700 * MIB).unwrap_err() {
        FormatError::Layout { found, min, .. } => (found, min),
        error => panic!("{error}"),
    };
    assert_eq!(next, (700 * MIB, 992 * MIB));
    assert!(large(500 * MIB).is_ok() && large(next.1).is_ok() && large(next.1 - 1).is_err());
    // The largest is told, too.
    let largest = match plan(MAX_SIZE, |_| {}).unwrap_err() {
        FormatError::Layout { max, .. } => max,
        error => panic!("{error}"),
    };
    assert!(plan(largest, |_| {}).is_ok() && plan(largest + BLOCK_SIZE as u64, |_| {}).is_err());
    // No size of the first device would help.
    let two = FormatOptions { device_paths: alloc::vec![b"one".to_vec(), b"two".to_vec()], ..FormatOptions::default() };
    match VolumePlan::on(&two, &[240 * MIB, SEGMENT_SIZE - 1]).unwrap_err() {
        FormatError::Layout { what: "bytes of a device behind the first", found, min, .. } => {
            assert_eq!((found, min), (SEGMENT_SIZE - 1, SEGMENT_SIZE));
        }
        error => panic!("{error}"),
    }
    assert!(VolumePlan::on(&two, &[240 * MIB, SEGMENT_SIZE]).is_ok());
    for bytes in [0, 1, 4096, MAX_SIZE, u64::MAX] {
        assert!(matches!(plan(bytes, |_| {}), Err(FormatError::Layout { found, .. }) if found == bytes));
    }
    type Change = fn(&mut FormatOptions);
    let wrong: [(&str, Change); 13] = [
        ("segments in a section: 0", |o| o.segs_per_sec = 0),
        ("sections in a zone: 0", |o| o.secs_per_zone = 0),
        ("segments in a zone: 2048", |o| (o.segs_per_sec, o.secs_per_zone) = (2, 1024)),
        ("overprovision", |o| o.overprovision = Some(0.0)),
        ("overprovision", |o| o.overprovision = Some(100.0)),
        ("overprovision", |o| o.overprovision = Some(f64::NAN)),
        ("bytes of the label: 513", |o| o.label = "x".repeat(513)),
        ("bytes of an extension: 8", |o| o.cold_extensions = alloc::vec!["eightish".into()]),
        ("extensions: 65", |o| o.hot_extensions = (0..25).map(|i| i.to_string()).collect()),
        ("bytes of a sector: 256", |o| o.sector_size = Some(256)),
        ("power of two", |o| o.sector_size = Some(1000)),
        ("feature inode_crtime needs feature extra_attr", |o| o.features = Features::INODE_CRTIME),
        ("unsupported feature: compression", |o| o.features = Features::COMPRESSION.union(Features::EXTRA_ATTR)),
    ];
    for (message, change) in wrong {
        let error = plan(1 << 30, change).unwrap_err().to_string();
        assert!(error.contains(message), "{message}: {error}");
    }
}

#[test]
fn extensions_are_listed_once() {
    let plan = plan(1 << 30, |options| {
        options.cold_extensions = ["tar", "gz", "tar"].map(String::from).to_vec();
        options.hot_extensions = ["db", "tar", "seventh"].map(String::from).to_vec();
    });
    let sb = plan.unwrap().superblock;
    assert_eq!((sb.extension_count.get(), sb.hot_ext_count), (37, 5));
    assert_eq!((&sb.extension_list[36], &sb.extension_list[41]), (b"tar\0\0\0\0\0", b"seventh\0"));
}

#[test]
fn the_label_is_utf_16() {
    let plan = plan(1 << 30, |options| options.label = "Grüße 🦀".into()).unwrap();
    assert_eq!(plan.superblock.label(), "Grüße 🦀");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_plan_is_consistent(
        mib in 20..4_000_000u64, odd in 0..MIB, segs in 1..40u32, secs in 1..20u32, percent in prop::option::of(0.5..60.0f64),
        heap: bool, large: bool, features in any::<u32>(), sector in 9..13u32,
    ) {
        let options = FormatOptions {
            segs_per_sec: segs, secs_per_zone: secs, overprovision: percent, heap, large_nat_bitmap: large,
            features: Features(features & (Features::READ_WRITE.0 & !Features::BLKZONED.0) | Features::EXTRA_ATTR.0),
            sector_size: Some(1 << sector), ..FormatOptions::default()
        };
        let bytes = mib * MIB + odd;
        match VolumePlan::new(&options, bytes) {
            // Geometry and checkpoint have been checked in there.
            Ok(plan) => {
                prop_assert!(u64::from(plan.geometry.main_end().0) * 4096 <= bytes);
                let blocks = plan.blocks().unwrap();
                let mut seen = BTreeSet::new();
                for (addr, _) in &blocks {
                    prop_assert!(seen.insert(*addr), "{} is written twice", addr);
                    prop_assert!(*addr >= plan.geometry.cp_blkaddr && *addr < plan.geometry.main_end());
                }
                prop_assert!(plan.checkpoint.user_blocks > 0);
            }
            Err(FormatError::Layout { what: "bytes of the device", .. }) => {}
            Err(error) => prop_assert!(false, "{}", error),
        }
    }
}

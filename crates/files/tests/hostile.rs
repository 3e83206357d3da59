//! Arbitrary damage behind right checksums: reading, checking and changing such a volume ends, without a panic. The
//! fuzz targets do the same for longer.
//!
//! `F2FS_CASES=20000` tries more volumes than the usual 256.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::time::Duration;

use f2fs_format::mkfs::FormatOptions;
use f2fs_test_kit::hostile::{
    Base, Change, Damage, Fault, KINDS, Patch, at_once, change, change_by_two, change_on_failing, open_and_check,
    read_everything, read_from_failing, recipes, repair, roll_forward,
};
use f2fs_volume::Allocation;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

fn patch() -> impl Strategy<Value = Patch> {
    // Whole fields more often than noise: numbers at their borders.
    let bytes = prop_oneof![
        3 => any::<u8>().prop_map(|byte| vec![byte]),
        3 => prop_oneof![Just(0u32), Just(1), Just(u32::MAX), Just(3), any::<u32>()].prop_map(|n| n.to_le_bytes().to_vec()),
        1 => prop_oneof![Just(u64::MAX), Just(1u64 << 62), any::<u64>()].prop_map(|n| n.to_le_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 1..60),
    ];
    // Inodes have their numbers in front, nodes their footer at the end.
    let offset = prop_oneof![2 => 0u16..4096, 1 => 0u16..120, 1 => 4060u16..4096, 1 => 340u16..420, 1 => 1024u16..1400];
    (any::<u16>(), offset, bytes).prop_map(|(block, offset, bytes)| Patch { block, offset, bytes })
}

/// Bytes anywhere, or fields of what stands there.
fn damage() -> impl Strategy<Value = Vec<Damage>> {
    let number = prop_oneof![any::<u32>(), 0u32..300];
    let field = (any::<u8>(), any::<u16>(), any::<u8>(), any::<u8>(), number)
        .prop_map(|(kind, which, field, how, number)| Damage::Change(Change { kind, which, field, how, number }));
    prop::collection::vec(prop_oneof![1 => patch().prop_map(Damage::Patch), 3 => field], 0..12)
}

fn choices() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 2..60)
}

fn run<S: Strategy>(strategy: &S, cases: u32, test: impl Fn(S::Value))
where
    S::Value: std::fmt::Debug,
{
    let wanted = std::env::var("F2FS_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(cases);
    let config = Config { cases: wanted, failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
    let result = TestRunner::new(config).run(strategy, |value| {
        let begun = std::time::Instant::now();
        test(value);
        assert!(begun.elapsed() < Duration::from_secs(30), "took {:?}", begun.elapsed());
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn volumes_without_damage_are_clean() {
    for kind in 0..6 {
        let base = Base::new(kind);
        let device = base.damaged(&[]);
        let options = f2fs_check::CheckOptions::default();
        let report = f2fs_check::check(&*device, &options).unwrap();
        assert!(report.is_clean(), "{report}");
        change(&device, base.names(), &(0..80).collect::<Vec<u8>>(), true);
        let report = f2fs_check::check(&*device, &options).unwrap();
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn a_volume_has_structures_of_every_kind() {
    let bases = [Base::new(1), Base::new(5), Base::synced(2)];
    for kind in KINDS {
        assert!(bases.iter().any(|base| !base.structures().places(kind).is_empty()), "{kind:?}");
    }
    assert!(!bases[2].structures().places(f2fs_test_kit::hostile::Kind::Chain).is_empty());
    // Blocks that are no metadata can be anything.
    for base in &bases {
        let device = base.device().snapshot();
        let metadata = &base.structures().metadata;
        device
            .used()
            .iter()
            .filter(|at| metadata.binary_search(at).is_err())
            .for_each(|at| device.put(*at, &[0; 4096]));
        let report = f2fs_check::check(&device, &f2fs_check::CheckOptions::default()).unwrap();
        assert!(report.is_consistent() && report.complete, "{report}");
    }
}

#[test]
fn damaged_volumes_are_read_and_checked() {
    let bases: Vec<Base> = (0..6).map(Base::new).collect();
    let strategy = (0usize..6, damage());
    run(&strategy, 256, |(base, damage)| _ = open_and_check(&bases[base].with(damage)));
}

#[test]
fn damaged_volumes_are_changed() {
    let bases: Vec<Base> = (0..6).map(Base::new).collect();
    let strategy = (0usize..6, damage(), choices());
    run(&strategy, 256, |(base, damage, choices)| {
        let (base, is_sound) = (&bases[base], damage.is_empty());
        change(&base.with(damage), base.names(), &choices, is_sound);
    });
}

#[test]
fn damaged_volumes_are_changed_by_two_threads() {
    let bases: Vec<Base> = (0..6).map(Base::new).collect();
    let strategy = (0usize..6, damage(), choices());
    run(&strategy, 128, |(base, damage, choices)| {
        let (base, is_sound) = (&bases[base], damage.is_empty());
        change_by_two(&base.with(damage), base.names(), &choices, is_sound, at_once);
    });
}

#[test]
fn damaged_volumes_are_used_on_a_failing_device() {
    let bases: Vec<Base> = (0..6).map(Base::new).collect();
    let fault = (any::<u8>(), any::<u8>(), any::<u8>()).prop_map(|(on, after, what)| Fault { on, after, what });
    let strategy = (0usize..6, damage(), choices(), prop::collection::vec(fault, 1..3));
    run(&strategy, 256, |(base, damage, choices, faults)| {
        let (base, is_sound) = (&bases[base], damage.is_empty());
        let device = base.with(damage);
        read_from_failing(&device, &faults);
        change_on_failing(&device, base.names(), &choices, &faults, is_sound);
    });
}

#[test]
fn damaged_volumes_of_other_shapes_are_changed() {
    let plain = FormatOptions::default;
    let devices = [
        recipes::shaped(recipes::SMALLEST, &plain(), 0),
        recipes::shaped(128, &plain().with_sections(2, 1), 1),
        recipes::shaped(256, &plain().with_sections(3, 2), 5),
        recipes::shaped(64 << 10, &plain().with_sections(8, 2), 0),
        recipes::aged(Allocation::ssr(), &plain()),
    ];
    let bases: Vec<Base> = devices.iter().map(Base::from_device).collect();
    for base in &bases {
        change(&base.damaged(&[]), base.names(), &(0..80).collect::<Vec<u8>>(), true);
    }
    let strategy = (0..bases.len(), damage(), choices());
    run(&strategy, 128, |(base, damage, choices)| {
        let (base, is_sound) = (&bases[base], damage.is_empty());
        change(&base.with(damage), base.names(), &choices, is_sound);
    });
}

#[test]
fn damaged_volumes_are_read_twice() {
    let bases: Vec<Base> = (0..6).map(Base::new).collect();
    let strategy = (0usize..6, damage());
    run(&strategy, 64, |(base, damage)| read_everything(&bases[base].with(damage)));
}

#[test]
fn damaged_volumes_are_repaired_or_left_alone() {
    let bases: Vec<Base> = (0..6).map(Base::new).collect();
    let strategy = (0usize..6, damage());
    run(&strategy, 128, |(base, damage)| repair(&bases[base].with(damage)));
}

#[test]
fn damaged_chains_are_rolled_forward_or_refused() {
    let bases: Vec<Base> = (0..3).map(Base::synced).collect();
    for base in &bases {
        roll_forward(&base.damaged(&[]), true);
    }
    let strategy = (0usize..3, damage());
    run(&strategy, 128, |(base, damage)| roll_forward(&bases[base].with(damage), false));
}

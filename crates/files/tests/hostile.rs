//! Arbitrary damage behind right checksums: reading, checking and changing such a volume ends, without a panic. The fuzz
//! targets do the same for longer.
//!
//! `F2FS_CASES=20000` tries more volumes than the usual 256.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod harness;

use std::time::Duration;

use harness::{Base, Patch, change, open_and_check, read_everything, repair, roll_forward};
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
        let device = Base::new(kind).damaged(&[]);
        let options = f2fs_check::CheckOptions::default();
        let report = f2fs_check::check(&*device, &options).unwrap();
        assert!(report.is_clean(), "{report}");
        change(&device, &(0..80).collect::<Vec<u8>>());
        let report = f2fs_check::check(&*device, &options).unwrap();
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn damaged_volumes_are_read_and_checked() {
    let bases: Vec<Base> = (0..6).map(Base::new).collect();
    let strategy = (0usize..6, prop::collection::vec(patch(), 1..12));
    run(&strategy, 256, |(base, patches)| open_and_check(&bases[base].damaged(&patches)));
}

#[test]
fn damaged_volumes_are_changed() {
    let bases: Vec<Base> = (0..6).map(Base::new).collect();
    let strategy = (0usize..6, prop::collection::vec(patch(), 1..12), prop::collection::vec(any::<u8>(), 2..60));
    run(&strategy, 256, |(base, patches, choices)| change(&bases[base].damaged(&patches), &choices));
}

#[test]
fn damaged_volumes_are_read_twice() {
    let bases: Vec<Base> = (0..6).map(Base::new).collect();
    let strategy = (0usize..6, prop::collection::vec(patch(), 1..12));
    run(&strategy, 64, |(base, patches)| read_everything(&bases[base].damaged(&patches)));
}

#[test]
fn damaged_volumes_are_repaired_or_left_alone() {
    let bases: Vec<Base> = (0..6).map(Base::new).collect();
    let strategy = (0usize..6, prop::collection::vec(patch(), 1..12));
    run(&strategy, 128, |(base, patches)| repair(&bases[base].damaged(&patches)));
}

#[test]
fn damaged_chains_are_rolled_forward_or_refused() {
    let bases: Vec<Base> = (0..3).map(Base::synced).collect();
    for base in &bases {
        roll_forward(&base.damaged(&[]));
    }
    let strategy = (0usize..3, prop::collection::vec(patch(), 1..12));
    run(&strategy, 128, |(base, patches)| roll_forward(&bases[base].damaged(&patches)));
}

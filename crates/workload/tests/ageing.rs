//! Aged volumes: every policy, at several utilisations, with unclean stops, judged by fsck.f2fs and by every block's content.
//!
//! `F2FS_AGEING=20` overwrites twenty times the volume's size (the usual is two) on volumes of `F2FS_AGEING_MIB` (80).
#![allow(missing_docs, clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;

use f2fs_device::MemoryDevice;
use f2fs_files::Options;
use f2fs_volume::check::{CheckOptions, check};
use f2fs_volume::format::{FormatOptions, format};
use f2fs_volume::{Allocation, CostModel, OpenOptions};
use f2fs_workload::ageing::{Plan, age};

fn number(name: &str, default: f64) -> f64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn run(allocation: &str) {
    let (turnover, mib) = (number("F2FS_AGEING", 2.0), number("F2FS_AGEING_MIB", 80.0) as u64);
    for utilisation in [0.5, 0.8, 0.95] {
        let device = Arc::new(MemoryDevice::new((mib << 20) >> 12));
        format(&*device, &FormatOptions::default()).unwrap();
        let allocation = allocation.parse::<Allocation>().unwrap().on(CostModel::sata_ssd());
        let name = allocation.name();
        let options = Options::new().volume(OpenOptions::new().allocation(allocation));
        let report = age(&device, &options, &Plan::new(utilisation, turnover)).unwrap();
        println!(
            "{name} {:.0} %: {} blocks overwritten {:.1} times in {:.1} s, {:.2} written for each; {:?}",
            utilisation * 100.0,
            report.blocks,
            report.updates as f64 / f64::from(report.blocks),
            report.elapsed.as_secs_f64(),
            report.amplification(),
            report.written,
        );
        assert!(report.written.user_blocks >= report.updates);
        let found = check(&*device, &CheckOptions::default()).unwrap();
        assert!(found.is_clean(), "{found}");
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("image");
        device.save(&image).unwrap();
        f2fs_oracle::assert_clean(&image);
    }
}

#[test]
fn holes_are_skipped() {
    run("ssr");
}

#[test]
fn runs_are_always_moved_or_rewritten() {
    run("partial");
}

#[test]
fn runs_are_rewritten_where_each_is_worth_it() {
    run("selective-greedy");
}

#[test]
fn runs_are_rewritten_where_the_request_is_worth_it() {
    run("selective-optimal");
}

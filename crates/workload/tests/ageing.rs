//! Aged volumes: every policy, at several utilisations, with unclean stops, judged by fsck.f2fs and by every block's
//! content.
//!
//! `F2FS_AGEING=20` overwrites twenty times the volume's size (the usual is two) on volumes of `F2FS_AGEING_MIB` (80).
#![allow(missing_docs, clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;

use f2fs::format::feature::Features;
use f2fs_check::{CheckOptions, check};
use f2fs_device::{BlockDevice, MemoryDevice, ZoneLayout, ZonedDevice};
use f2fs_files::Options;
use f2fs_volume::format::{FormatOptions, format};
use f2fs_volume::{AgeThreshold, Allocation, CostModel, VictimPolicy, VolumeOptions, WriteStat};
use f2fs_workload::ageing::{Plan, age};

fn number(name: &str, default: f64) -> f64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Gives what was written, over all utilisations.
fn run(allocation: &str, cleaning: Option<VictimPolicy>) -> WriteStat {
    let (turnover, mib) = (number("F2FS_AGEING", 2.0), number("F2FS_AGEING_MIB", 80.0) as u64);
    let mut all = WriteStat::default();
    for utilisation in [0.5, 0.8, 0.95] {
        let device = Arc::new(MemoryDevice::new((mib << 20) >> 12));
        format(&*device, &FormatOptions::default()).unwrap();
        let allocation = allocation.parse::<Allocation>().unwrap().on(CostModel::sata_ssd());
        let name = allocation.name();
        let options = Options::new().volume(VolumeOptions::new().allocation(allocation));
        let mut plan = Plan::new(utilisation, turnover);
        plan.cleaning = cleaning;
        let report = age(&device, &options, &plan).unwrap();
        all = all.plus(&report.written);
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
    all
}

#[test]
fn holes_are_skipped() {
    run("ssr", None);
}

#[test]
fn runs_are_always_moved_or_rewritten() {
    run("partial", None);
}

#[test]
fn runs_are_rewritten_where_each_is_worth_it() {
    run("selective-greedy", None);
}

#[test]
fn runs_are_rewritten_where_the_request_is_worth_it() {
    run("selective-optimal", None);
}

/// Sections are emptied meanwhile, and their blocks put among others of their age.
#[test]
fn blocks_are_moved_among_others_of_their_age() {
    let rule = AgeThreshold::default().threshold(0);
    let written = run("ssr", Some(VictimPolicy::AgeThreshold(rule)));
    assert!(written.victims > 50 && written.merged_data_blocks > 1000, "{written:?}");
}

#[test]
fn sections_are_emptied_by_cost_and_benefit() {
    let written = run("ssr", Some(VictimPolicy::CostBenefit));
    assert!(written.victims > 50 && written.merged_data_blocks == 0, "{written:?}");
}

/// What is promised to users can be filled and overwritten, however much of each zone of 4 MiB can be written.
#[test]
fn zones_are_emptied_for_writes_to_a_volume_that_is_nearly_full() {
    for (capacity, allocation) in [(1024, "ssr"), (768, "ssr"), (768, "partial"), (520, "ssr"), (500, "ssr")] {
        let front: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 8));
        let layout = ZoneLayout::new(1024).with_capacity(capacity).with_limits(14, 14);
        let zones: Arc<dyn BlockDevice> = Arc::new(ZonedDevice::new(MemoryDevice::new(256 << 8), layout).unwrap());
        let device = Arc::new(f2fs_volume::devices::whole(vec![front, zones]).unwrap());
        let options = FormatOptions::default().with_features(Features::BLKZONED).with_device_paths(["/a", "/b"]);
        let formatted = format(&*device, &options).unwrap();
        let allocation = allocation.parse::<Allocation>().unwrap();
        let options = Options::new().volume(VolumeOptions::new().allocation(allocation));
        let report = age(&device, &options, &Plan::new(0.97, number("F2FS_AGEING", 1.0))).unwrap();
        assert_eq!(report.stat.user_blocks, formatted.user_blocks);
        println!("{capacity}: {} of {} blocks, {:.2}", report.blocks, formatted.user_blocks, report.amplification());
        assert!(report.written.victims > 50 && report.written.rewritten_blocks == 0, "{:?}", report.written);
        let found = check(&*device, &CheckOptions::default()).unwrap();
        assert!(found.is_clean(), "{found}");
    }
}

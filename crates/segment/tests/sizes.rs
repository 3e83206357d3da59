//! Every address, count and share that a caller can hand in, at the ends of what its type holds: an answer or an error,
//! no panic, and no memory by what was asked for.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use common::{empty, geometry};
use f2fs_format::summary::Summary;
use f2fs_format::{BlockAddr, LogType, Nid, SegmentNo};
use f2fs_segment::cost::CostModel;
use f2fs_segment::plan::{Gap, Layout, Planner, Strategy};
use f2fs_segment::{AllocType, BlockMap, Class, Run, SegmentConfig, SegmentManager, VictimPolicy};

const SIZES: [u64; 12] =
    [0, 1, 63, 64, 511, 512, 513, 1 << 23, u32::MAX as u64 - 1, u32::MAX as u64, i64::MAX as u64, u64::MAX];

fn summaries(count: usize) -> Vec<Summary> {
    vec![Summary::new(Nid(5), 0, 0); count]
}

#[test]
fn areas() {
    for main in SIZES.map(|size| size as u32) {
        for per_section in SIZES.map(|size| size as u32) {
            let Ok(config) = SegmentConfig::embedded(main, per_section) else { continue };
            if main > 10_000 {
                continue;
            }
            for size in SIZES {
                let config = config.clone().lanes(size as usize).user_floor(size as u32);
                let with = SegmentConfig::new(config.geometry.clone(), size as u32, size as u32).lanes(size as usize);
                for config in [config, with] {
                    if let Ok(manager) = SegmentManager::empty(config) {
                        let _ = (manager.free_sections(), manager.reserved_segments(), manager.floor(Class::User));
                        let _ = manager.allocate(LogType::HotData, &summaries(700), size, &mut Vec::new());
                    }
                }
            }
        }
    }
}

#[test]
fn addresses_and_times() {
    let geometry = geometry(24, 1);
    let manager = empty(&geometry, |config| config);
    let mut runs = Vec::new();
    for now in SIZES {
        manager.allocate(LogType::WarmData, &summaries(3), now, &mut runs).unwrap();
        manager.allocate(LogType::WarmData, &[], now, &mut runs).unwrap();
        let run = *runs.last().unwrap();
        manager.invalidate(run.addr, now).unwrap();
        for addr in SIZES.map(|addr| BlockAddr(addr as u32)) {
            let inside = geometry.in_main(addr);
            let _ = manager.is_valid(addr);
            let freed = manager.invalidate(addr, now);
            assert!(inside || freed.is_err(), "{addr}");
            for len in SIZES.map(|len| len as u32) {
                assert!(manager.invalidate_run(Run { addr, len }, now).is_err() || len == 0, "{addr}, {len}");
            }
            assert!(inside || manager.hold(addr).is_err(), "{addr}");
            assert!(inside || manager.adopt(addr, summaries(1)[0], now).is_err(), "{addr}");
        }
        // A valid run, and on from there to the end of all numbers.
        let tail = Run { addr: run.addr.offset(1), len: u32::MAX };
        assert!(manager.invalidate_run(tail, now).is_err());
        for segment in SIZES.map(|segment| SegmentNo(segment as u32)) {
            let inside = segment.0 < geometry.main_segments;
            assert_eq!(manager.segment(segment).is_ok(), inside, "{segment}");
            assert!(manager.summary(segment).is_none() || inside, "{segment}");
            assert!(inside || manager.release_segment(segment).is_err(), "{segment}");
        }
        for policy in [VictimPolicy::Greedy, VictimPolicy::CostBenefit] {
            if let Some(victim) = manager.choose_victim(policy, now) {
                manager.release_victim(&victim).unwrap();
            }
        }
    }
    // More than there is.
    let before = manager.valid_blocks();
    let error = manager.allocate(LogType::HotData, &summaries(20_000), 0, &mut Vec::new());
    assert!(error.is_err());
    assert_eq!(manager.valid_blocks(), before);
}

#[test]
fn pressures_and_journals() {
    let geometry = geometry(24, 1);
    for one in SIZES.map(|size| size as u32) {
        for other in SIZES.map(|size| size as u32) {
            let manager = empty(&geometry, |config| config);
            manager.set_pressure(one, other);
            let _ = (manager.dirty_sections(), manager.need_ssr(), manager.enough_free_sections(one, other));
            let _ = (manager.floor(Class::User), manager.floor(Class::Checkpoint), manager.reserved_sections());
            // The reserve for so many dirty blocks may leave nothing.
            let _ = manager.allocate(LogType::HotData, &summaries(3), 0, &mut Vec::new());
        }
    }
    for capacity in SIZES.map(|size| size as usize) {
        let manager = empty(&geometry, |config| config);
        manager.allocate(LogType::HotData, &summaries(3), 0, &mut Vec::new()).unwrap();
        let flush = manager.begin_checkpoint(capacity).unwrap();
        assert!(flush.sit_journal.len() <= capacity.min(24));
        manager.end_checkpoint();
    }
}

#[test]
fn maps() {
    for start in SIZES.map(|size| size as u32) {
        for len in SIZES.map(|size| size as u32) {
            let mut map = BlockMap::EMPTY;
            map.insert(start, len);
            assert_eq!(map.count(), start.saturating_add(len).min(512).saturating_sub(start), "{start}, {len}");
            assert_eq!(map.contains(start), start < 512 && len > 0);
            let _ = (map.next(start, true), map.next(len, false), map.count_from(start));
            map.remove(start, len);
            assert!(map.is_empty());
        }
    }
    for number in 0..=u8::MAX {
        let _ = AllocType::from_number(number);
    }
}

#[test]
fn plans() {
    // The second point costs less than a thousandth of the first.
    let cost = || CostModel::from_points("two", &[(1, 1e-5), (2, 1e-12), (512, 1e-7)]).unwrap();
    let strategies =
        [Strategy::SsrOnly, Strategy::PartialAlways, Strategy::Greedy, Strategy::Marginal, Strategy::Optimal];
    let shares = [0.0, -1.0, 1.0, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    for strategy in strategies {
        for share in shares {
            let planner = Planner::new(cost(), strategy, share).with_cold_hole(share).wear(share).at_most(share);
            for hole in SIZES.map(|size| size as u32) {
                let mut layout = Layout::new();
                for _ in 0..3 {
                    layout.push(Gap::Valid(hole), hole);
                    layout.push(Gap::Valid(0), hole);
                    layout.push(Gap::Break, hole);
                }
                layout.push_segment(&BlockMap::EMPTY, hole);
                for request in SIZES.map(|size| size as u32) {
                    assert_eq!(planner.plan_paid(&layout, request).len(), layout.gaps().len());
                    let choices = planner.plan(&layout, request);
                    assert_eq!(choices.len(), layout.gaps().len());
                    let outcome = planner.outcome(&layout, request, &choices);
                    let _ = (planner.objective(&outcome), outcome.written());
                    // Fewer choices than gaps are as many as there are.
                    let _ = planner.outcome(&layout, request, &[]);
                }
            }
        }
    }
}

#[test]
fn costs() {
    let cost = CostModel::from_points("two", &[(1, 1e-6), (u32::MAX, 1e-9)]).unwrap();
    for blocks in [0.0, -1.0, 0.5, 1.0, 1e18, f64::MAX, f64::INFINITY, f64::NAN, f64::NEG_INFINITY] {
        let _ = (cost.seconds(blocks), cost.seconds_per_block(blocks));
    }
}

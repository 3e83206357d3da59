//! Cleaning between promises: blocks of synced files move, and are synced again.

use crate::base::BaseKind;
use crate::workload::Workload;

const HALF: usize = 1 << 20;

/// The workloads: each empties sections in front of, between or behind syncs of the files whose blocks move.
#[must_use]
pub fn cleaning() -> Vec<Workload> {
    let mut texts: Vec<(BaseKind, String)> = Vec::new();
    // Files that fill a segment each: half of it becomes a hole, the rest moves.
    for file in ["/large-1", "/large-5"] {
        let other = "/large-3";
        let hole = format!("write {file} 0 {HALF}");
        let full = [
            format!("{hole}; checkpoint; clean; sync {file}"),
            format!("{hole}; checkpoint; clean; write {file} {HALF} 4096; sync {file}"),
            format!("{hole}; checkpoint; clean; durable {file} {HALF} 4096; clean; sync {file}"),
            format!("{hole}; sync {file}; clean; write {file} {HALF} 100; sync {file}"),
            format!("{hole}; sync {file}; clean; write {other} 0 {HALF}; sync {other}"),
            format!("{hole}; checkpoint; clean; checkpoint; write {other} 0 {HALF}; sync {other}"),
            format!(
                "truncate {file} {HALF}; checkpoint; clean; clean; write {other} 0 {HALF}; sync {file}; sync {other}"
            ),
            format!(
                "unlink {file}; checkpoint; clean; write {other} 0 {HALF}; durable {other} 0 4096; clean; checkpoint"
            ),
            "checkpoint; clean; clean; write /A/foo 0 100; sync /A/foo; clean; truncate /B/baz 100; sync /B/baz"
                .to_owned(),
        ];
        texts.extend(full.map(|text| (BaseKind::Full, text)));
    }
    // A file with a block here and there in every segment.
    let file = "/fill/0";
    for at in [0, 40_960, 4_096_000] {
        let tight = [
            format!("clean; write {file} {at} 4096; sync {file}"),
            format!("clean; write {file} {at} 4096; sync {file}; clean; sync {file}"),
            format!("write {file} {at} 4096; sync {file}; clean; write {file} {at} 8192; sync {file}"),
            format!("durable {file} {at} 4096; clean; durable {file} {at} 4096; clean; checkpoint; sync {file}"),
            format!(
                "clean; clean; checkpoint; write {file} {at} 40000; sync {file}; write /A/foo 0 40000; sync /A/foo"
            ),
            format!("clean; write /A/foo 0 400000; sync /A/foo; clean; truncate {file} {at}; sync {file}"),
        ];
        texts.extend(tight.map(|text| (BaseKind::Tight, text)));
    }
    texts.iter().filter_map(|(base, text)| format!("{}: {text}", base.name()).parse().ok()).collect()
}

//! Files whose addresses do not fit into the inode: synced ones have direct nodes, and indirect ones above them.

use crate::base::BaseKind;
use crate::workload::Workload;

const MIB: u64 = 1 << 20;

/// Places in a file whose addresses stand in the first direct node, in the second, and below the first indirect one.
const PLACES: [u64; 3] = [4 * MIB, 8 * MIB, 12 * MIB];

/// The workloads: each makes such files durable without a checkpoint at its end.
#[must_use]
pub fn deep() -> Vec<Workload> {
    let mut texts = Vec::new();
    for at in PLACES {
        let far = format!("write /A/foo {at} 9000");
        let next = at + 4096;
        texts.extend([
            format!("{far}; sync /A/foo"),
            format!("durable /A/foo {at} 9000"),
            format!("{far}; checkpoint; write /A/foo {next} 5000; sync /A/foo"),
            format!("{far}; checkpoint; durable /A/foo {next} 100000"),
            format!("{far}; sync /A/foo; write /A/foo {next} 9000; sync /A/foo"),
            format!("{far}; sync /A/foo; write /A/foo 0 100; sync /A/foo"),
            format!("{far}; sync /A/foo; checkpoint; write /A/foo {at} 100"),
            format!("{far}; checkpoint; truncate /A/foo {next}; sync /A/foo"),
            format!("{far}; checkpoint; truncate /A/foo 100; sync /A/foo"),
            format!("{far}; write /A/foo 0 9000; write /B/baz {at} 100; sync /A/foo"),
            format!("create /A/new; write /A/new {at} 9000; sync /A/new"),
        ]);
    }
    let [first, second, third] = PLACES;
    texts.push(format!("write /A/foo {first} 1; write /A/foo {second} 1; write /A/foo {third} 1; sync /A/foo"));
    let parsed = texts.iter().flat_map(|text| {
        let of = |kind: BaseKind| format!("{}: {text}", kind.name()).parse::<Workload>().ok();
        [of(BaseKind::Plain), of(BaseKind::Checksums)]
    });
    parsed.flatten().collect()
}

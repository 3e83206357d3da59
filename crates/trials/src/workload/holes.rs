//! Files that get holes, or zeros with blocks: in the inode's own addresses, in direct nodes, and over the border of
//! two.

use crate::base::BaseKind;
use crate::workload::Workload;

const MIB: u64 = 1 << 20;

/// Where a hole begins: in the inode's addresses, in the first direct node, and so that it ends in the next node (the
/// inode of a volume without checksums has 923 addresses).
const PLACES: [u64; 3] = [0, 4 * MIB, 923 * 4096 - 16 * 4096];

/// The workloads: each makes a hole or zeros, of parts of blocks and of whole ones, before and behind a sync or a
/// checkpoint.
#[must_use]
pub fn holes() -> Vec<Workload> {
    let mut texts = Vec::new();
    for at in PLACES {
        let written = format!("write /A/foo {at} 120000");
        let (part, whole) = (at + 5000, at + 8192);
        for make in ["punch", "zero", "zerogrow"] {
            texts.extend([
                // The durable blocks go; the cut may find them or not, and never a mixture.
                format!("{written}; checkpoint; {make} /A/foo {part} 60000; sync /A/foo"),
                format!("{written}; checkpoint; {make} /A/foo {whole} 61440; sync /A/foo"),
                format!("{written}; sync /A/foo; {make} /A/foo {part} 60000; sync /A/foo"),
                format!("{written}; sync /A/foo; {make} /A/foo {part} 60000; checkpoint"),
                format!("{written}; sync /A/foo; {make} /A/foo {part} 60000"),
                // The blocks that became free are another file's before the checkpoint.
                format!(
                    "{written}; sync /A/foo; {make} /A/foo {at} 100000; sync /A/foo; write /B/bar 0 100000; sync /B/bar"
                ),
                // Over the end of the file, and data into the hole.
                format!("{written}; sync /A/foo; {make} /A/foo {part} 400000; sync /A/foo"),
                format!("{written}; sync /A/foo; {make} /A/foo {at} 90000; write /A/foo {whole} 9000; sync /A/foo"),
                format!("{written}; sync /A/foo; {make} /A/foo {at} 90000; durable /A/foo {whole} 9000"),
                format!("{written}; sync /A/foo; {make} /A/foo {part} 60000; truncate /A/foo {whole}; sync /A/foo"),
            ]);
        }
    }
    // Content in the inode.
    texts
        .extend(["punch", "zero", "zerogrow"].map(|make| {
            format!("create /A/new; write /A/new 0 1000; sync /A/new; {make} /A/new 100 300; sync /A/new")
        }));
    let parsed = texts.iter().flat_map(|text| {
        let of = |kind: BaseKind| format!("{}: {text}", kind.name()).parse::<Workload>().ok();
        [of(BaseKind::Plain), of(BaseKind::Checksums)]
    });
    parsed.flatten().collect()
}

//! Cache lines that operations write, counted in the counting half of f2fs-sync.
//!
//! ```text
//! cargo xtask counting --table
//! ```
//!
//! Two threads do each operation, in turns and on objects of their own. `lines`: distinct lines written per operation.
//! `shared`: those that the other thread writes as well, in some operation of its own. `global`: those that at least a
//! quarter of both threads' operations write; below the table each is named by where it is written. Other lines that both
//! write are those of stripes (which meet by chance) and of batches (now and then); `--all` names them, too.
//!
//! What is not counted: memory that is written under a lock, and the allocator's own.
//!
//! # Measured
//!
//! Distinct lines per operation, those in common with the other thread, and the global ones; *before* is the library whose
//! directories searched their blocks for each name, and whose paths took the locks of each directory on the way (the
//! reference counts of inodes and pages were not on record then, so that it was worse than it looks).
//!
//! ```text
//! operation                                before: lines shared global    now: lines shared global
//! kernel-scan: allocate + free                       8.0    8.0      6           8.0    8.0      6
//! clue: allocate + free                              8.0    8.0      6           8.0    8.0      6
//! sharded: allocate + free                           5.0    0.0      0           5.0    0.0      0
//! extent: lock + unlock one block                    1.0    0.0      0           1.0    0.0      0
//! segment: allocate 8 blocks, one log                  -      -      -           3.1    3.0      1
//! segment: allocate 8 blocks, lanes                    -      -      -           3.1    0.1      0
//! lookup, private directories                       23.1    6.0      4           9.9    1.0      0
//! create, private directories                       38.4    8.3      4          27.7    3.4      0
//! unlink, private directories                       33.9    7.0      4          18.9    2.0      0
//! rename, private directories                       31.4    6.0      4          13.1    1.0      0
//! lookup, shared directory                          23.1   21.1     22          10.1    4.3      0
//! create, shared directory                          39.0   25.5     23          25.2    7.4      0
//! unlink, shared directory                          33.9   23.6     23          19.0    5.2      0
//! rename, shared directory                          31.8   29.8     36          13.7    7.8      3
//! read 4 KiB, private files                          4.0    0.0      0           4.0    0.0      0
//! overwrite 4 KiB, private files                     9.9    5.0      6           9.9    4.0      5
//! ```
//!
//! A batch of 512 blocks is a segment: 9 lines, 0.02 for a block, of which 4 are common (the free map, its count, the
//! summaries that wait for the checkpoint, the word of changed entries). The three lines of a rename in one directory are
//! dentry blocks of low levels: a name that leaves one makes room there that the next rename takes. The lines of an
//! overwrite are the head of the log and what belongs to the segment it stands in: the volume does not use the lanes of
//! `f2fs-segment` yet.

#[cfg(f2fs_counting)]
fn main() {
    use f2fs_benches::cache_lines::CASES;

    let all = std::env::args().any(|arg| arg == "--all");
    println!("{:<46} {:>7} {:>7} {:>7}", "operation", "lines", "shared", "global");
    let mut named = Vec::new();
    for case in CASES {
        let footprint = (case.measure)();
        let global = footprint.global().count();
        println!("{:<46} {:>7.1} {:>7.1} {global:>7}", case.name, footprint.lines, footprint.shared);
        let shown = if all { footprint.common.len() } else { global };
        named.extend(footprint.common.into_iter().take(shown).map(|common| (case.name, common)));
    }
    let mut last = "";
    let mut lines = named.into_iter().peekable();
    while let Some((name, common)) = lines.next() {
        if name != last {
            println!("\n{name}");
            last = name;
        }
        // Lines of one kind are told once, with the shares of the one that is written most.
        let mut alike = 1;
        while lines.next_if(|(other, next)| *other == name && next.sites == common.sites).is_some() {
            alike += 1;
        }
        println!("  {alike} in {:.2} and {:.2} of the operations", common.share[0], common.share[1]);
        for site in common.sites {
            println!("      {site}");
        }
    }
}

#[cfg(not(f2fs_counting))]
fn main() {
    println!("cache_lines needs the counting half: cargo xtask counting --table");
}

//! Cache lines that operations write, counted in the counting half of f2fs-sync.
//!
//! ```text
//! cargo xtask counting --table
//! ```
//!
//! Threads do each operation in turns, each as if on a processor of its own and on objects of its own.
//!
//! - *lines*: distinct lines that an operation writes;
//! - *shared*: those of them that another thread writes as well, in some operation of its own;
//! - *moved*: lines that the operation has to fetch, because another thread wrote them, or to take from others that
//!   read them;
//! - *global*: lines that half of the threads and at least two write, each in at least one of a hundred of its
//!   operations. Below the table each is named by where it is written; `--all` names every line that two threads write.
//!
//! The documentation of `f2fs_sync::counting` says what is counted: every clone and drop of a reference, but not the
//! memory that a value behind a lock points to (the bytes of a page, the entries of a map), and not the allocator's own
//! lines.
//!
//! # Measured
//!
//! This table is a test: `cargo xtask counting` fails if what it says is no longer so (`benches/tests/cache_lines.rs`).
//! Names that are unlinked and renamed were there before the last checkpoint, as in FxMark.
//!
//! ```text
//!                                                         2 threads                        8 threads
//! operation                                      lines  shared   moved  global    lines  shared   moved  global
//! kernel-scan: allocate + free                    12.0    12.0    11.8      45     12.0    12.0    11.8     135
//! clue: allocate + free                           12.0    12.0    11.8      45     12.0    12.0    11.8     136
//! sharded: allocate + free                         6.0     0.0     0.0       0      6.0     0.0     0.0       0
//! extent: lock + unlock one block, shared          1.0     0.0     0.0       0      1.0     0.0     0.0       0
//! extent: lock + unlock one block, exclusive       1.0     0.0     0.0       0      1.0     0.0     0.0       0
//! segment: allocate 512 blocks, one log           18.0    16.0    13.0      86     18.0    16.0    13.1      19
//! segment: allocate 512 blocks, lanes             18.0     9.0     9.0      85     18.0     9.0     9.5      17
//! segment: allocate 8 blocks, one log              5.2     4.0     4.0      58      5.2     4.0     4.1     226
//! segment: allocate 8 blocks, lanes                5.2     0.1     0.1       9      5.2     0.1     0.2       8
//! lookup, private directories                     10.3     1.0     0.6       0     10.1     1.0     0.9       0
//! create, private directories                     28.0     2.1     1.3       0     28.2     2.1     2.0       0
//! unlink, private directories                     26.8     3.3     1.3       9     26.8     4.2     1.9       3
//! rename, private directories                     17.7     1.0     0.7       0     17.9     1.0     1.0       0
//! lookup, shared directory                        10.2     3.3     1.3      69     10.3     4.1     3.1      83
//! create, shared directory                        28.6     7.0     3.9      93     28.1     6.7     6.3     146
//! unlink, shared directory                        27.0     5.6     2.0      82     26.8     7.4     4.2      90
//! rename, shared directory                        17.4     9.8     5.3     123     17.6    10.1     9.1     189
//! read 4 KiB, private files                        3.0     0.0     0.0       0      3.0     0.0     0.0       0
//! overwrite 4 KiB, private files                  18.8     0.3     0.0       2     18.6     0.4     0.0       0
//! overwrite 4 KiB and sync, private files         44.0    14.3    14.3      63     44.0    13.8    13.8     215
//! overwrite 64 KiB, private files                 23.6     0.3     0.4      12     23.7     0.3     0.9      10
//! read 4 KiB, shared file                          3.0     0.2     0.0       1      3.0     0.3     0.0       0
//! overwrite 4 KiB, shared file                    18.2     3.1     1.6       8     18.6     4.3     2.0       2
//! ```
//!
//! In private directories no line of the whole file system is written by one operation in a hundred. The lines that are
//! shared are those of stripes (locks of names, shards of inodes, of nodes and of the NAT), which meet by chance in up
//! to one operation of a hundred; the state of segments in which files of several threads stand; and the budgets'
//! pools, once in 256 operations. In one directory the names of all threads share its dentry blocks, hash buckets and
//! counts: some hundred lines, each in a few of a hundred operations.
//!
//! One operation is known to have global lines: a *sync* joins a group, and writes eight lines every time that all
//! others write: the lock and the state of the group's queue; the head of the warm-node log, of which there is one,
//! because roll-forward follows one chain; the count of nodes that were logged since the checkpoint; and four of the
//! NAT block in which the nodes' addresses change, because the files were made one after the other. Whether
//! roll-forward has room is told once in 512 blocks of a processor; only where it is scarce are the counts of all
//! processors added up. About two hundred lines more are written in a few of a hundred operations: the segments and
//! counts that the files' old blocks leave, and the chunks of the memory device. *Overwrites* of one file change the
//! times in its inode once in a tick, and each part that begins in the inode changes its slots there. *Allocation* from one log takes the log's lock; lanes meet when they begin
//! a segment, so long writes write six such lines once in 2 MiB.

#[cfg(f2fs_counting)]
fn main() {
    use f2fs_benches::cache_lines::{CASES, MOST_THREADS};
    use f2fs_sync::counting::Footprint;

    let all = std::env::args().any(|arg| arg == "--all");
    println!("{:<44} {:^31}  {:^31}", "", "2 threads", "8 threads");
    let titles = format!("{:>7} {:>7} {:>7} {:>7}", "lines", "shared", "moved", "global");
    println!("{:<44} {titles}  {titles}", "operation");
    let mut named = Vec::new();
    for case in CASES {
        print!("{:<44}", case.name);
        for threads in [2, MOST_THREADS] {
            let footprint = (case.measure)(threads);
            let Footprint { lines, shared, moved, .. } = footprint;
            print!(" {lines:>7.1} {shared:>7.1} {moved:>7.1} {:>7} ", footprint.global().count());
            if threads == MOST_THREADS {
                let shown: Vec<_> = if all { footprint.common.iter().collect() } else { footprint.global().collect() };
                named.push((case.name, grouped(shown)));
            }
        }
        println!();
    }
    for (name, groups) in named.iter().filter(|(_, groups)| !groups.is_empty()) {
        println!("\n{name}, {MOST_THREADS} threads");
        for (kind, shares) in groups {
            let most = shares.iter().copied().fold(0.0, f64::max);
            println!(
                "  {} lines, together in {:.2} of the operations, each in {most:.3} at most",
                shares.len(),
                shares.iter().sum::<f64>()
            );
            for site in kind {
                println!("      {site}");
            }
        }
    }
}

/// Who writes a line, by file and type.
#[cfg(f2fs_counting)]
type Kind = std::collections::BTreeSet<String>;

/// Lines of one kind together, those that are written most first, with the share of the operations that write each.
#[cfg(f2fs_counting)]
fn grouped(lines: Vec<&f2fs_sync::counting::Common>) -> Vec<(Kind, Vec<f64>)> {
    let mut groups = std::collections::BTreeMap::<Kind, Vec<f64>>::new();
    for line in lines {
        groups.entry(line.sites.iter().map(ToString::to_string).collect()).or_default().push(line.of_all());
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|a, b| b.1.iter().sum::<f64>().total_cmp(&a.1.iter().sum()));
    groups
}

#[cfg(not(f2fs_counting))]
fn main() {
    println!("cache_lines needs the counting half: cargo xtask counting --table");
}

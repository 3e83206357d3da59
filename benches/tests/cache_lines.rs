//! The lines that operations may write, and other threads write too.
#![cfg(f2fs_counting)]

use std::sync::LazyLock;

use f2fs_benches::cache_lines::{CASES, MOST_THREADS, Synced, journaled_syncs};
use f2fs_sync::counting::{Common, Footprint};

/// Each row of the table, measured once with 2 threads and once with the most.
static MEASURED: LazyLock<Vec<(&str, [Footprint; 2])>> =
    LazyLock::new(|| CASES.iter().map(|case| (case.name, [2, MOST_THREADS].map(case.measure))).collect());

fn both(name: &str) -> &'static [Footprint; 2] {
    let row = MEASURED.iter().find(|(row, _)| *row == name);
    row.map_or_else(|| panic!("there is no case {name:?}"), |(_, footprints)| footprints)
}

/// The row with the most threads.
fn measured(name: &str) -> &'static Footprint {
    &both(name)[1]
}

/// Fails if many threads write a common line in one of a hundred of their operations, and names the line.
fn assert_none_global(name: &str) -> &'static Footprint {
    let footprint = measured(name);
    let global: Vec<_> = footprint.global().collect();
    assert!(global.is_empty(), "{name}: {global:#?}");
    footprint
}

/// Whether one of these is in the name of a file that writes the line. What stands in the rest of the line, or stood
/// there before its memory was freed, is of no account.
fn is_of(common: &Common, parts: &[&str]) -> bool {
    common.sites.iter().any(|site| parts.iter().any(|part| site.file.contains(part)))
}

#[test]
fn the_published_table_is_what_is_measured() {
    let text = include_str!("../benches/cache_lines.rs");
    for (name, footprints) in MEASURED.iter() {
        let row = text.lines().find_map(|line| line.strip_prefix("//! ")?.strip_prefix(name));
        let row = row.unwrap_or_else(|| panic!("{name:?} is not in the table"));
        let told: Vec<f64> = row.split_whitespace().map(|number| number.parse().expect("a number")).collect();
        assert_eq!(told.len(), 8, "{name}: {row}");
        // With two threads, whatever both meet in is global: the count says little.
        let (told_global, global) = (told[7], footprints[1].global().count() as f64);
        assert!(
            (told_global - global).abs() <= 4.0 + told_global / 3.0,
            "{name}: {told_global} global lines are told, {global} seen"
        );
        for (told, measured) in told.chunks(4).zip(footprints) {
            // Addresses differ from run to run, and with them who meets whom in a stripe.
            let seen = [(measured.lines, 1.5), (measured.shared, 1.5), (measured.moved, 3.0)];
            for (told, (now, slack)) in told.iter().zip(seen) {
                assert!((told - now).abs() <= slack + told / 5.0, "{name}: {told} is told, {now:.1} measured");
            }
        }
    }
}

/// Rows of the table in the README and in the documentation of f2fs-files, and the cases that they are about.
const PUBLISHED: [(&str, &str); 7] = [
    ("look-up", "lookup, private directories"),
    ("create", "create, private directories"),
    ("unlink of a file that was there before", "unlink, private directories"),
    ("rename", "rename, private directories"),
    ("read 4 KiB", "read 4 KiB, private files"),
    ("overwrite 4 KiB", "overwrite 4 KiB, private files"),
    ("overwrite 4 KiB and sync", "overwrite 4 KiB and sync, private files"),
];

#[test]
fn the_readme_and_the_crates_documentation_say_the_same() {
    let readme = include_str!("../../README.md");
    let files = include_str!("../../crates/files/src/lib.rs");
    for (place, text) in [("README.md", readme), ("f2fs-files", files)] {
        let rows = text.lines().map(|line| line.trim_start_matches("//! "));
        let mut rows = rows.skip_while(|row| !row.starts_with("| 8 threads, each on objects of its own |")).skip(2);
        for (name, case) in PUBLISHED {
            let row = rows.next().and_then(|row| row.strip_prefix("| ")?.strip_suffix(" |")).unwrap_or_default();
            let cells: Vec<&str> = row.split(" | ").collect();
            let [told, lines, moved, all] = cells[..] else { panic!("{place} has no row {name:?}: {row:?}") };
            assert_eq!(told, name, "{place}");
            let footprint = measured(case);
            for (told, now) in [(lines, footprint.lines), (moved, footprint.moved)] {
                let told: f64 = told.parse().expect("a number");
                assert!((told - now).abs() <= 1.5 + told / 5.0, "{place}, {name}: {told} is told, {now:.1} measured");
            }
            let each_time: Vec<_> = footprint.common.iter().filter(|common| common.of_all() > 0.5).collect();
            let told_all = if all == "none" { 0 } else { all.parse().expect("a number") };
            let slack = if told_all == 0 { 0 } else { 3 };
            assert!(each_time.len().abs_diff(told_all) <= slack, "{place}, {name}: {all} is told, {each_time:#?}");
        }
        assert!(!rows.next().unwrap_or_default().starts_with('|'), "{place} has a row more");
    }
}

/// The syncs of threads on files of their own meet nowhere each time: no queue, no head of a log, no count. (The write
/// before each sync frees a block of a segment, and the old blocks of many files lie in one: that is what an overwrite
/// costs, and is left out here.)
#[test]
fn syncs_into_a_journal_write_no_line_that_all_write() {
    let one = [(1, 200), (8, 200), (128, 20)].map(|(threads, operations)| (threads, operations, Synced::OneFile));
    let many = [(8, 100), (128, 20)].map(|(threads, operations)| (threads, operations, Synced::ManyFiles));
    for (threads, operations, synced) in one.into_iter().chain(many) {
        let footprint = journaled_syncs(threads, operations, synced);
        let of_segments = |common: &&Common| common.sites.iter().all(|site| site.file.starts_with("crates/segment/"));
        let each_time = footprint.common.iter().filter(|common| common.of_all() > 0.5 && !of_segments(common));
        let each_time: Vec<_> = each_time.collect();
        assert!(each_time.is_empty(), "{threads} threads, {synced:?}: {each_time:#?}");
        println!(
            "{threads} threads, {synced:?}: {} lines, {} shared, {} moved",
            footprint.lines, footprint.shared, footprint.moved
        );
    }
}

#[test]
fn sharded_allocation_writes_no_global_line() {
    let footprint = assert_none_global("sharded: allocate + free");
    // A batch of NIDs is asked for once in many operations, and its ends share a line with its neighbours' ends.
    assert!(footprint.shared <= 0.1, "{} lines in common: {:#?}", footprint.shared, footprint.common);
    assert!(footprint.lines <= 7.0, "{} lines", footprint.lines);
}

#[test]
fn the_policies_with_a_list_show_that_global_lines_are_found() {
    for name in ["kernel-scan: allocate + free", "clue: allocate + free"] {
        let often = measured(name).global().filter(|common| common.of_all() > 0.9).count();
        assert!(often >= 3, "{name}: {often}");
    }
}

#[test]
fn a_lock_of_one_block_writes_two_lines_at_most() {
    for name in ["extent: lock + unlock one block, shared", "extent: lock + unlock one block, exclusive"] {
        let footprint = measured(name);
        assert!(footprint.lines <= 2.0 && footprint.moved == 0.0, "{name}: {footprint:#?}");
        assert!(footprint.common.is_empty(), "{name}: {:#?}", footprint.common);
    }
}

#[test]
fn lanes_meet_once_for_a_segment() {
    let footprint = measured("segment: allocate 8 blocks, lanes");
    for common in footprint.global() {
        // Eight of 512 blocks: one allocation in 64 begins a segment.
        assert!(common.share.iter().all(|share| *share <= 2.0 / 64.0), "{common:#?}");
    }
    let one_log = measured("segment: allocate 8 blocks, one log");
    assert!(
        one_log.global().any(|common| common.of_all() > 0.9),
        "the head of the log is common to all who write to it"
    );
}

#[test]
fn reads_of_private_files_write_no_global_line() {
    // The device's map of blocks fetched once, at most.
    let footprint = assert_none_global("read 4 KiB, private files");
    assert!(footprint.moved <= 0.01, "{} lines move", footprint.moved);
}

#[test]
fn long_overwrites_of_private_files_share_no_memory() {
    let footprint = measured("overwrite 64 KiB, private files");
    let of_buffers: Vec<_> = footprint.global().filter(|common| is_of(common, &["recycle.rs", "buf.rs"])).collect();
    assert!(of_buffers.is_empty(), "{of_buffers:#?}");
    assert!(!footprint.common.iter().any(|common| common.of_all() > 0.5), "{:#?}", footprint.common);
}

#[test]
fn names_in_private_directories_write_no_line_of_the_whole_file_system() {
    for (operation, moved) in [("lookup", 1.5), ("create", 4.0), ("unlink", 6.0), ("rename", 4.0)] {
        let footprint = measured(&format!("{operation}, private directories"));
        for common in footprint.global() {
            // Nodes of files of several threads stand in one segment, and inodes fall into one of the table's shards.
            let of_segments = is_of(common, &["crates/segment/src/manager.rs", "crates/segment/src/allocate.rs"]);
            let of_a_shard = is_of(common, &["crates/files/src/inode_table.rs"]);
            let most = if of_segments { 0.1 } else { 0.02 };
            assert!((of_segments || of_a_shard) && common.of_all() <= most, "{operation}: {common:#?}");
        }
        assert!(footprint.moved <= moved, "{operation}: {} lines move", footprint.moved);
    }
}

#[test]
fn names_in_one_directory_meet_in_the_directory_only() {
    // Its dentry blocks, its names, the stripes of its names, the nodes of its files, and the segments where these
    // were.
    let known = [
        "files/src/directory",
        "files/src/namespace.rs",
        "files/src/namespace/rename.rs",
        "files/src/namespace/path.rs",
        "files/src/hazard.rs",
    ];
    let nodes = [
        "volume/src/node.rs",
        "volume/src/node_store.rs",
        "files/src/inode",
        "files/src/filesystem.rs",
        "crates/segment/",
    ];
    for operation in ["lookup", "create", "unlink", "rename"] {
        let footprint = measured(&format!("{operation}, shared directory"));
        assert!(footprint.shared <= footprint.lines * 0.7, "{operation}: {} in common", footprint.shared);
        for common in footprint.global() {
            assert!(is_of(common, &[&known[..], &nodes].concat()), "{operation}: {common:#?}");
            // A name that roll-forward has to be careful with is noted for each rename, in the stripe of the directory.
            let noted = operation == "rename" && is_of(common, &["files/src/hazard.rs"]);
            assert!(noted || common.of_all() <= 0.3, "{operation}: {common:#?}");
        }
    }
}

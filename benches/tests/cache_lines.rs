//! What operations may write, in lines that other threads write too.
#![cfg(f2fs_counting)]

use f2fs_benches::cache_lines::case;
use f2fs_sync::counting::Footprint;

fn measure(name: &str) -> Footprint {
    case(name).unwrap_or_else(|| panic!("there is no case {name:?}"))
}

/// Fails if two threads write a common line in a quarter of their operations, and names the line.
fn assert_none_global(name: &str) -> Footprint {
    let footprint = measure(name);
    let global: Vec<_> = footprint.global().collect();
    assert!(global.is_empty(), "{name}: {global:#?}");
    footprint
}

#[test]
fn sharded_allocation_writes_no_global_line() {
    let footprint = assert_none_global("sharded: allocate + free");
    // A batch of NIDs is asked for once in many operations, and its ends share a line with its neighbours' ends.
    assert!(footprint.shared <= 0.1, "{} lines in common: {:#?}", footprint.shared, footprint.common);
    assert!(footprint.lines <= 6.0, "{} lines", footprint.lines);
}

#[test]
fn the_policies_with_a_list_show_that_global_lines_are_found() {
    for name in ["kernel-scan: allocate + free", "clue: allocate + free"] {
        assert!(measure(name).global().count() >= 3, "{name}");
    }
}

#[test]
fn a_lock_of_one_block_writes_two_lines_at_most() {
    for name in ["extent: lock + unlock one block, shared", "extent: lock + unlock one block, exclusive"] {
        let footprint = measure(name);
        assert!(footprint.lines <= 2.0, "{name}: {} lines", footprint.lines);
        assert!(footprint.common.is_empty(), "{name}: {:#?}", footprint.common);
    }
}

#[test]
fn lanes_meet_once_for_a_segment() {
    let footprint = assert_none_global("segment: allocate 8 blocks, lanes");
    for common in &footprint.common {
        // Eight of 512 blocks: one allocation in 64 begins a segment.
        assert!(common.share.iter().all(|share| *share <= 2.0 / 64.0), "{common:#?}");
    }
    let one_log = measure("segment: allocate 8 blocks, one log");
    assert!(one_log.global().count() >= 1, "the head of the log is common to all who write to it");
}

#[test]
fn reads_of_private_files_write_no_global_line() {
    assert_none_global("read 4 KiB, private files");
}

#[test]
fn names_in_private_directories_write_no_global_line() {
    for operation in ["lookup", "create", "unlink", "rename"] {
        assert_none_global(&format!("{operation}, private directories"));
    }
}

#[test]
fn names_in_one_directory_meet_seldom() {
    for operation in ["lookup", "create", "unlink"] {
        let footprint = assert_none_global(&format!("{operation}, shared directory"));
        assert!(footprint.shared <= footprint.lines / 2.0, "{operation}: {} in common", footprint.shared);
    }
    // A name that is renamed leaves room in a block, which the next one takes: both threads return to a few blocks.
    // And each notes what roll-forward has to be careful with, in the stripe of the directory.
    let footprint = measure("rename, shared directory");
    for common in footprint.global() {
        let of_the_directory = ["files/src/directory/", "files/src/hazard.rs"];
        let known = |file: &str| of_the_directory.iter().any(|part| file.contains(part));
        assert!(common.sites.iter().all(|site| known(site.file)), "{common:#?}");
    }
}

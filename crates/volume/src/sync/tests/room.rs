#![allow(clippy::unwrap_used)] // a test fails by panicking

use super::*;

const LANE: u64 = 200;

/// Nodes that a volume may have dirty, and so as many as may be in its log or journal.
fn limited(nodes: u64, mode: Option<JournalMode>) -> Bench {
    Bench::open(&VolumeOptions::new().dirty_nodes(nodes), mode, LANE)
}

#[test]
fn no_more_nodes_are_logged_than_roll_forward_should_repeat() {
    let bench = limited(10, None);
    let (file, other) = (bench.file(), bench.file());
    bench.write(&file, OF_A_NODE, 1, 1);
    // Two nodes, and two again, and one.
    assert_eq!(bench.refused(&file), None);
    bench.write(&file, OF_A_NODE, 1, 2);
    assert_eq!(bench.refused(&file), None);
    for uid in 0..5 {
        bench.change(&other, |raw| raw.i_uid = uid.into());
        assert_eq!(bench.refused(&other), None, "{uid}");
    }
    bench.write(&file, OF_A_NODE, 1, 3);
    for _ in 0..2 {
        assert_eq!(bench.refused(&file), Some(MustCheckpoint::Room), "11 nodes");
    }
    // Nothing is counted for those, nor for a file that did not change.
    bench.change(&other, |raw| raw.i_uid = 9.into());
    assert_eq!([(); 3].map(|()| bench.refused(&other)), [None; 3]);
    bench.change(&other, |raw| raw.i_uid = 10.into());
    assert_eq!(bench.refused(&other), Some(MustCheckpoint::Room));
    bench.checkpoint();
    bench.write(&file, OF_A_NODE, 1, 4);
    assert_eq!([&file, &other].map(|file| bench.refused(file)), [None; 2]);
}

/// Its later records replace it.
#[test]
fn a_node_is_counted_once_in_a_journal() {
    let bench = limited(4, Some(JournalMode::Ordered));
    let (file, other, third) = (bench.file(), bench.file(), bench.file());
    bench.write(&file, OF_A_NODE, 1, 1);
    bench.checkpoint();
    for round in 0..20 {
        // The inode goes along, although it did not change.
        bench.write(&file, OF_A_NODE, 1, round);
        assert!(!file.page.is_unsynced());
        assert_eq!(bench.refused(&file), None, "2 nodes");
        assert_eq!(bench.refused(&other), None, "it did not change");
    }
    for round in 0..20_u32 {
        bench.change(&other, |raw| raw.i_uid = round.into());
        assert_eq!(bench.refused(&other), None, "3 nodes");
    }
    bench.write(&third, OF_A_NODE, 1, 1);
    for _ in 0..2 {
        assert_eq!(bench.refused(&third), Some(MustCheckpoint::Room), "5 nodes");
    }
    bench.write(&file, OF_A_NODE, 1, 99);
    bench.change(&other, |raw| raw.i_uid = 99.into());
    let fourth = bench.create(NewNode { ino: None, offset: 0, directory: false });
    bench.change(&fourth, |raw| (raw.i_mode, raw.i_links) = ((mode::REGULAR | 0o644).into(), 1.into()));
    let root = bench.root();
    bench.change(&fourth, |raw| raw.i_pino = root.into());
    assert_eq!([&file, &other, &fourth].map(|file| bench.refused(file)), [None; 3], "4 nodes");
    assert_eq!(bench.refused(&third), Some(MustCheckpoint::Room));
}

/// A new file, perhaps with a node and a block, and so many blocks of the volume that nobody has.
fn nearly_full(mode: Option<JournalMode>, rest: u64, is_new: bool, has_node: bool) -> (Bench, Node) {
    let bench = Bench::open(&VolumeOptions::new(), mode, LANE);
    let file = bench.file();
    if has_node {
        bench.write(&file, OF_A_NODE, 1, 1);
    }
    if !is_new {
        bench.checkpoint();
        bench.change(&file, |raw| raw.i_uid = 5.into());
    }
    let stat = bench.volume.stat();
    let blocks = stat.user_blocks - stat.valid_blocks - rest;
    bench.volume.data().reserve(&bench.volume.begin().unwrap(), blocks).unwrap();
    (bench, file)
}

/// A node for the file and four blocks for its name: the file's own block is taken, and roll-forward starts without.
#[test]
fn the_name_of_a_new_file_has_its_room() {
    for mode in [None, Some(JournalMode::Ordered)] {
        for (rest, is_new, refused) in [(4, true, false), (3, true, true), (1, false, false), (0, false, true)] {
            let (bench, file) = nearly_full(mode, rest, is_new, false);
            let expected = refused.then_some(MustCheckpoint::Room);
            assert_eq!(bench.refused(&file), expected, "{mode:?}, {rest} blocks left, new: {is_new}");
            // Once for all of its records.
            bench.change(&file, |raw| raw.i_gid = 5.into());
            if mode.is_some() {
                assert_eq!(bench.refused(&file), expected, "{mode:?}, {rest} blocks left, new: {is_new}");
            }
        }
    }
}

#[test]
fn a_record_of_names_has_the_room_of_each() {
    for (rest, refused, has_node) in [(8, false, false), (7, true, false), (8, false, true), (7, true, true)] {
        // Its nodes, and two names that lead somewhere.
        let (bench, file) = nearly_full(Some(JournalMode::Ordered), rest, true, has_node);
        let names: [(&[u8], _); 3] = [(b"one", Some(file.nid())), (b"two", Some(file.nid())), (b"three", None)];
        for round in 0..2 {
            let synced = bench.volume.syncs().names(&file, |_, _, closure| {
                names.iter().for_each(|(name, bound)| closure.name(bench.root(), name.to_vec(), *bound));
                true
            });
            let expected = match (refused, round) {
                (false, 0) => Synced::Logged,
                // The names of each record count.
                (false, _) | (true, 0) => Synced::Must(MustCheckpoint::Room),
                // Its names are lost until the next checkpoint.
                (true, _) => Synced::Must(MustCheckpoint::Names),
            };
            assert_eq!(synced.unwrap(), expected, "{rest} blocks left, round {round}");
            assert_eq!(file.page.is_unsynced(), refused);
        }
    }
}

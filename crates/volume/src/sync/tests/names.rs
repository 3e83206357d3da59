#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::{BlockDevice, Operation};
use f2fs_device_test::FaultRule;
use f2fs_format::inode::inline;
use f2fs_format::{BlockAddr, Nid};

use super::*;
use crate::BoundName;

const LANE: u64 = 400;

/// Syncs names as the layer above does whose names all lead to `bound`.
fn sync_names(bench: &Bench, inode: &Node, bound: Option<Nid>) -> Synced {
    let synced = bench.volume.syncs().names(inode, |_, changed, closure| {
        for (directory, name) in &changed.names {
            closure.inode(*directory);
            closure.name(*directory, name.clone(), bound);
        }
        true
    });
    synced.unwrap()
}

fn note(bench: &Bench, directory: Nid, name: &[u8]) {
    bench.volume.syncs().note_name(&bench.volume.begin().unwrap(), directory, name);
}

/// The names of all records after a power cut.
fn names(bench: &Bench) -> Vec<(Nid, Vec<u8>, Option<Nid>)> {
    let names = bench.cut_with_journal().1.nodes().names().to_vec();
    names.into_iter().map(|BoundName { directory, name, ino, .. }| (directory, name, ino)).collect()
}

#[test]
fn a_record_of_names_holds_what_hangs_together() {
    let bench = Bench::with_journal(JournalMode::Ordered, LANE);
    let root = bench.root();
    let directory = bench.inode(mode::DIRECTORY, root);
    let file = bench.inode(mode::REGULAR, directory.nid());
    bench.write(&file, OF_A_NODE, 1, 1);
    let linked = bench.file();
    let version = bench.volume.syncs().name_version();
    note(&bench, directory.nid(), b"file");
    bench.volume.syncs().set_renamed(&bench.volume.begin().unwrap(), &linked);
    assert_eq!(bench.refused(&file), Some(MustCheckpoint::NewParent));
    assert!(bench.volume.nodes().is_new(file.nid()) && !bench.volume.syncs().is_name_version_durable(version));
    let stat = bench.volume.stat().written;
    assert_eq!(sync_names(&bench, &directory, Some(file.nid())), Synced::Logged);
    // The directory, the file with a node of its own, and the one whose links changed.
    let after = bench.volume.stat().written;
    assert_eq!((after.name_records - stat.name_records, after.synced_node_blocks - stat.synced_node_blocks), (1, 4));
    assert_eq!(names(&bench), [(directory.nid(), b"file".to_vec(), Some(file.nid()))]);
    let nodes: Vec<_> = bench.journaled().iter().map(|(ino, offset, _)| (*ino, *offset)).collect();
    let of = |node: &Node, offset| (node.nid(), offset);
    assert_eq!(nodes, [of(&directory, 0), of(&file, 1), of(&file, 0), of(&linked, 0)]);
    assert!(bench.volume.syncs().is_name_version_durable(version));
    assert!(bench.volume.syncs().name_version() > version && !bench.volume.syncs().is_renamed(&linked));
    assert!(!bench.volume.nodes().is_new(file.nid()));
    // Once; from here on the file goes by itself.
    let used = bench.used();
    assert_eq!((sync_names(&bench, &directory, None), bench.used()), (Synced::Logged, used));
    bench.change(&file, |raw| raw.i_uid = 5.into());
    bench.change(&linked, |raw| raw.i_uid = 5.into());
    assert_eq!([&file, &linked].map(|file| bench.refused(file)), [None; 2]);
    let (_, found) = bench.cut_with_journal();
    assert!(found.nodes().chain().iter().all(|node| !node.dentry), "its name is in a record");
    // A name that is gone.
    note(&bench, directory.nid(), b"file");
    assert_eq!(sync_names(&bench, &directory, None), Synced::Logged);
    assert_eq!(names(&bench), [(directory.nid(), b"file".to_vec(), None)]);
}

/// Also if the last record of the file holds changes alone, and the next one would.
#[test]
fn a_node_in_a_record_of_names_is_whole() {
    let bench = Bench::with_journal(JournalMode::Ordered, LANE);
    let file = bench.file();
    let mut uid = 0_u32;
    let mut change = || {
        uid += 1;
        bench.change(&file, |raw| raw.i_uid = uid.into());
    };
    (0..2).for_each(|_| {
        change();
        assert_eq!(bench.refused(&file), None);
    });
    change();
    note(&bench, bench.root(), b"file");
    assert_eq!(sync_names(&bench, &file, Some(file.nid())), Synced::Logged);
    change();
    assert_eq!(bench.refused(&file), None);
    assert_eq!(bench.journaled().pop().unwrap().2.body, file.read().body);
}

/// Its blocks are made anew from the names.
#[test]
fn a_directory_goes_without_its_names() {
    let bench = Bench::with_journal(JournalMode::Ordered, LANE);
    let features = bench.volume.features();
    for is_inline in [false, true] {
        let directory = bench.inode(mode::DIRECTORY, bench.root());
        let new = |offset| NewNode { ino: Some(directory.nid()), offset, directory: true };
        let (blocks, attributes) = (bench.create(new(1)), bench.create(new(XATTR_NODE_OFFSET)));
        {
            let op = bench.volume.begin().unwrap();
            let mut block = directory.write(&op);
            let raw = block.inode_mut();
            raw.i_uid = 77.into();
            raw.i_nid[0] = blocks.nid().into();
            raw.i_xattr_nid = attributes.nid().into();
            raw.i_inline = if is_inline { inline::DENTRY } else { 0 };
            if is_inline {
                raw.inline_data_mut(features).fill(9);
            } else {
                assert!((0..900).all(|slot| block.set_address(slot, BlockAddr(5000), features)));
            }
        }
        assert_eq!(sync_names(&bench, &directory, None), Synced::Logged);
        let nodes: Vec<_> = bench.journaled().into_iter().filter(|(ino, ..)| *ino == directory.nid()).collect();
        assert_eq!(nodes.iter().map(|(_, offset, _)| *offset).collect::<Vec<_>>(), [XATTR_NODE_OFFSET, 0]);
        let inode = nodes[1].2.inode();
        assert_eq!(
            (inode.i_uid.get(), inode.i_nid[0].get(), inode.i_inline),
            (77, 0, directory.read().inode().i_inline)
        );
        assert_eq!(inode.i_xattr_nid.get(), attributes.nid().0);
        assert!(inode.inline_data(features).iter().all(|byte| *byte == 0));
        assert!(is_inline || (0..900).all(|slot| nodes[1].2.address(slot, features) == Some(BlockAddr::NULL)));
        assert!(blocks.page.is_unsynced() && !attributes.page.is_unsynced());
    }
}

#[test]
fn indirect_nodes_and_inodes_that_nothing_leads_to_stay_out() {
    let bench = Bench::with_journal(JournalMode::Ordered, LANE);
    let (file, orphan, gone, also) = (bench.file(), bench.file(), bench.file(), bench.file());
    bench.write(&file, 3000, 1, 1);
    bench.change(&orphan, |raw| raw.i_links = 0.into());
    let page = gone.page.clone();
    let synced = bench.volume.syncs().names(&file, |op, _, closure| {
        [&file, &orphan, &gone, &also].iter().for_each(|inode| closure.inode(inode.nid()));
        // A node that is no inode, and a number that is none.
        closure.inode(Nid(9999));
        bench.volume.nodes().remove(op, &gone).unwrap();
        true
    });
    assert_eq!(synced.unwrap(), Synced::Logged);
    let nodes: Vec<_> = bench.journaled().iter().map(|(ino, offset, _)| (*ino, *offset)).collect();
    assert_eq!(nodes, [(file.nid(), 4), (file.nid(), 0), (also.nid(), 0)]);
    assert!(orphan.page.is_unsynced() && page.is_unsynced());
}

#[test]
fn names_that_no_record_tells_of_are_a_checkpoint() {
    let bench = Bench::with_journal(JournalMode::Ordered, LANE);
    let file = bench.file();
    let lost = Synced::Must(MustCheckpoint::Names);
    let again = || {
        bench.checkpoint();
        bench.change(&file, |raw| raw.i_uid = 5.into());
        note(&bench, bench.root(), b"file");
        assert_eq!(sync_names(&bench, &file, Some(file.nid())), Synced::Logged);
    };
    bench.volume.syncs().note_foreign_name(&bench.volume.begin().unwrap());
    assert_eq!(sync_names(&bench, &file, None), lost);
    assert!(file.page.is_unsynced());
    again();
    // The layer above cannot tell, and from then on nobody can.
    assert_eq!(bench.volume.syncs().names(&file, |_, _, _| false).unwrap(), lost);
    assert_eq!(sync_names(&bench, &file, None), lost);
    again();
    let many = |count: u32, len: usize| {
        let synced = bench.volume.syncs().names(&file, |_, _, closure| {
            let name = |number: u32| [&number.to_le_bytes()[..], &vec![b'x'; len - 4]].concat();
            (0..count).for_each(|number| closure.name(bench.root(), name(number), None));
            true
        });
        synced.unwrap()
    };
    // A name takes nine bytes more than it has.
    assert_eq!(many(4000, 250), Synced::Logged);
    assert_eq!(many(4100, 250), lost);
    again();
}

#[test]
fn an_inode_that_a_record_does_not_do_for_makes_it_a_checkpoint() {
    for (mode, is_cut, refused) in [
        (JournalMode::Ordered, true, true),
        (JournalMode::Ordered, false, false),
        (JournalMode::Journal, false, false),
        (JournalMode::Writeback, false, true),
        (JournalMode::Writeback, true, true),
    ] {
        let bench = Bench::with_journal(mode, LANE);
        let (file, other) = (bench.file(), bench.file());
        bench.checkpoint();
        let op = || bench.volume.begin().unwrap();
        [&file, &other].iter().for_each(|file| bench.change(file, |raw| raw.i_uid = 5.into()));
        let epoch = bench.volume.epoch();
        if is_cut {
            other.page.unloggable.store(epoch, Ordering::Release);
        } else {
            bench.volume.syncs().set_left_inline(&op(), &other);
        }
        note(&bench, bench.root(), b"other");
        let expected = if refused { Synced::Must(MustCheckpoint::Changed) } else { Synced::Logged };
        assert_eq!(sync_names(&bench, &file, Some(other.nid())), expected, "{mode:?}, cut: {is_cut}");
        assert!([&file, &other].iter().all(|file| file.page.is_unsynced() == refused));
        bench.checkpoint();
        bench.change(&other, |raw| raw.i_uid = 6.into());
        note(&bench, bench.root(), b"other");
        assert_eq!(sync_names(&bench, &file, Some(other.nid())), Synced::Logged);
    }
}

/// What a record holds may be lost with it: then the next checkpoint does.
#[test]
fn a_record_of_names_that_does_not_come_about_leaves_its_nodes_to_the_checkpoint() {
    let bench = Bench::with_journal(JournalMode::Ordered, LANE);
    let file = bench.file();
    bench.write(&file, OF_A_NODE, 1, 1);
    let version = bench.volume.syncs().name_version();
    bench.journal.arm(FaultRule::on([Operation::Write, Operation::WriteFua]));
    note(&bench, bench.root(), b"file");
    assert_eq!(sync_names(&bench, &file, Some(file.nid())), Synced::Must(MustCheckpoint::Journal));
    assert!(file.page.is_unsynced() && !bench.volume.syncs().is_name_version_durable(version));
    let node = crate::tree::find_slot(&bench.volume, &file, OF_A_NODE).unwrap().unwrap().node;
    let nodes = bench.volume.store.take_file(file.nid());
    assert_eq!(nodes.iter().map(|page| page.nid).collect::<Vec<_>>(), [node.nid()]);
    assert!(!bench.volume.journal().is_open());
    assert_eq!(sync_names(&bench, &file, None), Synced::Must(MustCheckpoint::Journal));
    assert_eq!(bench.volume.checkpoints().write(Reason::Sync).unwrap().nodes, 2);
    assert!(bench.volume.syncs().is_name_version_durable(version));
    // Without a journal, too.
    assert_eq!(sync_names(&Bench::new(), &file, None), Synced::Must(MustCheckpoint::Journal));
}

#[test]
fn names_of_a_volume_that_stopped_are_not_synced() {
    let bench = Bench::with_journal(JournalMode::Ordered, LANE);
    let file = bench.file();
    note(&bench, bench.root(), b"file");
    bench.write(&file, 0, 1, 1);
    bench.device.arm(FaultRule::on([Operation::Flush]));
    let sync = || bench.volume.syncs().names(&file, |_, _, _| true);
    assert!(matches!(sync(), Err(VolumeError::Device(_))));
    assert!(matches!(sync(), Err(VolumeError::Stopped { .. })));
    assert!(bench.cut_with_journal().1.nodes().chain().is_empty());
    // Nor if it stops while the layer above looks at its names.
    let bench = Bench::with_journal(JournalMode::Ordered, LANE);
    let file = bench.file();
    let synced = bench.volume.syncs().names(&file, |_, _, _| {
        bench.volume.stop_for(StopCause::Panic);
        true
    });
    assert!(matches!(synced, Err(VolumeError::Stopped { .. })));
    assert!(bench.cut_with_journal().1.nodes().chain().is_empty());
}

/// Files with data have it flushed, or in the record if the mode says so and it is not too much.
#[test]
fn a_record_of_names_never_comes_back_ahead_of_the_data() {
    for (mode, of_blocks, of_many) in
        [(JournalMode::Ordered, 1, 1), (JournalMode::Writeback, 0, 0), (JournalMode::Journal, 0, 1)]
    {
        let bench = Bench::with_journal(mode, 1000);
        let (file, other, directory) = (bench.file(), bench.file(), bench.inode(mode::DIRECTORY, bench.root()));
        bench.change(&directory, |raw| raw.i_blocks = 5.into());
        let sync = |bound: &Node| {
            bench.change(bound, |raw| raw.i_uid = 5.into());
            note(&bench, bench.root(), b"name");
            let before = bench.flushes();
            assert_eq!(sync_names(&bench, &file, Some(bound.nid())), Synced::Logged);
            bench.flushes() - before
        };
        assert_eq!((sync(&other), sync(&directory)), (0, 0), "{mode:?}, no data");
        bench.write(&other, 0, 2, 7);
        assert_eq!(sync(&other), of_blocks, "{mode:?}");
        let (volume, mut found) = bench.cut_with_journal();
        let addr = other.read().address(1, bench.volume.features()).unwrap();
        let shown = found.shown(volume.device().clone());
        assert_eq!(shown.is_some(), mode == JournalMode::Journal);
        let device = shown.unwrap_or(volume.device().clone());
        let is_there = device.read(addr.0.into(), 1).unwrap().as_bytes() == [7; BLOCK_SIZE];
        assert_eq!(is_there, mode != JournalMode::Writeback);
        drop((volume, device));
        // Of one file more than is kept; of two together more than a record takes.
        bench.write(&other, 0, 100, 8);
        assert_eq!(sync(&other), of_many, "{mode:?}");
        bench.write(&other, 0, 40, 9);
        bench.write(&file, 0, 40, 9);
        bench.change(&file, |raw| raw.i_uid = 5.into());
        assert_eq!(sync(&other), of_many, "{mode:?}");
    }
}

#[test]
fn a_record_of_names_keeps_no_data_and_one_that_failed_does() {
    let bench = Bench::with_journal(JournalMode::Journal, LANE);
    let data = bench.volume.attached_journal.get().unwrap().data.as_ref().unwrap();
    let (file, all) = (bench.file(), data.room());
    bench.write(&file, 0, 3, 7);
    assert_eq!(all - data.room(), 3);
    note(&bench, bench.root(), b"name");
    assert_eq!((sync_names(&bench, &file, Some(file.nid())), all - data.room()), (Synced::Logged, 0));
    // Nobody can tell where the names lead: a sync of the file alone has its data all the same.
    bench.write(&file, 0, 3, 8);
    let many = bench.volume.syncs().names(&file, |_, _, closure| {
        (0..5000_u32).for_each(|number| closure.name(bench.root(), [number as u8; 250].to_vec(), None));
        true
    });
    assert_eq!((many.unwrap(), all - data.room()), (Synced::Must(MustCheckpoint::Names), 3));
    let flushes = bench.flushes();
    assert_eq!((bench.refused(&file), bench.flushes() - flushes, all - data.room()), (None, 0, 0));
    let (volume, mut found) = bench.cut_with_journal();
    let addr = file.read().address(2, volume.features()).unwrap();
    let shown = found.shown(volume.device().clone()).unwrap();
    assert_eq!(shown.read(addr.0.into(), 1).unwrap().as_bytes(), [8; BLOCK_SIZE]);
}

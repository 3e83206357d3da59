use f2fs_device::{BlockDevice, Operation};
use f2fs_device_test::FaultRule;

use super::*;
use crate::tree;

const LANE: u64 = 200;

fn bytes_of(bench: &Bench, call: impl FnOnce()) -> u64 {
    let before = bench.used();
    call();
    bench.used() - before
}

#[test]
fn a_record_holds_what_changed_with_the_inode_at_its_end() {
    let bench = Bench::with_journal(JournalMode::Ordered, LANE);
    let file = bench.file();
    bench.change(&file, |raw| (raw.i_namelen, raw.i_name[0]) = (1.into(), b'f'));
    bench.write(&file, 0, 900, 1);
    bench.write(&file, OF_A_NODE, 900, 1);
    bench.write(&file, 3000, 900, 1);
    let gone = bench.create(NewNode { ino: Some(file.nid()), offset: XATTR_NODE_OFFSET, directory: false });
    bench.volume.nodes().remove(&bench.volume.begin().unwrap(), &gone).unwrap();
    let (stat, flushes) = (bench.volume.stat().written, bench.flushes());
    assert_eq!(bench.sync(&file), Synced::Logged);
    assert_eq!(bench.flushes() - flushes, 1);
    assert_eq!(bench.volume.stat().written.synced_node_blocks - stat.synced_node_blocks, 3);
    let (_, found) = bench.cut_with_journal();
    let chain: Vec<_> =
        found.nodes().chain().iter().map(|node| (node.ino, node.offset, node.fsync, node.dentry)).collect();
    let ino = file.nid();
    assert_eq!(chain, [(ino, 1, false, false), (ino, 4, false, false), (ino, 0, true, true)]);
    let names: Vec<_> =
        found.nodes().names().iter().map(|name| (name.directory, name.name.clone(), name.ino)).collect();
    assert_eq!(names, [(bench.root(), b"f".to_vec(), Some(ino))]);
    // What is synced takes no room, and what changes takes little.
    let whole = bench.used();
    let nothing = bytes_of(&bench, || assert_eq!(bench.sync(&file), Synced::Logged));
    assert_eq!(nothing, 0);
    for uid in 1..5_u32 {
        // Two full nodes of which little changed: one block of the journal, not two.
        bench.write(&file, 3000, 1, uid as u8);
        bench.change(&file, |raw| raw.i_uid = uid.into());
        let little = bytes_of(&bench, || assert_eq!(bench.sync(&file), Synced::Logged));
        assert!(little == 4096 && whole > 2 * 4096, "{little} bytes, and {whole}");
        let nodes = bench.journaled();
        assert_eq!(nodes[2].2.inode().i_uid.get(), uid);
        assert_eq!(nodes[2].2.body, file.read().body);
        let last = tree::find_slot(&bench.volume, &file, 3000).unwrap().unwrap().node;
        assert_eq!(nodes[1].2.body, last.read().body);
    }
    // With the next checkpoint it is no new file any more, and its records are gone.
    bench.checkpoint();
    assert_eq!(bench.used(), 0);
    bench.change(&file, |raw| raw.i_uid = 9.into());
    assert_eq!(bench.sync(&file), Synced::Logged);
    let (_, found) = bench.cut_with_journal();
    assert_eq!((found.nodes().chain().len(), found.nodes().chain()[0].dentry), (1, false));
}

#[test]
fn a_journal_takes_what_the_log_does_not() {
    let with = |mode| {
        let bench = Bench::with_journal(mode, LANE);
        let file = bench.file();
        bench.change(&file, |raw| raw.i_links = 2.into());
        bench.volume.syncs().set_left_inline(&bench.volume.begin().unwrap(), &file);
        let refused = bench.refused(&file);
        bench.checkpoint();
        (refused, bench.refused(&file))
    };
    // Not where the data comes back without its record being whole.
    assert_eq!(with(JournalMode::Writeback), (Some(MustCheckpoint::Changed), None));
    assert_eq!(with(JournalMode::Ordered), (None, None));
    assert_eq!(with(JournalMode::Journal), (None, None));
}

/// A node that only the journal has is cut off like one of the log.
#[test]
fn a_node_that_is_in_a_record_is_not_cut_off_by_the_next_one() {
    let bench = Bench::with_journal(JournalMode::Ordered, LANE);
    let file = bench.file();
    let xattr = || bench.create(NewNode { ino: Some(file.nid()), offset: XATTR_NODE_OFFSET, directory: false });
    let remove = |node: &Node| bench.volume.nodes().remove(&bench.volume.begin().unwrap(), node).unwrap();
    remove(&xattr());
    assert_eq!(bench.refused(&file), None, "no record had it");
    let node = xattr();
    assert_eq!(bench.refused(&file), None);
    remove(&node);
    assert_eq!(bench.refused(&file), Some(MustCheckpoint::Changed));
}

#[test]
fn a_sync_flushes_the_device_as_the_mode_says() {
    for (mode, flushes, blocks, large) in
        [(JournalMode::Ordered, 1, 0, 1), (JournalMode::Writeback, 0, 0, 0), (JournalMode::Journal, 0, 2, 1)]
    {
        let bench = Bench::with_journal(mode, LANE);
        let file = bench.file();
        bench.write(&file, 0, 2, 7);
        let sync = || {
            let before = bench.flushes();
            assert_eq!(bench.sync(&file), Synced::Logged);
            bench.flushes() - before
        };
        assert_eq!(sync(), flushes, "{mode:?}");
        let (volume, mut found) = bench.cut_with_journal();
        let addr = file.read().address(1, bench.volume.features()).unwrap();
        let shown = found.shown(volume.device().clone());
        assert_eq!(shown.is_some(), blocks != 0, "{mode:?}");
        let device = shown.unwrap_or(volume.device().clone());
        let is_there = device.read(addr.0.into(), 1).unwrap().as_bytes() == [7; BLOCK_SIZE];
        assert_eq!(is_there, mode != JournalMode::Writeback);
        // More than a record takes.
        bench.write(&file, 0, 100, 8);
        assert_eq!(sync(), large, "{mode:?}");
    }
}

/// Data that is kept and not named yet is that of the next sync.
#[test]
fn a_sync_with_nothing_to_write_leaves_data_that_is_on_its_way() {
    let bench = Bench::with_journal(JournalMode::Journal, LANE);
    let file = bench.file();
    assert_eq!(bench.sync(&file), Synced::Logged);
    let request = f2fs_device::Request::write(9999, AlignedBuf::new(1));
    bench.volume.attached_journal.keep(file.nid(), [PlainArc::new(request)].into_iter(), true);
    assert_eq!(bench.sync(&file), Synced::Logged);
    let mut collected = crate::journal::data::Collected::default();
    bench.volume.attached_journal.get().unwrap().data.as_ref().unwrap().collect(file.nid(), &mut collected);
    assert_eq!(collected.blocks, 1);
}

/// It is refused, and nothing of it is lost: what it was to hold is still to be synced.
#[test]
fn a_record_that_does_not_come_about_leaves_its_nodes_to_the_checkpoint() {
    for mode in [JournalMode::Ordered, JournalMode::Journal] {
        // A lane that is too short for a full node, and a device that fails.
        for (lane, fails) in [(1, false), (LANE, true)] {
            let bench = Bench::with_journal(mode, lane);
            let file = bench.file();
            bench.write(&file, 0, 900, 1);
            bench.write(&file, OF_A_NODE, 900, 1);
            if fails {
                bench.journal.arm(FaultRule::on([Operation::Write, Operation::WriteFua]).for_good());
            }
            for _ in 0..2 {
                assert_eq!(bench.refused(&file), Some(MustCheckpoint::Journal), "{mode:?}, {lane}");
                assert!(file.page.is_unsynced());
                let nodes = bench.volume.store.take_file(file.nid());
                assert_eq!(nodes.len(), 1);
                bench.volume.store.put_file(file.nid(), nodes);
            }
            assert_eq!(bench.volume.journal().is_open(), !fails);
            let other = bench.file();
            let expected = fails.then_some(MustCheckpoint::Journal);
            assert_eq!(bench.refused(&other), expected, "a small record");
            assert_eq!(bench.volume.checkpoints().write(Reason::Sync).unwrap().nodes, 3);
            // From then on without a journal, if it failed.
            bench.change(&other, |raw| raw.i_uid = 5.into());
            assert_eq!(bench.refused(&other), None);
            assert_eq!(bench.cut().recovery().synced_nodes().unwrap().len(), usize::from(fails));
        }
    }
}

#[test]
fn a_volume_that_cannot_flush_its_data_stops() {
    let bench = Bench::with_journal(JournalMode::Ordered, LANE);
    let file = bench.file();
    bench.device.arm(FaultRule::on([Operation::Flush]));
    let failed = bench.volume.syncs().file(&bench.volume.begin().unwrap(), &file);
    assert!(matches!(failed, Err(VolumeError::Device(_))));
    assert!(matches!(bench.volume.begin(), Err(VolumeError::Stopped { .. })));
    assert!(bench.cut_with_journal().1.nodes().chain().is_empty());
}

/// Syncs that come while it retires are checkpoints: an opening could not tell which of chain and record is newer.
#[test]
fn a_journal_that_retired_is_left_with_a_checkpoint() {
    let bench = Bench::with_journal(JournalMode::Ordered, LANE);
    let file = bench.file();
    assert_eq!(bench.refused(&file), None);
    bench.volume.journal().retire(&bench.volume.begin().unwrap());
    bench.change(&file, |raw| raw.i_uid = 5.into());
    assert_eq!(bench.refused(&file), Some(MustCheckpoint::Journal));
    assert!(bench.cut().recovery().synced_nodes().unwrap().is_empty());
    bench.checkpoint();
    bench.change(&file, |raw| raw.i_uid = 6.into());
    assert_eq!(bench.refused(&file), None);
    assert_eq!(bench.cut().recovery().synced_nodes().unwrap().len(), 1);
}

#[test]
fn a_durable_write_goes_to_the_journal() {
    for mode in [JournalMode::Ordered, JournalMode::Writeback, JournalMode::Journal] {
        for next in [Next::Sync, Next::Other] {
            let bench = Bench::with_journal(mode, LANE);
            let file = bench.file();
            let op = bench.volume.begin().unwrap();
            let flight = bench.flight(&op, &file, 0, 2, 9, next);
            let of_inode = |raw: &mut Inode, done| raw.i_size = u64::from(done).into();
            let synced = bench.volume.syncs().flight(&op, &file, flight, of_inode, |_, _| {});
            drop(op);
            assert!(matches!(synced, Ok(Synced::Logged)), "{mode:?}");
            let (_, _, inode) = bench.journaled().pop().unwrap();
            assert_eq!((inode.inode().i_size.get(), inode.inode().i_blocks.get()), (1, 3), "{mode:?}");
            let addr = file.read().address(1, bench.volume.features()).unwrap();
            assert_eq!(inode.address(1, bench.volume.features()), Some(addr));
            // Durable on the device, or in the record.
            let (volume, mut found) = bench.cut_with_journal();
            let device = found.shown(volume.device().clone()).unwrap_or(volume.device().clone());
            let is_there = device.read(addr.0.into(), 1).unwrap().as_bytes() == [9; BLOCK_SIZE];
            assert_eq!(is_there, mode != JournalMode::Writeback, "{mode:?}, {next:?}");
            drop((volume, device));

            // One that does not arrive.
            bench.device.arm(FaultRule::on([Operation::Write]));
            let op = bench.volume.begin().unwrap();
            let flight = bench.flight(&op, &file, 0, 2, 5, next);
            let failed = bench.volume.syncs().flight(&op, &file, flight, |_, _| {}, |_, _| {});
            assert!(matches!(failed, Err(VolumeError::Device(_))), "{mode:?}, {failed:?}");
            drop(op);
            assert!(matches!(bench.volume.begin(), Err(VolumeError::Stopped { .. })));
            assert_eq!(file.read().address(1, bench.volume.features()), Some(addr));
        }
    }
}

#[test]
fn a_lane_that_fills_calls_for_a_checkpoint() {
    let bench = Bench::with_journal(JournalMode::Ordered, 8);
    let file = bench.file();
    for record in 1..8 {
        bench.change(&file, |raw| raw.i_uid = record.into());
        assert_eq!(bench.sync(&file), Synced::Logged);
        assert_eq!(bench.volume.journal().is_due(), record > 4, "{record} of 8 blocks");
        assert_eq!(bench.volume.attached_journal.is_nearly_full(), record > 7);
    }
    bench.checkpoint();
    assert!(!bench.volume.journal().is_due());
}

/// Changes are laid over a record that there is.
#[test]
fn a_record_that_failed_is_nothing_to_build_on() {
    // Three full nodes are too much for this journal, and some that are not full are not.
    let bench = Bench::with_journal(JournalMode::Ordered, 2);
    let journal = bench.volume.attached_journal.get().unwrap();
    let file = bench.file();
    bench.write(&file, 0, 900, 1);
    bench.write(&file, OF_A_NODE, 1000, 1);
    let slot = tree::find_slot(&bench.volume, &file, OF_A_NODE).unwrap().unwrap();
    bench.change(&file, |raw| raw.i_name.fill(b'x'));
    let stripe = |ino: &Node| core::ptr::from_ref(journal.files.stripe(&ino.nid()));
    // A file whose records stand in the same order.
    let other = (0..5000).map(|_| bench.file()).find(|other| stripe(other) == stripe(&file)).unwrap();
    let count = bench.volume.nodes().get(slot.node.nid()).unwrap().read().address_count(bench.volume.features());
    assert!(count > 1000);
    assert_eq!(bench.refused(&file), Some(MustCheckpoint::Journal));
    bench.volume.slots().clear(&bench.volume.begin().unwrap(), &slot.node, 10..count, |_, _| {}).unwrap();
    bench.volume.slots().clear(&bench.volume.begin().unwrap(), &file, 10..900, |_, _| {}).unwrap();
    assert_eq!([&other, &file].map(|file| bench.refused(file)), [None; 2]);
    let nodes = bench.journaled();
    assert_eq!(nodes.len(), 4);
    assert_eq!(nodes[1].2.body, slot.node.read().body);
}

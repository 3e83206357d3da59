#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::Operation;
use f2fs_device_test::FaultRule;
use f2fs_format::BlockAddr;

use super::*;
use crate::node_log::is_indirect_offset;
use crate::{SyncWriters, tree};

/// The chain that a power cut leaves: of each node the inode, the offset, and the marks.
fn chain(bench: &Bench) -> Vec<(Nid, u32, bool, bool)> {
    let nodes = bench.cut().recovery().synced_nodes().unwrap();
    nodes.into_iter().map(|node| (node.ino, node.offset, node.fsync, node.dentry)).collect()
}

/// Syncs form groups, or each writes its own nodes.
const WRITERS: [SyncWriters; 2] = [SyncWriters::Groups, SyncWriters::Each];

fn bench_with(writers: SyncWriters) -> Bench {
    let bench = Bench::open(&VolumeOptions::new().sync_writers(writers), None, 0);
    assert_eq!(bench.volume.roll_forward.chain.is_some(), writers == SyncWriters::Each);
    bench
}

#[test]
fn a_sync_leaves_a_chain_with_the_inode_at_its_end() {
    WRITERS.into_iter().for_each(chain_of_a_sync);
}

fn chain_of_a_sync(writers: SyncWriters) {
    let bench = bench_with(writers);
    let file = bench.file();
    bench.write(&file, 0, 1, 1);
    // Two direct nodes, the second one behind an indirect node, and one that is gone.
    bench.write(&file, OF_A_NODE, 1, 1);
    bench.write(&file, 3000, 1, 1);
    let gone = bench.create(NewNode { ino: Some(file.nid()), offset: XATTR_NODE_OFFSET, directory: false });
    bench.volume.nodes().remove(&bench.volume.begin().unwrap(), &gone).unwrap();
    let stat = bench.volume.stat().written;
    assert_eq!(bench.sync(&file), Synced::Logged);
    let ino = file.nid();
    assert_eq!(chain(&bench), [(ino, 1, false, false), (ino, 4, false, false), (ino, 0, true, true)]);
    assert_eq!(bench.volume.stat().written.synced_node_blocks - stat.synced_node_blocks, 3);
    // What is synced is not written again.
    assert_eq!((bench.sync(&file), chain(&bench).len()), (Synced::Logged, 3));
    // The inode goes with a node that changed; it is no new file for the next checkpoint's chain.
    bench.write(&file, OF_A_NODE, 1, 2);
    assert!(!file.page.is_unsynced());
    assert_eq!((bench.sync(&file), chain(&bench).len()), (Synced::Logged, 5));
    bench.checkpoint();
    assert!(chain(&bench).is_empty());
    bench.change(&file, |raw| raw.i_uid = 5.into());
    assert_eq!((bench.sync(&file), chain(&bench)), (Synced::Logged, vec![(ino, 0, true, false)]));
    let volume = bench.cut();
    let synced = volume.recovery().synced_nodes().unwrap()[0];
    assert_eq!(volume.recovery().synced_node(synced.addr).unwrap().inode().i_uid.get(), 5);
}

#[test]
fn a_sync_says_why_it_needs_a_checkpoint() {
    use MustCheckpoint::*;
    let bench = Bench::new();
    let root = bench.root();
    let (file, directory) = (bench.file(), bench.inode(mode::DIRECTORY, root));
    assert_eq!(bench.refused(&directory), Some(NotRegular));
    let hot = bench.create(NewNode { ino: None, offset: 0, directory: true });
    bench.change(&hot, |raw| (raw.i_mode, raw.i_links) = ((mode::REGULAR | 0o644).into(), 1.into()));
    assert_eq!(bench.refused(&hot), Some(NotRegular), "its nodes are not in the log that roll-forward reads");
    let odd = bench.file();
    bench.change(&odd, |raw| raw.i_mode = (mode::DIRECTORY | 0o755).into());
    assert_eq!(bench.refused(&odd), Some(NotRegular));
    for links in [0, 2] {
        bench.change(&file, |raw| raw.i_links = links.into());
        assert_eq!(bench.refused(&file), Some(Links));
    }
    bench.change(&file, |raw| raw.i_links = 1.into());
    assert_eq!(bench.refused(&file), None);
    let child = bench.inode(mode::REGULAR, directory.nid());
    assert_eq!(bench.refused(&child), Some(NewParent));
    bench.checkpoint();
    let op = || bench.volume.begin().unwrap();
    let syncs = bench.volume.syncs();
    assert!(!syncs.is_renamed(&file) && bench.refused(&file).is_none());
    syncs.set_renamed(&op(), &file);
    assert!(syncs.is_renamed(&file) && !syncs.is_renamed(&child));
    assert_eq!((bench.refused(&file), bench.refused(&child)), (Some(Renamed), None));
    syncs.set_left_inline(&op(), &child);
    assert_eq!(bench.refused(&child), Some(Changed));
    // It is old, whatever became of its directory.
    let new = bench.inode(mode::DIRECTORY, root);
    bench.change(&odd, |raw| (raw.i_mode, raw.i_pino) = ((mode::REGULAR | 0o644).into(), new.nid().into()));
    assert_eq!(bench.refused(&odd), None);
    bench.checkpoint();
    assert!(!syncs.is_renamed(&file));
    assert_eq!([&file, &child].map(|file| bench.refused(file)), [None, None]);
    // A node that was on the device is cut off it.
    let xattr = bench.create(NewNode { ino: Some(file.nid()), offset: XATTR_NODE_OFFSET, directory: false });
    bench.volume.nodes().remove(&op(), &xattr).unwrap();
    assert_eq!(bench.refused(&file), None, "one that never was there");
    let xattr = bench.create(NewNode { ino: Some(file.nid()), offset: XATTR_NODE_OFFSET, directory: false });
    assert_eq!(bench.refused(&file), None);
    bench.volume.nodes().remove(&op(), &xattr).unwrap();
    assert_eq!((bench.refused(&file), bench.refused(&child)), (Some(Changed), None));
    bench.checkpoint();
    assert_eq!(bench.refused(&file), None);
}

#[test]
fn the_first_sync_of_an_opening_is_a_checkpoint() {
    let bench = Bench::new();
    let file = bench.file();
    bench.checkpoint();
    let volume = bench.cut();
    let node = volume.nodes().get(file.nid()).unwrap();
    let sync = || volume.syncs().file(&volume.begin().unwrap(), &node).unwrap();
    assert_eq!(sync(), Synced::Must(MustCheckpoint::Opened));
    volume.checkpoints().write(Reason::Sync).unwrap();
    assert_eq!(sync(), Synced::Logged);
}

/// A durable write of block 1, where there is one, and of block 2.
fn write_durably(bench: &Bench, file: &Node, next: Next) -> (Result<Synced, VolumeError>, Vec<(u64, BlockAddr)>) {
    let op = bench.volume.begin().unwrap();
    let flight = bench.flight(&op, file, 1, 2, 9, next);
    let mut named = Vec::new();
    let of_inode = |raw: &mut Inode, done| raw.i_size = if done { 3 * 4096 } else { 2 * 4096 }.into();
    let synced = bench.volume.syncs().flight(&op, file, flight, of_inode, |block, addr| named.push((block, addr)));
    (synced, named)
}

fn with_block() -> (Bench, Node) {
    with_block_in(Bench::new())
}

fn with_block_in(bench: Bench) -> (Bench, Node) {
    let file = bench.file();
    bench.write(&file, 1, 1, 1);
    bench.change(&file, |raw| raw.i_size = (2 * 4096_u64).into());
    bench.checkpoint();
    (bench, file)
}

#[test]
fn a_write_and_its_sync_are_durable_together() {
    let both = [Next::Sync, Next::Other];
    for (writers, next) in WRITERS.iter().flat_map(|writers| both.map(|next| (*writers, next))) {
        let (bench, file) = with_block_in(bench_with(writers));
        let flushes = bench.flushes();
        let (synced, named) = write_durably(&bench, &file, next);
        assert!(matches!(synced, Ok(Synced::Logged)));
        assert_eq!(bench.flushes() - flushes, 1);
        let slot = |block| tree::find_slot(&bench.volume, &file, block).unwrap().unwrap().get(&bench.volume);
        assert_eq!(named, [(1, slot(1)), (2, slot(2))]);
        let volume = bench.cut();
        let synced = volume.recovery().synced_nodes().unwrap();
        let node = volume.recovery().synced_node(synced[0].addr).unwrap();
        assert_eq!((synced.len(), node.inode().i_size.get(), node.inode().i_blocks.get()), (1, 3 * 4096, 3));
        for (block, addr) in named {
            assert_eq!(node.address(block as usize, volume.features()), Some(addr));
            let mut data = AlignedBuf::new(1);
            volume.data().read(file.nid(), addr, &mut data).unwrap();
            assert_eq!(data.as_bytes(), [9; BLOCK_SIZE]);
        }
    }
}

#[test]
fn a_durable_write_that_needs_a_checkpoint_is_an_ordinary_one() {
    let (bench, file) = with_block();
    bench.volume.syncs().set_renamed(&bench.volume.begin().unwrap(), &file);
    let (synced, named) = write_durably(&bench, &file, Next::Sync);
    assert!(matches!(synced, Ok(Synced::Must(MustCheckpoint::Renamed))));
    assert_eq!((named.len(), file.read().inode().i_size.get(), file.read().inode().i_blocks.get()), (2, 3 * 4096, 3));
    assert!(named.iter().all(|(_, addr)| bench.volume.data().is_in_use(*addr).unwrap()));
    assert!(chain(&bench).is_empty());
}

/// The nodes may be on the device by then, and the data not: nothing of it comes back.
#[test]
fn a_sync_that_failed_leaves_nothing_to_roll_forward() {
    // The data; the nodes; their flush.
    let faults = [
        (Next::Other, Operation::Write, 0),
        (Next::Sync, Operation::Write, 0),
        (Next::Other, Operation::Write, 1),
        (Next::Other, Operation::Flush, 0),
    ];
    for (writers, (next, operation, after)) in WRITERS.iter().flat_map(|writers| faults.map(|fault| (*writers, fault)))
    {
        let (bench, file) = with_block_in(bench_with(writers));
        let before = bench.volume.stat();
        let first = bench.volume.segments.next_block(LogType::WarmNode).0;
        bench.device.arm(FaultRule::on([operation]).after(after));
        let (synced, named) = write_durably(&bench, &file, next);
        assert!(matches!(synced, Err(VolumeError::Device(_))), "{synced:?}");
        assert!(matches!(bench.volume.begin(), Err(VolumeError::Stopped { .. })));
        let inode = *file.read().inode();
        assert_eq!((inode.i_size.get(), inode.i_blocks.get()), (2 * 4096, 2));
        assert!(named[0].1.is_real() && named[1].1.is_null());
        assert_eq!(bench.volume.stat().valid_blocks, before.valid_blocks);
        // Also if all arrives that was on its way, or the nodes alone.
        let (log, end) = (bench.recorded.log(), bench.recorded.position());
        let cut = log.events().iter().rposition(|event| !event.is_flush() && event.range().0 == first.into());
        let images = [
            bench.recorded.snapshot(),
            log.image_at(end, |_, _| false),
            log.image_at(end, |event, _| Some(event) != cut),
        ];
        for image in images {
            let volume = Volume::open(PlainArc::new(image), &VolumeOptions::new()).unwrap();
            let left = volume.recovery().synced_nodes().unwrap();
            // A device that does not flush any more takes no write either.
            assert!(left.is_empty() || operation == Operation::Flush, "{left:?}");
        }
    }
}

#[test]
fn a_strict_sync_flushes_the_data_before_it_reads_a_node() {
    let bench = Bench::open(&VolumeOptions::new().fsync(FsyncMode::Strict), None, 0);
    assert_eq!(bench.volume.syncs().fsync_mode(), FsyncMode::Strict);
    let file = bench.file();
    let flushes = bench.flushes();
    assert_eq!(bench.sync(&file), Synced::Logged);
    assert_eq!((bench.flushes() - flushes, chain(&bench).len()), (2, 1));
    bench.device.arm(FaultRule::on([Operation::Flush]));
    bench.change(&file, |raw| raw.i_uid = 5.into());
    let writes = bench.recorded.counts().writes;
    let failed = bench.volume.syncs().file(&bench.volume.begin().unwrap(), &file);
    assert!(matches!(failed, Err(VolumeError::Device(_))));
    // But for the record of why it stopped, which a device that does not flush refuses.
    assert_eq!(bench.recorded.counts().writes, writes, "no node");
}

/// The inodes of new files.
fn requests(files: &[&Node]) -> Vec<SyncRequest> {
    files.iter().map(|file| SyncRequest { inode: file.page.clone(), flight: None }).collect()
}

/// A group is durable as a whole, or none of it is: nobody knows which of its nodes arrived.
#[test]
fn a_group_fails_together() {
    for fault in [FaultRule::on([Operation::Write]).after(3), FaultRule::on([Operation::Write])] {
        let bench = Bench::new();
        let (small, large) = (bench.file(), bench.file());
        // More than is written at a time, so that some of it is on the device when an error comes.
        for offset in (4..).filter(|offset| !is_indirect_offset(*offset)).take(4200) {
            bench.create(NewNode { ino: Some(large.nid()), offset, directory: false });
        }
        bench.device.arm(fault);
        let op = bench.volume.begin().unwrap();
        let answers = bench.volume.syncs().write_group(&op, &requests(&[&small, &large]));
        assert!(matches!(answers[..], [Err(VolumeError::Device(_)), Err(VolumeError::Stopped { .. })]), "{answers:?}");
        drop(op);
        assert!(bench.volume.begin().is_err());
        let volume = Volume::open(PlainArc::new(bench.recorded.snapshot()), &VolumeOptions::new()).unwrap();
        assert!(volume.recovery().synced_nodes().unwrap().is_empty());
    }
    let bench = Bench::new();
    let (one, other) = (bench.file(), bench.file());
    let op = bench.volume.begin().unwrap();
    let answers = bench.volume.syncs().write_group(&op, &requests(&[&one, &other]));
    assert!(matches!(answers[..], [Ok(Synced::Logged), Ok(Synced::Logged)]), "{answers:?}");
    assert_eq!(chain(&bench).len(), 2);
    bench.volume.stop_for(StopCause::Panic);
    let answers = bench.volume.syncs().write_group(&op, &requests(&[&one]));
    assert!(matches!(answers[..], [Err(VolumeError::Stopped { .. })]), "{answers:?}");
}

/// So many that they are not all written at once.
#[test]
fn the_data_of_a_group_has_to_arrive() {
    let bench = Bench::new();
    let file = bench.file();
    let op = bench.volume.begin().unwrap();
    let joined = |block: u64| {
        let flight = bench.flight(&op, &file, block * 16, 16, 9, Next::Sync);
        Arc::new(Mutex::new(Joined::new(flight, &file, |_, _| {})))
    };
    let joined: Vec<_> = (0..260).map(joined).collect();
    let request = |flight: &Arc<Mutex<Joined>>| SyncRequest { inode: file.page.clone(), flight: Some(flight.clone()) };
    bench.device.arm(FaultRule::on([Operation::Write]));
    let answers = bench.volume.syncs().write_group(&op, &joined.iter().map(request).collect::<Vec<_>>());
    assert!(answers.len() == 260 && answers.iter().all(Result::is_err));
    for joined in joined {
        let failed = Err::<(), _>(VolumeError::Stopped { reason: StopCause::Panic });
        assert!(joined.lock().end(&op, failed).is_err());
    }
}

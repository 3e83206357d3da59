//! Repair of volumes that a crash left with synced files behind the checkpoint, and a bit of whose tables was flipped
//! since: the tables are mended in place, and an opening brings all files back.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use f2fs_check::repair::{Repair, plan};
use f2fs_check::{CheckOptions, check};
use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_device_test::{FaultDevice, FaultRule};
use f2fs_files::{FileSystem, Options};
use f2fs_format::feature::Features;
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, LogType, Nid, SegmentNo};
use f2fs_test_kit::entries::{Place, Tables};
use f2fs_test_kit::synced::{content, read, start};
use f2fs_test_kit::volumes::{assert_clean, saved, scale};
use f2fs_volume::{FsyncMode, Volume, VolumeOptions};

/// Bits of an entry of the NAT.
const NAT_BITS: usize = 72;
/// Bits of an entry of the SIT.
const SIT_BITS: usize = 74 * 8;
/// Files that are new behind the checkpoint: more than a segment of nodes.
const NEW: usize = 560;

/// A volume as a crash left it.
struct Crashed {
    device: MemoryDevice,
    /// What has to be in its files.
    files: BTreeMap<String, Vec<u8>>,
    /// Nodes of all kinds.
    nids: Vec<Nid>,
    /// Segments of all kinds, and the offsets of blocks in them that the chain needs.
    segments: BTreeMap<SegmentNo, BTreeSet<u32>>,
}

fn crashed() -> &'static Crashed {
    static MADE: LazyLock<Crashed> = LazyLock::new(made);
    &MADE
}

fn made() -> Crashed {
    let features = Features::EXTRA_ATTR.union(Features::INODE_CHECKSUM).union(Features::SB_CHECKSUM);
    let (device, fs) = start(features, FsyncMode::Posix);
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut write = |path: &str, bytes: &[u8], at: usize, sync: bool| {
        let file = fs.open_file(path).or_else(|_| fs.create_file(path, 0o644)).unwrap();
        assert_eq!(file.write_at(bytes, at as u64).unwrap(), bytes.len());
        if sync {
            file.sync_all().unwrap();
        }
        let known = files.entry(path.to_owned()).or_default();
        known.resize(known.len().max(at + bytes.len()), 0);
        known[at..at + bytes.len()].copy_from_slice(bytes);
    };
    for dir in ["/docs", "/docs/below", "/other"] {
        fs.create_dir(dir, 0o755).unwrap();
    }
    write("/docs/large", &content(1, 6 << 20), 0, false);
    write("/docs/left alone", &content(2, 5 << 20), 0, false);
    write("/docs/below/deep", &content(3, 9000), 0, false);
    write("/kept", &content(4, 5000), 0, false);
    for number in 0..300 {
        write(&format!("/other/{number}"), b"inline", 0, false);
    }
    fs.checkpoint().unwrap();
    // What changes in little goes to the journals.
    for path in ["/docs/large", "/other/7", "/docs/below/deep"] {
        write(path, b"again", 0, false);
    }
    fs.checkpoint().unwrap();
    write("/kept", &content(5, 7000), 3000, true);
    write("/docs/large", &content(6, 70_000), 10_000, true);
    write("/docs/large", &content(7, 300_000), 5 << 20, true);
    write("/new", b"synced", 0, true);
    write("/docs/new and large", &content(8, 5 << 20), 0, true);
    for number in 0..NEW {
        write(&format!("/other/new {number}"), b"synced", 0, true);
    }
    write("/new", b"synced again", 0, true);

    let ino = |path: &str| fs.metadata(path).unwrap().ino;
    let mut nids = vec![Nid::ROOT, ino("/docs"), ino("/kept"), ino("/new"), ino("/docs/new and large"), Nid(6000)];
    nids.extend([ino("/docs/large"), ino("/docs/left alone"), ino("/other/7"), ino("/other/new 550")]);
    let device = device.snapshot();
    drop(fs);
    let tables = Tables::read(&device);
    let mut segments: BTreeMap<SegmentNo, BTreeSet<u32>> = BTreeMap::new();
    let mut note = |addr: BlockAddr| {
        let (segment, offset) = tables.geometry.locate(addr).unwrap();
        segments.entry(segment).or_default().insert(offset);
    };
    LogType::ALL.into_iter().for_each(|log| note(tables.log(log)));
    for node in chain(&device) {
        note(node.addr);
        node.names.iter().copied().for_each(&mut note);
        if node.nid != node.ino && !nids.contains(&node.nid) {
            nids.push(node.nid);
        }
    }
    // A direct node of a file that was there, and one of a file that was not.
    assert_eq!(nids.len(), 12, "{nids:?}");
    // One that was never used.
    note(tables.geometry.block_at(SegmentNo(tables.geometry.main_segments - 1), 0));
    Crashed { device, files, nids, segments }
}

/// A node of the chain.
struct Node {
    addr: BlockAddr,
    nid: Nid,
    ino: Nid,
    names: Vec<BlockAddr>,
}

fn chain(device: &MemoryDevice) -> Vec<Node> {
    let volume = Volume::open(Arc::new(device.snapshot()), &VolumeOptions::new().read_only(true)).unwrap();
    let recovery = volume.recovery();
    let node = |addr| {
        let block = recovery.synced_node(addr).unwrap();
        let names = block.addresses(volume.features()).filter(|addr| volume.geometry().in_main(*addr)).collect();
        Node { addr, nid: block.nid(), ino: block.ino(), names }
    };
    recovery.synced_nodes().unwrap().into_iter().map(|at| node(at.addr)).collect()
}

/// A bit to be flipped, in words.
struct Flip {
    what: String,
    place: Place,
    bit: usize,
}

/// Bits of the numbers that entries of a journal are of, and of their count.
fn of_journals(crashed: &Crashed) -> Vec<Flip> {
    let tables = Tables::read(&crashed.device);
    let mut all = Vec::new();
    let nids = crashed.nids.iter().map(|nid| (format!("nid {nid}"), tables.nat(*nid)));
    let segments = crashed.segments.keys().map(|segment| (format!("segment {segment}"), tables.sit(*segment)));
    for (of, entry) in nids.chain(segments).filter(|(_, place)| place.journaled) {
        let place = Place { byte: entry.byte - 4, ..entry };
        all.extend((0..32).map(|bit| Flip { what: format!("bit {bit} of the number {of}"), place, bit }));
    }
    for place in tables.counts() {
        all.extend((0..16).map(|bit| Flip { what: format!("bit {bit} of a count"), place, bit }));
    }
    all
}

/// All bits of NAT entries.
fn of_the_nat(crashed: &Crashed) -> Vec<Flip> {
    let tables = Tables::read(&crashed.device);
    let one = |nid: Nid| (0..NAT_BITS).map(move |bit| (nid, bit));
    let flip = |(nid, bit)| Flip { what: format!("bit {bit} of nid {nid}"), place: tables.nat(nid), bit };
    crashed.nids.iter().copied().flat_map(one).map(flip).collect()
}

/// Bits of SIT entries: the count, the type, some of the map and of the time.
fn of_the_sit(crashed: &Crashed) -> Vec<Flip> {
    let tables = Tables::read(&crashed.device);
    let mut all = Vec::new();
    for (segment, needed) in &crashed.segments {
        let free = (0..BLOCKS_PER_SEGMENT).filter(|offset| !needed.contains(offset));
        let offsets = needed.iter().copied().take(2).chain(needed.iter().copied().rev().take(2));
        let offsets = offsets.chain(free.step_by(200));
        // A map counts from the highest bit of each byte.
        let of_map = offsets.map(|offset| 16 + (offset / 8 * 8 + 7 - offset % 8) as usize);
        for bit in (0..16).chain(of_map).chain([SIT_BITS - 1]) {
            all.push(Flip { what: format!("bit {bit} of segment {segment}"), place: tables.sit(*segment), bit });
        }
    }
    all
}

fn planned(device: &MemoryDevice) -> Repair {
    let device: Arc<dyn BlockDevice> = Arc::new(device.snapshot().read_only());
    plan(&device, &CheckOptions::default()).unwrap()
}

/// All files are there, as they were synced; and afterwards the volume is sound.
#[track_caller]
fn assert_comes_back(crashed: &Crashed, device: &MemoryDevice, ask_fsck: bool, what: &str) {
    let device = Arc::new(device.snapshot());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(fs.recovered().files, NEW as u64 + 4, "{what}");
    for (path, bytes) in &crashed.files {
        assert!(read(&fs, path) == *bytes, "{what}: {path}");
    }
    fs.close().unwrap();
    drop(fs);
    let report = check(&*device, &CheckOptions::default()).unwrap();
    assert!(report.is_clean() && report.complete, "{what}: {report}");
    if ask_fsck {
        f2fs_oracle::assert_clean(saved(&device));
    }
}

/// Mends a volume, after which both judges find nothing, and everything comes back. Whether there was something to mend.
#[track_caller]
fn assert_mended(crashed: &Crashed, device: &MemoryDevice, ask_fsck: bool, what: &str) -> bool {
    let repair = planned(device);
    let was_harmed = !repair.before.is_clean();
    assert_eq!(was_harmed, repair.keeps_synced(), "{what}: {:?}\n{}", repair.actions, repair.before);
    assert!(repair.after.is_clean() && !repair.gives_up_synced(), "{what}: {}", repair.after);
    assert_eq!(was_harmed, !repair.is_empty(), "{what}");
    let mended = device.snapshot();
    repair.apply(&mended).unwrap();
    if ask_fsck {
        assert_clean(&mended);
    }
    assert_comes_back(crashed, &mended, ask_fsck, what);
    was_harmed
}

/// Some of the entries stand in a journal, and some in the table.
#[track_caller]
fn assert_both_places(all: &[Flip]) {
    let journaled = all.iter().filter(|flip| flip.place.journaled).count();
    assert!(0 < journaled && journaled < all.len(), "{journaled} of {}", all.len());
}

/// Flips every so many of these bits, each on a volume of its own, which is mended. With `F2FS_ROUNDS` it is more of them.
#[track_caller]
fn assert_each_is_mended(crashed: &Crashed, all: Vec<Flip>, step: usize) {
    let step = step.div_ceil(scale("F2FS_ROUNDS"));
    let mut harmed = 0;
    for (index, Flip { what, place, bit }) in all.into_iter().step_by(step).enumerate() {
        let device = crashed.device.snapshot();
        place.flip(&device, bit);
        harmed += usize::from(assert_mended(crashed, &device, index % 8 == 0, &what));
    }
    assert!(harmed > 20, "{harmed}");
}

#[test]
fn what_was_synced_survives_a_flipped_bit_of_the_nat() {
    let crashed = crashed();
    assert_comes_back(crashed, &crashed.device, true, "nothing");
    let all = of_the_nat(crashed);
    assert_both_places(&all);
    assert_each_is_mended(crashed, all, 5);
}

#[test]
fn what_was_synced_survives_a_flipped_bit_of_a_journal() {
    let crashed = crashed();
    assert_each_is_mended(crashed, of_journals(crashed), 3);
}

#[test]
fn what_was_synced_survives_a_flipped_bit_of_the_sit() {
    let crashed = crashed();
    let all = of_the_sit(crashed);
    assert_both_places(&all);
    assert_each_is_mended(crashed, all, 3);
}

/// Several bits, in tables and in both journals: the repair stops at each of its requests, and the next one ends it.
#[test]
fn a_repair_that_is_cut_keeps_what_was_synced() {
    let crashed = crashed();
    let harmed = crashed.device.snapshot();
    // One of each table, and one of each journal.
    for flips in [of_the_nat(crashed), of_the_sit(crashed)] {
        for journaled in [false, true] {
            let of_map_or_address = |flip: &&Flip| flip.place.journaled == journaled && flip.bit >= 40;
            let flip = flips.iter().find(of_map_or_address).unwrap();
            flip.place.flip(&harmed, flip.bit);
        }
    }
    let blocks = planned(&harmed).blocks().count();
    assert!(blocks > 2, "{blocks}");
    for passing in 0.. {
        let trial = Arc::new(harmed.snapshot());
        let device = Arc::new(FaultDevice::new(trial.clone()));
        let shared: Arc<dyn BlockDevice> = device.clone();
        let repair = plan(&shared, &CheckOptions::default()).unwrap();
        device.arm(FaultRule::on_changes().after(passing).for_good());
        let applied = repair.apply(&*device);
        let was_harmed = assert_mended(crashed, &trial, true, &format!("cut after {passing}"));
        if applied.is_ok() {
            assert!(!was_harmed && passing > blocks as u64, "{passing}");
            break;
        }
    }
}

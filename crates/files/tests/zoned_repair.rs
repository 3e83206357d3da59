//! Repair of volumes on zones: nothing is changed in place there, the old checkpoint stays whole, and what cannot be
//! saved is said. The device judges each write: one that is not at the write pointer of its zone is an error.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;

use f2fs_check::repair::{Repair, RepairError, plan, undo};
use f2fs_check::{CheckOptions, CheckReport, FindingKind, check};
use f2fs_device::{BlockDevice, KeptZones, MemoryDevice, ZoneChange, ZoneLayout};
use f2fs_device_test::{FaultDevice, FaultRule, bytes};
use f2fs_files::{FileSystem, Options};
use f2fs_format::feature::Features;
use f2fs_format::node::NodeBlock;
use f2fs_format::{BLOCKS_PER_SEGMENT, LogType, SegmentNo};
use f2fs_test_kit::entries::Tables;
use f2fs_volume::VolumeOptions;
use f2fs_volume::format::{FormatOptions, format};

/// Blocks in a zone: two segments.
const ZONE: u64 = 1024;
/// Files, and their sizes.
const FILES: [(&str, usize); 5] =
    [("/large", 9 << 20), ("/small", 300), ("/dir/a", 100_000), ("/dir/b", 3 << 20), ("/dir/below/c", 70_000)];

type Zoned = Arc<KeptZones<Arc<MemoryDevice>>>;

fn on(memory: &Arc<MemoryDevice>) -> Zoned {
    Arc::new(KeptZones::open(memory.clone()).unwrap())
}

fn open(memory: &Arc<MemoryDevice>) -> FileSystem {
    FileSystem::open(on(memory), Options::new().volume(VolumeOptions::new().lanes(1))).unwrap()
}

fn content(path: &str, len: usize) -> Vec<u8> {
    bytes(len, path.bytes().map(u64::from).sum())
}

/// As many conventional zones as a volume needs in front of its main area: all of that lies in zones that are written
/// in their order.
fn front(layout: ZoneLayout) -> ZoneLayout {
    let options = FormatOptions::default().with_features(Features::BLKZONED);
    let accepted = |layout: &ZoneLayout| {
        let blocks = KeptZones::<MemoryDevice>::blocks_needed(layout, 64).unwrap();
        format(&KeptZones::create(MemoryDevice::new(blocks), *layout).unwrap(), &options).is_ok()
    };
    (1..).map(|zones| layout.with_conventional(zones)).find(accepted).unwrap()
}

/// A volume with files, closed.
fn made(zones: u64, layout: ZoneLayout) -> Arc<MemoryDevice> {
    let memory = Arc::new(MemoryDevice::new(KeptZones::<Arc<MemoryDevice>>::blocks_needed(&layout, zones).unwrap()));
    let device = KeptZones::create(memory.clone(), layout).unwrap();
    format(&device, &FormatOptions::default().with_features(Features::BLKZONED)).unwrap();
    drop(device);
    let fs = open(&memory);
    for path in ["/dir", "/dir/below", "/many"] {
        fs.create_dir(path, 0o755).unwrap();
    }
    for (path, len) in FILES {
        assert_eq!(fs.create_file(path, 0o644).unwrap().write_at(&content(path, len), 0).unwrap(), len);
    }
    // A directory with blocks.
    for number in 0..600 {
        fs.create_file(format!("/many/a name that takes more than one slot {number}"), 0o644).unwrap();
    }
    fs.close().unwrap();
    memory
}

fn checked(memory: &Arc<MemoryDevice>) -> CheckReport {
    let report = check(&*on(memory), &CheckOptions::default()).unwrap();
    assert!(report.complete);
    report
}

#[track_caller]
fn assert_clean(memory: &Arc<MemoryDevice>) {
    let report = checked(memory);
    assert!(report.is_clean(), "{report}");
    // fsck.f2fs takes an image for one of zones that can be written to their end.
    let zones = on(memory).report_zones(0, usize::MAX).unwrap();
    if zones.iter().all(|zone| zone.blocks - zone.capacity < u64::from(BLOCKS_PER_SEGMENT)) {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("image");
        memory.save(&image).unwrap();
        f2fs_oracle::assert_clean(&image);
    }
}

fn planned(device: &Zoned) -> Repair {
    let device: Arc<dyn BlockDevice> = device.clone();
    plan(&device, &CheckOptions::default()).unwrap()
}

/// Repairs, judges, undoes and repairs again. The actions.
#[track_caller]
fn repaired(memory: &Arc<MemoryDevice>) -> Vec<String> {
    let before: Vec<String> = checked(memory).findings.iter().map(ToString::to_string).collect();
    assert!(!before.is_empty());
    let trial = Arc::new(memory.snapshot());
    let device = on(&trial);
    let repair = planned(&device);
    assert!(repair.after.is_clean(), "{}\n{}", repair.actions.join("\n"), repair.after);
    let mut backup = Vec::new();
    repair.write_backup(&*device, &mut backup).unwrap();
    repair.apply(&*device).unwrap();
    drop((repair, device));
    assert_clean(&trial);
    undo(&*on(&trial), &backup[..]).unwrap();
    // A log may stand off its pointer now, where a zone was finished.
    let mut again: Vec<_> = checked(&trial).findings;
    again.retain(|finding| finding.kind != FindingKind::WritePointer);
    let again: Vec<String> = again.iter().map(ToString::to_string).collect();
    let kept = before.iter().filter(|line| !line.contains("block of the log's zone"));
    assert_eq!(again, kept.cloned().collect::<Vec<_>>(), "undone");

    let device = on(memory);
    let repair = planned(&device);
    repair.apply(&*device).unwrap();
    let actions = repair.actions.clone();
    drop((repair, device));
    assert_clean(memory);
    actions
}

/// All files are whole, and the volume can be used.
#[track_caller]
fn assert_files(memory: &Arc<MemoryDevice>, but: &[&str]) {
    let fs = open(memory);
    for (path, len) in FILES.iter().filter(|(path, _)| !but.contains(path)) {
        let mut read = vec![0; len + 1];
        assert_eq!(fs.open_file(path).unwrap().read_at(&mut read, 0).unwrap(), *len, "{path}");
        assert!(read[..*len] == content(path, *len), "{path}");
    }
    for number in 0..200 {
        let file = fs.create_file(format!("/after {number}"), 0o644).unwrap();
        file.write_at(&content("after", 50_000), 0).unwrap();
        file.sync_all().unwrap();
    }
    fs.close().unwrap();
    drop(fs);
    assert_clean(memory);
}

/// Changes the inodes of these files, wherever such blocks are.
fn damage(memory: &MemoryDevice, paths: &[&str], fs: &FileSystem, change: fn(&mut NodeBlock)) {
    let inos: Vec<u32> = paths.iter().map(|path| fs.metadata(path).unwrap().ino.0).collect();
    let mut changed = 0;
    for block in 0..memory.info().blocks {
        let mut node = *NodeBlock::read(&memory.block(block).0);
        if node.is_inode() && inos.contains(&node.nid().0) && block > 2 * u64::from(BLOCKS_PER_SEGMENT) {
            change(&mut node);
            memory.write_slice(block, node.as_block()).unwrap();
            changed += 1;
        }
    }
    assert!(changed >= inos.len());
}

#[test]
fn nodes_that_change_are_written_anew() {
    for layout in [ZoneLayout::new(ZONE).with_limits(6, 6), ZoneLayout::new(ZONE).with_capacity(700).with_limits(8, 8)]
    {
        let memory = made(64, front(layout));
        let fs = open(&memory);
        damage(&memory, &["/dir", "/dir/b", "/small", "/many"], &fs, |node| node.inode_mut().i_links = 77.into());
        drop(fs);
        let actions = repaired(&memory);
        let anew = actions.iter().filter(|action| action.contains("written anew")).count();
        assert!((4..20).contains(&anew), "{}", actions.join("\n"));
        assert_files(&memory, &[]);
    }
}

/// The device fails at any request of a repair, and from then on: the backup leads back.
#[test]
fn a_repair_that_is_cut_off_is_undone() {
    let memory = made(64, front(ZoneLayout::new(ZONE).with_capacity(700).with_limits(6, 6)));
    let fs = open(&memory);
    damage(&memory, &["/dir", "/small"], &fs, |node| node.inode_mut().i_links = 77.into());
    drop(fs);
    let found = |memory: &Arc<MemoryDevice>| {
        let mut findings = checked(memory).findings;
        findings.retain(|finding| finding.kind != FindingKind::WritePointer);
        findings
    };
    let before = found(&memory);
    let mut requests = 0;
    for passing in 0.. {
        let trial = Arc::new(memory.snapshot());
        let device = Arc::new(FaultDevice::new(on(&trial)));
        let shared: Arc<dyn BlockDevice> = device.clone();
        let repair = plan(&shared, &CheckOptions::default()).unwrap();
        let mut backup = Vec::new();
        repair.write_backup(&*device, &mut backup).unwrap();
        device.arm(FaultRule::on_changes().after(passing).for_good());
        let applied = repair.apply(&*device);
        drop((repair, shared, device));
        undo(&*on(&trial), &backup[..]).unwrap();
        assert_eq!(found(&trial), before, "after {passing} requests");
        requests = passing;
        if applied.is_ok() {
            break;
        }
    }
    assert!(requests > 10, "{requests}");
}

#[test]
fn entries_of_directories_that_change_are_written_anew() {
    let memory = made(64, front(ZoneLayout::new(ZONE)));
    let fs = open(&memory);
    // Its entries come to lost+found, or back to where they were.
    damage(&memory, &["/dir"], &fs, |node| node.inode_mut().i_mode = 0.into());
    let many = fs.metadata("/many").unwrap().ino;
    damage(&memory, &["/many"], &fs, |node| node.inode_mut().i_current_depth = 1.into());
    drop(fs);
    let actions = repaired(&memory);
    assert!(actions.iter().any(|action| action.contains(&format!("of nid {many}"))), "{}", actions.join("\n"));
    assert_files(&memory, &[]);
}

/// Tables stand in front of the zones: they are mended in place. A node that changes would have to move, which needs a
/// checkpoint.
#[test]
fn what_was_synced_survives_a_flipped_bit_of_a_table() {
    let memory = made(64, front(ZoneLayout::new(ZONE)));
    let fs = open(&memory);
    fs.checkpoint().unwrap();
    let file = fs.create_file("/new", 0o644).unwrap();
    let bytes = content("/new", 50_000);
    file.write_at(&bytes, 0).unwrap();
    file.sync_all().unwrap();
    let small = fs.metadata("/small").unwrap().ino;
    drop((file, fs));
    let other = Arc::new(memory.snapshot());
    let device = on(&memory);
    Tables::read(&*device).nat(small).flip(&*device, 45);
    let repair = planned(&device);
    assert!(repair.keeps_synced() && repair.after.is_consistent(), "{:?}\n{}", repair.actions, repair.before);
    repair.apply(&*device).unwrap();
    drop((repair, device));
    let fs = open(&memory);
    let mut read = vec![0; bytes.len()];
    assert_eq!(fs.open_file("/new").unwrap().read_at(&mut read, 0).unwrap(), bytes.len());
    assert!(read == bytes);
    drop(fs);
    assert_files(&memory, &[]);

    damage(&other, &["/dir"], &open(&Arc::new(other.snapshot())), |node| node.inode_mut().i_links = 77.into());
    let repair = planned(&on(&other));
    assert!(!repair.keeps_synced() && repair.gives_up_synced(), "{:?}", repair.actions);
}

#[test]
fn a_log_off_its_write_pointer_moves() {
    let memory = made(64, front(ZoneLayout::new(ZONE).with_capacity(900)));
    // A block more in each zone that is written in part.
    let device = on(&memory);
    for zone in device.report_zones(0, usize::MAX).unwrap() {
        if let Some(next) = zone.write_pointer().filter(|next| *next > zone.start) {
            device.write_slice(next, b"after the checkpoint").unwrap();
        }
    }
    device.flush().unwrap();
    drop(device);
    let report = checked(&memory);
    assert!(!report.is_clean() && report.is_consistent(), "{report}");
    assert!(report.findings.iter().all(|finding| finding.kind == FindingKind::WritePointer), "{report}");
    let actions = repaired(&memory);
    assert!(actions.iter().any(|action| action.contains("log: goes on in segment")), "{}", actions.join("\n"));
    assert_files(&memory, &[]);
}

#[test]
fn what_lies_in_a_zone_that_was_emptied_is_gone_and_no_more() {
    let memory = made(64, front(ZoneLayout::new(ZONE)));
    let fs = open(&memory);
    let (main, geometry) = (fs.volume().geometry().main_blkaddr.0, fs.volume().geometry().clone());
    // A full zone of data in the middle of the large file.
    let victim = (0..geometry.sections).find(|section| {
        let segments = [0, 1].map(|at| fs.volume().segment(SegmentNo(2 * section + at)).unwrap());
        segments.iter().all(|segment| segment.valid == 512 && segment.log == LogType::WarmData)
    });
    drop(fs);
    let start = u64::from(main) + u64::from(victim.unwrap()) * ZONE;
    let device = on(&memory);
    device.change_zone(start, ZoneChange::Reset).unwrap();
    drop(device);
    let report = checked(&memory);
    assert!(report.has(FindingKind::Zone) && !report.is_consistent(), "{report}");
    let actions = repaired(&memory);
    assert!(actions.iter().any(|action| action.contains("it becomes a hole")), "{}", actions.join("\n"));
    let fs = open(&memory);
    let (path, len) = FILES[0];
    let mut read = vec![0; len];
    assert_eq!(fs.open_file(path).unwrap().read_at(&mut read, 0).unwrap(), len);
    let (holes, whole): (Vec<_>, Vec<_>) = read
        .chunks(4096)
        .zip(content(path, len).chunks(4096).map(<[u8]>::to_vec))
        .partition(|(read, _)| read.iter().all(|byte| *byte == 0));
    assert!(holes.len() <= ZONE as usize && !holes.is_empty(), "{}", holes.len());
    assert!(whole.iter().all(|(read, wanted)| *read == &wanted[..]));
    drop(fs);
    assert_files(&memory, &["/large", "/dir/b", "/dir/a", "/dir/below/c"]);
}

/// Before 6.4 Linux filled sections where no zone is, whatever the capacity of zones; now it refuses such a volume.
#[test]
fn blocks_behind_the_capacity_move() {
    let layout = ZoneLayout::new(2048).with_conventional(20);
    let memory = made(32, layout);
    // All of it lies in front of the zones.
    let zones = on(&memory).report_zones(0, usize::MAX).unwrap();
    assert!(zones.iter().all(|zone| zone.written.is_none_or(|blocks| blocks == 0)), "{zones:?}");
    drop(KeptZones::create(memory.clone(), layout.with_capacity(1100)).unwrap());
    let report = checked(&memory);
    assert!(report.has(FindingKind::Zone) && !report.is_consistent(), "{report}");
    repaired(&memory);
    assert_files(&memory, &[]);
}

#[test]
fn an_image_without_zones_is_not_repaired() {
    let memory = made(64, front(ZoneLayout::new(ZONE)));
    let fs = open(&memory);
    damage(&memory, &["/small"], &fs, |node| node.inode_mut().i_links = 77.into());
    drop(fs);
    let image: Arc<dyn BlockDevice> = memory;
    assert!(matches!(plan(&image, &CheckOptions::default()), Err(RepairError::NoZones)));
}

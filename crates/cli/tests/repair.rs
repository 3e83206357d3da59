//! `f2fs check --repair` and `--undo` as scripts use them: exit codes, the backup, what programs are told, and what
//! fsck.f2fs says afterwards. And what `inspect` says of a volume that stopped.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use f2fs::device::{AlignedBuf, BlockDevice};
use f2fs::format::dentry::DentryViewMut;
use f2fs::format::feature::Features;
use f2fs::format::node::NodeBlock;
use f2fs::format::superblock::SuperBlock;
use f2fs::format::trouble::{ErrorKind, StopReason};
use f2fs::format::{BlockAddr, LogType};
use f2fs::uring::{OpenOptions as UringOptions, UringDevice};
use f2fs::volume::{Volume, VolumeOptions};
use f2fs::{DirEntry, FileSystem, Options};
use serde_json::Value;

const BLOCK: usize = 4096;
/// The files of an image, and their sizes.
const FILES: [(&str, usize); 4] =
    [("/docs/small", 20), ("/docs/large", 300_000), ("/docs/below/deep", 9000), ("/kept", 5000)];

/// An image with a few files, and a directory for the test.
struct Place {
    dir: tempfile::TempDir,
    image: PathBuf,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let place = Place { image: dir.path().join("image"), dir };
        place.ok(&["format", "--size", "64M", "-O", "extra_attr,inode_checksum,sb_checksum,lost_found"], &[]);
        place.ok(&["mkdir"], &["/docs", "/docs/below", "/other"]);
        for (path, len) in FILES {
            let host = place.path("host");
            fs::write(&host, content(path, len)).unwrap();
            place.ok(&["put"], &[host.to_str().unwrap(), path]);
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn run(&self, before: &[&str], after: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_f2fs"));
        command.args(before).arg(&self.image).args(after).stdin(Stdio::null());
        command.output().unwrap()
    }

    #[track_caller]
    fn ok(&self, before: &[&str], after: &[&str]) -> String {
        self.code(before, after, 0).0
    }

    /// Runs a command that must end with a code; returns its output and its messages.
    #[track_caller]
    fn code(&self, before: &[&str], after: &[&str], code: i32) -> (String, String) {
        let output = self.run(before, after);
        let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(output.status.code(), Some(code), "{before:?}\n{out}\n{err}");
        assert!(!err.contains("panicked"), "{err}");
        (out, err)
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(&self.image).unwrap()
    }

    fn ino(&self, path: &str) -> u32 {
        let stat: Value = serde_json::from_str(&self.ok(&["stat", "--json"], &[path])).unwrap();
        u32::try_from(stat["ino"].as_u64().unwrap()).unwrap()
    }

    /// Changes every inode block with this number, stale ones included, and leaves its checksum as it is.
    fn edit_inode(&self, ino: u32, change: impl Fn(&mut NodeBlock)) {
        let file = fs::File::options().read(true).write(true).open(&self.image).unwrap();
        let mut found = 0;
        // The areas in front hold no block with such a footer.
        let first = (2 << 20) / BLOCK;
        for (number, raw) in self.bytes().chunks_exact(BLOCK).enumerate().skip(first) {
            let mut node = *NodeBlock::read(raw.first_chunk().unwrap());
            if node.nid().0 == ino && node.ino().0 == ino {
                change(&mut node);
                file.write_all_at(node.as_block(), (number * BLOCK) as u64).unwrap();
                found += 1;
            }
        }
        assert_ne!(found, 0);
    }

    fn edit_superblocks(&self, change: impl Fn(&mut SuperBlock)) {
        let mut bytes = self.bytes();
        for raw in bytes[..2 * BLOCK].chunks_exact_mut(BLOCK) {
            let mut block = *raw.first_chunk().unwrap();
            let mut superblock = SuperBlock::read(&block);
            change(&mut superblock);
            superblock.crc = superblock.compute_crc().into();
            superblock.write(&mut block);
            raw.copy_from_slice(&block);
        }
        fs::write(&self.image, bytes).unwrap();
    }

    /// Both judges find nothing.
    #[track_caller]
    fn sound(&self) {
        assert_eq!(self.ok(&["check"], &[]), "");
        f2fs_oracle::assert_clean(&self.image);
    }
}

fn content(path: &str, len: usize) -> Vec<u8> {
    path.bytes().cycle().zip(0..len).map(|(byte, at)| byte ^ (at / 251) as u8).collect()
}

fn lines(text: &str, of: &str) -> usize {
    text.lines().filter(|line| line.starts_with(of)).count()
}

/// Wrong counts of links.
fn harm(place: &Place) {
    let ino = place.ino("/docs/small");
    place.edit_inode(ino, |node| node.inode_mut().i_links = 7.into());
    assert_eq!(place.run(&["check"], &[]).status.code(), Some(4));
    assert!(!f2fs_oracle::fsck(&place.image).unwrap().is_accepted());
}

#[test]
fn a_sound_volume_is_left_alone() {
    let place = Place::new();
    let before = place.bytes();
    assert_eq!(place.ok(&["check", "--repair"], &[]), "");
    let told: Value = serde_json::from_str(&place.ok(&["check", "--repair", "--json"], &[])).unwrap();
    assert_eq!((&told["clean"], &told["blocks"], &told["backup"]), (&true.into(), &0.into(), &Value::Null));
    assert!(place.bytes() == before);
    assert!(!place.path("image.f2fs-backup").exists(), "nothing was changed, so nothing was saved");
}

#[test]
fn what_is_repaired_is_saved_first_and_undone_again() {
    let place = Place::new();
    harm(&place);
    let harmed = place.bytes();
    let (said, _) = place.code(&["check", "--repair"], &[], 1);
    assert!(said.contains("blocks changed") && said.contains("--undo") && lines(&said, "left") == 0, "{said}");
    place.sound();
    assert_eq!(place.ok(&["cat"], &["/docs/small"]).into_bytes(), content("/docs/small", 20));
    let repaired = place.bytes();

    // The blocks that differ are those that the backup holds, beside the first block of the pack that was in force and
    // the one where synced nodes go.
    let backup = place.path("image.f2fs-backup");
    let differ = repaired.chunks(BLOCK).zip(harmed.chunks(BLOCK)).filter(|(new, old)| new != old).count();
    assert_eq!(fs::metadata(&backup).unwrap().len(), 28 + (differ as u64 + 2) * (16 + BLOCK as u64));
    assert!(said.contains(&format!("{differ} blocks changed")), "{said}");

    let undo = backup.to_str().unwrap();
    let said = place.ok(&["check", "--undo", undo], &[]);
    assert!(said.contains(&format!("{differ} blocks written back, 0 were as before")), "{said}");
    assert!(place.bytes() == harmed);
    let told: Value = serde_json::from_str(&place.ok(&["check", "--json", "--undo", undo], &[])).unwrap();
    assert_eq!((&told["restored"], &told["untouched"]), (&0.into(), &differ.into()), "undone already");

    // A backup that is there is never overwritten, and without one nothing is repaired.
    let saved = fs::read(&backup).unwrap();
    let (_, complaint) = place.code(&["check", "--repair"], &[], 8);
    assert!(complaint.contains("f2fs-backup"), "{complaint}");
    assert!(place.bytes() == harmed && fs::read(&backup).unwrap() == saved);
    let other = place.path("other");
    place.code(&["check", "--repair", "--backup", other.to_str().unwrap()], &[], 1);
    assert!(place.bytes() == repaired && fs::read(&other).unwrap() == saved);
}

#[test]
fn a_repair_is_not_undone_behind_files_that_were_synced_since() {
    let place = Place::new();
    harm(&place);
    place.code(&["check", "--repair"], &[], 1);
    let backup = place.path("image.f2fs-backup");
    let undo = ["check", "--undo", backup.to_str().unwrap()];
    // Nodes of a sync, and no checkpoint.
    let device: Arc<dyn BlockDevice> = Arc::new(UringDevice::open(&place.image, UringOptions::new()).unwrap());
    let volume = Volume::open(device.clone(), &VolumeOptions::new().read_only(true)).unwrap();
    let log = volume.last_checkpoint().log(LogType::WarmNode);
    let block = u64::from(volume.geometry().block_at(log.segment, log.next_offset.into()).0);
    device.write(block, AlignedBuf::from_bytes(&[1; BLOCK])).unwrap();
    drop((volume, device));
    let after = place.bytes();
    let (_, complaint) = place.code(&undo, &[], 8);
    assert!(complaint.contains(&format!("block {block} was changed since the repair")), "{complaint}");
    assert!(place.bytes() == after);
}

/// Files that were synced behind a checkpoint, of a volume that nobody closed.
fn sync_and_stop(place: &Place) {
    let device = Arc::new(UringDevice::open(&place.image, UringOptions::new()).unwrap());
    let fs = FileSystem::open(device, Options::new()).unwrap();
    // The first sync after an opening is a checkpoint.
    fs.checkpoint().unwrap();
    for name in ["/kept", "/new"] {
        let file = fs.create_file(name, 0o600).or_else(|_| fs.open_file(name)).unwrap();
        file.write_at(b"synced", 0).unwrap();
        file.sync_all().unwrap();
    }
}

#[test]
fn a_repair_brings_back_what_was_synced_since_the_checkpoint() {
    let place = Place::new();
    sync_and_stop(&place);
    let synced = place.ok(&["cat"], &["/new"]);
    assert_eq!(synced, "synced");
    // The copy of the superblock that nobody reads.
    let mut bytes = place.bytes();
    bytes[BLOCK + 1024 + 200] ^= 0xff;
    fs::write(&place.image, bytes).unwrap();
    let told: Value = serde_json::from_str(&place.code(&["check", "--repair", "--json"], &[], 1).0).unwrap();
    assert_eq!((&told["brought_back"], &told["clean"]), (&Value::from(2), &Value::from(true)));
    assert_eq!(place.ok(&["cat"], &["/new"]), "synced");
    assert!(place.ok(&["cat"], &["/kept"]).starts_with("synced"));
    place.sound();
}

#[test]
fn a_repair_does_not_give_up_what_was_synced_without_being_told() {
    let place = Place::new();
    sync_and_stop(&place);
    let ino = place.ino("/docs/small");
    place.edit_inode(ino, |node| node.inode_mut().i_links = 7.into());
    let before = place.bytes();
    let (_, err) = place.code(&["check", "--repair"], &[], 8);
    assert!(err.contains("would lose 2 files") && err.contains("--no-recovery"), "{err}");
    assert!(place.bytes() == before, "it was changed");
    let backup = place.path("backup");
    place.code(&["check", "--repair", "--no-recovery", "--backup", backup.to_str().unwrap()], &[], 1);
    place.code(&["cat"], &["/new"], 1);
    assert_eq!(place.ok(&["cat"], &["/kept"]).len(), 5000);
    place.sound();
    // It is all there again in front of the repair.
    place.ok(&["check", "--undo", backup.to_str().unwrap()], &[]);
    assert!(place.bytes() == before);
    assert_eq!(place.ok(&["cat"], &["/new"]), "synced");
}

#[test]
fn programs_are_told_what_was_done() {
    let place = Place::new();
    harm(&place);
    let (text, complaint) = place.code(&["check", "--json", "--repair"], &[], 1);
    assert_eq!(complaint, "");
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&told["checked"], &told["clean"]), (&true.into(), &true.into()));
    let kinds = |which: &str| -> Vec<String> {
        told[which].as_array().unwrap().iter().map(|finding| finding["kind"].as_str().unwrap().to_owned()).collect()
    };
    assert!(kinds("before").contains(&"links".to_owned()) && kinds("before").contains(&"inode checksum".to_owned()));
    assert!(kinds("after").is_empty());
    assert!(told["blocks"].as_u64().unwrap() > 0 && !told["actions"].as_array().unwrap().is_empty());
    assert!(Path::new(told["backup"].as_str().unwrap()).is_file());
    place.sound();

    let none = place.path("none");
    let (text, complaint) = place.code(&["check", "--json", "--undo", none.to_str().unwrap()], &[], 8);
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told["checked"], false);
    assert!(told["error"].as_str().unwrap().contains("none") && complaint.contains("none"), "{complaint}");
    place.code(&["check", "--repair", "--undo", "x"], &[], 2);
    place.code(&["check", "--backup", "x"], &[], 2);
}

#[test]
fn a_directory_of_zeros_gets_its_files_back() {
    let place = Place::new();
    place.edit_inode(place.ino("/docs"), |node| *node = NodeBlock::ZERO);
    assert_eq!(place.run(&["check"], &[]).status.code(), Some(4));
    let (said, _) = place.code(&["check", "--repair"], &[], 1);
    place.sound();
    for (path, len) in FILES {
        assert!(place.run(&["cat"], &[path]).stdout == content(path, len), "{path}: {said}");
    }
}

#[test]
fn a_directory_without_its_first_block_is_marked_as_one_without_dots() {
    let place = Place::new();
    let device = Arc::new(UringDevice::open(&place.image, UringOptions::new()).unwrap());
    let fs = FileSystem::open(device, Options::new()).unwrap();
    let name = |number| format!("/docs/below/{number}-{}", "long".repeat(50));
    // More than the first bucket has room for; then only one of those behind it is left.
    fs.create_file(name(0), 0o644).unwrap();
    (1..24).for_each(|number| fs.link(name(0), name(number)).unwrap());
    let entries: Vec<_> = fs.read_dir("/docs/below").unwrap().map(Result::unwrap).collect();
    let (kept, others) = entries.split_last().unwrap();
    let path = |entry: &DirEntry| format!("/docs/below/{}", String::from_utf8_lossy(&entry.name));
    others.iter().filter(|entry| entry.name != b"deep").for_each(|entry| fs.remove_file(path(entry)).unwrap());
    let [ino, deep] = ["/docs/below", "/docs/below/deep"].map(|path| fs.metadata(path).unwrap().ino.0);
    let kept = path(kept);
    fs.close().unwrap();
    drop(fs);
    let features = Features::EXTRA_ATTR.union(Features::INODE_CHECKSUM);
    place.edit_inode(ino, |node| {
        assert!(node.addresses(features).skip(2).any(BlockAddr::is_real), "{node:?}");
        node.set_address(0, BlockAddr::NULL, features);
    });
    let (said, _) = place.code(&["check", "--repair"], &[], 1);
    assert!(said.contains(&format!("directory {ino}: is marked as one without")), "{said}");
    place.sound();
    place.ok(&["stat"], &[&kept]);
    // The content of the lost block is back, in a new one.
    assert_ne!(place.ino(&kept), deep);
    assert_eq!(place.ino("/docs/below/deep"), deep);
    // And it is used like any other.
    place.ok(&["mkdir"], &["/docs/below/new"]);
    place.sound();
}

#[test]
fn what_has_no_name_any_more_goes_to_lost_and_found() {
    let place = Place::new();
    let [small, below] = ["/docs/small", "/docs/below"].map(|path| place.ino(path));
    // The directory loses all its entries, and two of them do not know their own names.
    let features = Features::EXTRA_ATTR.union(Features::INODE_CHECKSUM);
    place.edit_inode(place.ino("/docs"), |node| {
        let mut entries = DentryViewMut::inline(node.inode_mut().inline_data_mut(features));
        let slots: Vec<usize> =
            entries.as_view().entries().flatten().filter(|entry| !entry.is_dot()).map(|entry| entry.slot).collect();
        slots.into_iter().for_each(|slot| drop(entries.remove(slot)));
    });
    for ino in [small, below] {
        place.edit_inode(ino, |node| node.inode_mut().i_namelen = 0.into());
    }
    assert_eq!(place.run(&["check"], &[]).status.code(), Some(4));
    let (said, _) = place.code(&["check", "--repair"], &[], 1);
    place.sound();
    assert_eq!(place.ok(&["ls"], &["/docs"]), "large\n", "{said}");
    let found = [(format!("{small}"), FILES[0]), (format!("{below}/deep"), FILES[2])];
    for (name, (path, len)) in found {
        assert!(place.run(&["cat"], &[&format!("/lost+found/{name}")]).stdout == content(path, len), "{path}: {said}");
    }
    // The volume goes on.
    place.ok(&["mv"], &[&format!("/lost+found/{below}"), "/docs/below"]);
    assert!(place.run(&["cat"], &[FILES[2].0]).stdout == content(FILES[2].0, FILES[2].1));
    place.ok(&["rm", "-r"], &["/lost+found"]);
    place.sound();
}

/// The table of segments is garbage, so that no segment counts as free; two lost directories have names of one file.
#[test]
fn room_is_found_where_no_segment_counts_as_free() {
    let place = Place::new();
    place.ok(&["mkdir"], &["/docs/beside"]);
    for name in ["/docs/below/one", "/docs/beside/two"] {
        place.ok(&["ln"], &["/docs/small", name]);
    }
    place.ok(&["rm", "-r"], &["/docs/small", "/lost+found"]);
    // The directory loses all its entries, and those that were below it do not know their own names.
    let lost = ["/docs/below", "/docs/beside"].map(|path| place.ino(path));
    let features = Features::EXTRA_ATTR.union(Features::INODE_CHECKSUM);
    place.edit_inode(place.ino("/docs"), |node| {
        let mut entries = DentryViewMut::inline(node.inode_mut().inline_data_mut(features));
        let slots: Vec<usize> =
            entries.as_view().entries().flatten().filter(|entry| !entry.is_dot()).map(|entry| entry.slot).collect();
        slots.into_iter().for_each(|slot| drop(entries.remove(slot)));
    });
    lost.iter().for_each(|ino| place.edit_inode(*ino, |node| node.inode_mut().i_namelen = 0.into()));
    let mut bytes = place.bytes();
    let superblock = SuperBlock::read(bytes[..BLOCK].first_chunk().unwrap());
    let [from, to] = [superblock.sit_blkaddr, superblock.nat_blkaddr].map(|addr| addr.get() as usize * BLOCK);
    // No map is empty.
    let garbage = (0u32..).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8 | 1);
    bytes[from..to].iter_mut().zip(garbage).for_each(|(byte, garbage)| *byte = garbage);
    fs::write(&place.image, bytes).unwrap();
    let (said, _) = place.code(&["check", "--repair"], &[], 1);
    place.sound();
    let [below, beside] = lost;
    let names = [format!("/lost+found/{below}/one"), format!("/lost+found/{beside}/two")];
    for name in &names {
        assert!(place.run(&["cat"], &[name]).stdout == content(FILES[0].0, FILES[0].1), "{name}: {said}");
    }
    assert_eq!(place.ino(&names[0]), place.ino(&names[1]));
}

/// Data where an inode was: the table and the summary still say that it is one, and nothing in it does.
#[test]
fn data_in_the_place_of_an_inode_is_no_file() {
    let place = Place::new();
    place.edit_inode(place.ino("/kept"), |node| {
        let mut data = [0; BLOCK];
        data.iter_mut().zip(0u32..).for_each(|(byte, at)| *byte = (at.wrapping_mul(2_654_435_761) >> 24) as u8);
        *node = *NodeBlock::read(&data);
    });
    let (said, _) = place.code(&["check", "--repair"], &[], 1);
    place.sound();
    assert_eq!(place.ok(&["ls"], &["/"]), "docs\nlost+found\nother\n", "{said}");
    assert_eq!(place.ok(&["ls"], &["/lost+found"]), "", "{said}");
}

/// More files than fit into the inode of a directory, or of all the directories that a root has room for in its own.
#[test]
fn directories_grow_for_what_comes_back() {
    const MANY: usize = 17_000;
    let names = |place: &Place, path: &str| {
        let device = Arc::new(UringDevice::open(&place.image, UringOptions::new()).unwrap());
        let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
        let mut names: Vec<Vec<u8>> = fs.read_dir(path).unwrap().map(|entry| entry.unwrap().name).collect();
        names.sort();
        names
    };
    let features = Features::EXTRA_ATTR.union(Features::INODE_CHECKSUM);
    for dir in ["/home/many", "/"] {
        let place = Place::new();
        place.ok(&["format", "--size", "160M", "-O", "extra_attr,inode_checksum,sb_checksum", "--force"], &[]);
        let device = Arc::new(UringDevice::open(&place.image, UringOptions::new()).unwrap());
        let fs = FileSystem::open(device, Options::new()).unwrap();
        fs.create_dir("/home", 0o755).unwrap();
        fs.create_dir("/home/many", 0o755).unwrap();
        (0..MANY).for_each(|number| drop(fs.create_file(format!("{dir}/file {number}"), 0o644).unwrap()));
        let ino = fs.metadata(dir).unwrap().ino.0;
        fs.close().unwrap();
        drop(fs);
        let before = names(&place, dir);
        // The inode is empty: the names are known to the files.
        place.edit_inode(ino, |node| *node = NodeBlock::ZERO);
        place.code(&["check", "--repair"], &[], 1);
        place.sound();
        assert!(names(&place, dir) == before, "{dir}");
        // And it is used like any other.
        place.ok(&["mv"], &[&format!("{dir}/file 7777"), "/moved"]);
        place.sound();
        if dir == "/" {
            continue;
        }
        fs::remove_file(place.path("image.f2fs-backup")).unwrap();
        // Nobody knows the inode any more.
        place.edit_inode(ino, |node| *node = NodeBlock::ZERO);
        place.edit_inode(place.ino("/home"), |node| {
            let mut entries = DentryViewMut::inline(node.inode_mut().inline_data_mut(features));
            let slots: Vec<usize> = entries
                .as_view()
                .entries()
                .flatten()
                .filter(|entry| entry.ino.0 == ino)
                .map(|entry| entry.slot)
                .collect();
            slots.into_iter().for_each(|slot| drop(entries.remove(slot)));
        });
        place.code(&["check", "--repair"], &[], 1);
        place.sound();
        assert_eq!(names(&place, "/lost+found").len(), MANY - 1);
    }
}

#[test]
fn what_cannot_be_undone_stays_as_it_is() {
    let place = Place::new();
    harm(&place);
    place.code(&["check", "--repair"], &[], 1);
    let backup = place.path("image.f2fs-backup");
    let whole = fs::read(&backup).unwrap();
    let repaired = place.bytes();
    let bad = place.path("bad");
    let mut flipped = whole.clone();
    flipped[28 + 16 + 100] ^= 1;
    let mut larger = whole.clone();
    larger[8] ^= 1;
    for damaged in [&b""[..], b"F2FSBAK1", &whole[..whole.len() - 1], &flipped, &larger] {
        fs::write(&bad, damaged).unwrap();
        let (_, complaint) = place.code(&["check", "--undo", bad.to_str().unwrap()], &[], 8);
        assert!(complaint.contains("bad") && complaint.contains("damaged or cut short"), "{complaint}");
        assert!(place.bytes() == repaired);
    }
    // Whatever was written since would be lost.
    place.ok(&["mkdir"], &["/newer"]);
    let newer = place.bytes();
    let (_, complaint) = place.code(&["check", "--undo", backup.to_str().unwrap()], &[], 8);
    assert!(complaint.contains("was changed since the repair"), "{complaint}");
    assert!(place.bytes() == newer);
    place.sound();
}

#[test]
fn what_is_beyond_repair_has_its_own_code_and_is_not_touched() {
    let place = Place::new();
    fs::write(&place.image, vec![0x5a; 64 << 20]).unwrap();
    let (_, complaint) = place.code(&["check", "--repair"], &[], 8);
    assert!(complaint.starts_with("f2fs: ") && complaint.contains("magic"), "{complaint}");
    assert!(place.bytes().iter().all(|byte| *byte == 0x5a));
    assert!(!place.path("image.f2fs-backup").exists());
}

#[test]
fn inspect_tells_why_a_volume_stopped() {
    let place = Place::new();
    let rows = |text: &str| -> Vec<String> {
        let of = |line: &&str| ["stopped", "errors"].iter().any(|name| line.trim_start().starts_with(name));
        text.lines().filter(of).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!(rows(&place.ok(&["inspect"], &[])), ["stopped none", "errors none"]);
    place.edit_superblocks(|superblock| {
        superblock.count_stop(StopReason::FlushFail);
        superblock.count_stop(StopReason::FlushFail);
        superblock.count_stop(StopReason::CorruptedNid);
        superblock.note_error(ErrorKind::InvalidBlkaddr);
        superblock.note_error(ErrorKind::InconsistentOrphan);
    });
    let text = place.ok(&["inspect"], &[]);
    let expected =
        ["stopped flush_fail (2 times), corrupted_nid (1 times)", "errors invalid_blkaddr, inconsistent_orphan"];
    assert_eq!(rows(&text), expected);
    let told: Value = serde_json::from_str(&place.ok(&["inspect", "--json"], &[])).unwrap();
    assert_eq!(
        told["superblock"]["stops"],
        serde_json::json!([{ "reason": "flush_fail", "count": 2 }, { "reason": "corrupted_nid", "count": 1 }])
    );
    assert_eq!(told["superblock"]["errors"], serde_json::json!(["invalid_blkaddr", "inconsistent_orphan"]));
    // They are a record of what was, and no damage.
    place.ok(&["check"], &[]);
}

//! `f2fs check --repair` and `--undo` as scripts use them: exit codes, the backup, what programs are told, and what
//! fsck.f2fs says afterwards. And what `inspect` says of a volume that stopped.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod copies;
mod journaled;
mod lost;
mod quotas;
mod synced;

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

/// Runs a repair that may write nothing behind so many KiB of a file.
fn repair_within(place: &Place, limit: u64) -> String {
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(format!("ulimit -f {limit}; exec \"$0\" check --repair \"$1\""));
    let output = shell.arg(env!("CARGO_BIN_EXE_f2fs")).arg(&place.image).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(8), "{said}");
    assert!(said.contains("File too large"), "{said}");
    said
}

#[test]
fn a_repair_that_fails_half_way_says_how_to_undo_it() {
    let place = Place::new();
    harm(&place);
    let harmed = place.bytes();
    let backup = place.path("image.f2fs-backup");
    // There is no room for the backup: nothing was changed, and nothing is in the way of the next repair.
    let said = repair_within(&place, 8);
    assert!(
        said.contains("image.f2fs-backup: ") && said.contains("is removed") && said.contains("is as it was"),
        "{said}"
    );
    assert!(place.bytes() == harmed && !backup.exists());
    // Tables are in front of the inode, and both change.
    let said = repair_within(&place, 8 << 10);
    let counts: Vec<usize> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [.., changed, all] = counts[..] else { panic!("{said}") };
    assert!(
        said.contains(&format!("{changed} of {all} blocks were changed")) && 0 < changed && changed < all,
        "{said}"
    );
    assert!(place.bytes() != harmed);
    let undo = said.split('`').nth(1).unwrap();
    assert!(undo.starts_with("f2fs check --undo ") && undo.contains("f2fs-backup"), "{said}");
    place.ok(&["check", "--undo", backup.to_str().unwrap()], &[]);
    assert!(place.bytes() == harmed);
    fs::remove_file(backup).unwrap();
    place.code(&["check", "--repair"], &[], 1);
    place.sound();
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
    // Nobody waits for somebody to write into a pipe, and another volume's backup is none of this one.
    let pipe = place.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (_, complaint) = place.code(&["check", "--undo", pipe.to_str().unwrap()], &[], 8);
    assert!(complaint.contains("pipe: is no file"), "{complaint}");
    let other = Place::new();
    other.ok(&["format", "--size", "65M", "--force"], &[]);
    let (_, complaint) = other.code(&["check", "--undo", backup.to_str().unwrap()], &[], 8);
    assert!(complaint.contains("the backup is that of a device of 16384 blocks"), "{complaint}");
    // A backup is not written over.
    harm(&place);
    let harmed = place.bytes();
    let (_, complaint) = place.code(&["check", "--repair"], &[], 8);
    assert!(complaint.contains("is there already") && complaint.contains("check --undo"), "{complaint}");
    assert!(place.bytes() == harmed && fs::read(&backup).unwrap() == whole);
    fs::write(&place.image, &repaired).unwrap();
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

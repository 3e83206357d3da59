//! Files that are no F2FS volume, and volumes that cannot be opened: the messages about them, and what `inspect` shows.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Place, command, fail, formatted, ok, run};
use serde_json::Value;

/// Every command that opens a volume says what the file holds.
#[track_caller]
fn is_said_to_hold(image: &Path, what: &str) {
    let before = fs::read(image).unwrap();
    for (args, code) in
        [(&["ls"][..], 1), (&["inspect"], 1), (&["check"], 8), (&["manifest"], 1), (&["check", "--repair"], 8)]
    {
        fail(command(args).arg(image), code, what);
    }
    fail(command(["mkdir"]).arg(image).arg("/x"), 1, what);
    fail(command(["stat"]).arg(image).arg("/"), 1, what);
    assert!(fs::read(image).unwrap() == before);
}

/// A file of 64 MiB with these bytes at that place.
fn marked(place: &Place, at: u64, mark: &[u8]) -> std::path::PathBuf {
    let image = place.path("other");
    let file = fs::File::create(&image).unwrap();
    file.set_len(64 << 20).unwrap();
    file.write_all_at(mark, at).unwrap();
    image
}

#[test]
fn what_others_mark_is_named() {
    let place = Place::new();
    for (at, mark, what) in [
        (1080, &b"\x53\xef"[..], "ext2, ext3 or ext4"),
        (0, b"XFSB", "XFS"),
        (65600, b"_BHRfS_M", "Btrfs"),
        (3, b"NTFS    ", "NTFS"),
        (82, b"FAT32   ", "FAT"),
        (0, b"hsqs", "SquashFS"),
        (4086, b"SWAPSPACE2", "swap"),
        (0, b"LUKS\xba\xbe", "LUKS"),
        (512, b"EFI PART", "GPT"),
        (510, b"\x55\xaa", "MBR partition table"),
        (0, b"\x1f\x8b\x08", "gzip"),
        (0, b"\x3a\xff\x26\xed", "simg2img"),
        (0, b"f2fsjrnl", "journal of an F2FS volume"),
        (4096, b"f2fsjrnl", "journal of an F2FS volume"),
        (0, b"", "zeros only"),
        (5000, b"text", "magic number"),
    ] {
        let image = marked(&place, at, mark);
        fail(command(["ls"]).arg(&image), 1, what);
        fail(command(["ls"]).arg(&image), 1, "not an F2FS volume");
        if mark.len() > 1 && what != "magic number" {
            // It is not overwritten either.
            fail(command(["format"]).arg(&image), 1, what);
            fail(command(["format"]).arg(&image), 1, "--force");
        }
    }
    is_said_to_hold(&marked(&place, 0, b"XFSB"), "holds an XFS file system, not an F2FS volume");
}

#[test]
fn what_the_tools_of_others_make_is_named() {
    let place = Place::new();
    let image = marked(&place, 0, b"");
    ok(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image));
    is_said_to_hold(&image, "holds an ext2, ext3 or ext4 file system, not an F2FS volume");
    // A volume that was packed for the mail.
    let volume = formatted(&place);
    let mut gzip =
        Command::new("gzip").stdin(Stdio::piped()).stdout(fs::File::create(&image).unwrap()).spawn().unwrap();
    gzip.stdin.take().unwrap().write_all(&fs::read(&volume).unwrap()).unwrap();
    assert!(gzip.wait().unwrap().success());
    is_said_to_hold(&image, "holds data that gzip compressed");
}

fn json(image: &Path) -> Value {
    let output = run(command(["inspect", "--json"]).arg(image));
    assert_eq!(output.status.code(), Some(1));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn inspect_shows_what_is_left_of_a_volume() {
    let place = Place::new();
    let image = place.path("disk.img");
    ok(command(["format", "--size", "64M", "-l", "mine", "-O", "extra_attr,sb_checksum"]).arg(&image));
    let sound = fs::read(&image).unwrap();

    // Both superblocks have wrong checksums: all that they say is shown, and the packs.
    let mut bytes = sound.clone();
    for block in 0..2 {
        bytes[block * 4096 + 1024 + 300] ^= 1;
    }
    fs::write(&image, &bytes).unwrap();
    fail(command(["ls"]).arg(&image), 1, "no valid superblock");
    let output = run(command(["inspect"]).arg(&image));
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    for words in
        ["superblock 1", "checksum", "superblock 2", "mine", "sb_checksum", "16384 blocks", "checkpoint 1", "sound"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(String::from_utf8(output.stderr).unwrap().contains("no valid superblock"));
    let value = json(&image);
    assert_eq!(value["opened"], false);
    assert_eq!(value["superblocks"][1]["superblock"]["label"], "mine");
    assert!(value["superblocks"][0]["problem"].as_str().unwrap().contains("checksum"));
    assert!(value["packs"][0]["problem"].is_null());
    assert!(fs::read(&image).unwrap() == bytes);

    // Both packs are gone.
    let mut bytes = sound.clone();
    bytes[512 * 4096..1536 * 4096].fill(0);
    fs::write(&image, &bytes).unwrap();
    let value = json(&image);
    assert!(value["error"].as_str().unwrap().contains("no valid checkpoint pack"));
    assert!(value["superblocks"][0]["problem"].is_null() && value["packs"][1]["problem"].is_string());

    // Cut.
    fs::write(&image, &sound[..32 << 20]).unwrap();
    let value = json(&image);
    assert!(value["error"].as_str().unwrap().contains("truncated"));
    assert_eq!(value["device_blocks"], 8192);
    assert!(value["packs"][0]["problem"].is_null());

    // The superblocks are gone, the checkpoints are not.
    let mut bytes = sound;
    bytes[..8192].fill(0);
    fs::write(&image, &bytes).unwrap();
    let output = run(command(["inspect"]).arg(&image));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("checkpoint 1") && text.contains("umount"), "{text}");

    // Something else.
    fs::write(&image, vec![0; 1 << 20]).unwrap();
    assert_eq!(run(command(["inspect"]).arg(&image)).stdout, b"");
    assert!(json(&image)["holds"].is_null());
}

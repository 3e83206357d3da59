//! Files with zones: made, formatted, checked, read, and written to.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use common::{Place, command, fail, ok};

/// Makes a volume of which it is said that it has few zones.
fn format_few(command: &mut std::process::Command) {
    let said = common::run(command);
    let errors = String::from_utf8(said.stderr).unwrap();
    assert!(said.status.success() && errors.contains("once it is nearly full it will be slow"), "{errors}");
}

#[test]
fn a_file_with_zones_is_formatted_and_keeps_them() {
    let place = Place::new();
    let disk = place.path("disk");
    let said = ok(command(["zones", "--make", "256M:4M:3M,conventional=5,open=6"]).arg(&disk));
    assert!(said.contains("64 zones of 4.0 MiB, 5 of them conventional") && said.lines().count() == 1, "{said}");
    fail(command(["zones", "--make", "256M:4M"]).arg(&disk), 1, "exists");
    fail(command(["format"]).arg(&disk), 2, "add -m");
    ok(command(["format", "-m"]).arg(&disk));
    // The inode and the dentries of the root.
    let said = ok(command(["zones"]).arg(&disk));
    assert_eq!(said.matches(": closed, 1 blocks written, of 768").count(), 2, "{said}");
    ok(command(["check"]).arg(&disk));
    assert_eq!(ok(command(["manifest"]).arg(&disk)).lines().count(), 1);
    let here = place.path("here");
    fs::write(&here, vec![7; 9 << 20]).unwrap();
    ok(command(["mkdir"]).arg(&disk).arg("/new"));
    for file in ["/new/one", "/new/two"] {
        ok(command(["put"]).arg(&disk).arg(&here).arg(file));
    }
    ok(command(["rm"]).arg(&disk).arg("/new/one"));
    ok(command(["check"]).arg(&disk));
    assert_eq!(ok(command(["manifest"]).arg(&disk)).lines().count(), 3);
    let said = ok(command(["zones"]).arg(&disk));
    assert!(said.contains(": full"), "{said}");
    let before = fs::read(&disk).unwrap();
    fail(command(["format", "-m"]).arg(&disk), 1, "F2FS");
    assert!(fs::read(&disk).unwrap() == before, "it was written to");
    // A damaged one is repaired, and the repair can be taken back.
    let superblock = f2fs::format::superblock::SuperBlock::read(before[..4096].try_into().unwrap());
    let pack = superblock.cp_blkaddr.get() as usize * 4096;
    let mut damaged = before.clone();
    damaged[pack + 4096..pack + 8192].fill(0xa5);
    fs::write(&disk, &damaged).unwrap();
    let said = common::run(command(["check", "--repair"]).arg(&disk));
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    ok(command(["check"]).arg(&disk));
    ok(command(["check", "--undo"]).arg(place.path("disk.f2fs-backup")).arg(&disk));
    assert!(fs::read(&disk).unwrap()[pack..pack + 8192] == damaged[pack..pack + 8192], "the pack is not as it was");
    ok(command(["format", "-m", "-f"]).arg(&disk));
    ok(command(["check"]).arg(&disk));
}

/// What is said to help does.
#[test]
fn few_zones_are_noted_when_they_are_formatted() {
    let place = Place::new();
    let disk = place.path("disk");
    ok(command(["zones", "--make", "480M:16M,conventional=4"]).arg(&disk));
    let said = common::run(command(["format", "-m"]).arg(&disk));
    let (errors, out) = (String::from_utf8(said.stderr).unwrap(), String::from_utf8(said.stdout).unwrap());
    assert!(said.status.success() && out.contains("for users"), "{out}");
    assert!(errors.contains("of its 28 zones 21 are kept free, and it takes 25"), "{errors}");
    let percent = errors.trim().rsplit("-o ").next().unwrap();
    // Where nobody can hear it, the volume is made all the same.
    let full = File::options().write(true).open("/dev/full").unwrap();
    assert!(command(["format", "-m", "-f"]).arg(&disk).stderr(full).status().unwrap().success());
    let json = ok(command(["format", "-m", "-f", "--json"]).arg(&disk));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["few_zones"]["wanted"], 25);
    assert_eq!(json["few_zones"]["overprovision_percent"].to_string(), percent);
    let said = common::run(command(["format", "-m", "-f", "-o", percent]).arg(&disk));
    assert_eq!((said.status.code(), String::from_utf8(said.stderr).unwrap().as_str()), (Some(0), ""));
    let json = ok(command(["format", "-m", "-f", "--json", "-o", percent]).arg(&disk));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["few_zones"].is_null() && json["overprovision_segments"].as_u64() >= Some(25 * 8), "{json}");
}

#[test]
fn a_plain_file_and_one_with_zones() {
    let place = Place::new();
    let (plain, zoned) = (place.path("plain"), place.path("zoned"));
    File::create(&plain).unwrap().set_len(33 << 20).unwrap();
    ok(command(["zones", "--make", "256M:4M"]).arg(&zoned));
    format_few(command(["format", "-m", "--device"]).arg(&zoned).arg(&plain));
    ok(command(["check", "--device"]).arg(&zoned).arg(&plain));
    let json: serde_json::Value = serde_json::from_str(&ok(command(["zones", "--json"]).arg(&zoned))).unwrap();
    assert_eq!((json["zone_blocks"].as_u64(), json["zones"].as_array().unwrap().len()), (Some(1024), 64));
    fail(command(["zones"]).arg(&plain), 1, "has no zones");
}

/// Zones that can be, of which no volume can be made: it is said why, and nothing is written.
#[test]
fn zones_that_no_volume_can_lie_on_are_refused() {
    let place = Place::new();
    let plain = place.path("plain");
    File::create(&plain).unwrap().set_len(64 << 20).unwrap();
    let zoned = |name: &str, zones: &str| {
        let path = place.path(name);
        ok(command(["zones", "--make", zones]).arg(&path));
        path
    };
    let (odd, short) = (zoned("odd", "255M:3M"), zoned("short", "256M:1M"));
    let (few, active) = (zoned("few", "256M:4M,open=5"), zoned("active", "256M:4M,active=5"));
    let (one, other) = (zoned("one", "256M:4M"), zoned("other", "256M:8M"));
    let narrow = zoned("narrow", "256M:4M:8K");
    let tiny = zoned("tiny", "16M:4M,conventional=3");
    for (disks, code, words) in [
        (&[&plain, &odd][..], 2, "blocks in a zone: 768 is not a power of two"),
        (&[&plain, &short], 2, "blocks in a zone: 256 is not in the range 512"),
        (&[&plain, &narrow], 2, "blocks of a zone that can be written: 2 is not in the range 3"),
        (&[&plain, &few], 1, "the device lets 5 zones be written to at a time, and the logs of a volume need 6"),
        (&[&plain, &active], 1, "the device lets 5 zones be written to at a time, and the logs of a volume need 6"),
        (&[&plain, &one, &other], 1, "other, in 32 zones) has zones of another size than the devices before it"),
        (&[&tiny], 1, "is not a size for a volume: with these options it takes at least"),
        (&[&one], 2, "conventional zones at the front of the first device: 0 is less than 1"),
        (&[&plain], 2, "-m needs a device with zones"),
    ] {
        let others = disks[1..].iter().flat_map(|disk| ["--device".into(), disk.display().to_string()]);
        fail(command(["format", "-m"]).args(others).arg(disks[0]), code, words);
    }
    assert!(fs::read(&plain).unwrap().iter().all(|byte| *byte == 0), "it was written to");
}

#[test]
fn zones_that_make_no_sense_leave_no_file() {
    let place = Place::new();
    for (zones, word) in [
        ("255M:4M", "multiple of ZONE"),
        ("0:0", "more than 0"),
        ("256M:4M:5M", "capacity of a zone"),
        ("256M:4M,conventional=65", "conventional zones"),
        ("256M:4M,open=3,active=2", "zones open at a time"),
    ] {
        let path = place.path("none");
        fail(command(["zones", "--make", zones]).arg(&path), 2, word);
        assert!(!path.exists(), "{zones}");
    }
}

/// What the file says of its zones changes under a volume: it is refused for writing with the numbers, and nothing is
/// written.
#[test]
fn zones_that_changed_under_a_volume_are_refused() {
    let place = Place::new();
    let disk = place.path("disk");
    ok(command(["zones", "--make", "128M:4M:3M,conventional=5,open=8,active=8"]).arg(&disk));
    format_few(command(["format", "-m"]).arg(&disk));
    let before = fs::read(&disk).unwrap();
    let header = before.len() - 4096;
    let file = File::options().write(true).open(&disk).unwrap();
    for (changes, words) in [
        // Blocks of a zone, blocks of it that can be written, zones in front that are written anywhere, open and active.
        (&[(16, 512_u64), (24, 512)][..], "the first block that is written in its order is 2560, not 5120"),
        (&[(16, 512), (24, 512), (32, 10)], "the number of blocks is 512, not 1024"),
        (&[(24, 1025)], "capacity of a zone is 1025, and at most 1024 is possible"),
        (&[(32, 2)], "the first block that is written in its order is"),
        (&[(32, 1 << 20)], "conventional zones: 1048576 is not in the range 0 to 32"),
        (&[(40, 5)], "the device lets 5 zones be written to at a time, and the logs of a volume need 6"),
        (&[(40, 5), (48, 5)], "the device lets 5 zones be written to at a time, and the logs of a volume need 6"),
        (&[(40, 9)], "zones open at a time: 9 is not in the range 0 to 8"),
    ] {
        let mut changed = before.clone();
        for (at, value) in changes {
            changed[header + at..header + at + 8].copy_from_slice(&value.to_le_bytes());
        }
        file.write_all_at(&changed[header..], header as u64).unwrap();
        fail(command(["mkdir"]).arg(&disk).arg("/refused"), 1, words);
        assert!(fs::read(&disk).unwrap() == changed, "{words}: it was written to");
    }
    file.write_all_at(&before[header..], header as u64).unwrap();
    ok(command(["mkdir"]).arg(&disk).arg("/taken"));
}

/// A volume may have any bytes in its last block: those of a file, say, whose owner would like to keep others from
/// their volume.
#[test]
fn what_looks_like_kept_zones_belongs_to_the_volume_that_has_the_block() {
    let place = Place::new();
    let (image, other) = (place.path("image"), place.path("other"));
    for several in [false, true] {
        let devices = if several { vec!["--device".into(), other.display().to_string()] } else { Vec::new() };
        for path in [&image, &other] {
            File::create(path).unwrap().set_len(64 << 20).unwrap();
        }
        ok(command(["format", "-f"]).args(&devices).arg(&image));
        for (path, numbers) in
            [(&image, [16384, 512, 512, 3, 0, 0]), (&other, [16384_u64, 512, 512, 0, 0, 0]), (&image, [7; 6])]
        {
            let mut header = b"f2fsZONE".to_vec();
            header.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            File::options().write(true).open(path).unwrap().write_all_at(&header, (64 << 20) - 4096).unwrap();
            let name = format!("/{several}-{}", numbers[3]);
            ok(command(["mkdir"]).args(&devices).arg(&image).arg(&name));
            assert!(ok(command(["ls"]).args(&devices).arg(&image)).contains(&name[1..]));
            ok(command(["check"]).args(&devices).arg(&image));
        }
    }
}

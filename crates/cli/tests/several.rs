//! Volumes on several devices: `--device`, beside mkfs.f2fs and fsck.f2fs.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Place, command, fail, ok};
use f2fs::format::superblock::SuperBlock;
use f2fs_oracle::{assert_clean, mkfs};

const MIB: u64 = 1 << 20;

/// Empty files of these sizes.
fn disks<const N: usize>(place: &Place, sizes: [u64; N]) -> [PathBuf; N] {
    std::array::from_fn(|index| {
        let path = place.path(&format!("disk{index}"));
        File::create(&path).unwrap().set_len(sizes[index]).unwrap();
        path
    })
}

/// The command with the other devices named.
fn on(args: &[&str], disks: &[PathBuf]) -> Command {
    let mut command = command(args);
    for other in &disks[1..] {
        command.arg("--device").arg(other);
    }
    command.arg(&disks[0]);
    command
}

/// Files enough to reach all devices.
fn tree(place: &Place) -> PathBuf {
    let tree = place.path("tree");
    for dir in 0..8 {
        let dir = tree.join(format!("dir{dir}"));
        fs::create_dir_all(&dir).unwrap();
        for file in 0..60 {
            let content: Vec<u8> = (0..80_000 + file * 4099).map(|at| (at * 31 + file) as u8).collect();
            fs::write(dir.join(format!("file{file}")), content).unwrap();
        }
    }
    tree
}

fn superblock(disk: &Path) -> SuperBlock {
    let mut block = [0; 4096];
    block.copy_from_slice(&fs::read(disk).unwrap()[..4096]);
    SuperBlock::read(&block)
}

/// The manifest of a volume without its first line, the root, whose times differ.
fn manifest(disks: &[PathBuf]) -> String {
    ok(&mut on(&["manifest"], disks))
}

#[test]
fn a_volume_on_three_devices_is_filled_checked_and_read() {
    let place = Place::new();
    let disks = disks(&place, [70 * MIB, 64 * MIB, 75 * MIB]);
    ok(&mut on(&["format"], &disks));
    assert_clean(&disks[0]);
    let tree = tree(&place);
    ok(on(&["put", "-r"], &disks).arg(&tree).arg("/tree"));
    for disk in &disks[1..] {
        let written = fs::read(disk).unwrap().chunks(4096).filter(|block| block.iter().any(|byte| *byte != 0)).count();
        assert!(written > 1000, "{} has {written} blocks", disk.display());
    }
    assert_clean(&disks[0]);
    ok(&mut on(&["check"], &disks));
    let before = manifest(&disks);
    assert!(before.lines().count() > 480, "{before}");
    ok(on(&["rm", "-r"], &disks).arg("/tree/dir3"));
    ok(on(&["put", "-r"], &disks).arg(tree.join("dir3")).arg("/tree/dir3"));
    let back = place.path("back");
    ok(on(&["get", "-r"], &disks).arg("/tree").arg(&back));
    let diff = Command::new("diff").arg("-r").args([&tree, &back]).output().unwrap();
    assert!(diff.status.success(), "{diff:?}");
    assert_clean(&disks[0]);
}

#[test]
fn volumes_are_those_of_mkfs() {
    for sizes in
        [[128 * MIB, 200 * MIB, 101 * MIB], [65 * MIB, 40 * MIB + 4096, 63 * MIB + 512], [300 * MIB, 2 * MIB, 7 * MIB]]
    {
        let place = Place::new();
        let disks = disks(&place, sizes);
        let names: Vec<&str> = disks.iter().map(|disk| disk.to_str().unwrap()).collect();
        ok(&mut on(&["format"], &disks));
        let ours = superblock(&disks[0]);
        mkfs(&disks[0], &["-f", "-c", names[1], "-c", names[2]]).unwrap();
        let theirs = superblock(&disks[0]);
        // The rest of a path is garbage there.
        assert_eq!(ours.devices().unwrap(), theirs.devices().unwrap());
        assert_eq!(ours.devices().unwrap()[1].path, names[1].as_bytes());
        let numbers = |sb: &SuperBlock| {
            let areas =
                [sb.segment_count, sb.section_count, sb.segment_count_sit, sb.segment_count_nat, sb.segment_count_ssa];
            let places =
                [sb.segment0_blkaddr, sb.cp_blkaddr, sb.sit_blkaddr, sb.nat_blkaddr, sb.ssa_blkaddr, sb.main_blkaddr];
            (sb.block_count.get(), areas.map(Into::<u32>::into), places.map(Into::<u32>::into))
        };
        assert_eq!(numbers(&ours), numbers(&theirs), "{sizes:?}");
        // A volume of mkfs.f2fs is filled here, and its own judge looks at it.
        let file = place.path("file");
        fs::write(&file, vec![3; 30 << 20]).unwrap();
        ok(on(&["put"], &disks).arg(&file).arg("/file"));
        assert_clean(&disks[0]);
        ok(&mut on(&["check"], &disks));
    }
}

#[test]
fn devices_that_are_not_the_volumes_are_refused_and_nothing_is_written() {
    let place = Place::new();
    let disks = disks(&place, [24 * MIB, 64 * MIB, 64 * MIB, 32 * MIB]);
    let volume = [disks[0].clone(), disks[1].clone(), disks[2].clone()];
    ok(&mut on(&["format"], &volume));
    // The first device has room for a few hundred nodes: those of these go to the others, which are known by them.
    let small = place.path("small");
    fs::create_dir(&small).unwrap();
    (0..3000).for_each(|file| fs::write(small.join(file.to_string()), "small").unwrap());
    ok(on(&["put", "-r"], &volume).arg(&small).arg("/small"));
    let before: Vec<Vec<u8>> = disks.iter().map(|disk| fs::read(disk).unwrap()).collect();
    let pick = |indices: &[usize]| -> Vec<PathBuf> { indices.iter().map(|index| disks[*index].clone()).collect() };
    for (given, word) in [
        (pick(&[0]), "the volume lies on 3 devices; when it was made the others were: --device "),
        (pick(&[0, 1]), "1 of the 2 others were given"),
        (pick(&[0, 1, 2, 3]), "3 of the 2 others were given"),
        (pick(&[0, 1, 3]), "has 8192 blocks, not the 16384 that it should have"),
        (pick(&[0, 1, 1]), "is given twice"),
        (pick(&[0, 0, 1]), "is given twice"),
        (pick(&[0, 2, 1]), "disk2: is given as device 2 of "),
        (pick(&[1, 0, 2]), "not an F2FS volume"),
        (vec![disks[0].clone(), disks[1].clone(), place.path("missing")], "no such file or device"),
    ] {
        fail(on(&["mkdir"], &given).arg("/new"), 1, word);
    }
    // Readers do not lock each other out.
    fail(&mut on(&["ls"], &pick(&[0, 1, 1])), 1, "is given twice");
    fail(&mut on(&["ls"], &pick(&[0, 0, 1])), 1, "is given twice");
    fail(&mut on(&["check"], &pick(&[0])), 8, "the volume lies on 3 devices");
    fail(&mut on(&["inspect"], &pick(&[0])), 1, "the volume lies on 3 devices");
    let single = common::formatted(&place);
    fail(
        command(["ls", "--device"]).arg(&disks[1]).arg(&single),
        1,
        "the volume lies on one device, and 1 more were given",
    );
    // By other names their order is known by the nodes on them.
    let renamed = [disks[0].clone(), place.path("second"), place.path("third")];
    (1..3).for_each(|at| fs::hard_link(&disks[at], &renamed[at]).unwrap());
    let crossed = [disks[0].clone(), renamed[2].clone(), renamed[1].clone()];
    fail(on(&["mkdir"], &crossed).arg("/new"), 1, "is not the volume's, or not in its place");
    ok(&mut on(&["ls"], &renamed));
    for (disk, before) in disks.iter().zip(&before) {
        assert!(fs::read(disk).unwrap() == *before, "{} was written", disk.display());
    }
    // The volume that was asked for is there all the same.
    ok(on(&["mkdir"], &volume).arg("/new"));
}

/// Devices of one size that hold nothing but data: only their names tell them apart.
#[test]
fn files_with_data_alone_are_refused_in_another_order() {
    let place = Place::new();
    let disks = disks(&place, [64 * MIB, 64 * MIB, 64 * MIB]);
    ok(&mut on(&["format"], &disks));
    let file = place.path("file");
    fs::write(&file, vec![3; 80 << 20]).unwrap();
    ok(on(&["put"], &disks).arg(&file).arg("/file"));
    let before: Vec<Vec<u8>> = disks.iter().map(|disk| fs::read(disk).unwrap()).collect();
    let crossed = [disks[0].clone(), disks[2].clone(), disks[1].clone()];
    for (words, code) in [(&["trim"][..], 1), (&["ls"], 1), (&["mkdir"], 1), (&["check"], 8)] {
        let mut command = on(words, &crossed);
        if words == ["mkdir"] {
            command.arg("/new");
        }
        fail(&mut command, code, "disk2: is given as device 2 of ");
    }
    for (disk, before) in disks.iter().zip(&before) {
        assert!(fs::read(disk).unwrap() == *before, "{} was written", disk.display());
    }
    ok(&mut on(&["trim"], &disks));
    ok(on(&["get"], &disks).arg("/file").arg(place.path("back")));
    assert!(fs::read(place.path("back")).unwrap() == fs::read(&file).unwrap());
}

/// A partition that grew, or another disk in the place of a smaller one: the volume is what its superblock
/// says, and what lies behind it is somebody else's.
#[test]
fn longer_devices_are_used_as_far_as_the_superblock_says() {
    let place = Place::new();
    let disks = disks(&place, [64 * MIB, 32 * MIB]);
    for volume in [&disks[..1], &disks[..]] {
        volume.iter().for_each(|disk| fs::write(disk, []).unwrap());
        volume.iter().zip([64, 32]).for_each(|(disk, mib)| {
            fs::OpenOptions::new().write(true).open(disk).unwrap().set_len(mib * MIB).unwrap();
        });
        ok(&mut on(&["format", "--force"], volume));
        let lengths: Vec<usize> = volume.iter().map(|disk| fs::metadata(disk).unwrap().len() as usize).collect();
        for disk in volume {
            fs::OpenOptions::new().append(true).open(disk).unwrap().write_all(&vec![0xa5; 3 << 20]).unwrap();
        }
        let file = place.path("file");
        fs::write(&file, vec![3; 8 << 20]).unwrap();
        ok(on(&["put"], volume).arg(&file).arg("/file"));
        assert_eq!(ok(&mut on(&["check"], volume)), "");
        assert_eq!(ok(on(&["cat"], volume).arg("/file")).len(), 8 << 20);
        for (disk, length) in volume.iter().zip(lengths) {
            let bytes = fs::read(disk).unwrap();
            assert_eq!(bytes.len(), length + (3 << 20));
            assert!(bytes[length..].iter().all(|byte| *byte == 0xa5), "{} was written behind its end", disk.display());
        }
    }
}

#[test]
fn what_a_device_holds_is_overwritten_by_force_only() {
    let place = Place::new();
    let disks = disks(&place, [64 * MIB, 64 * MIB]);
    let made = Command::new("mke2fs").args(["-q", "-t", "ext4"]).arg(&disks[1]).status().unwrap();
    assert!(made.success());
    fail(&mut on(&["format"], &disks), 1, &format!("f2fs: {}: holds an ext", disks[1].display()));
    let small = place.path("small");
    File::create(&small).unwrap().set_len(1 << 20).unwrap();
    let words = "a device of 1.0 MiB: each behind the first takes at least 2.0 MiB";
    fail(command(["format", "-f", "--device"]).args([&small, &disks[0]]), 1, words);
    fail(on(&["format", "--record-as", "/dev/x"], &disks).arg("-f"), 2, "--record-as was given 1 times for 2 devices");
    ok(&mut on(&["format", "-f", "--record-as", "/dev/vdb", "--record-as", "/dev/vdc"], &disks));
    assert_eq!(superblock(&disks[0]).devices().unwrap()[1].path, b"/dev/vdc");
    assert!(fs::read(&disks[1]).unwrap()[..8192].iter().all(|byte| *byte == 0), "nobody takes it for ext4 any more");
    let shown = ok(&mut on(&["inspect"], &disks));
    assert!(shown.contains("/dev/vdc, 64.0 MiB") || shown.contains("/dev/vdc, 64 MiB"), "{shown}");
}

//! Volumes with features that are only read: what the tools of f2fs-tools make of them is shown, checked and copied
//! out.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Place, fail, ok};

fn f2fs(words: &[&str], image: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_f2fs"));
    let (first, rest) = words.split_first().unwrap();
    command.arg(first).arg(image).args(rest);
    command
}

/// Every file of a directory with its content, and every link with its target, by the path below it.
fn tree(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    let mut pending = vec![directory.to_path_buf()];
    while let Some(here) = pending.pop() {
        for entry in fs::read_dir(here).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.symlink_metadata().unwrap().file_type();
            let content = if kind.is_dir() {
                pending.push(path.clone());
                Vec::new()
            } else if kind.is_symlink() {
                std::os::unix::ffi::OsStrExt::as_bytes(fs::read_link(&path).unwrap().as_os_str()).to_vec()
            } else {
                fs::read(&path).unwrap()
            };
            all.push((path.strip_prefix(directory).unwrap().to_path_buf(), content));
        }
    }
    all.sort();
    all
}

/// Two logs: those that it lacks are said to be in the segments of the others.
#[test]
fn a_read_only_volume_that_sload_filled_is_shown_checked_and_copied() {
    let place = Place::new();
    let (source, image) = (place.path("source"), place.path("image"));
    fs::create_dir_all(source.join("dir/below")).unwrap();
    fs::write(source.join("small"), "small").unwrap();
    fs::write(source.join("empty"), "").unwrap();
    let mut state = 1u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(9_000_001)
    .collect();
    fs::write(source.join("dir/large"), &noise).unwrap();
    symlink("../small", source.join("dir/link")).unwrap();
    for number in 0..400 {
        fs::write(source.join(format!("dir/below/file-{number}")), format!("{number}")).unwrap();
    }
    f2fs_oracle::mkfs_sized(&image, 64 << 20, &["-O", "ro"]).unwrap();
    f2fs_oracle::sload(&image, &source).unwrap();
    f2fs_oracle::assert_clean(&image);

    assert_eq!(ok(&mut f2fs(&["check"], &image)), "");
    let inspected = ok(&mut f2fs(&["inspect"], &image));
    assert!(inspected.contains("hot node") && inspected.contains("readonly"), "{inspected}");
    assert!(!inspected.contains("warm") && !inspected.contains("cold"), "{inspected}");
    assert_eq!(ok(&mut f2fs(&["ls", "/dir"], &image)), "below\nlarge\nlink\n");
    assert_eq!(ok(&mut f2fs(&["cat", "/small"], &image)), "small");
    assert_eq!(ok(&mut f2fs(&["manifest"], &image)).lines().count(), 407);
    let out = place.path("out");
    ok(f2fs(&["get", "-r", "/"], &image).arg(&out));
    assert_eq!(tree(&out), tree(&source));
    fail(&mut f2fs(&["mkdir", "/new"], &image), 1, "with readonly");
}

/// It has no summaries, and its main area begins where they would be: a repair that wrote them wrote over files.
#[test]
fn a_read_only_volume_is_not_repaired() {
    let place = Place::new();
    let (source, image) = (place.path("source"), place.path("image"));
    fs::create_dir(&source).unwrap();
    (0..60).for_each(|number| fs::write(source.join(format!("file-{number}")), [number; 6000]).unwrap());
    f2fs_oracle::mkfs_sized(&image, 64 << 20, &["-O", "ro,extra_attr"]).unwrap();
    f2fs_oracle::sload(&image, &source).unwrap();
    // Where nothing is wrong there is nothing to do.
    ok(&mut f2fs(&["check", "--repair"], &image));
    let mut bytes = fs::read(&image).unwrap();
    // The inode of a file: its name stands behind the length of that, its links behind the owner.
    let name = b"\x07\0\0\0file-42";
    let inode = bytes.chunks(4096).position(|block| block[88..].starts_with(name)).unwrap();
    bytes[inode * 4096 + 12] = 5;
    fs::write(&image, &bytes).unwrap();
    assert_eq!(f2fs(&["check"], &image).output().unwrap().status.code(), Some(4));
    fail(&mut f2fs(&["check", "--repair"], &image), 8, "readonly");
    assert!(fs::read(&image).unwrap() == bytes);
}

/// A read-only volume with compressed files. The tools of Debian are built without compressors, so this image is kept
/// here. It was made by `mkfs.f2fs -O extra_attr,ro,compression` and `sload.f2fs -c -L 2 -a lz4` of f2fs-tools 1.15,
/// built with lz4.
fn with_compressed_files() -> Vec<u8> {
    put_together(include_bytes!("data/read-only-lz4.sparse"), 26 << 20)
}

/// The image that a file of `data` stands for: it has the pieces that are not zero, each with its place and its length.
fn put_together(mut pieces: &[u8], bytes: usize) -> Vec<u8> {
    let mut bytes = vec![0; bytes];
    while let Some((head, rest)) = pieces.split_first_chunk::<8>() {
        let [at, len] = [0, 4].map(|from| u32::from_le_bytes(head[from..from + 4].try_into().unwrap()) as usize);
        bytes[at..at + len].copy_from_slice(&rest[..len]);
        pieces = &rest[len..];
    }
    bytes
}

#[test]
fn compressed_files_of_a_read_only_volume_are_named_and_the_others_read() {
    let place = Place::new();
    let image = place.path("image");
    fs::write(&image, with_compressed_files()).unwrap();
    f2fs_oracle::assert_clean(&image);
    assert_eq!(ok(&mut f2fs(&["check"], &image)), "");

    let manifest = ok(&mut f2fs(&["manifest"], &image));
    let contents: Vec<(&str, &str)> = manifest
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>())
        .map(|fields| (fields[8], fields[6]))
        .collect();
    let expected = [
        ("/", "-"),
        ("/dir", "-"),
        ("/dir/link", "../text"),
        ("/dir/small", "4c47b3e816fbe7d40cef9f665ba8f0be1ae68b5e8e7ed70f5b6bab7f70528e8f"),
        ("/empty", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("/random", "e24d6d5d696976443852e87e85c34986c9c80e3889f02d24069a1443d559f6cc"),
        ("/text", "compressed"),
    ];
    assert_eq!(contents, expected);
    assert_eq!(ok(&mut f2fs(&["cat", "/dir/small"], &image)), "small\n");
    fail(&mut f2fs(&["cat", "/text"], &image), 1, "is compressed (lz4 in clusters of 4 blocks)");
    let out = place.path("out");
    fail(f2fs(&["get", "-r", "/"], &image).arg(&out), 1, "1 entry was not copied");
    let names: Vec<PathBuf> = tree(&out).into_iter().map(|(path, _)| path).collect();
    assert_eq!(names, ["dir", "dir/link", "dir/small", "empty", "random"].map(PathBuf::from));
    let stat = ok(&mut f2fs(&["stat", "/text"], &image));
    assert!(stat.contains("compressed: lz4") && stat.contains("size:     90000 bytes"), "{stat}");
}

/// A volume whose second device is a file of it, by `mkfs.f2fs -c SECOND@aliased` of f2fs-tools after 1.16 (commit
/// 8b0c58b): those of Debian cannot make one.
#[test]
fn a_file_that_stands_for_a_device_is_that_device() {
    let place = Place::new();
    let (main, second) = (place.path("main"), place.path("second"));
    let sound = put_together(include_bytes!("data/device-alias.sparse"), 64 << 20);
    let content: Vec<u8> = (0..1 << 21).flat_map(|word: u32| word.to_le_bytes()).collect();
    fs::write(&main, &sound).unwrap();
    fs::write(&second, &content).unwrap();
    let on_both = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_f2fs"));
        command.arg(words[0]).arg("--device").arg(&second).arg(&main).args(&words[1..]);
        command
    };
    assert_eq!(ok(&mut on_both(&["check"])), "");
    assert_eq!(ok(&mut on_both(&["ls", "/"])), "aliased\n");
    let out = place.path("out");
    ok(on_both(&["get", "/aliased"]).arg(&out));
    assert!(fs::read(&out).unwrap() == content);
    for words in [["mkdir", "/new"], ["rm", "/aliased"]] {
        fail(&mut on_both(&words), 1, "with device_alias");
    }
    assert!(fs::read(&main).unwrap() == sound && fs::read(&second).unwrap() == content);

    // The inode of the file: its name stands at byte 92, and the extent behind that.
    let inode = sound.chunks(4096).position(|block| block[88..].starts_with(b"\x07\0\0\0aliased")).unwrap() * 4096;
    for (at, what) in
        [(3, "not pinned"), (17, "i_size"), (348, "its extent is none"), (352, "its extent is none"), (357, "")]
    {
        let mut bytes = sound.clone();
        bytes[inode + at] ^= 0x40;
        fs::write(&main, &bytes).unwrap();
        let output = on_both(&["check"]).output().unwrap();
        let found = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.code() == Some(4) && found.contains(what), "byte {at}: {found}");
        fail(&mut on_both(&["check", "--repair"]), 8, "device_alias");
        assert!(fs::read(&main).unwrap() == bytes && fs::read(&second).unwrap() == content);
    }
}

/// Volumes with everything on and nothing in it open for looking, and say why not for changing.
#[test]
fn a_feature_that_no_file_uses_keeps_nobody_from_looking() {
    let place = Place::new();
    let image = place.path("image");
    let all = "encrypt,extra_attr,quota,verity,casefold,compression,inode_checksum,sb_checksum,lost_found";
    f2fs_oracle::mkfs_sized(&image, 64 << 20, &["-O", all, "-C", "utf8"]).unwrap();
    let before = fs::read(&image).unwrap();
    assert_eq!(ok(&mut f2fs(&["check"], &image)), "");
    assert_eq!(ok(&mut f2fs(&["ls", "/"], &image)), "lost+found\n");
    let inspected = ok(&mut f2fs(&["inspect"], &image));
    assert!(all.split(',').all(|feature| inspected.contains(feature)), "{inspected}");
    for words in [&["mkdir", "/new"][..], &["rm", "-r", "/lost+found"]] {
        fail(&mut f2fs(words, &image), 1, "with encrypt, quota, verity, casefold, compression");
        fail(&mut f2fs(words, &image), 1, "it opens for reading only");
    }
    assert!(fs::read(&image).unwrap() == before);
}

/// One change to the inode of a compressed file at a time: where it stands in the inode, and what it is then.
#[test]
fn a_compressed_file_that_contradicts_itself_is_found() {
    let place = Place::new();
    let image = place.path("image");
    let sound = with_compressed_files();
    // The name stands behind its length, at byte 88.
    let name = [&4u32.to_le_bytes()[..], b"text\0"].concat();
    let at = (0..sound.len()).step_by(4096).find(|at| sound[at + 88..].starts_with(&name)).unwrap();
    let head = u32::MAX - 1;
    assert_eq!(sound[at + 396..at + 400], head.to_le_bytes(), "the first cluster is compressed");
    let changes: [(&str, usize, &[u8]); 5] = [
        ("i_compr_blocks, by the blocks that compressed clusters save", 384, &[200]),
        ("i_log_cluster_size", 393, &[9]),
        ("i_compress_algorithm", 392, &[4]),
        ("the mark of a compressed cluster within it, at file block", 400, &head.to_le_bytes()),
        ("address outside the main area", 80, &[0]),
    ];
    for (said, offset, bytes) in changes {
        let mut changed = sound.clone();
        changed[at + offset..][..bytes.len()].copy_from_slice(bytes);
        fs::write(&image, changed).unwrap();
        let output = common::run(&mut f2fs(&["check"], &image));
        let found = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(4), "{said}: {found}");
        assert!(found.contains(said), "{said}: {found}");
        // Whatever it says, looking at it ends in an answer or an error.
        let output = common::run(&mut f2fs(&["manifest"], &image));
        assert!(matches!(output.status.code(), Some(0 | 1)), "{said}: {output:?}");
        fail(&mut f2fs(&["check", "--repair"], &image), 8, "cannot repair a volume with compression");
    }
}

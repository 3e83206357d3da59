//! `f2fs manifest`: the files that it hashes, those that it leaves unhashed, and those that it cannot read.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use common::{Place, command, fail, formatted, ok, run};
use f2fs::{FileKind, FileSystem, NewFile, Options};
use f2fs_test_kit::harm::{ino, patch_node, volume};

#[test]
fn a_file_of_three_terabytes_is_listed_at_once() {
    let place = Place::new();
    let image = formatted(&place);
    let tree = place.path("tree");
    fs::create_dir(&tree).unwrap();
    fs::File::create(tree.join("huge")).unwrap().set_len(3 << 40).unwrap();
    fs::hard_link(tree.join("huge"), tree.join("again")).unwrap();
    fs::write(tree.join("small"), "abc").unwrap();
    ok(command(["put", "-r"]).arg(&image).arg(&tree).arg("/"));
    let began = Instant::now();
    let inside = run(command(["manifest"]).arg(&image));
    let outside = run(command(["manifest", "--host"]).arg(&tree));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    for output in [&inside, &outside] {
        assert_eq!(output.status.code(), Some(0));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said, "f2fs: 2 files of more than 64.0 GiB were not hashed (--max-hash)\n");
    }
    let text = String::from_utf8(inside.stdout).unwrap();
    assert_eq!(text, String::from_utf8(outside.stdout).unwrap());
    assert!(text.contains("\t3298534883328\t2\tunhashed\t-\t/huge\n"), "{text}");
    assert!(text.contains("\tba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\t-\t/small\n"), "{text}");
}

#[test]
fn the_limit_is_the_users() {
    let place = Place::new();
    let image = formatted(&place);
    fs::write(place.path("f"), vec![1; 2000]).unwrap();
    ok(command(["put"]).arg(&image).arg(place.path("f")).arg("/f"));
    for (limit, hashed) in [("1.9K", false), ("1999", false), ("2000", true), ("2K", true), ("0", false)] {
        let output = run(command(["manifest", "--max-hash", limit]).arg(&image));
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(!text.contains("unhashed"), hashed, "{limit}");
        assert_eq!(output.stderr.is_empty(), hashed, "{limit}");
    }
    fail(command(["manifest", "--max-hash", "much"]).arg(&image), 2, "size");
}

/// Holes at the start, between and at the end are hashed as the zeros that they read as, on both sides.
#[test]
fn holes_are_hashed_as_zeros() {
    let place = Place::new();
    let image = formatted(&place);
    let tree = place.path("tree");
    fs::create_dir(&tree).unwrap();
    let mut bytes = vec![0; 5 << 20];
    let sparse = fs::File::create(tree.join("file")).unwrap();
    for at in [1 << 20, (3 << 20) + 77] {
        sparse.write_all_at(b"data", at as u64).unwrap();
        bytes[at..at + 4].copy_from_slice(b"data");
    }
    sparse.set_len(bytes.len() as u64 + 3).unwrap();
    bytes.extend([0; 3]);
    ok(command(["put", "-r"]).arg(&image).arg(&tree).arg("/"));
    let inside = ok(command(["manifest"]).arg(&image));
    assert_eq!(inside, ok(command(["manifest", "--host"]).arg(&tree)));
    fs::remove_file(tree.join("file")).unwrap();
    fs::write(tree.join("file"), bytes).unwrap();
    assert_eq!(inside, ok(command(["manifest", "--host"]).arg(&tree)));
}

/// What cannot be read is said, and everything else listed.
#[test]
fn a_damaged_path_does_not_end_the_list() {
    let place = Place::new();
    let image = place.path("damaged.img");
    let device = std::sync::Arc::new(volume());
    let volume = FileSystem::open(device.clone(), Options::new()).unwrap();
    volume.create_file("/dir/whole", 0o644).unwrap().write_at(b"abc", 0).unwrap();
    volume.symlink(b"target", "/dir/link", &NewFile::new(FileKind::Symlink, 0o777)).unwrap();
    volume.close().unwrap();
    drop(volume);
    // What a power cut leaves of a link that Linux was making.
    patch_node(&device, ino(&device, "/dir/link"), |node| node.inode_mut().i_size = 0.into());
    patch_node(&device, ino(&device, "/dir/below"), |node| node.inode_mut().i_mode = 0.into());
    patch_node(&device, ino(&device, "/large"), |node| node.inode_mut().i_nid[0] = 4_000_000.into());
    fs::write(&image, device.to_bytes()).unwrap();

    let output = run(command(["manifest"]).arg(&image));
    let (text, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(1), "{said}");
    let line = |path: &str| text.lines().find(|line| line.ends_with(&format!("\t{path}"))).map(str::to_owned);
    assert_eq!(line("/dir/link").unwrap(), "l\t0777\t0\t0\t0\t1\t-\t-\t/dir/link");
    assert!(line("/dir/whole").unwrap().contains("ba7816bf8f01cfea"), "{text}");
    assert!(line("/large").unwrap().contains("\tunreadable\t"), "{text}");
    assert!(line("/small").unwrap().contains("user.note="), "{text}");
    assert_eq!(line("/dir/below"), None);
    assert!(line("/hashed/399").is_some());
    for part in ["stat /dir/below", "read /large"] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(said.lines().count(), 2, "{said}");
    let list = ok(command(["ls", "-l"]).arg(&image).arg("/dir/link"));
    assert!(list.starts_with("lrwxrwxrwx") && list.ends_with(" /dir/link\n") && !list.contains("->"), "{list}");
    assert!(ok(command(["ls", "--json"]).arg(&image).arg("/dir/link")).contains("\"target\":null"));
}

//! `--pmem`: the same images, mapped. Where the build lies is no persistent memory, so that what is tested here is the
//! slow way of it; the guest's tests have the fast one.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs;

use common::{Place, command, fail, ok};

#[test]
fn images_are_the_same_mapped_and_not() {
    let place = Place::new();
    let image = place.path("disk.img");
    let file = place.path("file");
    fs::write(&file, vec![7; 3 << 20]).unwrap();
    ok(command(["--pmem", "format", "--size", "64M"]).arg(&image));
    ok(command(["put", "--pmem"]).arg(&image).arg(&file).arg("/file"));
    ok(command(["check"]).arg(&image));
    let manifest = ok(command(["manifest"]).arg(&image));
    assert!(manifest.contains("\t/file\n"), "{manifest}");
    ok(command(["rm"]).arg(&image).arg("/file"));
    ok(command(["put"]).arg(&image).arg(&file).arg("/file"));
    assert_eq!(ok(command(["ls", "--pmem"]).arg(&image)), "file\n");
    let back = place.path("back");
    ok(command(["get", "--pmem"]).arg(&image).arg("/file").arg(&back));
    assert_eq!(fs::read(back).unwrap(), fs::read(&file).unwrap());
    ok(command(["check", "--pmem"]).arg(&image));
}

#[test]
fn what_cannot_be_mapped_is_said() {
    let place = Place::new();
    fail(command(["ls", "--pmem"]).arg(place.path("missing")), 1, "no such file or device");
    fail(command(["ls", "--pmem"]).arg(place.dir()), 1, "is a directory, not a regular file or a character device");
    // A character device is mapped without being asked to, and this one is no memory.
    for args in [&["ls"][..], &["check"], &["format"], &["format", "--size", "64M"], &["zones"]] {
        let code = if args == ["check"] { 8 } else { 1 };
        let word = "is a character device, not a regular file, a block device, an NVMe namespace (/dev/ng*) or";
        fail(command(args).arg("/dev/null"), code, word);
    }
    let small = place.path("small");
    fs::write(&small, [0; 4095]).unwrap();
    fail(command(["ls", "--pmem"]).arg(&small), 1, "4095 bytes is less than one block");
    let large = place.path("large");
    fail(command(["--pmem", "format", "--size", "8T"]).arg(&large), 1, "has room for");
    assert!(!large.exists(), "a file that could not be opened is not left behind");
}

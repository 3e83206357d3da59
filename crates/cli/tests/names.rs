//! `f2fs mkdir`, `rm`, `mv`, `ln` as an outsider tries them: odd paths, several of them, and files without rights.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use common::{Place, command, fail, formatted, ok, run};

#[test]
fn odd_paths_break_nothing() {
    let place = Place::new();
    let image = formatted(&place);
    fs::write(place.path("h"), "text").unwrap();
    ok(command(["mkdir"]).arg(&image).args(["/d", "/d/below"]));
    ok(command(["put"]).arg(&image).arg(place.path("h")).arg("/d/f"));
    let before = ok(command(["manifest"]).arg(&image));
    for path in ["/", "//", ".", "..", "/.", "/..", "./", "/d/.", "/d/..", "/d/below/..", "/none/", "/none/x", "/d/f/x"]
    {
        for args in [&["rm"][..], &["mkdir"], &["cat"]] {
            let output = run(command(args).arg(&image).arg(path));
            let said = String::from_utf8(output.stderr).unwrap();
            // `mkdir /none/` is a directory to make, by POSIX; it is taken back.
            if output.status.success() {
                assert_eq!((args[0], path), ("mkdir", "/none/"));
                ok(command(["rm", "-r"]).arg(&image).arg("/none"));
                continue;
            }
            assert_eq!(output.status.code(), Some(1), "{args:?} {path}: {said}");
            assert!(
                said.starts_with(&format!("f2fs: {path}: ")) && said.lines().count() == 1,
                "{args:?} {path}: {said}"
            );
        }
        fail(command(["mv"]).arg(&image).args([path, "/moved"]), 1, "f2fs: ");
        fail(command(["ln"]).arg(&image).args([path, "/linked"]), 1, "f2fs: ");
    }
    assert_eq!(ok(command(["manifest"]).arg(&image)), before);
    // A directory that is there is what mkdir -p wants.
    ok(command(["mkdir", "-p"]).arg(&image).args(["/", ".", "/d/..", "/d/", "d/below/."]));
    fail(command(["mkdir", "-p"]).arg(&image).arg("/d/f/x"), 1, "/d/f: exists, and is not a directory");
    assert_eq!(ok(command(["manifest"]).arg(&image)), before);
    f2fs_oracle::assert_clean(&image);
}

#[test]
fn a_dash_is_a_name_behind_two() {
    let place = Place::new();
    let image = formatted(&place);
    ok(command(["mkdir"]).arg(&image).args(["--", "-d", "-"]));
    assert_eq!(ok(command(["ls"]).arg(&image)), "./-\n./-d\n");
    ok(command(["mv"]).arg(&image).args(["--", "-d", "-e"]));
    ok(command(["stat"]).arg(&image).args(["--", "-e"]));
    ok(command(["ls"]).arg(&image).args(["./-e"]));
    fail(command(["rm", "-r"]).arg(&image).arg("-e"), 2, "-- -e");
    ok(command(["rm", "-r"]).arg(&image).args(["-", "--", "-e"]));
    assert_eq!(ok(command(["ls", "-A"]).arg(&image)), "");
}

#[test]
fn what_fails_is_said_and_the_others_are_done() {
    let place = Place::new();
    let image = formatted(&place);
    let output = run(command(["mkdir"]).arg(&image).args(["/a", "/none/x", "/b"]));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "f2fs: /none/x: no such file or directory\n");
    assert_eq!(ok(command(["ls"]).arg(&image)), "a\nb\n");
    let output = run(command(["rm"]).arg(&image).args(["/x", "/a", "/y"]));
    assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 3);
    fail(command(["rm"]).arg(&image).arg("/a"), 1, "/a: is a directory (-r removes it)");
    ok(command(["rm", "-rf"]).arg(&image).args(["/x", "/a", "/y", "/b"]));
    assert_eq!(ok(command(["ls"]).arg(&image)), "");
}

#[test]
fn into_a_directory_under_the_same_name() {
    let place = Place::new();
    let image = formatted(&place);
    fs::write(place.path("h"), "text").unwrap();
    ok(command(["put"]).arg(&image).arg(place.path("h")).arg("/f"));
    ok(command(["mkdir"]).arg(&image).arg("/d"));
    ok(command(["ln"]).arg(&image).args(["/f", "/d"]));
    ok(command(["ln", "-s"]).arg(&image).args(["../g", "/d"]));
    assert_eq!(ok(command(["ls"]).arg(&image).arg("/d")), "f\ng\n");
    fail(command(["ln"]).arg(&image).args(["/f", "/d"]), 1, "/d/f: already exists");
    fail(command(["ln"]).arg(&image).args(["/d", "/e"]), 1, "/d: is a directory, which cannot have another name");
    fail(command(["mv"]).arg(&image).args(["/d", "/d/e"]), 1, "/d to /d/e: a directory cannot be moved into itself");
    // Both are one file; as another one it is moved into the place of the other.
    ok(command(["rm"]).arg(&image).arg("/d/f"));
    ok(command(["mv"]).arg(&image).args(["/f", "/d"]));
    assert_eq!(ok(command(["ls", "-R"]).arg(&image)), "/:\nd\n\n/d:\nf\ng\n");
}

/// As a user who may not write, and then not read the image.
#[test]
fn rights_that_are_missing_are_said() {
    let place = Place::new();
    let image = formatted(&place);
    let chmod = |path: &std::path::Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let is_root = run(std::process::Command::new("id").arg("-u")).stdout == b"0\n";
    // Nobody gets to the directory of the build, so what it needs lies elsewhere.
    let outside = tempfile::tempdir().unwrap();
    chmod(outside.path(), 0o755);
    let program = common::program_in(outside.path());
    let image = {
        let there = outside.path().join("disk.img");
        fs::copy(&image, &there).unwrap();
        there
    };
    let somebody = |args: &[&str]| {
        let mut built = std::process::Command::new(if is_root { "setpriv".as_ref() } else { program.as_os_str() });
        if is_root {
            built.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&program);
        }
        built.arg(args[0]).arg(&image).args(&args[1..]);
        built
    };
    chmod(&image, 0o444);
    let before = fs::read(&image).unwrap();
    assert_eq!(ok(&mut somebody(&["ls"])), "");
    fail(&mut somebody(&["mkdir", "/x"]), 1, "disk.img: permission denied: see its owner and mode");
    fail(&mut somebody(&["format", "-f"]), 1, "disk.img: permission denied");
    chmod(&image, 0);
    fail(&mut somebody(&["ls"]), 1, "disk.img: permission denied");
    fail(&mut somebody(&["check"]), 8, "disk.img: permission denied");
    chmod(&image, 0o600);
    assert!(fs::read(&image).unwrap() == before);
}

#[test]
fn roots_and_dots_are_not_removed_nor_what_is_below() {
    let place = Place::new();
    let image = formatted(&place);
    ok(command(["mkdir", "-p"]).arg(&image).args(["/t/a", "/t/b/c"]));
    let before = ok(command(["ls", "-R"]).arg(&image).arg("/"));
    for path in ["/", "//", ".", "./", "/.", "/./", "..", "/t/..", "/t/../", "/t/a/../..", "/t/.", "/t/./", "/t/a/.."] {
        for options in [&["rm", "-r"][..], &["rm", "-rf"], &["rm"]] {
            fail(command(options).arg(&image).arg(path), 1, path);
            assert_eq!(ok(command(["ls", "-R"]).arg(&image).arg("/")), before, "{options:?} {path}");
        }
    }
    fail(command(["rm", "-r"]).arg(&image).arg("/t/.."), 1, "ends in `..`");
    fail(command(["rm", "-r"]).arg(&image).arg("/t/."), 1, "ends in `.`");
    fail(command(["rm", "-r"]).arg(&image).arg("/"), 1, "the root");
}

//! `f2fs put`: its sources, and their places in the volume.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{Place, fail, ok};

fn f2fs(command: &str, image: &Path, args: &[&str]) -> Command {
    let mut built = Command::new(env!("CARGO_BIN_EXE_f2fs"));
    built.arg(command).arg(image).args(args).stdin(Stdio::null());
    built
}

fn formatted(place: &Place) -> PathBuf {
    let image = place.path("image");
    ok(&mut f2fs("format", &image, &["--size", "64M"]));
    image
}

fn path(place: &Place, name: &str) -> String {
    place.path(name).to_str().unwrap().to_owned()
}

/// Runs with these bytes on standard input, from a pipe.
fn fed(command: &mut Command, bytes: &[u8]) {
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_comes_through_pipes_is_stored() {
    let place = Place::new();
    let image = formatted(&place);
    let bytes: Vec<u8> = (0..2_500_000_u32).map(|i| (i / 7) as u8).collect();
    for (source, target) in [("/dev/stdin", "/a"), ("-", "/b")] {
        fed(&mut f2fs("put", &image, &[source, target]), &bytes);
        let output = common::run(&mut f2fs("cat", &image, &[target]));
        assert!(output.stdout == bytes, "{source}");
    }
    let fifo = path(&place, "fifo");
    ok(Command::new("mkfifo").arg(&fifo));
    let writer = {
        let fifo = fifo.clone();
        std::thread::spawn(move || fs::write(fifo, "through a pipe").unwrap())
    };
    ok(&mut f2fs("put", &image, &[&fifo, "/c"]));
    writer.join().unwrap();
    assert_eq!(ok(&mut f2fs("cat", &image, &["/c"])), "through a pipe");
    ok(&mut f2fs("put", &image, &["/dev/null", "/empty"]));
    assert!(ok(&mut f2fs("stat", &image, &["/empty"])).contains("regular"));
    fail(f2fs("put", &image, &["-", "/"]).stdin(Stdio::null()), 1, "name");
    // Without a standard input, what is there stays; `/dev/null` is one.
    let line = "exec \"$0\" put \"$1\" - /b <&-";
    fail(Command::new("sh").args(["-c", line, env!("CARGO_BIN_EXE_f2fs")]).arg(&image), 1, "/dev/stdin: is closed");
    assert!(common::run(&mut f2fs("cat", &image, &["/b"])).stdout == bytes);
    ok(f2fs("put", &image, &["-", "/b"]).stdin(Stdio::null()));
    assert_eq!(ok(&mut f2fs("cat", &image, &["/b"])), "");
    f2fs_oracle::assert_clean(&image);
}

#[test]
fn a_link_is_followed_where_it_is_named_and_kept_below() {
    let place = Place::new();
    let image = formatted(&place);
    fs::create_dir(place.path("tree")).unwrap();
    fs::write(place.path("tree/file"), "text").unwrap();
    symlink("file", place.path("tree/link")).unwrap();
    symlink("tree", place.path("to-tree")).unwrap();
    ok(&mut f2fs("put", &image, &[&path(&place, "tree/link"), "/x"]));
    assert_eq!(ok(&mut f2fs("cat", &image, &["/x"])), "text");
    assert!(ok(&mut f2fs("stat", &image, &["/x"])).contains("regular"));
    ok(&mut f2fs("put", &image, &["-r", &path(&place, "to-tree"), "/t"]));
    assert!(ok(&mut f2fs("stat", &image, &["/t/link"])).contains("symbolic link"));
}

#[test]
fn a_copy_that_fails_leaves_no_empty_file() {
    let place = Place::new();
    let image = formatted(&place);
    fs::write(place.path("f"), "text").unwrap();
    let f = path(&place, "f");
    for target in ["/missing/x", "/missing/", "/x/"] {
        fail(&mut f2fs("put", &image, &[&f, target]), 1, target);
    }
    fail(&mut f2fs("put", &image, &[&path(&place, "none"), "/x"]), 1, "none");
    assert_eq!(ok(&mut f2fs("ls", &image, &["/"])), "");
    // A source that cannot be read leaves the file that is there.
    ok(&mut f2fs("put", &image, &[&f, "/x"]));
    fail(&mut f2fs("put", &image, &[&path(&place, "none"), "/x"]), 1, "none");
    fail(&mut f2fs("put", &image, &[&f, "/x/"]), 1, "not a directory");
    fail(&mut f2fs("put", &image, &[&f, "/x/y"]), 1, "not a directory");
    assert_eq!(ok(&mut f2fs("cat", &image, &["/x"])), "text");
    // Directories, with and without a slash.
    ok(&mut f2fs("mkdir", &image, &["/d"]));
    ok(&mut f2fs("put", &image, &[&f, "/d/"]));
    ok(&mut f2fs("put", &image, &[&f, "/d/."]));
    assert_eq!(ok(&mut f2fs("cat", &image, &["/d/f"])), "text");
}

#[test]
fn standard_input_is_read_from_where_it_stands() {
    let place = Place::new();
    let image = formatted(&place);
    fs::write(place.path("lines"), "first\nsecond\n").unwrap();
    let mut input = fs::File::open(place.path("lines")).unwrap();
    input.seek(SeekFrom::Start(6)).unwrap();
    ok(f2fs("put", &image, &["-", "/rest"]).stdin(input));
    assert_eq!(ok(&mut f2fs("cat", &image, &["/rest"])), "second\n");
    // A socket cannot be opened by a path.
    let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    ours.write_all(b"from a socket").unwrap();
    drop(ours);
    ok(f2fs("put", &image, &["-", "/socket"]).stdin(std::os::fd::OwnedFd::from(theirs)));
    assert_eq!(ok(&mut f2fs("cat", &image, &["/socket"])), "from a socket");
    fail(f2fs("put", &image, &["-", "/dir"]).stdin(fs::File::open(place.dir()).unwrap()), 1, "/dev/stdin: Is a dir");
    assert_eq!(ok(&mut f2fs("ls", &image, &["/"])), "rest\nsocket\n");
}

#[test]
fn a_volume_that_is_full_holds_no_half_file() {
    let place = Place::new();
    let image = formatted(&place);
    fs::write(place.path("large"), vec![7; 80 << 20]).unwrap();
    let large = path(&place, "large");
    fail(&mut f2fs("put", &image, &[&large, "/large"]), 1, "the volume is full");
    assert_eq!(ok(&mut f2fs("ls", &image, &["/"])), "");
    // Standard input, whose size nobody knows before.
    let mut piped = f2fs("put", &image, &["-", "/piped"]);
    piped.stdin(fs::File::open(&large).unwrap());
    fail(&mut piped, 1, "/piped");
    fs::create_dir(place.path("tree")).unwrap();
    fs::write(place.path("tree/a"), "text").unwrap();
    fs::rename(&large, place.path("tree/large")).unwrap();
    fail(&mut f2fs("put", &image, &["-j", "1", "-r", &path(&place, "tree"), "/tree"]), 1, "/tree/large");
    assert_eq!(ok(&mut f2fs("ls", &image, &["-R", "/"])), "/:\ntree\n\n/tree:\na\n");
    ok(&mut f2fs("check", &image, &[]));
    // Into a file that a link names: it was emptied, and is not taken away.
    ok(&mut f2fs("ln", &image, &["-s", "tree/a", "/link"]));
    fail(&mut f2fs("put", &image, &[&path(&place, "tree/large"), "/link"]), 1, "/link is incomplete");
}

#[test]
fn a_file_is_replaced_by_a_whole_one_or_not_at_all() {
    let place = Place::new();
    let image = formatted(&place);
    fs::write(place.path("small"), "text").unwrap();
    fs::write(place.path("large"), vec![7; 80 << 20]).unwrap();
    fs::create_dir(place.path("tree")).unwrap();
    fs::write(place.path("tree/a"), vec![7; 80 << 20]).unwrap();
    let [small, large, tree] = ["small", "large", "tree"].map(|name| path(&place, name));
    ok(&mut f2fs("mkdir", &image, &["/tree"]));
    for target in ["/a", "/tree/a"] {
        ok(&mut f2fs("put", &image, &[&small, target]));
    }
    let counts = || {
        let said = ok(&mut f2fs("inspect", &image, &["--json"]));
        serde_json::from_str::<serde_json::Value>(&said).unwrap()["counts"].clone()
    };
    let used = counts();
    let kept = "the volume is full behind byte";
    fail(&mut f2fs("put", &image, &[&large, "/a"]), 1, kept);
    fail(&mut f2fs("put", &image, &[&large, "/a"]), 1, "the file that was there is as it was");
    let mut piped = f2fs("put", &image, &["-", "/a"]);
    piped.stdin(fs::File::open(&large).unwrap());
    fail(&mut piped, 1, "the file that was there is as it was");
    fail(&mut f2fs("put", &image, &["-r", &tree, "/tree"]), 1, "the file that was there is as it was");
    for target in ["/a", "/tree/a"] {
        assert_eq!(ok(&mut f2fs("cat", &image, &[target])), "text");
    }
    assert_eq!(counts(), used, "nothing is left of what did not fit");
    // What fits replaces: the other name of the old file keeps it.
    fs::write(&large, vec![7; 9000]).unwrap();
    ok(&mut f2fs("ln", &image, &["/a", "/b"]));
    ok(&mut f2fs("put", &image, &[&large, "/a"]));
    assert_eq!(ok(&mut f2fs("cat", &image, &["/b"])), "text");
    assert_eq!(ok(&mut f2fs("cat", &image, &["/a"])).len(), 9000);
    f2fs_oracle::assert_clean(&image);
}

/// A tree of every kind of file over one of every other kind; directories are in nobody's way.
#[test]
fn any_kind_of_file_replaces_any_other() {
    let place = Place::new();
    let image = formatted(&place);
    let trees = ["one", "two"].map(|tree| {
        fs::create_dir(place.path(tree)).unwrap();
        place.path(tree)
    });
    let make = |dir: &Path, name: &str, kind: usize| {
        let at = dir.join(name);
        match kind % 4 {
            0 => fs::write(&at, name).unwrap(),
            1 => symlink("target", &at).unwrap(),
            2 => drop(ok(Command::new("mkfifo").arg(&at))),
            _ => {
                fs::write(&at, "linked").unwrap();
                fs::hard_link(&at, dir.join(format!("{name}-too"))).unwrap();
            }
        }
    };
    for kind in 0..4 {
        for other in 0..4 {
            make(&trees[0], &format!("f{kind}{other}"), kind);
            make(&trees[1], &format!("f{kind}{other}"), other);
        }
    }
    fs::create_dir(trees[0].join("dir")).unwrap();
    fs::write(trees[1].join("dir"), "no directory").unwrap();
    ok(&mut f2fs("put", &image, &["-r", trees[0].to_str().unwrap(), "/tree"]));
    fail(
        &mut f2fs("put", &image, &["-r", trees[1].to_str().unwrap(), "/tree"]),
        1,
        "/tree/dir in the volume: is a directory",
    );
    fs::remove_file(trees[1].join("dir")).unwrap();
    ok(&mut f2fs("put", &image, &["-r", trees[1].to_str().unwrap(), "/tree"]));
    ok(&mut f2fs("get", &image, &["-r", "/tree", &path(&place, "out")]));
    for entry in fs::read_dir(&trees[1]).unwrap() {
        let (name, wanted) = entry.map(|entry| (entry.file_name(), entry.metadata().unwrap())).unwrap();
        let found = fs::symlink_metadata(place.path("out").join(&name)).unwrap();
        assert_eq!(
            (found.file_type(), found.size(), found.nlink()),
            (wanted.file_type(), wanted.size(), wanted.nlink())
        );
        if wanted.is_file() {
            let read = |dir: &Path| fs::read(dir.join(&name)).unwrap();
            assert!(read(&place.path("out")) == read(&trees[1]), "{name:?}");
        }
    }
    f2fs_oracle::assert_clean(&image);
}

#[test]
fn two_at_once_into_one_image_are_one_writer_and_one_that_is_told() {
    let place = Place::new();
    let image = formatted(&place);
    for name in ["a", "b"] {
        fs::create_dir(place.path(name)).unwrap();
        for file in 0..50 {
            fs::write(place.path(name).join(format!("{name}{file}")), vec![file; 9000]).unwrap();
        }
    }
    let running: Vec<_> = ["a", "b"]
        .iter()
        .map(|name| {
            let mut command = f2fs("put", &image, &["-r", &path(&place, name), "/both"]);
            command.stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    // Both have ended before the one that was refused comes again.
    let outputs: Vec<_> = running.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    for (output, name) in outputs.into_iter().zip(["a", "b"]) {
        if !output.status.success() {
            // Nobody waits for a process that lives, but is told which it is.
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code() == Some(1) && said.contains("in use by"), "{said}");
            ok(&mut f2fs("put", &image, &["-r", &path(&place, name), "/both"]));
        }
    }
    assert_eq!(ok(&mut f2fs("ls", &image, &["/both"])).lines().count(), 100);
    ok(&mut f2fs("check", &image, &[]));
}

#[test]
fn who_is_not_root_can_do_it_all() {
    /// A user who has no other processes.
    const ANYBODY: u32 = 54_321;
    // Where everybody may go, which the directory of the build need not be.
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = common::program_in(place.path());
    let anybody = |args: &[&str]| {
        let mut command = Command::new(&program);
        command.args(args).current_dir(place.path()).stdin(Stdio::null());
        // Root becomes a user who owns nothing; who is not root is one already.
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(ANYBODY).gid(ANYBODY);
        }
        command
    };
    let permit =
        |name: &str, mode| fs::set_permissions(place.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
    fs::create_dir(place.path().join("tree")).unwrap();
    fs::write(place.path().join("tree/f"), "text").unwrap();
    for args in [
        &["format", "image", "--size", "64M"][..],
        &["put", "-r", "image", "tree", "/tree"],
        &["ls", "-la", "image", "/tree"],
        &["get", "image", "/tree/f", "f"],
        &["get", "-r", "image", "/tree", "out"],
        &["mkdir", "image", "/made"],
        &["mkdir", "-p", "image", "/made/below/more"],
        &["ln", "-s", "image", "/tree/f", "/made/link"],
        &["check", "image"],
    ] {
        ok(&mut anybody(args));
    }
    for copy in ["f", "out/f"] {
        assert_eq!(fs::read(place.path().join(copy)).unwrap(), b"text");
    }
    // What the command made is the caller's: who mounts the volume may write there.
    let caller = fs::metadata(place.path().join("f")).unwrap();
    let owner = format!("owner:    {}:{}\n", caller.uid(), caller.gid());
    for made in ["/", "/made", "/made/below", "/made/below/more", "/made/link"] {
        let told = ok(&mut anybody(&["stat", "image", made]));
        assert!(told.contains(&owner), "{made}: {told}");
    }
    // Without a second thread nothing is done, and that is said.
    let limited = |threads: &str, args: &[&str]| {
        let mut command = Command::new("prlimit");
        command.arg(threads).arg(&program).args(args).current_dir(place.path());
        command.uid(ANYBODY).gid(ANYBODY);
        command
    };
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        fail(&mut limited("--nproc=1", &["mkdir", "image", "/alone"]), 1, "cannot start a thread");
        // With the second one all goes on that would take more, unless a worker of the kernel has that one already.
        let does = |args: &[&str]| {
            let done = limited("--nproc=2", args).output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            let refused = matches!(done.status.code(), Some(1 | 8)) && said.contains("cannot start a thread");
            assert!(done.status.success() || refused, "{args:?}: {}: {said}", done.status);
            !refused
        };
        // On a busy machine the workers of the tries before go later.
        let comes_to_do = |args: &[&str]| {
            (0..50).any(|_| {
                let done = does(args);
                if !done {
                    std::thread::sleep(std::time::Duration::from_millis(50));
                }
                done
            })
        };
        assert!(comes_to_do(&["put", "-r", "-j", "4", "image", "tree", "/few"]));
        assert_eq!(ok(&mut anybody(&["cat", "image", "/few/f"])), "text");
        // Several threads read the tables of a volume that is so large.
        ok(&mut anybody(&["format", "large", "--size", "64G"]));
        does(&["mkdir", "-p", "large", "/few"]);
        ok(&mut anybody(&["check", "large"]));
        assert!(comes_to_do(&["check", "image"]), "the thread that is there checks alone");
    } else {
        eprintln!("NOT RUN: a limit of threads: another user is needed, who has none yet");
    }
    // Files that may not be read or written are named.
    permit("image", 0o400);
    fail(&mut anybody(&["put", "image", "tree/f", "/x"]), 1, "image: permission denied");
    fail(&mut anybody(&["get", "image", "/tree/f", "/proc/x"]), 1, "/proc/x");
    permit("image", 0);
    fail(&mut anybody(&["ls", "image", "/"]), 1, "image: permission denied");
    permit("image", 0o600);
    permit("tree/f", 0);
    fail(&mut anybody(&["put", "-r", "image", "tree", "/again"]), 1, "tree/f");
    assert_eq!(ok(&mut anybody(&["ls", "image", "/again"])), "");
}

#[test]
fn a_link_in_the_volume_is_written_through() {
    let place = Place::new();
    let image = formatted(&place);
    fs::write(place.path("f"), "a longer text").unwrap();
    fs::write(place.path("g"), "short").unwrap();
    ok(&mut f2fs("put", &image, &[&path(&place, "f"), "/f"]));
    ok(&mut f2fs("ln", &image, &["-s", "f", "/link"]));
    ok(&mut f2fs("ln", &image, &["-s", "none", "/dangling"]));
    ok(&mut f2fs("put", &image, &[&path(&place, "g"), "/link"]));
    assert_eq!(ok(&mut f2fs("cat", &image, &["/f"])), "short");
    assert!(ok(&mut f2fs("stat", &image, &["/link"])).contains("symbolic link"));
    fail(&mut f2fs("put", &image, &[&path(&place, "g"), "/dangling"]), 1, "dangling");
}

#[test]
fn several_sources_go_into_a_directory() {
    let place = Place::new();
    let image = formatted(&place);
    for name in ["a", "b", "c"] {
        fs::write(place.path(name), name).unwrap();
    }
    fs::create_dir_all(place.path("other/d")).unwrap();
    fs::write(place.path("other/a"), "another").unwrap();
    fs::write(place.path("other/d/e"), "e").unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|name| path(&place, name));
    fail(&mut f2fs("put", &image, &[&a, &b, "/dir"]), 1, "not a directory");
    ok(&mut f2fs("mkdir", &image, &["/dir"]));
    ok(&mut f2fs("put", &image, &["-r", &a, &b, &c, &path(&place, "other/d"), "/dir"]));
    assert_eq!(ok(&mut f2fs("ls", &image, &["/dir"])).lines().count(), 4);
    assert_eq!(ok(&mut f2fs("cat", &image, &["/dir/d/e"])), "e");
    fail(&mut f2fs("put", &image, &[&a, &path(&place, "other/a"), &path(&place, "none"), "/dir"]), 1, "same name");
    assert_eq!(ok(&mut f2fs("cat", &image, &["/dir/a"])), "a");
    fail(&mut f2fs("put", &image, &[&a]), 2, "");
    f2fs_oracle::assert_clean(&image);
}

#[test]
fn an_image_is_not_copied_into_itself() {
    let place = Place::new();
    let image = formatted(&place);
    let own = image.to_str().unwrap();
    fail(&mut f2fs("put", &image, &[own, "/self"]), 1, "the volume itself lies on it");
    let volume = fs::File::open(&image).unwrap();
    fail(f2fs("put", &image, &["-", "/self"]).stdin(volume), 1, "/dev/stdin: the volume itself lies on it");
    assert_eq!(ok(&mut f2fs("ls", &image, &["/"])), "");

    // Below a directory it is left out by any of its names; the rest is copied.
    fs::create_dir(place.path("tree")).unwrap();
    fs::write(place.path("tree/kept"), "kept").unwrap();
    fs::hard_link(&image, place.path("tree/volume")).unwrap();
    symlink(&image, place.path("tree/link")).unwrap();
    let tree = path(&place, "tree");
    fail(&mut f2fs("put", &image, &["-r", &tree, "/tree"]), 1, "tree/volume: the volume itself lies on it");
    assert_eq!(ok(&mut f2fs("ls", &image, &["/tree"])), "kept\nlink\n");
    f2fs_oracle::assert_clean(&image);
}

//! The command as scripts use it: every subcommand with its flags, what it prints, and its exit codes.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{Place, ok, run};
use serde_json::Value;

impl Place {
    /// A formatted image.
    fn image(&self) -> PathBuf {
        let image = self.path("image");
        ok(f2fs(["format"]).arg(&image).args(["--size", "64M"]));
        image
    }
}

fn f2fs<const N: usize>(args: [&str; N]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_f2fs"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs a command that must fail with a code; returns the one line that it says.
#[track_caller]
fn fail(command: &mut Command, code: i32) -> String {
    let output = run(command);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{command:?}: {stderr}");
    if code != 2 {
        assert!(stderr.starts_with("f2fs: ") && stderr.trim_end().lines().count() == 1, "{stderr}");
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
    stderr
}

#[track_caller]
fn json(command: &mut Command) -> Value {
    serde_json::from_str(&ok(command)).unwrap()
}

#[track_caller]
fn contains(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

#[test]
fn format_makes_and_refuses() {
    let place = Place::new();
    let image = place.path("image");
    contains(&fail(f2fs(["format"]).arg(&image), 1), &["image", "--size"]);
    assert!(!image.exists());

    let text =
        ok(f2fs(["format"]).arg(&image).args(["--size", "64M", "--label", "würfel", "-O", "extra_attr,sb_checksum"]));
    contains(&text, &["64.0 MiB"]);
    assert_eq!(fs::metadata(&image).unwrap().len(), 64 << 20);
    f2fs_oracle::assert_clean(&image);
    let inspected = json(f2fs(["inspect", "--json"]).arg(&image));
    assert_eq!(inspected["superblock"]["label"], "würfel");
    assert_eq!(inspected["superblock"]["features"], serde_json::json!(["extra_attr", "sb_checksum"]));

    // A file that is there stays, unless it is to go.
    let before = fs::read(&image).unwrap();
    contains(&fail(f2fs(["format"]).arg(&image), 1), &["image", "F2FS", "force"]);
    contains(&fail(f2fs(["format"]).arg(&image).args(["--size", "80M"]), 1), &["67108864", "83886080", "--force"]);
    assert!(fs::read(&image).unwrap() == before);
    let report = json(f2fs(["format", "--json", "--force"]).arg(&image).args(["--size", "80M"]));
    assert_eq!(report["blocks"], 80 << 8);
    assert_eq!(fs::metadata(&image).unwrap().len(), 80 << 20);
    f2fs_oracle::assert_clean(&image);

    // Options of mkfs.f2fs.
    ok(f2fs([
        "format", "-f", "--size", "256M", "-i", "-s", "2", "-z", "1", "-o", "12.5", "-e", "mp3,ogg", "-E", "db", "-l",
        "x",
    ])
    .arg(&image));
    f2fs_oracle::assert_clean(&image);
    assert_eq!(json(f2fs(["inspect", "--json"]).arg(&image))["superblock"]["segments_per_section"], 2);
}

#[test]
fn format_says_what_is_wrong() {
    let place = Place::new();
    let image = place.path("image");
    contains(&fail(f2fs(["format", "--size", "1M"]).arg(&image), 2), &["1.0 MiB", "at least"]);
    contains(&fail(f2fs(["format", "--size", "64M", "-O", "casefold"]).arg(&image), 2), &["casefold", "extra_attr"]);
    contains(&fail(f2fs(["format", "--size", "64M", "-O", "inode_checksum"]).arg(&image), 2), &["extra_attr"]);
    assert!(!image.exists(), "a failed format leaves no file behind");
    fail(f2fs(["format", "--size", "lots"]).arg(&image), 2);
    fail(f2fs(["format", "--size", "99999999T"]).arg(&image), 2);
    fail(&mut f2fs(["format"]), 2);
    fail(&mut f2fs(["no-such-command"]), 2);
    fail(&mut f2fs([]), 2);
    contains(&fail(f2fs(["format", "--size", "64M"]).arg(place.path("none/image")), 1), &["none/image: no such file"]);
    contains(&ok(&mut f2fs(["--help"])), &["format", "inspect", "manifest", "Exit codes"]);
    contains(&ok(&mut f2fs(["--version"])), &["f2fs"]);
}

#[test]
fn inspect_for_people_and_programs() {
    let place = Place::new();
    let image = place.image();
    let value = json(f2fs(["inspect"]).arg(&image).arg("--json"));
    assert_eq!(value["superblock"]["blocks"], 16384);
    assert_eq!(value["counts"]["valid_inodes"], 1);
    assert_eq!(
        value["checkpoint"]["logs"]
            .as_object()
            .map(serde_json::Map::len)
            .or(value["checkpoint"]["logs"].as_array().map(Vec::len)),
        Some(6)
    );
    assert!(value["counts"]["free_nids"].as_u64().unwrap() > 1000);
    contains(
        &ok(f2fs(["inspect"]).arg(&image)),
        &["label", "uuid", "features", "checkpoint", "segments", "orphans", "NIDs"],
    );
    assert!(value["holes"].is_null());
    let value = json(f2fs(["inspect", "--holes", "--json"]).arg(&image));
    // The root directory stands in two of them.
    assert_eq!(value["holes"]["dirty_segments"], 2);
    contains(&ok(f2fs(["inspect", "--holes"]).arg(&image)), &["blocks in 2 dirty segments"]);
}

#[test]
fn check_has_exit_codes() {
    let place = Place::new();
    let image = place.image();
    assert_eq!(ok(f2fs(["check"]).arg(&image)), "");
    let report = json(f2fs(["check", "--json"]).arg(&image));
    assert_eq!((&report["checked"], &report["clean"]), (&Value::Bool(true), &Value::Bool(true)));

    // A flipped byte in the root's inode, wherever that is: all of the main area's first used blocks.
    ok(f2fs(["mkdir"]).arg(&image).arg("/dir"));
    let mut bytes = fs::read(&image).unwrap();
    let inspected = json(f2fs(["inspect", "--json"]).arg(&image));
    let main = inspected["superblock"]["areas"]["main"].as_u64().unwrap() as usize * 4096;
    for block in bytes[main..].chunks_exact_mut(4096) {
        // Footer: nid 3, ino 3.
        if block[4072..4080] == [3, 0, 0, 0, 3, 0, 0, 0] {
            block[12] = 77; // i_links
        }
    }
    let corrupt = place.path("corrupt");
    fs::write(&corrupt, &bytes).unwrap();
    let output = run(f2fs(["check"]).arg(&corrupt));
    assert_eq!(output.status.code(), Some(4));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "one line a finding: {text}");
    contains(&text, &["links", "77"]);
    let output = run(f2fs(["check", "--json"]).arg(&corrupt));
    assert_eq!(output.status.code(), Some(4));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["findings"].as_array().unwrap().len(), 1);
    assert!(fs::read(&corrupt).unwrap() == bytes, "a check changes nothing");

    contains(&fail(f2fs(["check"]).arg(place.path("none")), 8), &["none: no such file"]);
    let empty = place.path("empty");
    fs::write(&empty, vec![0; 64 << 20]).unwrap();
    contains(&fail(f2fs(["check"]).arg(&empty), 8), &["empty", "zeros only"]);
    fs::write(&empty, &bytes[..bytes.len() / 2]).unwrap();
    let output = run(f2fs(["check"]).arg(&empty));
    assert!(matches!(output.status.code(), Some(4 | 8)), "{output:?}");
    fail(&mut f2fs(["check"]), 2);
}

#[test]
fn names_come_and_go() {
    let place = Place::new();
    let image = place.image();
    let f = |args: &[&str]| {
        let mut command = f2fs([]);
        command.arg(args[0]);
        let flags = args[1..].iter().take_while(|arg| arg.starts_with('-')).count();
        command.args(&args[1..1 + flags]).arg(&image).args(&args[1 + flags..]);
        command
    };
    ok(&mut f(&["mkdir", "/a", "/b"]));
    ok(&mut f(&["mkdir", "-p", "/a/deep/er", "/a"]));
    contains(&fail(&mut f(&["mkdir", "/a"]), 1), &["/a", "already exists"]);
    contains(&fail(&mut f(&["mkdir", "/none/x"]), 1), &["/none/x", "no such file"]);
    let host = place.path("text");
    fs::write(&host, "hello\n").unwrap();
    ok(f2fs(["put"]).arg(&image).arg(&host).arg("/a"));
    ok(&mut f(&["ln", "/a/text", "/b/hard"]));
    ok(&mut f(&["ln", "-s", "../a/text", "/b/soft"]));
    assert_eq!(ok(&mut f(&["cat", "/b/soft"])), "hello\n");
    assert_eq!(ok(&mut f(&["ls", "/b"])), "hard\nsoft\n");
    assert_eq!(ok(&mut f(&["ls", "-R", "/a"])), "/a:\ndeep\ntext\n\n/a/deep:\ner\n\n/a/deep/er:\n");
    let long = ok(&mut f(&["ls", "-l", "/b"]));
    contains(&long, &["-rw", " 2 ", " 6 ", "soft -> ../a/text"]);
    let long = ok(&mut f(&["ls", "-lR"]));
    contains(&long, &["/a/deep:", "drwxr-xr-x"]);
    for line in ok(&mut f(&["ls", "--json", "/b"])).lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        assert!(entry["path"].as_str().unwrap().starts_with("/b/"));
    }
    let stat = json(&mut f(&["stat", "--json", "/b/hard"]));
    assert_eq!((&stat["links"], &stat["size"]), (&Value::from(2), &Value::from(6)));
    contains(&ok(&mut f(&["stat", "/b/soft"])), &["symbolic link", "links:", "/b/soft"]);

    ok(&mut f(&["mv", "/b/hard", "/a"]));
    assert_eq!(ok(&mut f(&["cat", "/a/hard"])), "hello\n");
    contains(&fail(&mut f(&["mv", "-n", "/a/hard", "/a/text"]), 1), &["/a/hard", "already exists"]);
    ok(&mut f(&["mv", "--exchange", "/a", "/b"]));
    assert_eq!(ok(&mut f(&["ls", "/a"])), "soft\n");
    contains(&fail(&mut f(&["mv", "/b", "/b/deep/x"]), 1), &["into itself"]);
    contains(&fail(&mut f(&["rm", "/b"]), 1), &["/b", "directory"]);
    ok(&mut f(&["rm", "/b/hard", "/a/soft"]));
    ok(&mut f(&["rm", "-r", "/a", "/b"]));
    contains(&fail(&mut f(&["rm", "/a"]), 1), &["/a", "no such file"]);
    assert_eq!(ok(&mut f(&["ls"])), "");
    contains(&fail(&mut f(&["cat", "/"]), 1), &["/", "directory"]);
    contains(&fail(&mut f(&["cat", "/none"]), 1), &["/none"]);
    fail(&mut f(&["mv", "-n", "--exchange", "/a", "/b"]), 2);
    fail(&mut f(&["mkdir"]), 2);
    let long = format!("/{}", "n".repeat(256));
    contains(&fail(&mut f(&["mkdir", &long]), 1), &["256"]);
    f2fs_oracle::assert_clean(&image);
}

/// A tree of all that a user can make.
fn tree(root: &Path) {
    fs::create_dir_all(root.join("dir/empty")).unwrap();
    fs::write(root.join("small"), "small").unwrap();
    fs::write(root.join("large"), (0..3_000_000u32).map(|i| (i * 7 / 8) as u8).collect::<Vec<_>>()).unwrap();
    fs::hard_link(root.join("small"), root.join("dir/again")).unwrap();
    symlink("../small", root.join("dir/link")).unwrap();
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"end", 9_000_000).unwrap();
    for name in [&b"\xff\xfe"[..], b"tab\there", b"back\\slash", b"new\nline", "größe".as_bytes()] {
        fs::write(root.join(OsStr::from_bytes(name)), name).unwrap();
    }
    fs::set_permissions(root.join("small"), fs::Permissions::from_mode(0o4751)).unwrap();
    fs::set_permissions(root.join("dir"), fs::Permissions::from_mode(0o1770)).unwrap();
    for name in 0..300 {
        fs::write(root.join(format!("dir/file-{name}")), vec![b'x'; name * 31]).unwrap();
    }
}

fn bytes_of(command: &mut Command) -> Vec<u8> {
    let output = run(command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn a_tree_goes_in_and_comes_out() {
    let place = Place::new();
    let image = place.image();
    let source = place.path("source");
    tree(&source);
    contains(&fail(f2fs(["put"]).arg(&image).arg(&source).arg("/"), 1), &["source", "recursive"]);
    ok(f2fs(["put", "-r"]).arg(&image).arg(&source).arg("/"));
    f2fs_oracle::assert_clean(&image);
    let inside = bytes_of(f2fs(["manifest"]).arg(&image));
    let outside = bytes_of(f2fs(["manifest", "--host"]).arg(&source));
    let text = String::from_utf8(inside.clone()).unwrap();
    assert_eq!(text, String::from_utf8(outside).unwrap());
    contains(&text, &["\t/\\xff\\xfe\n", "\t/tab\\x09here\n", "\t/back\\x5cslash\n", "\t/größe\n", "\t4751\t"]);
    assert!(text.lines().all(|line| line.split('\t').count() == 9), "nine fields a line");
    let paths: Vec<&str> = text.lines().filter_map(|line| line.rsplit('\t').next()).collect();
    assert_eq!(paths[0], "/");

    contains(&fail(f2fs(["get"]).arg(&image).arg("/dir").arg(place.path("out")), 1), &["/dir", "recursive"]);
    let copy = place.path("copy");
    ok(f2fs(["get", "-r"]).arg(&image).arg("/").arg(&copy));
    assert_eq!(bytes_of(f2fs(["manifest", "--host"]).arg(&copy)), inside);
    assert!(fs::metadata(copy.join("sparse")).unwrap().blocks() * 512 < 1 << 20, "holes stay holes");

    // One file by a name that is no UTF-8, in and out.
    let odd = OsStr::from_bytes(b"/\xff\xfe");
    let one = place.path("one");
    ok(f2fs(["get"]).arg(&image).arg(odd).arg(&one));
    assert_eq!(fs::read(&one).unwrap(), b"\xff\xfe");
    let mut name = OsString::from("/dir/");
    name.push(OsStr::from_bytes(b"\x80\x81"));
    ok(f2fs(["put"]).arg(&image).arg(&one).arg(&name));
    assert_eq!(bytes_of(f2fs(["cat"]).arg(&image).arg(&name)), b"\xff\xfe");
    contains(&ok(f2fs(["ls"]).arg(&image).arg("/dir")), &["$'\\200\\201'\n"]);
    contains(
        &fail(f2fs(["put"]).arg(&image).arg(place.path("none")).arg("/x"), 1),
        &["none: No such file or directory\n"],
    );
    contains(&fail(f2fs(["get"]).arg(&image).arg("/none").arg(&one), 1), &["/none"]);
}

#[test]
fn a_full_volume_says_so_and_keeps_no_half_file() {
    let place = Place::new();
    let image = place.image();
    let host = place.path("huge");
    fs::File::create(&host).unwrap().set_len(10).unwrap();
    fs::write(&host, vec![7; 80 << 20]).unwrap();
    let said = fail(f2fs(["put"]).arg(&image).arg(&host).arg("/huge"), 1);
    contains(&said, &["/huge", "the volume is full"]);
    assert!(said.chars().any(|c| c.is_ascii_digit()), "{said}");
    f2fs_oracle::assert_clean(&image);
    ok(f2fs(["check"]).arg(&image));
    // No half file is left.
    fail(f2fs(["stat"]).arg(&image).arg("/huge"), 1);
    // Users can fill some 14 MiB of so small a volume.
    fs::write(&host, vec![7; 12 << 20]).unwrap();
    ok(f2fs(["put"]).arg(&image).arg(&host).arg("/huge"));
    f2fs_oracle::assert_clean(&image);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let place = Place::new();
    let image = place.image();
    let host = place.path("large");
    fs::write(&host, vec![b'x'; 9 << 20]).unwrap();
    ok(f2fs(["put"]).arg(&image).arg(&host).arg("/large"));
    for args in [vec!["cat"], vec!["manifest"], vec!["ls", "-lR"], vec!["inspect"]] {
        let mut command = f2fs([]);
        command.args(&args).arg(&image).stdout(Stdio::piped()).stderr(Stdio::piped());
        if args[0] == "cat" {
            command.arg("/large");
        }
        let mut child = command.spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        if args[0] == "cat" {
            let mut some = [0; 100];
            out.read_exact(&mut some).unwrap();
        }
        drop(out);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    }
}

#[test]
fn images_that_may_only_be_read() {
    let place = Place::new();
    let image = place.image();
    ok(f2fs(["mkdir"]).arg(&image).arg("/dir"));
    fs::set_permissions(&image, fs::Permissions::from_mode(0o444)).unwrap();
    let before = fs::read(&image).unwrap();
    assert_eq!(ok(f2fs(["ls"]).arg(&image)), "dir\n");
    ok(f2fs(["check"]).arg(&image));
    ok(f2fs(["manifest"]).arg(&image));
    // The superuser may write what is marked read-only; anybody else is told.
    if fs::File::options().write(true).open(&image).is_err() {
        contains(&fail(f2fs(["mkdir"]).arg(&image).arg("/x"), 1), &["image", "denied"]);
        assert!(fs::read(&image).unwrap() == before);
    }
}

#[test]
fn an_image_is_opened_for_writing_once() {
    let place = Place::new();
    let image = place.image();
    let before = fs::read(&image).unwrap();
    let held = f2fs::uring::UringDevice::open(&image, f2fs::uring::OpenOptions::new()).unwrap();
    contains(&fail(f2fs(["mkdir"]).arg(&image).arg("/x"), 1), &["image"]);
    contains(&fail(f2fs(["format", "--force"]).arg(&image), 1), &["image"]);
    drop(held);
    assert!(fs::read(&image).unwrap() == before);
    ok(f2fs(["mkdir"]).arg(&image).arg("/x"));
}

#[test]
fn truncated_and_foreign_images() {
    let place = Place::new();
    let image = place.image();
    let bytes = fs::read(&image).unwrap();
    let cut = place.path("cut");
    for len in [0, 100, 4096, 8192, 1 << 20, bytes.len() / 2, bytes.len() - 4096] {
        fs::write(&cut, &bytes[..len]).unwrap();
        for args in [vec!["inspect"], vec!["ls"], vec!["manifest"]] {
            let mut command = f2fs([]);
            contains(&fail(command.args(args).arg(&cut), 1), &["cut"]);
        }
        fail(f2fs(["mkdir"]).arg(&cut).arg("/x"), 1);
        assert!(fs::read(&cut).unwrap() == bytes[..len], "a failed open changed the file");
    }
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    contains(&fail(f2fs(["ls"]).arg(&cut), 1), &["16384", "8192", "truncated"]);
    contains(&fail(f2fs(["ls"]).arg("/"), 1), &["/"]);
    // One superblock is enough, and the other one is reported.
    let mut damaged = bytes;
    damaged[1024] ^= 1;
    fs::write(&cut, &damaged).unwrap();
    let output = run(f2fs(["ls"]).arg(&cut));
    assert!(output.status.success());
    contains(&String::from_utf8_lossy(&output.stderr), &["cut", "superblock", "magic"]);
}

#[test]
fn the_root_has_the_owner_that_was_asked_for() {
    let place = Place::new();
    for (option, owner) in [("-R", "1000:1001"), ("--root-owner", "0:4294967294")] {
        let (ours, theirs) = (place.path("ours"), place.path("theirs"));
        ok(f2fs(["format", "--size", "64M", "--force", option, owner]).arg(&ours));
        f2fs_oracle::mkfs_sized(&theirs, 64 << 20, &["-R", owner]).unwrap();
        for image in [&ours, &theirs] {
            let shown = ok(f2fs(["stat"]).arg(image).arg("/"));
            assert!(shown.contains(&format!("owner:    {owner}\n")), "{shown}");
        }
    }
}

#[test]
fn volumes_of_the_real_tools() {
    let place = Place::new();
    let image = place.path("theirs");
    let source = place.path("source");
    tree(&source);
    // sload.f2fs follows names as text.
    for name in [&b"\xff\xfe"[..], b"tab\there", b"back\\slash", b"new\nline"] {
        fs::remove_file(source.join(OsStr::from_bytes(name))).unwrap();
    }
    f2fs_oracle::mkfs_sized(&image, 128 << 20, &["-O", "extra_attr,inode_checksum,sb_checksum,lost_found"]).unwrap();
    f2fs_oracle::sload(&image, &source).unwrap();
    ok(f2fs(["check"]).arg(&image));
    let inside = ok(f2fs(["manifest"]).arg(&image));
    let outside = ok(f2fs(["manifest", "--host"]).arg(&source));
    // The kinds, sizes and contents; the tool does not keep owners, and its root is its own.
    let fields = |text: &str| -> Vec<Vec<String>> {
        text.lines()
            .map(|line| line.split('\t').map(str::to_owned).collect::<Vec<_>>())
            .filter(|fields: &Vec<String>| fields[8] != "/")
            .map(|fields| [0, 4, 6, 8].map(|at| fields[at].clone()).to_vec())
            .collect()
    };
    assert_eq!(fields(&inside), fields(&outside));
    // And the volume can be used further.
    ok(f2fs(["put", "-r"]).arg(&image).arg(&source).arg("/again"));
    ok(f2fs(["rm", "-r"]).arg(&image).arg("/dir"));
    f2fs_oracle::assert_clean(&image);
}

#[test]
fn what_was_synced_is_shown_and_recovered() {
    let place = Place::new();
    let image = place.image();
    {
        let device = f2fs::uring::UringDevice::open(&image, f2fs::uring::OpenOptions::new()).unwrap();
        let fs = f2fs::FileSystem::open(device, f2fs::Options::new()).unwrap();
        // The first sync after an opening is a checkpoint.
        fs.create_file("/before", 0o644).unwrap().sync_all().unwrap();
        let file = fs.create_file("/ledger", 0o644).unwrap();
        file.append(b"paid\n").unwrap();
        file.sync_all().unwrap();
        // Not closed.
    }
    let before = fs::read(&image).unwrap();
    let shown = run(f2fs(["cat"]).arg(&image).arg("/ledger"));
    assert!(shown.status.success());
    assert_eq!(shown.stdout, b"paid\n");
    let said = String::from_utf8(shown.stderr).unwrap();
    assert!(said.contains("1 files synced after the last checkpoint") && said.contains("1 of them new"), "{said}");
    for command in ["manifest", "ls"] {
        let shown = run(f2fs([command]).arg(&image));
        assert!(String::from_utf8(shown.stdout).unwrap().contains("ledger"));
        assert!(!ok(f2fs([command, "--no-recovery"]).arg(&image)).contains("ledger"));
    }
    fail(f2fs(["stat", "--no-recovery"]).arg(&image).arg("/ledger"), 1);
    fail(f2fs(["cat", "--no-recovery"]).arg(&image).arg("/ledger"), 1);
    fail(f2fs(["get", "--no-recovery"]).arg(&image).arg("/ledger").arg(place.path("out")), 1);
    assert!(fs::read(&image).unwrap() == before, "a reader wrote");
    assert!(run(f2fs(["mkdir"]).arg(&image).arg("/more")).status.success());
    assert_eq!(ok(f2fs(["cat"]).arg(&image).arg("/ledger")), "paid\n");
    ok(f2fs(["check"]).arg(&image));
}

//! `f2fs get` and `f2fs cat`: what they write to, and what hostile volumes cannot make them write to.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{Place, fail, ok, rename_by_hand, run};

fn f2fs(command: &str, image: &Path, args: &[&str]) -> Command {
    let mut built = Command::new(env!("CARGO_BIN_EXE_f2fs"));
    built.arg(command).arg(image).args(args).stdin(Stdio::null());
    built
}

fn formatted(place: &Place) -> PathBuf {
    let image = place.path("image");
    ok(f2fs("format", &image, &["--size", "64M"]).stdin(Stdio::null()));
    image
}

fn path(place: &Place, name: &str) -> String {
    place.path(name).to_str().unwrap().to_owned()
}

/// A volume with `/f`.
fn with_file(place: &Place, content: &[u8]) -> PathBuf {
    let image = formatted(place);
    fs::write(place.path("f"), content).unwrap();
    ok(&mut f2fs("put", &image, &[&path(place, "f"), "/f"]));
    image
}

#[test]
fn what_is_no_regular_file_is_written_to_and_stays() {
    let place = Place::new();
    let image = with_file(&place, b"content");
    ok(&mut f2fs("get", &image, &["/f", "/dev/null"]));
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());

    let fifo = path(&place, "fifo");
    ok(Command::new("mkfifo").arg(&fifo));
    let reader = {
        let fifo = fifo.clone();
        std::thread::spawn(move || fs::read(fifo).unwrap())
    };
    ok(&mut f2fs("get", &image, &["/f", &fifo]));
    assert_eq!(reader.join().unwrap(), b"content");
    assert!(fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo());

    fs::write(place.path("real"), "a much longer text").unwrap();
    symlink("real", place.path("link")).unwrap();
    ok(&mut f2fs("get", &image, &["/f", &path(&place, "link")]));
    assert!(fs::symlink_metadata(place.path("link")).unwrap().is_symlink());
    assert_eq!(fs::read(place.path("real")).unwrap(), b"content");

    symlink("none", place.path("dangling")).unwrap();
    fail(&mut f2fs("get", &image, &["/f", &path(&place, "dangling")]), 1, "dangling");
    assert!(!place.path("none").exists());

    assert_eq!(ok(&mut f2fs("get", &image, &["/f", "-"])), "content");
    ok(&mut f2fs("get", &image, &["f", &path(&place, "without a slash")]));
    assert_eq!(fs::read(place.path("without a slash")).unwrap(), b"content");
    fs::create_dir(place.path("links")).unwrap();
    symlink("f", place.path("links/to f")).unwrap();
    ok(&mut f2fs("put", &image, &["-r", &path(&place, "links"), "/"]));
    ok(&mut f2fs("get", &image, &["to f", &path(&place, "link without a slash")]));
    assert_eq!(fs::read_link(place.path("link without a slash")).unwrap(), Path::new("f"));
    fail(&mut f2fs("get", &image, &["/f", image.to_str().unwrap()]), 1, "the volume itself lies on it");
    let before = fs::read(&image).unwrap();
    let volume = || fs::File::options().read(true).write(true).open(&image).unwrap();
    for args in [&["get", "/f", "-"][..], &["cat", "/f"], &["ls"], &["check"]] {
        let failed = run(f2fs(args[0], &image, &args[1..]).stdout(volume()));
        let said = String::from_utf8_lossy(&failed.stderr);
        let code = if args[0] == "check" { 8 } else { 1 };
        assert!(failed.status.code() == Some(code) && said.contains("is the standard output of"), "{args:?}: {said}");
    }
    assert!(fs::read(&image).unwrap() == before);
    fail(&mut f2fs("get", &image, &["/f", "/dev/full"]), 1, "/dev/full");
    fail(&mut f2fs("get", &image, &["/f", &path(&place, "missing/")]), 1, "missing");
    assert_eq!(ok(&mut f2fs("cat", &image, &["/f"])), "content");
}

#[test]
fn a_large_file_comes_out_whole_by_several_threads() {
    let place = Place::new();
    let image = formatted(&place);
    // Odd in size, with holes in front, between and behind.
    let file = fs::File::create(place.path("f")).unwrap();
    let mut content = vec![0; (23 << 20) + 777];
    for (from, len) in [(5 << 20, 9_000_001), (20 << 20, 1_234_567)] {
        for (at, byte) in content[from..from + len].iter_mut().enumerate() {
            *byte = (at / 4096 + at) as u8;
        }
        file.write_all_at(&content[from..from + len], from as u64).unwrap();
    }
    file.set_len(content.len() as u64).unwrap();
    ok(&mut f2fs("put", &image, &[&path(&place, "f"), "/f"]));
    for jobs in ["1", "4", "16"] {
        let out = place.path("out");
        ok(&mut f2fs("get", &image, &["-j", jobs, "/f", out.to_str().unwrap()]));
        assert!(fs::read(&out).unwrap() == content, "{jobs} threads");
        assert!(fs::metadata(&out).unwrap().blocks() * 512 < 11 << 20);
        fs::remove_file(&out).unwrap();
    }
}

#[test]
fn two_at_once_into_one_directory_both_come_out_whole() {
    let place = Place::new();
    let image = formatted(&place);
    for name in ["a", "b"] {
        fs::create_dir_all(place.path(name).join("sub")).unwrap();
        for file in 0..50 {
            fs::write(place.path(name).join(format!("sub/{name}{file}")), vec![file; 9000]).unwrap();
        }
    }
    for name in ["a", "b"] {
        ok(&mut f2fs("put", &image, &["-r", &path(&place, name), &format!("/{name}")]));
    }
    let out = path(&place, "out");
    let running: Vec<_> = ["/a", "/b"]
        .iter()
        .map(|name| f2fs("get", &image, &["-r", name, &out]).stderr(Stdio::piped()).spawn().unwrap())
        .collect();
    for child in running {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for name in ["a", "b"] {
        for file in 0..50 {
            assert_eq!(fs::read(place.path(&format!("out/sub/{name}{file}"))).unwrap(), vec![file; 9000]);
        }
    }
}

#[test]
fn names_that_lead_out_of_the_directory_are_errors_of_their_entries() {
    let place = Place::new();
    let image = formatted(&place);
    fs::create_dir_all(place.path("tree/sub")).unwrap();
    for name in ["AAAevil", "BBBBevil", "sub/CCCevil", "good", "sub/good"] {
        fs::write(place.path("tree").join(name), name).unwrap();
    }
    fs::create_dir(place.path("tree/DDDevil")).unwrap();
    // The names have real targets, as paths in the volume.
    fs::create_dir(place.path("tree/evi2")).unwrap();
    fs::create_dir(place.path("tree/tmp")).unwrap();
    for name in ["evil", "tmp/evi"] {
        fs::write(place.path("tree").join(name), name).unwrap();
    }
    ok(&mut f2fs("put", &image, &["-r", &path(&place, "tree"), "/"]));
    for (name, other) in [
        (&b"AAAevil"[..], &b"../evil"[..]),
        (b"BBBBevil", b"/tmp/evi"),
        (b"CCCevil", b"a\0/evil"),
        (b"DDDevil", b"../evi2"),
    ] {
        rename_by_hand(&image, name, other);
    }
    fs::create_dir(place.path("in")).unwrap();
    let out = place.path("in/out");
    let output = run(&mut f2fs("get", &image, &["-r", "/", out.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("an invalid name") && said.contains("4 entries were not copied"), "{said}");
    assert_eq!(fs::read(out.join("good")).unwrap(), b"good");
    assert_eq!(fs::read(out.join("sub/good")).unwrap(), b"sub/good");
    let names = |path: &Path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!(names(&place.path("in")), ["out"]);
    assert_eq!(names(&out).len(), 5);
    assert!(!Path::new("/tmp/evi").exists());
}

#[test]
fn what_the_volume_lies_on_is_not_replaced() {
    let place = Place::new();
    let image = with_file(&place, b"f");
    fs::create_dir(place.path("tree")).unwrap();
    for name in ["image", "second", "f"] {
        fs::write(place.path("tree").join(name), name).unwrap();
    }
    symlink("f", place.path("tree/third")).unwrap();
    ok(&mut f2fs("put", &image, &["-r", &path(&place, "tree"), "/"]));
    fs::hard_link(&image, place.path("second")).unwrap();
    symlink(&image, place.path("third")).unwrap();
    let before = fs::metadata(&image).unwrap();
    let here = path(&place, ".");

    // Names of the volume that are its own on the host: the rest is copied.
    let output = run(&mut f2fs("get", &image, &["-r", "/", &here]));
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.matches("the volume itself lies on it").count(), 2, "{said}");
    assert!(said.contains("2 entries were not copied"), "{said}");
    assert_eq!(fs::read_link(place.path("third")).unwrap(), Path::new("f"), "a link to it is not it");
    for target in ["image", "second"] {
        fail(&mut f2fs("get", &image, &["/f", &path(&place, target)]), 1, "the volume itself lies on it");
        fail(&mut f2fs("get", &image, &["/third", &path(&place, target)]), 1, "the volume itself lies on it");
    }
    let after = fs::metadata(&image).unwrap();
    assert_eq!((after.ino(), after.len(), after.nlink()), (before.ino(), before.len(), 2));
    f2fs_oracle::assert_clean(&image);
}

#[test]
fn links_in_the_image_and_at_the_destination_are_not_followed() {
    let place = Place::new();
    let image = formatted(&place);
    let outside = place.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::create_dir_all(place.path("tree/aaaa")).unwrap();
    fs::write(place.path("tree/aaaa/file"), "from the directory").unwrap();
    fs::write(place.path("tree/ffff"), "from the file").unwrap();
    symlink(&outside, place.path("tree/aaab")).unwrap();
    symlink(outside.join("new"), place.path("tree/fffg")).unwrap();
    ok(&mut f2fs("put", &image, &["-r", &path(&place, "tree"), "/"]));
    // Now a directory and a link have one name, and so have a file and a link.
    rename_by_hand(&image, b"aaab", b"aaaa");
    rename_by_hand(&image, b"fffg", b"ffff");
    for jobs in ["1", "4"] {
        let out = place.path(&format!("out{jobs}"));
        run(&mut f2fs("get", &image, &["-r", "-j", jobs, "/", out.to_str().unwrap()]));
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }

    // The destination has links where the image has a directory and a file.
    let clean = place.path("clean");
    ok(&mut f2fs("format", &clean, &["--size", "64M"]));
    fs::remove_file(place.path("tree/aaab")).unwrap();
    fs::remove_file(place.path("tree/fffg")).unwrap();
    ok(&mut f2fs("put", &clean, &["-r", &path(&place, "tree"), "/"]));
    let out = place.path("out");
    fs::create_dir(&out).unwrap();
    symlink(&outside, out.join("aaaa")).unwrap();
    symlink(outside.join("new"), out.join("ffff")).unwrap();
    fail(&mut f2fs("get", &clean, &["-r", "/", out.to_str().unwrap()]), 1, "aaaa");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert!(fs::symlink_metadata(out.join("aaaa")).unwrap().is_symlink());
    assert_eq!(fs::read(out.join("ffff")).unwrap(), b"from the file");
    // A second copy over the first one.
    fs::remove_file(out.join("aaaa")).unwrap();
    for _ in 0..2 {
        ok(&mut f2fs("get", &clean, &["-r", "/", out.to_str().unwrap()]));
    }
    assert_eq!(fs::read(out.join("aaaa/file")).unwrap(), b"from the directory");
}

#[test]
fn holes_are_skipped_on_every_way_out() {
    let place = Place::new();
    let image = formatted(&place);
    let sparse = fs::File::create(place.path("sparse")).unwrap();
    sparse.write_all_at(b"start", 0).unwrap();
    sparse.write_all_at(b"middle", 100 << 30).unwrap();
    sparse.set_len(200 << 30).unwrap();
    ok(&mut f2fs("put", &image, &[&path(&place, "sparse"), "/sparse"]));
    let began = std::time::Instant::now();
    ok(&mut f2fs("get", &image, &["/sparse", &path(&place, "got")]));
    let cat = |file: fs::File| run(f2fs("cat", &image, &["/sparse"]).stdout(file));
    assert!(cat(fs::File::create(place.path("cat")).unwrap()).status.success());
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    for name in ["got", "cat"] {
        let file = fs::File::open(place.path(name)).unwrap();
        let metadata = file.metadata().unwrap();
        assert_eq!(metadata.len(), 200 << 30, "{name}");
        assert!(metadata.blocks() * 512 < 1 << 20, "{name}");
        let mut found = [0; 6];
        file.read_exact_at(&mut found, 100 << 30).unwrap();
        assert_eq!(&found, b"middle", "{name}");
    }

    // Where nothing can be skipped zeros are written: a pipe, the end of a file that is appended to, the middle of one.
    let small = fs::File::create(place.path("small")).unwrap();
    small.write_all_at(b"a", 0).unwrap();
    small.write_all_at(b"b", 1 << 20).unwrap();
    small.set_len(3 << 20).unwrap();
    let content = fs::read(place.path("small")).unwrap();
    ok(&mut f2fs("put", &image, &[&path(&place, "small"), "/small"]));
    assert!(run(&mut f2fs("cat", &image, &["/small"])).stdout == content);
    fs::write(place.path("appended"), "x").unwrap();
    fs::write(place.path("over"), vec![0xff; 4 << 20]).unwrap();
    let appended = fs::OpenOptions::new().append(true).open(place.path("appended")).unwrap();
    let over = fs::OpenOptions::new().write(true).open(place.path("over")).unwrap();
    for out in [appended, over] {
        assert!(run(f2fs("cat", &image, &["/small"]).stdout(out)).status.success());
    }
    assert!(fs::read(place.path("appended")).unwrap()[1..] == content);
    let over = fs::read(place.path("over")).unwrap();
    assert!(over[..3 << 20] == content && over[3 << 20..].iter().all(|byte| *byte == 0xff));
}

#[test]
fn several_sources_go_into_a_directory() {
    let place = Place::new();
    let image = with_file(&place, b"one");
    ok(&mut f2fs("mkdir", &image, &["/d", "/d/e"]));
    ok(&mut f2fs("put", &image, &[&path(&place, "f"), "/d/g"]));
    fs::create_dir(place.path("out")).unwrap();
    let out = path(&place, "out");
    ok(&mut f2fs("get", &image, &["-r", "/f", "/d", &out]));
    assert_eq!(fs::read(place.path("out/f")).unwrap(), b"one");
    assert_eq!(fs::read(place.path("out/d/g")).unwrap(), b"one");
    // A failure is reported, the rest is copied.
    fail(&mut f2fs("get", &image, &["/none", "/d/g", &out]), 1, "/none");
    assert!(place.path("out/g").exists());
    fail(&mut f2fs("get", &image, &["/f", "/d/g", &path(&place, "f")]), 1, "not a directory");
    fail(&mut f2fs("get", &image, &["/f"]), 2, "");
}

/// Runs as a user without rights, where the test runs as root.
#[test]
fn special_files_that_cannot_be_made_are_said() {
    let place = Place::new();
    let image = formatted(&place);
    fs::create_dir(place.path("tree")).unwrap();
    fs::write(place.path("tree/file"), "x").unwrap();
    if !run(Command::new("mknod").arg(place.path("tree/node")).args(["c", "1", "3"])).status.success() {
        // Without root there is no node to begin with; a volume with one is made by the tests that root runs.
        assert_ne!(fs::metadata(place.dir()).unwrap().uid(), 0);
        return;
    }
    ok(&mut f2fs("put", &image, &["-r", &path(&place, "tree"), "/"]));
    let copy = format!("{} get -r {} ", env!("CARGO_BIN_EXE_f2fs"), image.display());
    let as_nobody = |args: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", "-mknod", "--inh-caps", "-mknod", "bash", "-c", &format!("{copy} {args}")]);
        command
    };
    fail(&mut as_nobody(&format!("/ {}", path(&place, "out"))), 1, "node");
    assert_eq!(fs::read(place.path("out/file")).unwrap(), b"x");
    ok(&mut as_nobody(&format!("--skip-special / {}", path(&place, "out2"))));
    assert_eq!(fs::read_dir(place.path("out2")).unwrap().count(), 1);
    ok(&mut f2fs("get", &image, &["-r", "/", &path(&place, "out3")]));
    assert!(fs::metadata(place.path("out3/node")).unwrap().file_type().is_char_device());
}

#[test]
fn a_reader_that_goes_away_ends_cat_quietly() {
    let place = Place::new();
    let image = with_file(&place, &vec![b'x'; 9 << 20]);
    let mut child = f2fs("get", &image, &["/f", "-"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 100]).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn many_files_with_all_that_they_have_come_out_by_many_threads() {
    let place = Place::new();
    let image = formatted(&place);
    for directory in 0..20 {
        let directory = place.path("tree").join(format!("d{directory}/e"));
        fs::create_dir_all(&directory).unwrap();
        for name in 0..60 {
            fs::write(directory.join(format!("n{name}")), vec![name; usize::from(name) * 10]).unwrap();
        }
        fs::hard_link(directory.join("n1"), directory.join("again")).unwrap();
        fs::hard_link(directory.join("n2"), directory.parent().unwrap().join("up")).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o555)).unwrap();
    }
    ok(&mut f2fs("put", &image, &["-r", "-j", "8", &path(&place, "tree"), "/"]));
    f2fs_oracle::assert_clean(&image);
    let manifest = ok(f2fs("manifest", &place.path("tree"), &["--host"]).stdin(Stdio::null()));
    assert_eq!(ok(&mut f2fs("manifest", &image, &[])), manifest);
    for jobs in ["1", "8"] {
        let out = path(&place, &format!("out{jobs}"));
        ok(&mut f2fs("get", &image, &["-r", "-j", jobs, "/", &out]));
        assert_eq!(ok(&mut f2fs("manifest", Path::new(&out), &["--host"])), manifest);
        // Directories have their times, too.
        let time = |root: &str| fs::metadata(Path::new(root).join("d3/e")).unwrap().mtime_nsec();
        assert_eq!(time(&out), time(&path(&place, "tree")));
    }
}

#[test]
fn the_second_of_two_entries_of_one_name_is_said_to_be_left_out() {
    for directory_first in [false, true] {
        let place = Place::new();
        let image = formatted(&place);
        let directory = || ok(&mut f2fs("mkdir", &image, &["/dirBBBB"]));
        let link = || ok(&mut f2fs("ln", &image, &["-s", "/tmp", "/lnkAAAA"]));
        if directory_first {
            [directory(), link()]
        } else {
            [link(), directory()]
        };
        rename_by_hand(&image, b"dirBBBB", b"lnkAAAA");
        fail(&mut f2fs("get", &image, &["-r", "/", &path(&place, "out")]), 1, "lnkAAAA");
        assert!(fs::read_dir(place.path("out")).unwrap().count() <= 1);
    }
}

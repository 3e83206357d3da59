//! `f2fs journal` and `--journal`: a journal is made, used, left by a kill, and brought back.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::mounted::{Mounted, shell, umount};
use common::{Place, command, fail, ok, run};
use f2fs::device::BlockDevice;
use f2fs::journal::{DeviceMedium, RegionMedium, SharedMedium};
use f2fs::pmem::{MappedRegion, OpenOptions};
use f2fs::uring::UringDevice;
use f2fs::{FileSystem, JournalMode, JournalOptions, Options};
use f2fs_oracle::assert_clean;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A new volume, and a new journal of it.
fn made(place: &Place) -> (PathBuf, PathBuf) {
    let (image, journal) = (place.path("disk.img"), place.path("journal"));
    ok(&mut command(["format", "--size", "64M", text(&image)]));
    ok(&mut command(["journal", "create", "--size", "1M", text(&journal), text(&image)]));
    (image, journal)
}

/// Makes the files in the volume durable in the journal, and leaves both as a process that is killed does.
fn left_by_a_kill(image: &Path, journal: &Path) {
    left_with_records(image, journal, 1);
}

/// The same with so many records.
fn left_with_records(image: &Path, journal: &Path, records: usize) {
    let device: std::sync::Arc<dyn BlockDevice> = UringDevice::open(image, Default::default()).unwrap();
    let region = MappedRegion::open(journal, OpenOptions::new()).unwrap();
    let medium: SharedMedium = std::sync::Arc::new(RegionMedium::new(region));
    let options = Options::new().journal(JournalOptions::new(medium, JournalMode::Ordered));
    let fs = FileSystem::open(device, options).unwrap();
    let file = fs.create_file("/synced", 0o644).unwrap();
    for _ in 0..records {
        file.write_at(b"it was promised", 0).unwrap();
        file.sync_all().unwrap();
    }
    // Not closed.
}

/// With the two paths in the wrong order, the error names the one that should be a volume; neither is written to.
#[test]
fn an_error_names_the_path_that_it_is_about() {
    let place = Place::new();
    let (image, journal) = made(&place);
    let before = (fs::read(&image).unwrap(), fs::read(&journal).unwrap());
    for force in [&[][..], &["--force"]] {
        let mut swapped = command(["journal", "create"]);
        let output = run(swapped.args(force).args([&image, &journal]));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(text(&journal)) && !said.contains(text(&image)), "{said}");
    }
    assert!(before == (fs::read(&image).unwrap(), fs::read(&journal).unwrap()));
}

#[test]
fn a_journal_from_its_making_to_its_end() {
    let place = Place::new();
    let (image, journal, other) = (place.path("disk.img"), place.path("journal"), place.path("other"));
    let (disk, path) = (text(&image), text(&journal));
    ok(&mut command(["format", "--size", "64M", disk]));
    fail(&mut command(["journal", "create", path, disk]), 2, "--size");
    fail(&mut command(["journal", "create", "--size", "100P", path, disk]), 1, path);
    assert!(!journal.exists(), "what was made is removed");
    ok(&mut command(["journal", "create", "--size", "1M", path, disk]));
    fail(&mut command(["journal", "create", path, disk]), 1, "already");
    let shown = ok(&mut command(["journal", "inspect", path]));
    assert!(shown.contains("not in use yet") && shown.contains("0 records, 0 B, clean"), "{shown}");

    fs::write(place.path("h"), "hello").unwrap();
    ok(&mut command(["put", "--journal", path, disk, text(&place.path("h")), "/h"]));
    assert_clean(&image);
    left_by_a_kill(&image, &journal);

    let shown = ok(&mut command(["journal", "inspect", "--json", path]));
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((shown["records"].as_u64(), shown["whole"].as_bool()), (Some(1), Some(true)), "{shown}");
    // Both are judged, and neither is changed.
    let judged = run(&mut command(["check", "--json", "--journal", path, disk]));
    assert_eq!(judged.status.code(), Some(0), "{judged:?}");
    let judged: serde_json::Value = serde_json::from_slice(&judged.stdout).unwrap();
    assert_eq!((judged["journal"]["good"].as_bool(), judged["journal"]["files"].as_u64()), (Some(true), Some(1)));
    fail(&mut command(["check", "--undo", "backup", "--journal", path, disk]), 2, "without its journal");
    // Without the journal it is shown at its checkpoint, and not written.
    let before = fs::read(&image).unwrap();
    let judged = run(&mut command(["check", disk]));
    assert!(judged.status.success() && String::from_utf8_lossy(&judged.stderr).contains("was not looked at"));
    let judged: serde_json::Value = serde_json::from_str(&ok(&mut command(["check", "--json", disk]))).unwrap();
    assert_eq!(judged["left_with_journal"].as_str().unwrap().len(), 36);
    assert!(ok(&mut command(["inspect", disk])).contains("left with synced files in"));
    let shown: serde_json::Value = serde_json::from_str(&ok(&mut command(["inspect", "--json", disk]))).unwrap();
    assert_eq!(shown["left_with_journal"], judged["left_with_journal"]);
    fail(&mut command(["check", "--repair", disk]), 8, "--without-journal gives them up");
    let shown = run(&mut command(["ls", disk]));
    let said = |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((shown.status.code(), shown.stdout.as_slice()), (Some(0), &b"h\n"[..]));
    assert!(said(&shown).contains("is not shown: --journal names it"), "{shown:?}");
    for quiet in ["--without-journal", "--no-recovery"] {
        assert_eq!(said(&run(&mut command(["ls", quiet, disk]))), "");
    }
    for args in [&["mkdir", disk, "/new"][..], &["journal", "create", "--size", "1M", text(&other), disk]] {
        fail(&mut command(args), 1, "was left with synced files in the journal");
    }
    assert!(!other.exists() && fs::read(&image).unwrap() == before);
    // With it, it is shown as it will be.
    let shown = run(&mut command(["cat", "--journal", path, disk, "/synced"]));
    assert_eq!((shown.status.code(), shown.stdout.as_slice()), (Some(0), &b"it was promised"[..]));
    assert!(String::from_utf8_lossy(&shown.stderr).contains("1 files synced"));
    let copy = place.path("copy.img");
    fs::copy(&image, &copy).unwrap();
    let done = run(&mut command(["journal", "detach", path, disk]));
    assert!(done.status.success() && String::from_utf8_lossy(&done.stderr).contains("no longer needs"));
    assert_eq!(ok(&mut command(["cat", disk, "/synced"])), "it was promised");
    ok(&mut command(["mkdir", disk, "/new"]));
    assert_clean(&image);

    let judged = run(&mut command(["check", "--journal", path, text(&copy)]));
    assert_eq!(judged.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&judged.stdout).contains("journal: "), "{judged:?}");
    // An older copy of the volume is not what the journal builds on; its files can be given up.
    fail(&mut command(["mkdir", "--journal", path, text(&copy), "/new"]), 1, "build on checkpoint");
    ok(&mut command(["mkdir", "--without-journal", text(&copy), "/new"]));
    assert_eq!(ok(&mut command(["ls", text(&copy)])), "h\nnew\n");
    assert_clean(&copy);
}

/// A repair of a sound volume writes nothing, but that it needs the journal no more.
#[test]
fn a_sound_volume_is_parted_from_its_journal_by_a_repair_if_that_is_said() {
    for more in [&[][..], &["--no-recovery"]] {
        let place = Place::new();
        let (image, journal) = made(&place);
        left_by_a_kill(&image, &journal);
        let disk = text(&image);
        fail(command(["check", "--repair"]).args(more).arg(disk), 8, "--without-journal gives them up");
        let said = ok(command(["check", "--repair", "--without-journal"]).args(more).arg(disk));
        assert!(said.contains("what was synced into the journal") && said.contains("is given up"), "{said}");
        let again = ok(command(["check", "--repair", "--without-journal", "--json"]).args(more).arg(disk));
        let again: serde_json::Value = serde_json::from_str(&again).unwrap();
        assert!(again["journal_given_up"].is_null(), "{again}");
        assert_eq!(ok(command(["check", "--repair"]).args(more).arg(disk)), "");
        fail(&mut command(["cat", disk, "/synced"]), 1, "/synced");
        assert_clean(&image);
        ok(&mut command(["mkdir", disk, "/new"]));
    }
}

/// A repair writes to the volume: its journal is of no use afterwards. So the files in it are given up by name only.
#[test]
fn a_damaged_volume_is_repaired_without_its_journal_if_that_is_said() {
    let place = Place::new();
    let (image, journal) = made(&place);
    left_by_a_kill(&image, &journal);
    // The second copy of the superblock.
    let file = fs::OpenOptions::new().write(true).open(&image).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0; 2048], 4096 + 1024).unwrap();
    let before = fs::read(&image).unwrap();
    fail(&mut command(["check", "--repair", "--json", text(&image)]), 8, "synced files in the journal");
    assert!(fs::read(&image).unwrap() == before);
    let repaired = run(&mut command(["check", "--repair", "--without-journal", text(&image)]));
    assert_eq!(repaired.status.code(), Some(1), "{repaired:?}");
    assert!(String::from_utf8_lossy(&repaired.stdout).contains("still needs the journal"), "{repaired:?}");
    assert!(fs::read(&image).unwrap() != before);
    let again = ok(&mut command(["check", "--repair", "--without-journal", text(&image)]));
    assert!(again.contains("is given up"), "{again}");
    assert_clean(&image);
    ok(&mut command(["mkdir", text(&image), "/new"]));
}

/// A damaged journal is of no use, whatever else is said: the message tells how to go on.
#[test]
fn a_damaged_journal_is_given_up_by_leaving_it_out() {
    let place = Place::new();
    let (image, journal) = made(&place);
    left_with_records(&image, &journal, 2);
    let mut bytes = fs::read(&journal).unwrap();
    let used: Vec<usize> = (8192..bytes.len()).filter(|at| bytes[*at] != 0).collect();
    // The first of two records.
    bytes[used[used.len() / 4]] ^= 0xff;
    fs::write(&journal, bytes).unwrap();
    let (disk, journal) = (text(&image), text(&journal));
    let hint = "--without-journal, with no --journal, gives up";
    fail(&mut command(["mkdir", "--journal", journal, disk, "/new"]), 1, hint);
    fail(&mut command(["mkdir", "--journal", journal, "--without-journal", disk, "/new"]), 1, hint);
    ok(&mut command(["mkdir", "--without-journal", disk, "/new"]));
}

/// A command that would not use the journal says so, in place of leaving it out.
#[test]
fn commands_without_a_use_for_a_journal_refuse_it() {
    let place = Place::new();
    let (image, journal) = made(&place);
    let (disk, path) = (text(&image), text(&journal));
    for words in [
        &["format", "-f", disk][..],
        &["inspect", disk],
        &["calibrate", "-f", disk],
        &["zones", disk],
        &["bench", "read", "--reads", "1"],
        &["journal", "inspect", path],
        &["ublk", "list"],
        &["umount", disk],
        &["completions", "bash"],
    ] {
        fail(command(words).args(["--journal", path]), 2, "no --journal");
    }
    ok(&mut command(["inspect", "--journal", "none", disk]));
}

/// Each command that reads or changes a volume has its journal: what one of them wrote is there for the next one.
#[test]
fn every_command_that_opens_takes_the_journal() {
    let place = Place::new();
    let ((image, journal), out) = (made(&place), place.path("out"));
    let (disk, path) = (text(&image), text(&journal));
    left_by_a_kill(&image, &journal);
    let with = |words: &[&str]| {
        let done = run(command(words).args(["--journal", path]));
        assert!(done.status.success(), "{words:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    // For reading: nothing is brought back yet.
    assert!(with(&["ls", disk]).contains("synced"));
    assert_eq!(with(&["cat", disk, "/synced"]), "it was promised");
    assert!(with(&["stat", disk, "/synced"]).contains("15"));
    assert!(with(&["manifest", disk]).contains("synced"));
    with(&["get", disk, "/synced", text(&out)]);
    assert_eq!(fs::read_to_string(&out).unwrap(), "it was promised");
    with(&["check", disk]);
    // For writing.
    with(&["mv", disk, "/synced", "/moved"]);
    with(&["ln", disk, "/moved", "/linked"]);
    with(&["put", disk, text(&out), "/put"]);
    with(&["mkdir", disk, "/dir"]);
    with(&["rm", disk, "/linked"]);
    assert_eq!(with(&["ls", disk]), "dir\nmoved\nput\n");
    assert_clean(&image);
}

#[test]
fn a_benchmark_takes_an_empty_journal_or_is_told_to() {
    let place = Place::new();
    let journal = place.path("journal");
    let path = text(&journal);
    let bench = |words: &[&str]| {
        let mut fxmark = command(["bench", "fxmark", "--memory", "256M", "--workload", "mwcl,mwul", "--files", "200"]);
        fxmark.args(["--policy", "sharded", "--threads", "1", "--verify", "--json", "--journal", path]).args(words);
        fxmark
    };
    fs::write(&journal, vec![0; 1 << 20]).unwrap();
    let measured: serde_json::Value = serde_json::from_str(&ok(&mut bench(&[]))).unwrap();
    assert!(measured["device"].as_str().unwrap().contains("(ordered)"), "{measured}");
    fail(&mut bench(&[]), 1, "already");
    ok(&mut bench(&["--force", "--journal-mode", "journal"]));
    let image = place.path("disk.img");
    ok(&mut command(["format", "--size", "64M", text(&image)]));
    let mut formatted = command(["bench", "fxmark", "--image", text(&image), "--force", "--formatted"]);
    fail(
        formatted.args(["--workload", "mwcl", "--threads", "1", "--policy", "sharded", "--journal", path]),
        2,
        "is made anew",
    );
    fail(bench(&["--directory"]).arg(text(place.path("x").as_path())), 2, "directory");
}

#[test]
fn what_is_no_journal_is_said() {
    let place = Place::new();
    let image = place.path("disk.img");
    ok(&mut command(["format", "--size", "64M", text(&image)]));
    let (short, full) = (place.path("short"), place.path("full"));
    fs::write(&short, "short").unwrap();
    fs::write(&full, vec![7; 1 << 20]).unwrap();
    for (path, word) in [
        (Path::new("/dev/null"), "character device"),
        (place.path("missing").as_path(), "no such file"),
        (short.as_path(), "less than one block"),
        (full.as_path(), "no journal here"),
        (image.parent().unwrap(), "directory"),
    ] {
        for args in [&["journal", "inspect", text(path)][..], &["ls", "--journal", text(path), text(&image)]] {
            fail(&mut command(args), 1, word);
        }
    }
    fail(&mut command(["journal", "create", text(&full), text(&image)]), 1, "is not empty");
    ok(&mut command(["journal", "create", "-f", text(&full), text(&image)]));
    assert_eq!(ok(&mut command(["ls", "--journal", text(&full), text(&image)])), "");
}

/// What other file systems have at their own places is seen before a journal is made there; and nothing is lost of a
/// volume to measure on if its journal cannot be opened.
#[test]
fn nothing_is_overwritten_by_a_journal_that_is_made_or_missing() {
    let place = Place::new();
    let (image, other) = (place.path("disk.img"), place.path("other"));
    let (disk, path) = (text(&image), text(&other));
    ok(&mut command(["format", "--size", "64M", disk]));
    for (at, magic, name) in [(65_600, &b"_BHRfS_M"[..], "Btrfs"), (32_768, b"\x01CD001", "ISO")] {
        let mut bytes = vec![0; 1 << 20];
        bytes[at..at + magic.len()].copy_from_slice(magic);
        fs::write(&other, &bytes).unwrap();
        fail(&mut command(["journal", "create", path, disk]), 1, name);
        assert!(fs::read(&other).unwrap() == bytes, "{name}");
    }
    ok(&mut command(["journal", "create", "-f", path, disk]));
    ok(&mut command(["mkdir", disk, "/kept"]));
    let missing = place.path("missing");
    for (journal, why) in
        [(text(&missing), "no such file"), (text(image.parent().unwrap()), "directory"), (disk, "image itself")]
    {
        let mut bench = command(["bench", "varmail", "--image", disk, "--force", "--seconds", "1"]);
        fail(bench.args(["--journal", journal]), 1, why);
        assert_eq!(ok(&mut command(["ls", disk])), "kept\n");
    }
    fail(&mut command(["bench", "varmail", "--directory", disk, "--journal", path]), 2, "no --journal");
    fail(&mut command(["journal", "create", "--size", "18446744073709551615", text(&missing), disk]), 2, "is the most");
    fail(&mut command(["journal", "create", "-f", disk, disk]), 1, "image itself");
    fail(&mut command(["journal", "attach", disk, disk]), 1, "image itself");
    fail(&mut command(["journal", "detach", disk, disk]), 1, "image itself");
    assert!(!missing.exists());
}

/// Who has a journal is said, and what is wrong with one is said once.
#[test]
fn who_uses_a_journal_and_whose_it_is_is_said() {
    let place = Place::new();
    let (image, other, journal) = (place.path("disk.img"), place.path("other.img"), place.path("journal"));
    let (disk, path) = (text(&image), text(&journal));
    for image in [&image, &other] {
        ok(&mut command(["format", "--size", "64M", text(image)]));
    }
    ok(&mut command(["journal", "create", "--size", "1M", path, disk]));
    let used = MappedRegion::open(&journal, Default::default()).unwrap();
    let holder = format!("in use by process {}", std::process::id());
    fail(&mut command(["ls", "--journal", path, disk]), 1, &holder);
    fail(&mut command(["check", "--journal", path, disk]), 8, &holder);
    drop(used);
    let output = command(["check", "--journal", path, text(&other)]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let begin = format!("journal: {path}: the journal belongs to ");
    assert!(output.status.code() == Some(4) && said.lines().count() == 1 && said.starts_with(&begin), "{said}");
}

/// A journal that lay on a block device is in a file by now: it can be looked at.
#[test]
fn a_copy_of_a_devices_journal_is_read() {
    let place = Place::new();
    let (image, journal) = (place.path("disk.img"), place.path("journal"));
    let (disk, path) = (text(&image), text(&journal));
    ok(&mut command(["format", "--size", "64M", disk]));
    fs::write(&journal, vec![0; 1 << 20]).unwrap();
    let open = |path: &Path| UringDevice::open(path, Default::default()).unwrap();
    let medium: SharedMedium = std::sync::Arc::new(DeviceMedium::new(open(&journal)).unwrap());
    let device: std::sync::Arc<dyn BlockDevice> = open(&image);
    f2fs::create_journal(device.clone(), medium.clone(), false).unwrap();
    let fs =
        FileSystem::open(device, Options::new().journal(JournalOptions::new(medium, JournalMode::Ordered))).unwrap();
    fs.create_file("/synced", 0o644).unwrap().sync_all().unwrap();
    drop(fs);
    let shown: serde_json::Value =
        serde_json::from_str(&ok(&mut command(["journal", "inspect", "--json", path]))).unwrap();
    assert_eq!((shown["records"].as_u64(), shown["whole"].as_bool()), (Some(1), Some(true)), "{shown}");
    let judged = run(&mut command(["check", "--json", "--journal", path, disk]));
    let judged: serde_json::Value = serde_json::from_slice(&judged.stdout).unwrap();
    assert_eq!(judged["journal"]["good"], true, "{judged}");
    fail(&mut command(["mkdir", "--journal", path, disk, "/d"]), 1, "grain");
    // Cut off, it is an error.
    fs::OpenOptions::new().write(true).open(&journal).unwrap().set_len(300 << 10).unwrap();
    fail(&mut command(["journal", "inspect", path]), 1, "");
}

/// Memory that is mapped and has no room is a signal; a journal that is only read is not read there.
#[test]
fn a_journal_with_holes_is_read_on_a_full_disk() {
    let Some(place) = Mounted::formatted("a_journal_with_holes_is_read_on_a_full_disk", &[]) else { return };
    let (image, journal) = (&place.image, place.dir.join("journal"));
    let (at, other) = (place.dir.display(), place.place.path("other"));
    shell(&format!("mount -t tmpfs -o size=2M none {at}"));
    ok(&mut command(["journal", "create", "--size", "1M", text(&other), text(image)]));
    left_by_a_kill(image, &other);
    shell(&format!(
        "cp --sparse=always {} {at}/journal; dd if=/dev/zero of={at}/fill bs=4k 2>/dev/null || true",
        other.display()
    ));
    let shown = run(&mut command(["journal", "inspect", "--json", text(&journal)]));
    let judged = run(&mut command(["check", "--journal", text(&journal), text(image)]));
    umount(Path::new(&at.to_string()));
    assert_eq!((shown.status.code(), judged.status.code()), (Some(0), Some(0)), "{shown:?} {judged:?}");
    assert!(String::from_utf8_lossy(&shown.stdout).contains("\"records\": 1"), "{shown:?}");
}

#[test]
fn a_journal_goes_to_another_volume() {
    let place = Place::new();
    let (first, second, journal) = (place.path("first.img"), place.path("second.img"), place.path("journal"));
    for image in [&first, &second] {
        ok(&mut command(["format", "--size", "64M", text(image)]));
    }
    fail(&mut command(["journal", "attach", text(&journal), text(&second)]), 1, "");
    fs::write(&journal, vec![0; 1 << 20]).unwrap();
    fail(&mut command(["journal", "attach", text(&journal), text(&second)]), 1, "journal create");
    ok(&mut command(["journal", "create", text(&journal), text(&first)]));
    left_by_a_kill(&first, &journal);
    fail(&mut command(["journal", "attach", text(&journal), text(&second)]), 1, "holds 1 records");
    assert!(run(&mut command(["journal", "detach", text(&journal), text(&first)])).status.success());
    assert_eq!(ok(&mut command(["cat", text(&first), "/synced"])), "it was promised");
    fail(&mut command(["mkdir", "--journal", text(&journal), text(&second), "/a"]), 1, "belongs to");
    for _ in 0..2 {
        let attached = run(&mut command(["journal", "attach", text(&journal), text(&second)]));
        assert!(attached.status.success() && !attached.stderr.is_empty(), "{attached:?}");
        ok(&mut command(["mkdir", "-p", "--journal", text(&journal), text(&second), "/a"]));
    }
    fail(&mut command(["mkdir", "--journal", text(&journal), text(&first), "/a"]), 1, "belongs to");
    assert_clean(&first);
    assert_clean(&second);
}

#[test]
fn an_error_of_the_journal_names_its_file() {
    let place = Place::new();
    let (image, journal) = (place.path("disk.img"), place.path("journal"));
    ok(command(["format", "--size", "64M"]).arg(&image));
    ok(&mut command(["journal", "create", "--size", "1M", text(&journal), text(&image)]));
    fs::File::options().write(true).open(&journal).unwrap().set_len(512 << 10).unwrap();
    let output = run(&mut command(["ls", "--journal", text(&journal), text(&image)]));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with(&format!("f2fs: {}: the medium has 524288 bytes", text(&journal))), "{said}");
}

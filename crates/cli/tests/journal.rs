//! `f2fs journal` and `--journal`: a journal is made, used, left by a kill, and brought back.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs;
use std::path::Path;

use common::{Place, command, fail, ok, run};
use f2fs::device::BlockDevice;
use f2fs::journal::{RegionMedium, SharedMedium};
use f2fs::pmem::{MappedRegion, OpenOptions};
use f2fs::uring::UringDevice;
use f2fs::{FileSystem, JournalMode, JournalOptions, Options};
use f2fs_oracle::assert_clean;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Makes the files in the volume durable in the journal, and leaves both as a process that is killed does.
fn left_by_a_kill(image: &Path, journal: &Path) {
    let device: std::sync::Arc<dyn BlockDevice> = UringDevice::open(image, Default::default()).unwrap();
    let region = MappedRegion::open(journal, OpenOptions::new()).unwrap();
    let medium: SharedMedium = std::sync::Arc::new(RegionMedium::new(region));
    let options = Options::new().journal(JournalOptions::new(medium, JournalMode::Ordered));
    let fs = FileSystem::open(device, options).unwrap();
    let file = fs.create_file("/synced", 0o644).unwrap();
    file.write_at(b"it was promised", 0).unwrap();
    file.sync_all().unwrap();
    // Not closed.
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
    fail(&mut command(["check", "--repair", "--journal", path, disk]), 2, "detach");
    // Without the journal it is shown at its checkpoint, and not written.
    let before = fs::read(&image).unwrap();
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

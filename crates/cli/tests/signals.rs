//! SIGINT, SIGTERM and SIGHUP: the command ends soon, says what it left, and that is so.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{Place, command, ok, run};
use f2fs::format::superblock::SuperBlock;

/// Sends a signal to a process of ours.
fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status().unwrap();
    assert!(status.success());
}

/// Starts it with no signal ignored, however these tests were started: `nohup`, or a shell in the background, leaves some so.
fn start(command: &mut Command) -> Child {
    let mut listening = Command::new("env");
    listening.arg("--default-signal=HUP,INT,TERM").arg(command.get_program()).args(command.get_args());
    listening.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for what must come; a program that hangs fails the test.
fn wait(what: &str, mut ready: impl FnMut() -> bool) {
    let began = Instant::now();
    while !ready() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn end(mut child: Child) -> Output {
    wait("the command does not end", || child.try_wait().unwrap().is_some());
    child.wait_with_output().unwrap()
}

/// Whether a process catches all three signals by now: SIGHUP is the last.
fn catches(child: &Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 1 != 0)
}

#[track_caller]
fn interrupted(output: &Output, code: i32, words: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains("f2fs: interrupted: ") && said.contains(words), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

fn volume(place: &Place) -> PathBuf {
    let image = place.path("disk.img");
    ok(command(["format", "--size", "512M"]).arg(&image));
    image
}

/// A put that waits for its input, after it began.
fn waiting_put(image: &Path) -> Child {
    let mut child = start(command(["put", "-"].iter().take(1)).arg(image).args(["-", "/typed"]));
    child.stdin.as_mut().unwrap().write_all(&vec![b'x'; 3 << 20]).unwrap();
    wait("no handler", || catches(&child));
    child
}

#[test]
fn a_put_that_is_stopped_closes_the_volume() {
    let place = Place::new();
    let image = volume(&place);
    ok(command(["mkdir"]).arg(&image).arg("/before"));
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let child = waiting_put(&image);
        signal(&child, name);
        interrupted(&end(child), code, "disk.img is closed, and holds all changes made until then");
        // Cleanly: the next open has nothing to recover or to complain of.
        assert_eq!(ok(command(["check"]).arg(&image)), "");
        assert!(ok(command(["ls"]).arg(&image)).contains("before\n"));
        assert!(ok(command(["inspect"]).arg(&image)).contains("umount"));
        f2fs_oracle::assert_clean(&image);
        ok(command(["rm", "-f"]).arg(&image).arg("/typed"));
    }
}

#[test]
fn a_put_that_is_stopped_leaves_the_file_that_it_was_to_replace() {
    let place = Place::new();
    let image = volume(&place);
    let mut child = start(command(["put", "-"].iter().take(1)).arg(&image).args(["-", "/typed"]));
    child.stdin.take().unwrap().write_all(b"before").unwrap();
    assert!(end(child).status.success());
    for name in ["INT", "TERM", "KILL"] {
        let child = waiting_put(&image);
        signal(&child, name);
        end(child);
        assert_eq!(ok(command(["cat"]).arg(&image).arg("/typed")), "before");
        assert_eq!(ok(command(["ls"]).arg(&image)), "typed\n");
        assert_eq!(ok(command(["check"]).arg(&image)), "");
        f2fs_oracle::assert_clean(&image);
    }
}

#[test]
fn a_journal_is_made_or_not_there() {
    let place = Place::new();
    let (image, journal) = (volume(&place), place.path("journal"));
    let mut stopped = 0;
    for _ in 0..20 {
        let mut child = start(command(["journal", "create", "--size", "256M"]).arg(&journal).arg(&image));
        // It may end sooner than somebody looks.
        let mut ended = false;
        wait("no handler", || {
            ended = child.try_wait().unwrap().is_some();
            ended || catches(&child)
        });
        if !ended {
            signal(&child, "INT");
        }
        let output = end(child);
        if output.status.success() {
            ok(command(["journal", "inspect"]).arg(&journal));
            fs::remove_file(&journal).unwrap();
        } else {
            interrupted(&output, 130, "journal was not made");
            assert!(!journal.exists());
            stopped += 1;
        }
        if stopped == 3 {
            return;
        }
    }
    panic!("stopped {stopped} times");
}

#[test]
fn a_second_signal_ends_at_once() {
    let place = Place::new();
    let image = volume(&place);
    for _ in 0..5 {
        let child = waiting_put(&image);
        signal(&child, "INT");
        signal(&child, "INT");
        let output = end(child);
        // The first one may have been enough.
        assert_eq!(output.status.code(), Some(130));
        ok(command(["check"]).arg(&image));
    }
}

#[test]
fn a_signal_that_was_ignored_stays_ignored() {
    let place = Place::new();
    let image = volume(&place);
    let script = format!("trap '' INT; exec {} put {} - /typed", env!("CARGO_BIN_EXE_f2fs"), image.display());
    let mut child = start(Command::new("bash").args(["-c", &script]));
    let mut stdin = child.stdin.take().unwrap();
    // The pipe is full before the last byte is taken, so the command runs.
    stdin.write_all(&vec![b'x'; 3 << 20]).unwrap();
    signal(&child, "INT");
    std::thread::sleep(Duration::from_millis(100));
    stdin.write_all(b"end").unwrap();
    drop(stdin);
    assert!(end(child).status.success());
    assert!(ok(command(["stat"]).arg(&image).arg("/typed")).contains(&format!("{} bytes", (3 << 20) + 3)));
}

/// At whatever time the signal comes, the volume is sound, and the exit code says whether all was done.
#[test]
fn trees_that_are_copied_and_removed() {
    let place = Place::new();
    let image = volume(&place);
    for directory in 0..30 {
        let directory = place.path("tree").join(format!("d{directory}"));
        fs::create_dir_all(&directory).unwrap();
        for file in 0..100 {
            fs::write(directory.join(format!("f{file}")), vec![b'x'; 5000]).unwrap();
        }
    }
    let tree = place.path("tree");
    let mut stopped = 0;
    for round in 0..6 {
        for args in [["put", "-r"], ["rm", "-rf"]] {
            let target = format!("/t{round}");
            let mut built = command(args);
            built.arg(&image);
            if args[0] == "put" {
                built.arg(&tree);
            }
            let mut child = start(built.arg(&target));
            let mut ended = false;
            wait("no handler", || {
                ended = child.try_wait().unwrap().is_some();
                ended || catches(&child)
            });
            if !ended {
                std::thread::sleep(Duration::from_millis(20 * round));
                signal(&child, "TERM");
            }
            let output = end(child);
            match output.status.code() {
                Some(0) => {}
                Some(143) => {
                    interrupted(&output, 143, "disk.img is ");
                    stopped += 1;
                }
                other => panic!("{other:?}: {}", String::from_utf8_lossy(&output.stderr)),
            }
            assert_eq!(ok(command(["check"]).arg(&image)), "");
        }
        ok(command(["rm", "-rf"]).arg(&image).arg(format!("/t{round}")));
    }
    assert!(stopped > 0, "no signal came in time");
    f2fs_oracle::assert_clean(&image);
}

#[test]
fn a_format_that_is_stopped_leaves_no_half_volume() {
    let place = Place::new();
    let image = volume(&place);
    let new = place.path("new.img");
    let mut stopped = 0;
    for round in 0..6 {
        // The tables of 8 TiB take seconds to be zeroed.
        let child = start(command(["format", "--size", "8T"]).arg(&new));
        wait("no handler", || catches(&child));
        std::thread::sleep(Duration::from_millis(10 * round));
        signal(&child, "INT");
        let output = end(child);
        if output.status.success() {
            fs::remove_file(&new).unwrap();
            continue;
        }
        stopped += 1;
        interrupted(&output, 130, "new.img is not made");
        assert!(!new.exists());
    }
    assert!(stopped > 0, "no signal came in time");

    // Over a volume: it is there, or none is.
    let child = start(command(["format", "--force", "--size", "8T"]).arg(&image));
    wait("no handler", || catches(&child));
    signal(&child, "INT");
    let output = end(child);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        assert!(said.contains("holds no volume now") || said.contains("has its new size"), "{said}");
    }
    let opens = run(command(["ls"]).arg(&image)).status.success();
    assert_eq!(opens, output.status.success() || said.contains("has its new size"), "{said}");
}

#[test]
fn what_only_measures_or_reads_says_so() {
    let place = Place::new();
    let measured = place.path("measured.img");
    let csv = place.path("lines.csv");
    // Measurements of a moment, and one that lasts.
    for (files, has_some) in [("5000", true), ("50000000", false)] {
        let threads = (1..=128).map(|threads| threads.to_string()).collect::<Vec<_>>().join(",");
        let mut bench = command(["bench", "fxmark", "--workload", "mwcl", "--files", files, "--policy", "sharded"]);
        bench.args(["--threads", &threads, "--image"]).arg(&measured);
        let child = start(bench.args(["--force", "--size", "1G", "--csv"]).arg(&csv));
        wait("no handler", || catches(&child));
        wait("no image", || measured.exists());
        if has_some {
            wait("no CSV", || csv.exists());
        }
        signal(&child, "INT");
        let output = end(child);
        interrupted(&output, 130, "measured.img is of no use except for measuring");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.contains("lines.csv has the measurements made"), has_some, "{said}");
        assert_eq!(csv.exists(), has_some);
        if has_some {
            assert!(fs::read_to_string(&csv).unwrap().contains("\nmwcl,sharded,1,5000,"));
            fs::remove_file(&csv).unwrap();
        }
    }

    let directory = place.path("measured");
    fs::create_dir(&directory).unwrap();
    let mut bench = command(["bench", "fxmark", "--workload", "mwcl", "--files", "50000000", "--directory"]);
    let child = start(bench.arg(&directory));
    wait("no handler", || catches(&child));
    wait("no directory", || directory.join("fxmark").exists());
    signal(&child, "INT");
    interrupted(&end(child), 130, "measured/fxmark is of no use any more; remove it");

    let image = volume(&place);
    fs::write(place.path("large"), vec![b'x'; 64 << 20]).unwrap();
    ok(command(["put"]).arg(&image).arg(place.path("large")).arg("/large"));
    // Its reader takes nothing, so that it waits.
    let mut child = start(command(["get"]).arg(&image).args(["/large", "/dev/stdout"]));
    wait("no handler", || catches(&child));
    let mut some = [0; 10];
    child.stdout.as_mut().unwrap().read_exact(&mut some).unwrap();
    signal(&child, "INT");
    wait("the command does not end", || child.try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    interrupted(&output, 130, "/dev/stdout has the files copied until then");
}

/// A put that is killed leaves nothing in the volume, and its file as large as it made it.
#[test]
fn what_a_killed_put_wrote_is_given_back() {
    let place = Place::new();
    let image = volume(&place);
    let on_disk = || fs::metadata(&image).unwrap().blocks() * 512;
    let before = on_disk();
    let mut put = start(command(["put"]).arg(&image).args(["-", "/large"]));
    let mut input = put.stdin.take().unwrap();
    let chunk = vec![b'x'; 1 << 20];
    wait("nothing is written", || input.write_all(&chunk).is_ok() && on_disk() > before + (20 << 20));
    signal(&put, "KILL");
    drop(input);
    end(put);
    assert!(on_disk() > before + (20 << 20));
    let said = ok(command(["trim"]).arg(&image));
    assert!(said.contains("of free segments given back"), "{said}");
    assert!(on_disk() < before + (4 << 20), "{} of {before} bytes", on_disk());
    let said: serde_json::Value = serde_json::from_str(&ok(command(["trim", "--json"]).arg(&image))).unwrap();
    assert!(said["bytes"].as_u64().unwrap() > 400 << 20, "{said}");
    ok(command(["check"]).arg(&image));
    f2fs_oracle::assert_clean(&image);
    // What its tables do not know of may be brought back: it is not given away.
    ok(command(["put"]).arg(&image).args([env!("CARGO_BIN_EXE_f2fs"), "/kept"]));
    let mut block = [0; 4096];
    block.copy_from_slice(&fs::read(&image).unwrap()[..4096]);
    let tables = SuperBlock::read(&block);
    let (first, segments) = (u64::from(tables.sit_blkaddr.get()), u64::from(tables.segment_count_sit.get()));
    let damaged = fs::OpenOptions::new().write(true).open(&image).unwrap();
    damaged.write_all_at(&vec![0; (segments << 21) as usize], first * 4096).unwrap();
    let before = fs::read(&image).unwrap();
    let said = run(command(["trim"]).arg(&image));
    assert_eq!(said.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&said.stderr).contains("is damaged, and what a repair"), "{said:?}");
    assert!(fs::read(&image).unwrap() == before);
    let missing = place.path("none");
    assert_eq!(run(command(["trim"]).arg(&missing)).status.code(), Some(1));
}

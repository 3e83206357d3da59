//! The command at a terminal, which util-linux' `script` gives it.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Place, command, formatted, ok};

/// Types each of `typed` after a pause. Gives the exit code and the output.
fn at_a_terminal(line: &str, typed: &[&[u8]]) -> (i32, String) {
    let mut child = Command::new("script")
        .args(["-q", "-e", "-c", line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = child.stdin.take().unwrap();
    for part in typed {
        std::thread::sleep(Duration::from_millis(400));
        keys.write_all(part).unwrap();
        keys.flush().unwrap();
    }
    // The terminal stays, so that only what was typed can end the command.
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("{line} does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(keys);
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn what_is_typed_is_stored_up_to_one_end_of_input() {
    let place = Place::new();
    let image = formatted(&place);
    let put = format!("{} put {} - /typed", env!("CARGO_BIN_EXE_f2fs"), image.display());
    let (code, seen) = at_a_terminal(&put, &[b"hello\n", b"\x04"]);
    assert_eq!(code, 0, "{seen}");
    assert_eq!(ok(command(["cat"]).arg(&image).arg("/typed")), "hello\n");
}

#[test]
fn control_c_stops_and_says_what_is_left() {
    let place = Place::new();
    let image = formatted(&place);
    let put = format!("{} put {} - /typed", env!("CARGO_BIN_EXE_f2fs"), image.display());
    let (code, seen) = at_a_terminal(&put, &[b"hello\n", b"\x03"]);
    assert_eq!(code, 130, "{seen}");
    assert!(seen.contains("f2fs: interrupted: ") && seen.contains("disk.img is closed"), "{seen}");
    assert_eq!(ok(command(["check"]).arg(&image)), "");
}

#[test]
fn names_are_the_same_as_in_a_pipe() {
    let place = Place::new();
    let image = formatted(&place);
    ok(command(["mkdir"]).arg(&image).args(["/a b", "/c\u{1b}d"]));
    let ls = format!("{} ls {}", env!("CARGO_BIN_EXE_f2fs"), image.display());
    let (code, seen) = at_a_terminal(&ls, &[]);
    assert_eq!((code, seen.replace('\r', "")), (0, ok(command(["ls"]).arg(&image))));
    assert_eq!(ok(command(["ls"]).arg(&image)), "'a b'\n$'c\\033d'\n");
}

/// The first measurement of so many threads would pay for memory that the others find there.
#[test]
fn a_warm_up_comes_before_the_measurements() {
    let bench = "bench fxmark --memory 1G --files 20000 --workload mwcl --threads 1,2 --policy sharded,clue";
    let (code, seen) = at_a_terminal(&format!("{} {bench}", env!("CARGO_BIN_EXE_f2fs")), &[]);
    assert_eq!(code, 0, "{seen}");
    let first = |words: &str| seen.find(words).unwrap_or_else(|| panic!("{words} is not in {seen}"));
    let (warm_up, measured) = (first("warm-up: mwcl sharded 1 threads"), first("mwcl clue 1 threads"));
    assert!(warm_up < measured && seen.contains("warm-up: mwcl sharded 2 threads"), "{seen}");
    assert!(!seen.contains("warm-up: mwcl clue"), "{seen}");
}

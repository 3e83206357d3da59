//! Servers of `f2fs ublk` in the background, on machines without a driver too: what they leave behind, and nothing else.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{Place, command, formatted, run};

/// Processes of this machine that were started with this path.
fn processes_with(path: &Path) -> usize {
    let path = path.to_str().unwrap();
    let lines = fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.unwrap().path().join("cmdline")).ok());
    lines.filter(|line| line.split(|byte| *byte == 0).any(|word| word == path.as_bytes())).count()
}

#[test]
fn a_server_writes_to_no_file_that_somebody_has_put_there() {
    let place = Place::new();
    let (victim, temp) = (place.path("victim"), place.path("temp"));
    fs::write(&victim, "precious").unwrap();
    fs::create_dir(&temp).unwrap();
    // The name of its log was once made of the number of the process, which `exec` keeps. The size is one that nobody has.
    let script = "ln -s \"$1\" \"$TMPDIR/f2fs-ublk-$$.log\"; exec \"$0\" ublk add --zoned 1G:3M";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_f2fs")]).arg(&victim).env("TMPDIR", &temp);
    let output = run(&mut shell);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("power of two"), "what the server said is shown");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(fs::read_dir(&temp).unwrap().count(), 1, "the link alone");
}

#[test]
fn a_command_that_is_killed_takes_its_server_along() {
    let place = Place::new();
    let image = formatted(&place);
    let temp = place.path("temp");
    fs::create_dir(&temp).unwrap();
    // Whoever has a lock on the image and looks like a mount is waited for: by the server, before it makes a device.
    let lock = File::options().write(true).open(&image).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let mut holder =
        Command::new("sh").args(["-c", "read line", "mount"]).stdin(Stdio::piped()).stdout(lock).spawn().unwrap();
    let mut add = command(["ublk", "add", "--file"]);
    let mut add = add.arg(&image).env("TMPDIR", &temp).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while processes_with(&image) < 2 && add.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(5));
    }
    let had = processes_with(&image);
    add.kill().unwrap();
    add.wait().unwrap();
    let killed = Instant::now();
    while processes_with(&image) > 0 && killed.elapsed() < Duration::from_secs(2) {
        sleep(Duration::from_millis(5));
    }
    let left = processes_with(&image);
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!((had, left), (2, 0), "the server ends with the command");
    assert_eq!(fs::read_dir(&temp).unwrap().count(), 0);
}

#[test]
fn the_number_of_a_device_may_stand_behind_two_dashes() {
    let place = Place::new();
    let image = formatted(&place);
    let output = run(command(["ublk", "recover", "--file"]).arg(&image).args(["--", "9999"]));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(!said.contains("unexpected"), "{said}");
}

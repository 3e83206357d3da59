//! A process that dies with many requests in flight: whoever opens next gets the file, at the first try, and not before
//! the requests of the dead are over. A process that lives keeps it, and is named.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod loop_device;

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use f2fs_device::{AlignedBuf, BlockDevice, Request};
use f2fs_uring::{Engine, OpenError, OpenOptions, UringDevice};

use loop_device::Loop;

const MIB: u64 = 1 << 20;
const BYTES: u64 = 64 * MIB;

/// The part of the other process: opens the file and writes, with many requests in flight, until it is killed.
#[test]
fn child_writes_for_ever() {
    let Some(path) = std::env::var_os("F2FS_TEST_IMAGE") else { return };
    let device = UringDevice::open(&path, OpenOptions::new().engine(Engine::IoUring)).unwrap();
    let mut queue = device.queue(128);
    let mut at = 0;
    let mut tickets = Vec::new();
    for round in 0.. {
        while queue.in_flight() < 128 {
            queue.push(Request::write(at % (BYTES / 4096 - 16), AlignedBuf::new(16)));
            at += 16;
        }
        queue.submit();
        if round % 8 == 0 {
            tickets.push(device.submit((0..64).map(|i| Request::write(i * 32, AlignedBuf::new(16))).collect()));
            tickets.drain(..tickets.len().saturating_sub(2));
        }
        queue.next_completion().unwrap().into_buf().unwrap();
        if round == 16 {
            println!("ready");
        }
    }
}

/// Starts the other process and waits until its requests are in flight.
fn writer(path: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_writes_for_ever", "--nocapture"])
        .env("F2FS_TEST_IMAGE", path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let ready = BufReader::new(child.stdout.take().unwrap()).lines().any(|line| line.unwrap().contains("ready"));
    assert!(ready, "{:?}", child.wait());
    child
}

/// Kills a writer and opens the file, again and again; the times that opening takes, sorted.
fn open_after_kills(path: &Path, times: usize) -> Vec<Duration> {
    let mut took: Vec<Duration> = (0..times)
        .map(|round| {
            let mut child = writer(path);
            child.kill().unwrap();
            if round % 4 != 0 {
                // One of four is opened while the other process dies.
                assert_eq!(child.wait().unwrap().signal(), Some(9));
            }
            let begun = Instant::now();
            let device = UringDevice::open(path, OpenOptions::new());
            let took = begun.elapsed();
            let device = device.unwrap_or_else(|error| panic!("round {round}, after {took:?}: {error}"));
            let marks: Vec<u8> = (0..16).map(|i| (round + i) as u8 | 1).collect();
            for (block, mark) in (0..).zip(&marks) {
                device.write_slice(block, &[*mark; 4096]).unwrap();
            }
            child.wait().unwrap();
            for (block, mark) in (0..).zip(&marks) {
                assert_eq!(device.read(block, 1).unwrap().as_bytes(), [*mark; 4096], "a write of the dead came later");
            }
            took
        })
        .collect();
    took.sort_unstable();
    let [median, late, last] = [times / 2, times * 9 / 10, times - 1].map(|index| took[index]);
    println!("{}: {times} opens after a kill: median {median:?}, p90 {late:?}, at most {last:?}", path.display());
    took
}

fn image(dir: &tempfile::TempDir) -> PathBuf {
    let path = dir.path().join("image");
    drop(UringDevice::create(&path, BYTES, OpenOptions::new()).unwrap());
    path
}

#[test]
fn a_file_opens_after_its_user_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    open_after_kills(&image(&dir), 100);
}

#[test]
fn a_block_device_opens_after_its_user_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    // `a_file_opens_after_its_user_was_killed` shows the same of a file.
    let Some(device) = Loop::new(&image(&dir), &[]) else { return };
    open_after_kills(&device.0, 100);
    // Two at once, and what is let go can be had at once.
    let first = UringDevice::open(&device.0, OpenOptions::new()).unwrap();
    assert_named(&device.0, std::process::id());
    drop(first);
    for _ in 0..50 {
        drop(UringDevice::open(&device.0, OpenOptions::new().patience(Duration::ZERO)).unwrap());
    }
}

/// Both kinds of openers are refused at once, and told by whom.
#[track_caller]
fn assert_named(path: &Path, pid: u32) {
    for read_only in [false, true] {
        let begun = Instant::now();
        let error = UringDevice::open(path, OpenOptions::new().read_only(read_only)).unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}: {error}", begun.elapsed());
        let text = error.to_string();
        let OpenError::AlreadyOpen { holder: Some(holder), .. } = error else { panic!("{text}") };
        let command = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
        assert_eq!((holder.pid, holder.command.as_deref()), (pid, Some(command.trim_end())), "{text}");
        assert!(text.contains(&format!("process {pid}")) || text.contains(&format!("this process ({pid})")), "{text}");
    }
}

#[test]
fn a_living_user_is_named_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = image(&dir);
    let mut child = writer(&path);
    assert_named(&path, child.id());
    // Other names of the file make no difference.
    let [soft, hard] = ["soft", "hard"].map(|name| dir.path().join(name));
    std::os::unix::fs::symlink(&path, &soft).unwrap();
    fs::hard_link(&path, &hard).unwrap();
    assert_named(&soft, child.id());
    assert_named(&hard, child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    let device = UringDevice::open(&soft, OpenOptions::new()).unwrap();
    assert_named(&hard, std::process::id());
    drop(device);
}

#[test]
fn patience_has_an_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = image(&dir);
    // A lock of one who is dead, kept by a child that has the open file from it, as the kernel does for a ring.
    let script = r#"exec 9<>"$0"; flock -x -n 9 || exit 1; sleep 1000 & echo "$!""#;
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(&path).stderr(Stdio::null()).stdout(Stdio::piped());
    let mut shell = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
    shell.wait().unwrap();
    let sleeper = rustix::process::Pid::from_raw(line.trim().parse().unwrap()).unwrap();
    let patience = Duration::from_millis(300);
    let begun = Instant::now();
    let error = UringDevice::open(&path, OpenOptions::new().patience(patience)).unwrap_err();
    let waited = begun.elapsed();
    rustix::process::kill_process(sleeper, rustix::process::Signal::KILL).unwrap();
    assert!((patience..Duration::from_secs(5)).contains(&waited), "{waited:?}");
    let OpenError::AlreadyOpen { holder: Some(holder), .. } = &error else { panic!("{error}") };
    assert!(holder.command.is_none() && error.to_string().contains("has ended"), "{error}");
    UringDevice::open(&path, OpenOptions::new()).unwrap();
}

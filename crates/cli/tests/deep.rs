//! Trees as deep as no path may be: what walks them keeps one path in memory, not that of each directory on the way.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs;
use std::io::Read;
use std::process::{Child, Stdio};

use common::{Place, command, formatted};
use f2fs::uring::UringDevice;
use f2fs::{FileKind, FileSystem, NewFile, Options};

/// All paths together have this many times the length of a name, half the square of it.
const DEPTH: usize = 1000;
const NAME: usize = 250;

/// The most memory that a process has had so far, in bytes.
fn most_memory(child: &Child) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() << 10
}

#[test]
fn listings_of_a_deep_tree_keep_one_path() {
    let place = Place::new();
    let image = formatted(&place);
    let fs = FileSystem::open(UringDevice::open(&image, Default::default()).unwrap(), Options::new()).unwrap();
    let mut at = fs.root().unwrap();
    for _ in 0..DEPTH {
        at = at.create(vec![b'n'; NAME], &NewFile::new(FileKind::Directory, 0o755)).unwrap();
    }
    drop(at);
    fs.close().unwrap();
    drop(fs);
    let all = DEPTH * (DEPTH + 1) / 2 * (NAME + 1);
    for name in ["ls", "manifest"] {
        let args: &[&str] = if name == "ls" { &["ls", "-R"] } else { &["manifest"] };
        let mut child = command(args).arg(&image).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        // Where it waits for a reader, near its end.
        let most = (all - (1 << 20)) as u64;
        assert_eq!(std::io::copy(&mut out.by_ref().take(most), &mut std::io::sink()).unwrap(), most);
        let memory = most_memory(&child);
        assert!(memory < all / 2, "{name}: {memory} bytes for paths of {all}");
        assert!(std::io::copy(&mut out, &mut std::io::sink()).unwrap() >= 1 << 20);
        assert!(child.wait().unwrap().success());
    }
}

//! The data that a mount keeps when its server is killed or told to end. These tests need root and `/dev/fuse`;
//! elsewhere they say that they were not run.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::mounted::{Mounted, is_mounted, shell, umount};
use common::{command, ok, run};
use f2fs::device::{AlignedBuf, BlockDevice};
use f2fs::pmem::PmemDevice;
use rustix::fs::OFlags;
use rustix::process::Signal;

#[test]
fn what_was_synced_survives_a_kill() {
    let Some(mounted) = Mounted::new("what_was_synced_survives_a_kill", &[]) else { return };
    let synced = OpenOptions::new().read(true).write(true).create_new(true).open(mounted.path("synced")).unwrap();
    for round in 0..20_u8 {
        synced.write_all_at(&[round; 5000], u64::from(round) * 5000).unwrap();
        synced.sync_all().unwrap();
    }
    fs::create_dir(mounted.path("d")).unwrap();
    File::open(mounted.path("d")).unwrap().sync_all().unwrap();
    fs::write(mounted.path("lost"), b"not synced").unwrap();
    mounted.kill(Signal::KILL);
    assert!(fs::read(mounted.path("synced")).is_err());
    drop(synced);
    umount(&mounted.dir);
    let said = run(command(["mount"]).arg(&mounted.image).arg(&mounted.dir));
    assert!(said.status.success(), "{said:?}");
    let found = fs::read(mounted.path("synced")).unwrap();
    assert!(found.len() == 100_000 && found.iter().enumerate().all(|(at, byte)| usize::from(*byte) == at / 5000));
    assert!(mounted.path("d").is_dir());
    mounted.judge();
}

#[test]
fn what_was_written_survives_a_kill_if_the_mount_is_synchronous() {
    let test = "what_was_written_survives_a_kill_if_the_mount_is_synchronous";
    let Some(mounted) = Mounted::new(test, &["sync"]) else { return };
    let file = File::create(mounted.path("f")).unwrap();
    for round in 0..20_u8 {
        file.write_all_at(&[round; 5000], u64::from(round) * 5000).unwrap();
    }
    mounted.kill(Signal::KILL);
    drop(file);
    umount(&mounted.dir);
    let said = run(command(["mount"]).arg(&mounted.image).arg(&mounted.dir));
    assert!(said.status.success(), "{said:?}");
    let found = fs::read(mounted.path("f")).unwrap();
    assert!(found.len() == 100_000 && found.iter().enumerate().all(|(at, byte)| usize::from(*byte) == at / 5000));
    mounted.judge();
}

/// Nodes wait in memory for a checkpoint: the fewer there is room for, the sooner it comes. Nothing else writes one here,
/// and on a machine with 16 GiB none would come.
#[test]
fn a_server_with_little_memory_writes_checkpoints_sooner() {
    const FILES: usize = 20_000;
    let Some(mounted) = Mounted::formatted("a_server_with_little_memory_writes_checkpoints_sooner", &[]) else {
        return;
    };
    let mut limited = Command::new("prlimit");
    limited.args(["--as=2147483648", "--", env!("CARGO_BIN_EXE_f2fs"), "mount", "-o", "commit=0,threads=2"]);
    ok(limited.arg(&mounted.image).arg(&mounted.dir));
    let before = checkpoint(&mounted.image);
    (0..FILES).for_each(|file| drop(File::create(mounted.path(&file.to_string())).unwrap()));
    // It may be still on its way.
    let end = Instant::now() + Duration::from_secs(30);
    while checkpoint(&mounted.image) == before {
        assert!(Instant::now() < end, "no checkpoint behind {FILES} files");
        thread::sleep(Duration::from_millis(20));
    }
    mounted.judge();
}

/// `umount` of the system does not wait for the server, which writes the last checkpoint; the next opener does, and says
/// so if it takes long.
#[test]
fn what_was_unmounted_is_opened_again_at_once() {
    let Some(mounted) = Mounted::formatted("what_was_unmounted_is_opened_again_at_once", &["--page-cache", "64M"])
    else {
        return;
    };
    for round in 0..3_u8 {
        mounted.mount(&[]);
        fs::write(mounted.path("f"), vec![round; 32 << 20]).unwrap();
        let server = mounted.server();
        // It is as slow as it can be: it stands still, and goes on when others have waited for two seconds.
        shell(&format!("kill -STOP {server}; umount -i -n --no-canonicalize {}", mounted.dir.display()));
        let cat = command(["cat"]).arg(&mounted.image).arg("/f").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        thread::sleep(Duration::from_secs(2));
        shell(&format!("kill -CONT {server}"));
        let cat = cat.unwrap().wait_with_output().unwrap();
        let said = String::from_utf8(cat.stderr).unwrap();
        // A server that stands still has not said yet that it closes the image.
        assert!(cat.status.success() && said.contains(&format!("waiting a moment for process {server}")), "{said}");
        assert_eq!(cat.stdout, vec![round; 32 << 20]);
        mounted.mount(&[]);
        umount(&mounted.dir);
    }
    mounted.mount(&[]);
    mounted.judge();
}

#[test]
fn what_the_kernel_kept_of_a_killed_server_does_not_keep_the_mount() {
    let test = "what_the_kernel_kept_of_a_killed_server_does_not_keep_the_mount";
    let Some(mounted) = Mounted::new(test, &["cache=writeback"]) else { return };
    for name in 0..20 {
        fs::write(mounted.path(&name.to_string()), [7; 100_000]).unwrap();
    }
    // From then on the kernel opens the directory by itself, without a server too.
    File::open(&mounted.dir).unwrap().sync_all().unwrap();
    fs::metadata(&mounted.dir).unwrap();
    fs::write(mounted.path("0"), [8; 100_000]).unwrap();
    mounted.kill(Signal::KILL);
    mounted.umount_dead();
    mounted.mount(&[]);
    mounted.judge();
}

/// Without an `fsync`, since the file was opened so.
#[test]
fn what_was_written_synchronously_survives_a_kill() {
    for cache in ["cache=none", "cache=through", "cache=writeback"] {
        for flag in [OFlags::SYNC, OFlags::DSYNC, OFlags::DSYNC | OFlags::DIRECT] {
            let Some(mounted) = Mounted::new("what_was_written_synchronously_survives_a_kill", &[cache]) else {
                return;
            };
            let known = File::create(mounted.path("f")).unwrap();
            known.write_all_at(&[1; 8192], 0).unwrap();
            known.sync_all().unwrap();
            drop(known);
            let mut buf = AlignedBuf::new(2);
            buf.as_bytes_mut().fill(2);
            let mut options = OpenOptions::new();
            let file = options.write(true).custom_flags(flag.bits() as i32).open(mounted.path("f")).unwrap();
            file.write_all_at(buf.as_bytes(), 0).unwrap();
            mounted.kill(Signal::KILL);
            drop(file);
            umount(&mounted.dir);
            let found = run(command(["cat"]).arg(&mounted.image).arg("/f")).stdout;
            assert_eq!(found, [2; 8192], "{cache}, {flag:?}");
            let said = run(command(["mount"]).arg(&mounted.image).arg(&mounted.dir));
            assert!(said.status.success(), "{said:?}");
            mounted.judge();
        }
    }
}

/// With a journal in each of its modes: files, a renamed one, a directory.
#[test]
fn what_was_synced_into_a_journal_survives_a_kill() {
    for mode in ["ordered", "journal"] {
        let Some(mounted) = Mounted::formatted("what_was_synced_into_a_journal_survives_a_kill", &[]) else { return };
        let journal = mounted.image.with_extension("journal");
        ok(command(["journal", "create", "--size", "2M"]).arg(&journal).arg(&mounted.image));
        let mount = || {
            let mut mount = command(["mount", "--journal-mode", mode, "--journal"]);
            let said = run(mount.arg(&journal).arg(&mounted.image).arg(&mounted.dir));
            assert!(said.status.success(), "{said:?}");
        };
        mount();
        let synced = OpenOptions::new().read(true).write(true).create_new(true).open(mounted.path("synced")).unwrap();
        for round in 0..20_u8 {
            synced.write_all_at(&[round; 5000], u64::from(round) * 5000).unwrap();
            synced.sync_all().unwrap();
        }
        fs::create_dir(mounted.path("d")).unwrap();
        fs::rename(mounted.path("synced"), mounted.path("d/moved")).unwrap();
        File::open(mounted.path("d")).unwrap().sync_all().unwrap();
        // Of the directory that it is mounted on, everything.
        synced.write_all_at(&[20; 1000], 100_000).unwrap();
        synced.set_permissions(fs::Permissions::from_mode(0o640)).unwrap();
        File::open(&mounted.dir).unwrap().sync_all().unwrap();
        fs::write(mounted.path("lost"), b"not synced").unwrap();
        mounted.kill(Signal::KILL);
        drop(synced);
        umount(&mounted.dir);
        let said = run(command(["mount"]).arg(&mounted.image).arg(&mounted.dir));
        assert!(!said.status.success(), "without its journal: {said:?}");
        mount();
        let found = fs::read(mounted.path("d/moved")).unwrap();
        assert_eq!(fs::metadata(mounted.path("d/moved")).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(found.len() == 101_000 && found.iter().enumerate().all(|(at, byte)| usize::from(*byte) == at / 5000));
        assert!(!mounted.path("synced").exists());
        mounted.judge();
    }
}

#[test]
fn what_was_mapped_and_synced_survives_a_kill() {
    for options in [&[][..], &["cache=writeback"]] {
        let Some(mounted) = Mounted::new("what_was_mapped_and_synced_survives_a_kill", options) else { return };
        let path = mounted.path("mapped");
        File::create(&path).unwrap().set_len(64 * 4096).unwrap();
        {
            // A device of persistent memory on a plain file is a shared mapping of it; its flush is msync.
            let mapped = PmemDevice::open(&path, f2fs::pmem::OpenOptions::new()).unwrap();
            assert!(mapped.info().description.contains("msync"), "{}", mapped.info().description);
            for block in 0..64_u8 {
                mapped.write_slice(block.into(), &[block + 1; 4096]).unwrap();
            }
            mapped.flush().unwrap();
            // Mapped and written at once are one content.
            let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
            file.write_all_at(&[0xee; 100], 10 * 4096 + 50).unwrap();
            assert_eq!(mapped.read(10, 1).unwrap().as_bytes()[50..150], [0xee; 100]);
            mapped.flush().unwrap();
            // Not synced: anything may be left of it.
            mapped.write_slice(63, &[0; 4096]).unwrap();
            mounted.kill(Signal::KILL);
        }
        umount(&mounted.dir);
        let said = run(command(["mount"]).arg(&mounted.image).arg(&mounted.dir));
        assert!(said.status.success(), "{said:?}");
        let found = fs::read(&path).unwrap();
        assert_eq!(found.len(), 64 * 4096);
        for (at, byte) in found[..63 * 4096].iter().enumerate() {
            let overwritten = (10 * 4096 + 50..10 * 4096 + 150).contains(&at);
            assert_eq!(*byte, if overwritten { 0xee } else { (at / 4096) as u8 + 1 }, "{options:?}: byte {at}");
        }
        mounted.judge();
    }
}

/// The version of the newest checkpoint on a volume, from the first blocks of its two packs.
fn checkpoint(image: &Path) -> u64 {
    let image = File::open(image).unwrap();
    let version = |block: u64| {
        let mut version = [0; 8];
        image.read_exact_at(&mut version, block * 4096).unwrap();
        u64::from_le_bytes(version)
    };
    version(512).max(version(1024))
}

#[test]
fn what_is_old_enough_survives_a_kill() {
    let Some(mounted) = Mounted::new("what_is_old_enough_survives_a_kill", &["commit=1"]) else { return };
    fs::create_dir(mounted.path("d")).unwrap();
    fs::write(mounted.path("d/f"), vec![5; 100_000]).unwrap();
    let first = checkpoint(&mounted.image);
    let end = Instant::now() + Duration::from_secs(60);
    // The first one may have begun before the file was written.
    while checkpoint(&mounted.image) < first + 1 {
        assert!(Instant::now() < end, "no checkpoint is written");
        thread::sleep(Duration::from_millis(50));
    }
    fs::write(mounted.path("more"), b"").unwrap();
    while checkpoint(&mounted.image) < first + 2 {
        assert!(Instant::now() < end, "no second checkpoint is written");
        thread::sleep(Duration::from_millis(50));
    }
    // The version stands in the first block, which is written before the last.
    thread::sleep(Duration::from_millis(300));
    mounted.kill(Signal::KILL);
    umount(&mounted.dir);
    mounted.mount(&[]);
    assert_eq!(fs::read(mounted.path("d/f")).unwrap(), vec![5; 100_000]);
    assert!(mounted.path("more").exists());
    mounted.judge();
}

#[test]
fn what_a_database_committed_survives_a_kill() {
    let name = "what_a_database_committed_survives_a_kill";
    if Command::new("sqlite3").arg("--version").output().is_err() {
        eprintln!("NOT RUN: {name}: needs sqlite3");
        return;
    }
    for journal in ["wal", "delete"] {
        let Some(mounted) = Mounted::new(name, &[]) else { return };
        let path = mounted.path("base");
        // `EXTRA` syncs the directory after the journal is removed, and that commits.
        let mut script = format!("PRAGMA journal_mode={journal}; PRAGMA synchronous=EXTRA; CREATE TABLE t(n);\n");
        for n in 0..100 {
            script += &format!("BEGIN; INSERT INTO t VALUES({n}); COMMIT; SELECT 'committed';\n");
        }
        let file = mounted.place.path("script");
        fs::write(&file, script).unwrap();
        let mut sqlite = Command::new("stdbuf");
        sqlite.args(["-oL", "sqlite3", "-bail"]).arg(&path).stdin(File::open(&file).unwrap());
        let mut sqlite = sqlite.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut committed = 0;
        for line in BufReader::new(sqlite.stdout.take().unwrap()).lines().map_while(Result::ok) {
            committed += usize::from(line == "committed");
            if line == "committed" && committed == 20 {
                mounted.kill(Signal::KILL);
            }
        }
        assert!(!sqlite.wait().unwrap().success() && committed >= 20, "{journal}: {committed}");
        umount(&mounted.dir);
        // It tells of files that it recovers.
        let said = run(command(["mount"]).arg(&mounted.image).arg(&mounted.dir));
        assert!(said.status.success(), "{said:?}");
        let mut look = Command::new("sqlite3");
        let said = look.arg(&path).arg("PRAGMA integrity_check; SELECT count(*) FROM t;").output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        let count = said.strip_prefix("ok\n").and_then(|count| count.trim().parse::<usize>().ok());
        assert!(count.is_some_and(|count| count >= committed), "{journal}: {committed} were committed: {said}");
        mounted.judge();
    }
}

#[test]
fn a_signal_closes_the_volume() {
    let Some(mounted) = Mounted::new("a_signal_closes_the_volume", &[]) else { return };
    fs::write(mounted.path("f"), b"kept").unwrap();
    mounted.kill(Signal::TERM);
    assert!(!is_mounted(&mounted.dir));
    assert_eq!(ok(command(["cat"]).arg(&mounted.image).arg("/f")), "kept");
    // Also while a program uses it.
    mounted.mount(&[]);
    let open = File::create(mounted.path("g")).unwrap();
    open.write_all_at(b"kept too", 0).unwrap();
    mounted.kill(Signal::TERM);
    assert_eq!(ok(command(["cat"]).arg(&mounted.image).arg("/g")), "kept too");
    // The directory is free at once, not when the last of these programs ends.
    assert!(!is_mounted(&mounted.dir));
    open.write_all_at(b"too late", 0).unwrap_err();
    drop(open);
    assert_eq!(ok(command(["check"]).arg(&mounted.image)), "");
}

/// What programs that still use the mount have written is in the kernel's memory. The program is one of its own: each
/// process that is started here begins with copies of open files, and the kernel writes back when they are closed.
#[test]
fn a_signal_loses_nothing_that_programs_have_written() {
    const SCRIPT: &str = "import mmap, os, sys
written = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
os.write(written, b'w' * 1000000)
mapped = os.open(sys.argv[2], os.O_CREAT | os.O_RDWR)
os.ftruncate(mapped, 1000000)
pages = mmap.mmap(mapped, 1000000)
pages[:] = b'm' * 1000000
print('ready', flush=True)
sys.stdin.read()";
    for cache in ["cache=writeback", "cache=through", "cache=none"] {
        let Some(mounted) = Mounted::new("a_signal_loses_nothing_that_programs_have_written", &[cache]) else { return };
        let mut program = Command::new("python3");
        program.args(["-c", SCRIPT]).args(["written", "mapped"].map(|name| mounted.path(name)));
        let mut program = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        mounted.kill(Signal::TERM);
        assert!(!is_mounted(&mounted.dir));
        drop(program.stdin.take());
        program.wait().unwrap();
        for (name, byte) in [("/written", b'w'), ("/mapped", b'm')] {
            let found = run(command(["cat"]).arg(&mounted.image).arg(name)).stdout;
            let right = found.iter().filter(|found| **found == byte).count();
            assert!(found.len() == 1_000_000 && right == 1_000_000, "{cache}: {name}: {right} of {}", found.len());
        }
        assert_eq!(ok(command(["check"]).arg(&mounted.image)), "");
    }
}

/// Without room for the image the last checkpoint cannot be written, and unmounting says so.
#[test]
fn a_volume_that_cannot_be_closed_stays_mounted() {
    stays_mounted("a_volume_that_cannot_be_closed_stays_mounted", false);
}

/// A record of the directory has room in the journal, which does not help what is in no record.
#[test]
fn a_volume_with_a_journal_that_cannot_be_closed_stays_mounted() {
    stays_mounted("a_volume_with_a_journal_that_cannot_be_closed_stays_mounted", true);
}

fn stays_mounted(name: &str, has_journal: bool) {
    let Some(mounted) = Mounted::formatted(name, &[]) else { return };
    let small = mounted.place.path("small");
    fs::create_dir(&small).unwrap();
    let (image, at) = (small.join("disk.img"), small.display());
    shell(&format!("mount -t tmpfs -o size=24M none {at}"));
    ok(command(["format", "--size", "256M"]).arg(&image));
    let mut mount = command(["mount"]);
    if has_journal {
        let journal = mounted.place.path("journal");
        ok(command(["journal", "create", "--size", "1M"]).arg(&journal).arg(&image));
        mount.arg("--journal").arg(&journal);
    }
    ok(mount.arg(&image).arg(&mounted.dir));
    fs::write(mounted.path("f"), b"lost").unwrap();
    shell(&format!("dd if=/dev/zero of={at}/fill bs=64k 2>/dev/null || true"));
    // Where no log of a system runs, this is it.
    let log = UnixDatagram::bind("/dev/log").ok();
    let said = run(command(["umount"]).arg(&mounted.dir));
    let stays = is_mounted(&mounted.dir) && fs::read(mounted.path("f")).unwrap() == b"lost";
    umount(&mounted.dir);
    shell(&format!("flock {at}/disk.img true; rm {at}/fill"));
    let found = ok(command(["ls", "--without-journal"]).arg(&image));
    umount(Path::new(&at.to_string()));
    assert_eq!(found, "", "the test leaves no room, and yet there is the file");
    let text = String::from_utf8_lossy(&said.stderr);
    assert!(stays && said.status.code() == Some(1) && text.contains("No space left"), "{said:?}");
    // Of the plain `umount` the server in the background says so there.
    if let Some(log) = log {
        fs::remove_file("/dev/log").unwrap();
        log.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut line = [0; 1000];
        // Servers of other tests may say something too.
        let found =
            std::iter::from_fn(|| log.recv(&mut line).ok().map(|n| String::from_utf8_lossy(&line[..n]).into_owned()))
                .any(|line| line.starts_with("<27>f2fs[") && line.contains("No space left"));
        assert!(found, "the server does not say that it cannot close the volume");
    }
}

/// A request of kept pages is answered as one: for the kernel all of them are clean when a part was written.
#[test]
fn a_full_volume_loses_no_end_of_a_file_that_was_synced() {
    for options in [&["cache=writeback"][..], &["cache=through"]] {
        let Some(mounted) = Mounted::formatted("a_full_volume_loses_no_end_of_a_file_that_was_synced", &[]) else {
            return;
        };
        let image = mounted.place.path("small.img");
        ok(command(["format", "--size", "64M"]).arg(&image));
        ok(command(["mount", "-o", options[0]]).arg(&image).arg(&mounted.dir));
        // No multiple of a page, so that the last one that fits does not end with a file.
        let write = |number: u64| {
            let file = File::create(mounted.path(&number.to_string()))?;
            file.write_all_at(&vec![1; 200_000], 0)?;
            file.sync_all()
        };
        let count = (0..1000).take_while(|number| write(*number).is_ok()).count();
        assert!((50..300).contains(&count), "{count}");
        run(command(["umount"]).arg(&mounted.dir));
        for number in 0..count {
            let found = ok(command(["stat"]).arg(&image).arg(format!("/{number}")));
            assert!(found.contains("200000 bytes"), "{options:?}: {number} of {count}: {found}");
        }
        ok(command(["check"]).arg(&image));
    }
}

/// The kernel tells an error of the past once more when the volume is unmounted: there is nothing left that could be
/// written.
#[test]
fn an_error_that_was_told_keeps_no_volume_mounted() {
    let Some(mounted) = Mounted::formatted("an_error_that_was_told_keeps_no_volume_mounted", &[]) else { return };
    let image = mounted.place.path("small.img");
    ok(command(["format", "--size", "64M"]).arg(&image));
    ok(command(["mount", "-o", "cache=writeback"]).arg(&image).arg(&mounted.dir));
    let large = mounted.path("large");
    let full = File::create(&large).and_then(|file| {
        file.write_all_at(&vec![1; 60 << 20], 0)?;
        file.sync_all()
    });
    assert!(full.is_err(), "60 MB fit into 64 MiB");
    fs::remove_file(&large).unwrap();
    let small = File::create(mounted.path("small")).unwrap();
    small.write_all_at(&[2; 4 << 20], 0).unwrap();
    small.sync_all().unwrap();
    drop(small);
    let said = run(command(["umount"]).arg(&mounted.dir));
    let errors = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.success() && !is_mounted(&mounted.dir), "{said:?}");
    assert!(errors.is_empty() || errors.contains("a write failed since it was mounted"), "{errors}");
    assert_eq!(ok(command(["cat"]).arg(&image).arg("/small")).len(), 4 << 20);
    ok(command(["check"]).arg(&image));
}

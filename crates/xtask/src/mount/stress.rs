//! Programs that load a file system and check what they read: stress-ng, fio, `fs_mark`, dbench, bonnie++, postmark.
//!
//! Each is a row of its own, on a volume of its own. One whose program cannot be had is told as not run, and the chore
//! fails for it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};

use super::Bench;
use super::volume::{How, Mounted};
use crate::{Result, files, process, tools};

/// stress-ng's stressors of files. Those that need a device, a file system of the kernel or another user are not among
/// them.
const STRESSORS: &[&str] = &[
    "access",
    "aio",
    "chdir",
    "chmod",
    "chown",
    "copy-file",
    "dentry",
    "dir",
    "dirdeep",
    "dirmany",
    "fallocate",
    "fcntl",
    "file-ioctl",
    "filename",
    "flock",
    "fpunch",
    "fstat",
    "getdent",
    "handle",
    "hdd",
    "iomix",
    "link",
    "locka",
    "lockf",
    "lockofd",
    "mknod",
    "mmap",
    "mmapfork",
    "open",
    "readahead",
    "rename",
    "revio",
    "seek",
    "sendfile",
    "symlink",
    "sync-file",
    "touch",
    "utime",
    "xattr",
];
const DIRECT: How = How::plain("cache=through");
const CACHED: How = How { options: "cache=writeback", page_cache: "64M" };
/// How long a program may take beyond what it was told to.
const PATIENCE: Duration = Duration::from_secs(600);

/// How much each does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amount {
    /// Seconds of each of stress-ng's stressors, and of dbench.
    pub(crate) seconds: u64,
    /// A run of a minute.
    pub(crate) quick: bool,
}

type Row = (&'static str, fn(&Bench, Amount, How) -> Result<String>);

const ROWS: &[Row] = &[
    ("stress-ng", stress_ng),
    ("fio", fio),
    ("fs_mark", fs_mark),
    ("dbench", dbench),
    ("bonnie++", bonnie),
    ("postmark", postmark),
    ("stress-ng", killed),
];

pub(crate) fn run(bench: &Bench, amount: Amount) -> Result<()> {
    let mut failed = Vec::new();
    for (number, (program, row)) in ROWS.iter().enumerate() {
        // Quick: the two ways of caching take turns.
        let ways = [DIRECT, CACHED];
        let ways = if amount.quick { &ways[number % 2..][..1] } else { &ways[..] };
        for how in ways {
            let begun = Instant::now();
            let result = match tools::require(&[program, "fsck.f2fs"]) {
                Ok(()) => row(bench, amount, *how),
                Err(error) => Err(error.context("not run")),
            };
            match result {
                Ok(said) => println!("{program}, {how}: {said}, in {:.0} s", begun.elapsed().as_secs_f64()),
                Err(error) => {
                    println!("{program}, {how}: {error:#}");
                    failed.push(*program);
                }
            }
        }
    }
    ensure!(failed.is_empty(), "failed or not run: {}", failed.join(" "));
    Ok(())
}

/// Runs a program to its end; what it printed.
fn completed(command: &mut Command, limit: Duration) -> Result<String> {
    let outcome = process::capture(command, limit + PATIENCE)?;
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    if outcome.timed_out {
        bail!("`{}` goes on after {} s: {said}", process::shown(command), outcome.took.as_secs());
    }
    ensure!(outcome.success, "`{}` failed: {said}", process::shown(command));
    Ok(said)
}

/// The first line of what a program says of its version.
fn version(program: &str, flag: &str) -> String {
    let said = process::capture(Command::new(program).arg(flag), PATIENCE);
    let said = said.map(|outcome| outcome.stdout + &outcome.stderr).unwrap_or_default();
    said.lines().find(|line| !line.trim().is_empty()).unwrap_or("no version").trim().to_owned()
}

fn stressor(dir: &Path, names: &[&str], instances: u64, seconds: u64) -> Command {
    let mut command = Command::new("stress-ng");
    command.current_dir(dir).arg("--temp-path").arg(dir).args(["--verify", "--timeout", &seconds.to_string()]);
    command.args(["--hdd-bytes", "16M", "--mmap-bytes", "8M", "--iomix-bytes", "16M", "--fallocate-bytes", "32M"]);
    command.args(["--seek-size", "16M", "--sync-file-bytes", "16M", "--copy-file-bytes", "128M"]);
    for name in names {
        command.args([&format!("--{name}"), &instances.to_string()]);
    }
    command
}

fn stress_ng(bench: &Bench, amount: Amount, how: How) -> Result<String> {
    let mounted = Mounted::new(bench, "stress-ng", "4G", how)?;
    let limit = Duration::from_secs(amount.seconds);
    if amount.quick {
        completed(&mut stressor(&mounted.dir, STRESSORS, 1, amount.seconds), limit)?;
    } else {
        for name in STRESSORS {
            completed(&mut stressor(&mounted.dir, &[name], 4, amount.seconds), limit)?;
        }
    }
    mounted.judge()?;
    let version = version("stress-ng", "--version");
    Ok(format!("{version}: {} stressors of {} s with --verify", STRESSORS.len(), amount.seconds))
}

/// Random blocks with checksums in them, by 16 processes.
fn checksums(dir: &Path, mebibytes: u64, again: bool) -> Command {
    let mut command = Command::new("fio");
    command.arg("--name=verified").arg(format!("--directory={}", dir.display()));
    command.args(["--ioengine=psync", "--rw=randwrite", "--bsrange=4k-64k", "--bs_unaligned=0", "--numjobs=16"]);
    command.args([
        "--verify=crc32c",
        "--verify_fatal=1",
        "--verify_state_save=0",
        "--end_fsync=1",
        "--group_reporting",
        "--output-format=terse",
    ]);
    command.arg(format!("--size={mebibytes}M"));
    command.arg(if again { "--verify_only=1" } else { "--do_verify=0" });
    command
}

fn fio(bench: &Bench, amount: Amount, how: How) -> Result<String> {
    let mounted = Mounted::new(bench, "fio", "2G", how)?;
    let mebibytes = if amount.quick { 2 } else { 48 };
    completed(&mut checksums(&mounted.dir, mebibytes, false), PATIENCE)?;
    completed(&mut checksums(&mounted.dir, mebibytes, true), PATIENCE)?;
    mounted.umount()?;
    mounted.mount(how)?;
    completed(&mut checksums(&mounted.dir, mebibytes, true), PATIENCE)?;
    mounted.judge()?;
    let version = version("fio", "--version");
    Ok(format!("{version}: 16 jobs of {mebibytes} MiB, verified at once and after another mount"))
}

fn fs_mark(bench: &Bench, amount: Amount, how: How) -> Result<String> {
    let mounted = Mounted::new(bench, "fs_mark", "2G", how)?;
    let files = if amount.quick { 100 } else { 10_000 };
    let mut command = Command::new("fs_mark");
    // Each file is synced before it is closed; they lie in ten directories, and stay.
    command.args(["-S", "1", "-s", "4096", "-t", "4", "-D", "10", "-k", "-n", &files.to_string()]);
    // It has little room for a path.
    let dir = mounted.dir.strip_prefix(&bench.images).unwrap_or(&mounted.dir);
    command.current_dir(&bench.images).arg("-d").arg(dir.join("marks"));
    completed(&mut command, PATIENCE)?;
    let count = |dir: &Path| process::output(Command::new("find").arg(dir).args(["-type", "f", "-size", "4096c"]));
    fs_err::remove_file(bench.images.join("fs_log.txt"))?;
    let found = count(&mounted.dir)?.iter().filter(|byte| **byte == b'\n').count();
    ensure!(found == 4 * files, "{} files were made, {found} are there", 4 * files);
    mounted.judge()?;
    Ok(format!("fs_mark 3.3: 4 threads, {files} files of 4096 bytes each, all there"))
}

fn dbench(bench: &Bench, amount: Amount, how: How) -> Result<String> {
    let mounted = Mounted::new(bench, "dbench", "2G", how)?;
    let mut command = Command::new("dbench");
    command.args(["-c", "/usr/share/dbench/client.txt", "-t", &amount.seconds.to_string(), "-D"]);
    let said = completed(command.arg(&mounted.dir).arg("4"), Duration::from_secs(amount.seconds))?;
    let rate = said.lines().find(|line| line.starts_with("Throughput")).unwrap_or("no throughput").to_owned();
    ensure!(!said.contains("ERROR") && rate != "no throughput", "{said}");
    mounted.judge()?;
    Ok(format!("dbench 4.00: 4 clients for {} s, {rate}", amount.seconds))
}

fn bonnie(bench: &Bench, amount: Amount, how: How) -> Result<String> {
    let mounted = Mounted::new(bench, "bonnie", "4G", how)?;
    let (size, files) = if amount.quick { ("32", "1") } else { ("1024", "16") };
    let mut command = Command::new("bonnie++");
    // `-f`: without the writes of single bytes, each of which is a request.
    command.args(["-u", "root", "-q", "-f", "-r", "16", "-s", size, "-n", files, "-d"]);
    completed(command.arg(&mounted.dir), PATIENCE)?;
    mounted.judge()?;
    Ok(format!("bonnie++ 2.00a: {size} MiB and {files} Ki files"))
}

fn postmark(bench: &Bench, amount: Amount, how: How) -> Result<String> {
    let mounted = Mounted::new(bench, "postmark", "2G", how)?;
    let number = if amount.quick { 500 } else { 50_000 };
    let script = bench.images.join("postmark.conf");
    let dir = mounted.dir.display();
    fs_err::write(&script, format!("set location {dir}\nset number {number}\nset transactions {number}\nrun\nquit\n"))?;
    let said = completed(Command::new("postmark").arg(&script), PATIENCE)?;
    // It ends well in any case.
    ensure!(said.contains("Deleting files...Done") && !said.to_lowercase().contains("error"), "{said}");
    mounted.judge()?;
    Ok(format!("postmark 1.53: {number} files, {number} transactions"))
}

/// The server is killed in the middle of all stressors: what fio has synced before is there, and the volume is clean.
fn killed(bench: &Bench, amount: Amount, how: How) -> Result<String> {
    let mounted = Mounted::new(bench, "killed", "2G", how)?;
    let (rounds, mebibytes) = if amount.quick { (1, 2) } else { (5, 16) };
    let stress = |seconds: u64| -> Result<Child> {
        let dir = mounted.dir.join("stress");
        fs_err::create_dir_all(&dir)?;
        // Not below a working directory of the dead mount.
        let mut command =
            stressor(&dir, &["hdd", "rename", "link", "dentry", "fallocate", "xattr", "iomix"], 1, seconds);
        Ok(command.current_dir("/").stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
    };
    for round in 0..rounds {
        let dir = mounted.dir.join(format!("synced-{round}"));
        let mut child = stress(PATIENCE.as_secs())?;
        let worked = (|| {
            thread::sleep(Duration::from_secs(1));
            fs_err::create_dir_all(&dir)?;
            completed(&mut checksums(&dir, mebibytes, false), PATIENCE)?;
            thread::sleep(Duration::from_millis(500));
            ensure!(child.try_wait()?.is_none(), "stress-ng ended too early");
            mounted.kill()
        })();
        // Its children end with it.
        let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        child.wait()?;
        worked?;
        mounted.mount(how)?;
        for round in 0..=round {
            let dir = mounted.dir.join(format!("synced-{round}"));
            completed(&mut checksums(&dir, mebibytes, true), PATIENCE)?;
        }
        files::remove_dir(mounted.dir.join("stress"))?;
    }
    mounted.judge()?;
    Ok(format!("the server killed in the middle, {rounds} times: what fio had synced beside it is there"))
}

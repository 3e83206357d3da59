//! Programs that people use, on a mount: git, sqlite3, tar, rsync, cargo.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::Bench;
use super::volume::{How, Mounted};
use crate::{Result, process, tools};

const THROUGH: How = How::plain("cache=through");
/// The programs that they need beside cargo.
const PROGRAMS: &[&str] = &["git", "sqlite3", "tar", "rsync", "fsck.f2fs"];
/// A package that is no member of the workspace around the mount. `cargo new` would make it one.
const PACKAGE: &str = "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";
const PROGRAM: &str = "fn main() {\n    println!(\"Hello, world!\");\n}\n";
/// How long the large build may take.
const BUILD: Duration = Duration::from_secs(3600);

/// `large`: this repository is built, too.
pub(crate) fn run(bench: &Bench, tree: &Path, transactions: u64, large: bool) -> Result<()> {
    tools::require(PROGRAMS)?;
    for (name, what) in [("git", "--version"), ("sqlite3", "--version"), ("tar", "--version"), ("rsync", "--version")] {
        let said = process::output(Command::new(name).arg(what))?;
        println!("{}", String::from_utf8_lossy(&said).lines().next().unwrap_or_default());
    }
    repository(bench)?;
    for journal in ["wal", "delete"] {
        database(bench, journal, transactions)?;
    }
    trees(bench, tree)?;
    build(bench)?;
    if large { large_build(bench) } else { Ok(()) }
}

fn shell(script: &str) -> Result<()> {
    process::run(Command::new("sh").args(["-euc", script]))
}

/// A clone of this repository is packed again, and whole before and after a mount.
fn repository(bench: &Bench) -> Result<()> {
    let mounted = Mounted::new(bench, "git", "2G", THROUGH)?;
    let (root, dir) = (process::root(), mounted.dir.join("clone"));
    let (from, to) = (root.display(), dir.display());
    // Whoever may have made the sources.
    let git = format!("git -c safe.directory='*' -C {to}");
    let whole =
        format!("{git} fsck --full --strict --no-dangling --no-progress; test -z \"$({git} status --porcelain)\"");
    shell(&format!("git -c safe.directory='*' clone --quiet --no-hardlinks {from} {to}; {whole}"))?;
    shell(&format!("{git} gc --quiet --prune=now; {whole}"))?;
    mounted.umount()?;
    mounted.mount(THROUGH)?;
    shell(&whole)?;
    mounted.judge()
}

/// Transactions, in whose middle the server is killed: all committed transactions are there.
fn database(bench: &Bench, journal: &str, transactions: u64) -> Result<()> {
    let mounted = Mounted::new(bench, &format!("sqlite-{journal}"), "512M", THROUGH)?;
    let file = mounted.dir.join("base");
    let (mut before, mut all) = (0, 0);
    // Killed in the middle, and then left to end.
    for killed in [true, false] {
        // `EXTRA`: with less, sqlite3 does not sync the directory after the removal of its journal, which is its
        // commit.
        let script = bench.images.join("transactions.sql");
        let mut sql = format!("PRAGMA journal_mode={journal};\nPRAGMA synchronous=EXTRA;\n");
        sql += "CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, text TEXT);\n";
        for n in before..before + transactions {
            sql +=
                &format!("BEGIN; INSERT INTO t VALUES({n}, hex(randomblob(200))); COMMIT; SELECT 'committed {n}';\n");
        }
        fs_err::write(&script, sql)?;
        let input = fs::File::open(&script)?;
        let mut child = Command::new("stdbuf")
            .args(["-oL", "sqlite3", "-bail"])
            .arg(&file)
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("sqlite3")?;
        let lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        for line in lines {
            let Ok(line) = line else { break };
            if let Some(n) = line.strip_prefix("committed ") {
                all = n.parse::<u64>()? + 1;
                if killed && all == before + transactions / 2 {
                    mounted.kill()?;
                }
            }
        }
        let ended = child.wait()?;
        ensure!(killed != ended.success(), "sqlite3 ended with {ended}");
        if killed {
            mounted.mount(THROUGH)?;
        }
        let said = process::output(
            Command::new("sqlite3").arg(&file).arg("PRAGMA integrity_check; SELECT count(*), max(n) FROM t;"),
        )?;
        let said = String::from_utf8_lossy(&said).into_owned();
        let mut lines = said.lines();
        ensure!(lines.next() == Some("ok"), "{journal}: {said}");
        let counts = lines.next().and_then(|line| line.split_once('|')).context("no counts")?;
        let (count, last) = (counts.0.parse::<u64>()?, counts.1.parse::<u64>()?);
        if count < all || count != last + 1 {
            bail!("{journal}: {all} transactions were committed, {count} are there, the last is {last}");
        }
        println!("sqlite3, {journal}: {all} committed, {count} there, server killed: {killed}");
        before = count;
    }
    mounted.judge()
}

/// A tree goes to a mount by tar and by rsync, and is the same before and after another mount.
fn trees(bench: &Bench, tree: &Path) -> Result<()> {
    // Room for both copies with their nodes, and for cleaning.
    let held = process::output(Command::new("du").args(["-s", "--block-size=1M"]).arg(tree))?;
    let held = String::from_utf8(held)?;
    let mebibytes: u64 = held.split_whitespace().next().context("du says nothing")?.parse()?;
    let mounted = Mounted::new(bench, "trees", &format!("{}M", mebibytes * 3 + 1024), THROUGH)?;
    let (from, to) = (tree.display(), mounted.dir.display());
    shell(&format!(
        "mkdir {to}/tar {to}/rsync; tar -C {from} -cf - . | tar -C {to}/tar -xpf -; rsync -aHAX {from}/ {to}/rsync/"
    ))?;
    // Nothing to bring over: contents, modes, owners, times, links, attributes are the same.
    let same = |dir: &str, flags: &str| {
        shell(&format!(
            "test -z \"$(rsync {flags} --checksum --delete --dry-run --itemize-changes {from}/ {to}/{dir}/ | tee /dev/stderr)\""
        ))
    };
    let both = || same("tar", "-aH").and_then(|()| same("rsync", "-aHAX"));
    both()?;
    mounted.umount()?;
    mounted.mount(How::plain("ro"))?;
    both()?;
    mounted.judge()
}

/// A program is built on a mount, and runs from there.
fn build(bench: &Bench) -> Result<()> {
    let mounted = Mounted::new(bench, "cargo", "2G", THROUGH)?;
    let dir = mounted.dir.join("small");
    fs_err::create_dir_all(dir.join("src"))?;
    fs_err::write(dir.join("Cargo.toml"), PACKAGE)?;
    fs_err::write(dir.join("src/main.rs"), PROGRAM)?;
    for _ in 0..2 {
        let mut cargo = process::cargo(["run", "--quiet", "--offline"]);
        let cargo = cargo.current_dir(&dir).env("CARGO_TARGET_DIR", dir.join("target"));
        let said = process::output(cargo)?;
        ensure!(said == b"Hello, world!\n", "it says {}", String::from_utf8_lossy(&said));
        shell(&format!("echo '// more' >> {}/src/main.rs", dir.display()))?;
    }
    mounted.judge()
}

/// The command of this project is built on a mount, sources and all; after another mount nothing is to be built, and
/// what was built works.
fn large_build(bench: &Bench) -> Result<()> {
    let mounted = Mounted::new(bench, "cargo-large", "6G", THROUGH)?;
    let dir = mounted.dir.join("clone");
    let (from, to) = (process::root(), dir.display());
    let begun = Instant::now();
    shell(&format!("git -c safe.directory='*' clone --quiet --no-hardlinks {} {to}", from.display()))?;
    let build = || {
        let mut cargo = process::cargo(["build", "--offline", "--package", "f2fs-cli"]);
        let ended = process::capture(cargo.current_dir(&dir).env("CARGO_TARGET_DIR", dir.join("target")), BUILD)?;
        ensure!(ended.success, "cargo failed:\n{}", ended.stderr);
        Ok::<_, anyhow::Error>(ended.stderr.matches("Compiling").count())
    };
    let built = build()?;
    ensure!(built > 20, "{built} packages were built");
    mounted.umount()?;
    mounted.mount(THROUGH)?;
    let again = build()?;
    ensure!(again == 0, "{again} of {built} packages were built once more behind another mount");
    let program = dir.join("target/debug/f2fs");
    let image = mounted.dir.join("inner.img");
    // A volume in a volume.
    process::output(Command::new(&program).args(["format", "--size", "64M"]).arg(&image))?;
    process::output(Command::new(&program).arg("check").arg(&image))?;
    println!("cargo, this repository: {built} packages in {:.0} s", begun.elapsed().as_secs_f64());
    mounted.judge()
}

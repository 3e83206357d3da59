//! `RocksDB` on a mount: keys in order, each synced, in whose middle the server is killed; random work of several threads
//! with direct and with mapped reads; compaction; and the same pairs behind another mount.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};

use super::Bench;
use super::volume::{How, Mounted};
use crate::{Result, process, tools};

/// Ways of mounting, and how `RocksDB` uses its tables there.
const WAYS: [(How, &[&str]); 3] = [
    (How::plain("cache=through"), &["--mmap_read=1"]),
    (How { options: "cache=writeback", page_cache: "64M" }, &[]),
    (How::plain("cache=none"), &["--use_direct_reads=1", "--use_direct_io_for_flush_and_compaction=1"]),
];
/// Small tables, so that few keys are compacted, too.
const SMALL: [&str; 4] =
    ["--write_buffer_size=262144", "--target_file_size_base=262144", "--value_size=400", "--seed=7"];
/// Bytes of a key of `db_bench`: the first eight are its number, the highest first.
const KEY: usize = 16;

/// `keys`: how many are written in order; twice as many by chance. `ways`: how many of the ways of mounting.
pub(crate) fn run(bench: &Bench, keys: u64, ways: usize) -> Result<()> {
    tools::require(&["db_bench", "ldb", "sst_dump", "fsck.f2fs"])?;
    let version = process::output(Command::new("ldb").arg("--version"))?;
    println!("{}", String::from_utf8_lossy(&version).trim());
    for (how, flags) in WAYS.iter().take(ways) {
        let begun = Instant::now();
        let mounted = Mounted::new(bench, "rocksdb", "2G", *how)?;
        let store = Store { path: mounted.dir.join("store"), flags };
        let told = store.killed(&mounted, keys)?;
        mounted.mount(*how)?;
        let there = store.numbers()?;
        // A kill loses no key of which RocksDB was told that its log is synced, and none in between.
        ensure!(there.len() as u64 >= told, "{how}: {told} keys were synced, {} are there", there.len());
        ensure!(there.iter().copied().eq(0..there.len() as u64), "{how}: keys are missing in front of the last one");
        store.worked(keys)?;
        let before = store.pairs()?;
        ensure!(before.lines().count() as u64 >= there.len() as u64 - keys / 2, "{how}: keys have gone");
        mounted.umount()?;
        mounted.mount(How::plain("ro"))?;
        store.tables()?;
        mounted.umount()?;
        mounted.mount(*how)?;
        ensure!(store.pairs()? == before, "{how}: other pairs behind another mount");
        mounted.judge()?;
        println!(
            "RocksDB, {how}: {told} keys synced before the kill, {} there; {} pairs in the end; {:.0} s",
            there.len(),
            before.lines().count(),
            begun.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

/// A database on a mount.
struct Store<'a> {
    path: PathBuf,
    flags: &'a [&'a str],
}

impl Store<'_> {
    fn bench(&self, benchmarks: &str, keys: u64) -> Command {
        let mut command = Command::new("db_bench");
        command.args(SMALL).args(self.flags).arg(format!("--db={}", self.path.display()));
        command.arg(format!("--benchmarks={benchmarks}")).arg(format!("--num={keys}"));
        command
    }

    fn ldb(&self, words: &[&str]) -> Result<Vec<u8>> {
        process::output(Command::new("ldb").arg(format!("--db={}", self.path.display())).args(words))
    }

    /// Writes keys in order, and syncs each; the server is killed in the middle. Returns how many were told as written.
    fn killed(&self, mounted: &Mounted<'_>, keys: u64) -> Result<u64> {
        let mut command = self.bench("fillseq", keys);
        command.args(["--sync=1", "--stats_interval=100"]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().context("db_bench")?;
        let (mut told, mut killed) = (0, false);
        for line in BufReader::new(child.stderr.take().context("no output")?).lines() {
            // `... thread 0: (100,1200) ops and ...`: since the last line, and in all.
            let line = line?;
            let Some((_, count)) = line.split_once("thread 0: (").and_then(|(_, counts)| counts.split_once(',')) else {
                continue;
            };
            told = count.split(')').next().context("no count")?.parse()?;
            if !killed && told >= keys / 2 {
                mounted.kill()?;
                killed = true;
            }
        }
        let ended = child.wait()?;
        ensure!(killed && !ended.success(), "db_bench ended with {ended} after {told} keys, server killed: {killed}");
        Ok(told)
    }

    /// Removals, random writes and reads by four threads among the first half of the keys, compaction; all checksums are
    /// right, and the tables consistent. (`verifyfilechecksums` does not work with mapped reads, whatever the file system.)
    fn worked(&self, keys: u64) -> Result<()> {
        let work = "deleterandom,overwrite,readwhilewriting,overwrite,compact,verifychecksum,readrandom";
        let mut command = self.bench(work, keys / 2);
        process::output(command.args(["--use_existing_db=1", "--threads=4"]))?;
        let said = self.ldb(&["checkconsistency"])?;
        ensure!(said.starts_with(b"OK"), "ldb: {}", String::from_utf8_lossy(&said));
        Ok(())
    }

    /// Each table by itself, which needs no right to write.
    fn tables(&self) -> Result<()> {
        let said = process::output(
            Command::new("sst_dump")
                .args(["--command=verify", "--show_properties"])
                .arg(format!("--file={}", self.path.display())),
        )?;
        let said = String::from_utf8_lossy(&said);
        let tables = tables_in(&self.path)?;
        let whole = said.matches("The file is ok").count();
        ensure!(whole == tables && tables > 0, "sst_dump: {whole} of {tables} tables are whole:\n{said}");
        Ok(())
    }

    /// All keys and values, in hexadecimal digits, a line for each pair.
    fn pairs(&self) -> Result<String> {
        Ok(String::from_utf8(self.ldb(&["scan", "--hex"])?)?)
    }

    /// The numbers that the keys are made of, in the order of the store.
    fn numbers(&self) -> Result<Vec<u64>> {
        let pairs = self.pairs()?;
        let number = |line: &str| {
            let key = line.strip_prefix("0x").and_then(|line| line.get(..2 * KEY)).context("no key")?;
            u64::from_str_radix(&key[..16], 16).with_context(|| format!("no number: {key}"))
        };
        pairs.lines().map(number).collect()
    }
}

/// How many tables a store consists of.
fn tables_in(path: &Path) -> Result<usize> {
    let mut tables = 0;
    for entry in fs_err::read_dir(path)? {
        tables += usize::from(entry?.path().extension().is_some_and(|extension| extension == "sst"));
    }
    Ok(tables)
}

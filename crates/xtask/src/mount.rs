//! `cargo xtask mount`: suites and programs of others, on volumes that `f2fs mount` serves.
//!
//! ```text
//!   format ── mount ── a suite, programs ── unmount ── f2fs check, fsck.f2fs --dry-run
//! ```
//!
//! They need root and `/dev/fuse`. The suites are programs in Rust, which cargo installs below `target/mount/tools`;
//! they stay there.

mod fsx;
mod interrupt;
mod peers;
mod pjdfstest;
mod postgres;
mod programs;
mod rocksdb;
mod stress;
mod volume;
mod xfstests;

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::ValueEnum;

use crate::{Result, Usage, built, process, tools};

/// Options of `cargo xtask mount`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only this suite.
    judge: Option<Judge>,
    /// Use few operations and small trees, for a run of two minutes (building not counted).
    #[arg(long)]
    quick: bool,
    /// Number of operations of fsx for each way of mounting.
    #[arg(long, default_value_t = 1_000_000, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    operations: u64,
    /// The seed of fsx.
    #[arg(long, default_value_t = 42, value_name = "NUMBER")]
    seed: u64,
    /// Number of transactions of sqlite3 for each of its journal modes; twice as many keys of `RocksDB`.
    #[arg(long, default_value_t = 10_000, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    transactions: u64,
    /// Seconds that each of stress-ng's stressors, and dbench, works.
    #[arg(long, default_value_t = 30, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Rounds of PostgreSQL, of three kills each; rounds of the peers.
    #[arg(long, default_value_t = 5, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Files of each row of the peers.
    #[arg(long, default_value_t = 15_000, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    files: u64,
    /// Only rows of the peers, or tests of xfstests, with this in their names.
    #[arg(long, default_value = "", value_name = "NAME")]
    only: String,
    /// The directory that is copied into a mount and back.
    #[arg(long, default_value = "/usr/share", value_name = "DIR")]
    tree: PathBuf,
    /// The directory in which xfstests was built. Its tests run only with this.
    #[arg(long, value_name = "DIR")]
    xfstests: Option<PathBuf>,
    /// Mount with this command `f2fs`, instead of one that is built now.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// The directory for the images [default: target/mount].
    #[arg(long, value_name = "DIR")]
    images: Option<PathBuf>,
}

/// Who judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Judge {
    /// pjdfstest: the rules of POSIX for system calls.
    Pjdfstest,
    /// fsx: random operations on one file, whose content is compared after each.
    Fsx,
    /// stress-ng, fio, `fs_mark`, dbench, bonnie++ and postmark: load, and checks of what is read.
    Stress,
    /// PostgreSQL: clients, kills of it and of the mount's server, recovery.
    Postgres,
    /// Work with git, sqlite3, tar, rsync and cargo.
    Programs,
    /// `RocksDB`: a kill of the mount's server between synced keys, random work, compaction, checksums.
    Rocksdb,
    /// xfstests: what the kernel's file systems are held to. Runs only where it is built (`--xfstests DIR`).
    Xfstests,
    /// Rates beside those of a pass-through above ext4. Runs only if it is named.
    Peers,
}

/// The equipment.
#[derive(Debug)]
struct Bench {
    /// The command `f2fs`.
    f2fs: PathBuf,
    images: PathBuf,
}

/// Runs the judges.
///
/// # Errors
///
/// If this process may not mount, a program is missing or fails, or a volume is not clean afterwards.
pub(crate) fn run(args: &Args) -> Result<()> {
    if !tools::is_root() || !Path::new("/dev/fuse").exists() {
        bail!("mounts need root and /dev/fuse");
    }
    interrupt::hear()?;
    let f2fs = match &args.program {
        Some(program) => fs_err::canonicalize(program)?,
        None => built::release("f2fs-cli", "f2fs", &[])?,
    };
    let images = args.images.clone().unwrap_or_else(|| process::root().join("target/mount"));
    fs_err::create_dir_all(&images)?;
    let bench = Bench { f2fs, images: fs_err::canonicalize(&images)? };
    let wanted = |judge| args.judge.is_none_or(|only| only == judge);
    if wanted(Judge::Pjdfstest) {
        pjdfstest::run(&bench)?;
    }
    if wanted(Judge::Fsx) {
        fsx::run(&bench, if args.quick { args.operations.min(2500) } else { args.operations }, args.seed)?;
    }
    if wanted(Judge::Stress) {
        let seconds = if args.quick { args.seconds.min(3) } else { args.seconds };
        stress::run(&bench, stress::Amount { seconds, quick: args.quick })?;
    }
    if wanted(Judge::Postgres) {
        let (clients, seconds) = if args.quick { (2, 2) } else { (4, args.seconds) };
        let (rounds, ways) = if args.quick { (1, 1) } else { (args.rounds, 2) };
        postgres::run(&bench, postgres::Amount { clients, seconds, rounds, ways })?;
    }
    if wanted(Judge::Programs) {
        let tree = if args.quick { process::root().join("crates") } else { args.tree.clone() };
        let transactions = if args.quick { args.transactions.min(100) } else { args.transactions };
        programs::run(&bench, &tree, transactions, !args.quick)?;
    }
    if wanted(Judge::Rocksdb) {
        let (keys, ways) = if args.quick { (1000, 1) } else { (2 * args.transactions, 3) };
        rocksdb::run(&bench, keys, ways)?;
    }
    match &args.xfstests {
        Some(suite) if wanted(Judge::Xfstests) => xfstests::run(&bench, suite, args.quick, &args.only)?,
        None if args.judge == Some(Judge::Xfstests) => {
            bail!(Usage("name the directory in which xfstests was built: --xfstests DIR".to_owned()));
        }
        _ => {}
    }
    if args.judge == Some(Judge::Peers) {
        let (rounds, files) = if args.quick { (1, args.files.min(2000)) } else { (args.rounds, args.files) };
        let bytes = if args.quick { 16 << 20 } else { 256 << 20 };
        peers::run(&bench, &peers::Amount { rounds, files, bytes, only: args.only.clone() })?;
    }
    Ok(())
}

/// A program that cargo installs: the one on the path, or one below `target/mount/tools`.
fn installed(name: &str, version: &str) -> Result<PathBuf> {
    if let Some(found) = tools::find(name) {
        return Ok(found);
    }
    let root = process::root().join("target/mount/tools");
    let program = root.join("bin").join(name);
    if !program.is_file() {
        let mut install = process::cargo(["install", "--locked", "--version", version, "--root"]);
        process::run(install.arg(&root).arg(name))?;
    }
    Ok(program)
}

//! `cargo xtask guest`: tests in which the Linux kernel is the judge.
//!
//! Each test boots a virtual machine (QEMU, with KVM where that is to be had and else in software emulation; a kernel
//! of Debian, 6.12 where no other is asked for, an initial RAM disk made here) with images as its disks, runs a script
//! in it, and compares what the kernel saw with what this project and `fsck.f2fs` see. Everything that is fetched or
//! built is kept under `target/guest`.

mod aged;
mod copies;
mod cpio;
mod depth_one;
mod devices;
mod features;
mod first_sync;
mod fuse_uring;
mod fuzz_volumes;
mod here;
mod initrd;
mod judge;
pub(crate) mod kernel;
mod machine;
mod machinery;
mod made_by_kernel;
mod made_here;
mod modules;
mod nvme;
mod nvme_fio;
mod nvme_tcp;
mod pass_through;
mod pmem;
pub(crate) mod programs;
mod rocksdb;
mod rolled_forward;
mod rounds;
mod scaling;
mod several;
mod slow_card;
mod ublk;
mod ublk_copies;
mod ublk_kinds;
mod ublk_speed;
mod ublk_systems;
mod unclean;
mod varmail;
mod zone_sizes;
mod zoned;
mod zones;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;

use self::here::Here;
use self::kernel::Kernel;
use self::machine::Guest;
pub(crate) use self::machine::GuestOutput;
use self::programs::Programs;
use crate::{Result, Usage, files, process, tools};

/// Options of `cargo xtask guest`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Run only the tests with these names.
    tests: Vec<String>,
    /// List the tests, and run none.
    #[arg(long)]
    list: bool,
    /// Build the programs for the virtual machine and fetch its kernel, and run no test.
    #[arg(long)]
    prepare: bool,
    /// Take the programs as `cargo xtask test` built them for its tests, in place of building them for the virtual
    /// machine.
    #[arg(long)]
    as_tested: bool,
    /// Keep the images of tests that passed. Those of failed tests are always kept, under target/guest/images.
    #[arg(long)]
    keep: bool,
    /// Number of virtual machines that run at the same time, each with one processor.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Use smaller trees, for a run of minutes: medium in place of large ones, small in place of medium ones. What only
    /// measures is left out, unless it is named.
    #[arg(long)]
    quick: bool,
    /// The series of Debian's kernels that judges, such as 6.12 or 7.3. Its newest package is fetched with apt, if it
    /// was not fetched before.
    #[arg(long, value_name = "SERIES", default_value = kernel::SERIES, value_parser = series)]
    kernel: String,
    /// Processors of the virtual machine of the test `scaling` [default: as many as this machine has, 16 at most].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=255))]
    processors: Option<u32>,
}

/// The features of `mkfs.f2fs -O` that change inodes and checksums, beside the plain format.
const EXTRA_FEATURES: &str = "extra_attr,inode_checksum,sb_checksum,inode_crtime,flexible_inline_xattr,lost_found";

/// The equipment of every test.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) guest: Guest,
    pub(crate) here: Here,
    images: PathBuf,
    /// Where programs are built.
    cache: PathBuf,
    quick: bool,
    /// Processors of a machine that measures scaling, if they were given.
    processors: Option<u32>,
}

impl Bench {
    /// The scale of a tree.
    fn scale(&self, scale: &'static str) -> &'static str {
        match scale {
            "full" | "wide" if self.quick => "medium",
            "medium" if self.quick => "small",
            scale => scale,
        }
    }

    /// The file for an image with this name.
    fn image(&self, name: &str) -> PathBuf {
        self.images.join(format!("{name}.img"))
    }
}

/// The report of a test that passed.
#[derive(Debug)]
struct Outcome {
    /// The guest's running time.
    wall: Duration,
    remark: String,
}

/// A test: its name, what it shows, and the function that runs it.
type Test = (&'static str, &'static str, fn(&Bench) -> Result<Outcome>);

/// The tests, the longest ones first: so no processor waits long for the last one.
const TESTS: [Test; 17] = [
    (
        "devices",
        "volumes on every kind of device: rates, ageing, a crash, checks, the kernel's view (prints a table)",
        devices::run,
    ),
    (
        "made-by-kernel",
        "trees made by the kernel are the same here, and changed here the same there",
        made_by_kernel::run,
    ),
    ("made-here", "trees made here are the same in the kernel, and changed there the same here", made_here::run),
    ("nvme", "the library on /dev/nvme0n1 in the guest, through io_uring, and the kernel agree", nvme::run),
    (
        "rolled-forward",
        "files that either side synced before it was stopped hard are recovered the same on both",
        rolled_forward::run,
    ),
    ("unclean", "volumes that either side left without closing show the same last checkpoint on both", unclean::run),
    (
        "depth-one",
        "one request takes the library as long as the kernel, on persistent memory and NVMe (prints a table)",
        depth_one::run,
    ),
    (
        "pmem",
        "persistent memory as a block device, a DAX file and a character device: killed, opened again, mounted by the kernel",
        pmem::run,
    ),
    (
        "ublk",
        "devices served by f2fs ublk: data, file systems, zones, a killed server, signals, speed beside null_blk",
        ublk::run,
    ),
    ("machinery", "a failing script, a kernel panic and a hang in the guest are seen here", machinery::run),
    (
        "features",
        "casefolded, compressed, encrypted and verity files are shown as the kernel shows them without keys",
        features::run,
    ),
    (
        "several",
        "volumes on three devices, made by mkfs.f2fs and here, are the same in the kernel and here",
        several::run,
    ),
    (
        "zoned",
        "volumes on zones are those of mkfs.f2fs; the kernel fills them, and they are read and checked here",
        zoned::run,
    ),
    ("zones", "zones change their states here as those of the kernel's null_blk do", zones::run),
    ("copies", "f2fs put -r and get -r keep every kind of file and attribute", copies::run),
    (
        "fuzz-volumes",
        "small volumes made by the kernel, of the kind that the fuzz targets damage, are sound here",
        fuzz_volumes::run,
    ),
    (
        "aged",
        "volumes overwritten many times, full of holes, are the same in the kernel, which goes on with them",
        aged::run,
    ),
];

/// Tests that run only when they are named, since they take long.
const BY_HAND: [Test; 14] = [
    (
        "ublk-kinds",
        "every kind of device of f2fs ublk: fio compares what it wrote, the device suite runs on them",
        ublk_kinds::run,
    ),
    (
        "ublk-systems",
        "ext4, XFS, Btrfs, F2FS and zonefs on devices of f2fs ublk, with and without zones",
        ublk_systems::run,
    ),
    (
        "first-sync",
        "the first fsync after a checkpoint in Linux's F2FS does not wait for its node: traces, times, dm-log-writes",
        first_sync::run,
    ),
    (
        "pass-through",
        "NVMe namespaces by their own commands: the device suite, commands seen by the kernel, a volume, refusals",
        pass_through::run,
    ),
    (
        "nvme-tcp",
        "a volume over TCP whose target goes away: what was synced is there, what fails says so within its time",
        nvme_tcp::run,
    ),
    (
        "ublk-speed",
        "devices of f2fs ublk beside rublk's, null_blk and brd: rates, system calls for a request (prints tables)",
        ublk_speed::run,
    ),
    (
        "ublk-copies",
        "devices of files of f2fs ublk by each way of data, requests of 4 to 256 KiB, beside rublk's (prints a table)",
        ublk_copies::run,
    ),
    (
        "zone-sizes",
        "what Linux's F2FS and the library write for a key-value store on zones of several sizes (prints a table)",
        zone_sizes::run,
    ),
    (
        "rocksdb",
        "what Linux's F2FS and a mount of the library write for RocksDB on zones of several sizes (prints a table)",
        rocksdb::run,
    ),
    (
        "slow-card",
        "a long write into an aged volume on an SD card's costs, by Linux and by the library, by a real clock (prints a table)",
        slow_card::run,
    ),
    (
        "varmail",
        "a mail server's work on ext4, Linux's F2FS and with the library, journals in several places (prints tables)",
        varmail::run,
    ),
    (
        "scaling",
        "FxMark on Linux's F2FS and with the library, at 1 to 16 threads of as many processors (prints a table)",
        scaling::run,
    ),
    (
        "fuse-uring",
        "mounts whose requests come through io_uring (--kernel 6.14 or later), beside those by /dev/fuse (prints a table)",
        fuse_uring::run,
    ),
    (
        "nvme-fio",
        "an NVMe namespace, as a block device and by its own commands, beside fio (prints tables)",
        nvme_fio::run,
    ),
];

/// Runs the guest tests.
///
/// # Errors
///
/// If the virtual machine cannot be started, or a test in it fails.
pub(crate) fn run(args: Args) -> Result<()> {
    let Args { tests, list, prepare, as_tested, keep, jobs, quick, processors, kernel } = args;
    let chosen = choose(&tests, quick)?;
    if list {
        let by_hand = if tests.is_empty() { &BY_HAND[..] } else { &[] };
        for (name, shows, _) in chosen.iter().chain(by_hand) {
            let when = if BY_HAND.iter().any(|test| test.0 == *name) { " (only when named)" } else { "" };
            println!("{name:<16} {shows}{when}");
        }
        return Ok(());
    }
    if prepare && as_tested {
        tools::require(tools::FOR_GUEST)?;
        return Kernel::obtain(&cache(), &kernel).map(drop);
    }
    let programs = if as_tested { Programs::as_tested()? } else { Programs::built(&cache())? };
    let bench = Bench { processors, ..with_programs(programs, &kernel, quick)? };
    if prepare {
        return Ok(());
    }
    let cache = cache();
    let failed = run_all(&bench, &chosen, jobs);
    if !keep {
        for (name, ..) in chosen.iter().filter(|(name, ..)| !failed.contains(name)) {
            remove_images(&bench, name)?;
        }
    }
    if !failed.is_empty() {
        let logs = cache.join("run");
        bail!(
            "{} of {} guest tests failed: {}; logs: {}",
            failed.len(),
            chosen.len(),
            failed.join(", "),
            logs.display()
        );
    }
    println!("all {} guest tests passed", chosen.len());
    Ok(())
}

/// A kernel series: two numbers with a point between them.
pub(crate) fn series(text: &str) -> Result<String> {
    let is_number = |part: &str| !part.is_empty() && part.len() < 5 && part.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('.') {
        Some((major, minor)) if is_number(major) && is_number(minor) => Ok(text.to_owned()),
        _ => bail!("a series is two numbers, such as 6.12"),
    }
}

/// Where everything is kept.
pub(crate) fn cache() -> PathBuf {
    process::root().join("target/guest")
}

/// The equipment: the programs are built, the kernel of a series is fetched.
///
/// # Errors
///
/// If a program is missing and cannot be installed, or something does not build.
pub(crate) fn bench(series: &str, quick: bool) -> Result<Bench> {
    with_programs(Programs::built(&cache())?, series, quick)
}

/// The same with programs that were built.
fn with_programs(programs: Programs, series: &str, quick: bool) -> Result<Bench> {
    tools::require(tools::FOR_GUEST)?;
    let cache = cache();
    let images = cache.join("images");
    fs_err::create_dir_all(&images)?;
    let here = Here { f2fs: programs.f2fs.clone(), agent: programs.agent.clone() };
    let guest = Guest::new(&cache, series, programs)?;
    let bench = Bench { guest, here, images, cache, quick, processors: None };
    println!("guest tests with Linux {}", bench.guest.release());
    Ok(bench)
}

/// Runs the tests, so many at a time; gives the names of those that failed.
fn run_all(bench: &Bench, tests: &[Test], jobs: usize) -> Vec<&'static str> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        let work = || {
            while let Some((name, shows, test)) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
                println!("  {name}: {shows}");
                let start = Instant::now();
                match test(bench) {
                    Ok(outcome) => {
                        let (all, guest) = (start.elapsed().as_secs_f32(), outcome.wall.as_secs_f32());
                        println!("  {name}: ok in {all:.0} s, of these {guest:.0} s in the guest: {}", outcome.remark);
                    }
                    Err(error) => {
                        println!("  {name}: FAILED after {:.0} s: {error:#}", start.elapsed().as_secs_f32());
                        failed.lock().unwrap_or_else(PoisonError::into_inner).push(*name);
                    }
                }
            }
        };
        (1..jobs.min(tests.len())).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Of the tests that run by themselves, those that only measure: a quick run has no use for rates of a busy machine.
const MEASUREMENTS: [&str; 1] = ["depth-one"];

fn choose(names: &[String], quick: bool) -> Result<Vec<Test>> {
    let all = || TESTS.iter().chain(&BY_HAND);
    if let Some(unknown) = names.iter().find(|name| !all().any(|test| test.0 == name.as_str())) {
        let what = format!("there is no guest test {unknown}; `cargo xtask guest --list` lists them");
        bail!(Usage(what));
    }
    if names.is_empty() {
        return Ok(TESTS.into_iter().filter(|test| !quick || !MEASUREMENTS.contains(&test.0)).collect());
    }
    Ok(all().filter(|test| names.iter().any(|name| name == test.0)).copied().collect())
}

/// The images of a test, whose names begin with the test's.
fn remove_images(bench: &Bench, test: &str) -> Result<()> {
    for path in files::entries(&bench.images)? {
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(test)) {
            fs_err::remove_file(path)?;
        }
    }
    Ok(())
}

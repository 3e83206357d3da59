//! Read-only consistency check of a volume.
//!
//! The check reads blocks and believes nothing else: it shares the structures of the crate `f2fs-format` with the
//! volume, and no other code, so that it can judge the volume's work. It finds all that `fsck.f2fs --dry-run` finds,
//! and faults that fsck.f2fs does not see: impossible sizes and link counts, names that stand twice, garbage in
//! extended attributes, wrong node offsets, bad journal entries.
//!
//! ```text
//!  superblock -> pack -> logs, journals, orphans -> NAT, SIT      one thread, tables in parallel
//!                                                     |
//!               root, orphans, quota files -> wave of inodes -> next wave -> ...      all threads
//!                                                     |
//!                  reached blocks = SIT, reached nodes = NAT, counts, links           in parallel
//! ```
//!
//! | Module | What it checks |
//! |---|---|
//! | `superblock`, `pack`, `logs`, `recovery` | both superblocks, both packs, orphans, summaries, NAT bits, the fsync chain |
//! | `nat`, `sit`, `summary` | the tables, and the owner of each block |
//! | `walk`, `inode`, `tree`, `extent`, `clusters`, `xattr`, `directory`, `names`, `quota` | everything that is reachable |
//! | `source`, `ahead`, `buffers`, `pipeline` | reading: in large requests, and before it is asked for |
//! | `totals` | what must add up at the end |
//! | [`repair`] | what was found is put right |
//!
//! # What is not judged
//!
//! Data is not judged: neither whether compressed clusters can be decompressed, nor verity's digests, nor the numbers in
//! quota files, which `fsck.f2fs` counts again. The hash of a casefolded name that is not ASCII, or that is encrypted, is
//! taken as right; the name's place is judged by it.
//!
//! # Bounds
//!
//! Memory grows with the blocks in use, and not with the sizes that an image claims: tables and bitmaps are kept in
//! pieces that appear when needed (one bit a block, nine bytes a NAT entry, eight bytes a linked inode), findings are
//! limited ([`MAX_PER_KIND`]), and numbers are checked before anything is sized by them. Every node and every block is
//! followed once, so that no loop in an image holds the check up. Read-ahead takes at most 60 MiB for a thread, and
//! mostly a tenth of that; summaries of segments take 4 MiB.
//!
//! # Reading
//!
//! Tables, summaries, nodes and dentry blocks are read in the order of their addresses, up to 1 MiB by a request, and
//! while the ones before are checked. A device that is not opened with `O_DIRECT` serves them from the page cache if
//! they are there. That is the best for an image file that was just made, copied or checked.
//!
//! # Locking model
//!
//! The check has its own pool of threads, which ends with it. They share atomic bitmaps and counters; the only locks
//! are a mutex around the list of findings and one for each slot of the summary cache, each held alone and briefly.
//!
//! # Example
//!
//! ```
//! use f2fs_device::MemoryDevice;
//! use f2fs_check::{CheckError, CheckOptions, check};
//!
//! let device = MemoryDevice::new(1 << 14);
//! let error = check(&device, &CheckOptions::default()).unwrap_err();
//! assert!(matches!(error, CheckError::NoSuperblock { .. }));
//! ```
#![doc = ""]
#![doc = include_str!("corpus.md")]
#![forbid(unsafe_code)]

mod ahead;
mod alias;
mod buffers;
mod clusters;
mod directory;
mod error;
mod extent;
mod finding;
mod inode;
mod logs;
mod names;
mod nat;
mod pack;
mod pipeline;
mod quota;
mod recovery;
pub mod repair;
mod report;
mod sit;
mod source;
mod sparse;
mod subject;
mod summary;
mod superblock;
#[cfg(test)]
mod tests;
mod totals;
mod tree;
mod walk;
mod xattr;
mod zones;

use std::fmt;

use f2fs_device::BlockDevice;
use f2fs_format::checkpoint::flags;
use f2fs_format::{LogType, Nid};

pub use error::CheckError;
pub use finding::{Finding, FindingKind, Place, Problem, Severity};
pub use report::{CheckReport, Counts, MAX_PER_KIND};

use nat::NatTable;
use report::Collector;
use sit::SitTable;
use source::Source;
use subject::Subject;
use summary::Summaries;
use walk::Role;
use zones::Zones;

/// Threads of a check at most, whatever was asked for.
const MOST_THREADS: usize = 256;
/// Blocks of the device for each thread, unless a number of threads was asked for: 16 MiB. Starting more of them takes
/// longer than the check of so few.
const BLOCKS_PER_THREAD: u64 = 4096;

/// A part of the check, for progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Superblocks, packs, NAT and SIT are read. Counted in steps.
    Tables,
    /// Everything reachable is walked. Counted in nodes; the total is the number that the checkpoint claims.
    Tree,
    /// The blocks that were reached are compared with the tables. Counted in steps.
    Totals,
}

/// How far a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The part it is in.
    pub phase: Phase,
    /// How much of the part is done.
    pub done: u64,
    /// How much it is in all, as far as that can be known. `done` may pass it on a corrupt volume.
    pub total: u64,
}

/// How to check.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct CheckOptions<'a> {
    /// Threads to use, 256 at most; `None`: as many as there are processors, and one for each 16 MiB at most. `Some(0)`: those of the rayon pool that
    /// the caller runs in. That saves starting threads when many small volumes are checked.
    pub threads: Option<usize>,
    /// Called with the progress, from any thread, every few inodes.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl<'a> CheckOptions<'a> {
    /// As many threads as there are processors and the volume has work for, and nobody is told of the progress.
    #[must_use]
    pub const fn new() -> CheckOptions<'a> {
        CheckOptions { threads: None, progress: None }
    }

    /// Threads to use, 256 at most; 0: those of the rayon pool that the caller runs in.
    #[must_use]
    pub const fn threads(mut self, threads: usize) -> CheckOptions<'a> {
        self.threads = Some(threads);
        self
    }

    /// Is called with the progress, from any thread, every few inodes.
    #[must_use]
    pub const fn progress(mut self, progress: &'a (dyn Fn(Progress) + Sync)) -> CheckOptions<'a> {
        self.progress = Some(progress);
        self
    }
}

impl fmt::Debug for CheckOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckOptions").field("threads", &self.threads).finish_non_exhaustive()
    }
}

/// Checks the volume on `device`, without a write. It judges the last checkpoint: the files that roll-forward would add
/// after an unclean stop is not looked at, beyond its chain of nodes. Others may read the device meanwhile; nobody may
/// have it open for writing.
///
/// # Errors
/// [`CheckError`] if there is no verdict: the device is open for writing or fails, there is no volume on it, or one
/// that cannot be judged. A volume that is there but broken is a report.
pub fn check(device: &dyn BlockDevice, options: &CheckOptions<'_>) -> Result<CheckReport, CheckError> {
    let _claim = device.claims().shared("a check")?;
    judge(device, options)
}

/// The same, for a caller that has a claim.
fn judge(device: &dyn BlockDevice, options: &CheckOptions<'_>) -> Result<CheckReport, CheckError> {
    if options.threads == Some(0) {
        return run(device, options);
    }
    let wanted = match options.threads.unwrap_or(0) {
        0 => usual_threads(f2fs_sync::processors(), device.info().blocks),
        threads => threads.min(MOST_THREADS),
    };
    let mut threads = wanted;
    // Without more threads fewer do it, in the end the caller's alone.
    while threads > 0 {
        if let Ok(pool) = pool(threads).build() {
            return pool.install(|| run(device, options));
        }
        threads /= 2;
    }
    if rayon::current_thread_index().is_some() {
        return run(device, options);
    }
    let alone = pool(1).use_current_thread().build();
    let failed =
        |error: rayon::ThreadPoolBuildError| CheckError::Threads { threads: wanted, reason: error.to_string() };
    alone.map_err(failed)?.install(|| run(device, options))
}

/// Threads for a device of so many blocks.
fn usual_threads(processors: usize, blocks: u64) -> usize {
    let useful = usize::try_from(blocks / BLOCKS_PER_THREAD).unwrap_or(usize::MAX);
    processors.min(useful.max(2)).min(MOST_THREADS)
}

fn pool(threads: usize) -> rayon::ThreadPoolBuilder {
    rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|index| format!("f2fs-check-{index}"))
}

fn run(device: &dyn BlockDevice, options: &CheckOptions<'_>) -> Result<CheckReport, CheckError> {
    let source = Source::new(device);
    let findings = Collector::default();
    let step = |phase, done, total| {
        if let Some(progress) = options.progress {
            progress(Progress { phase, done, total });
        }
    };
    step(Phase::Tables, 0, 3);
    let (sb, geometry) = superblock::load(&source, &findings)?;
    let Some(pack) = pack::load(&source, &geometry, &findings)? else {
        return Ok(findings.report(Counts::default(), false));
    };
    let zones = Zones::load(&source, &geometry, &findings)?;
    zones.check_logs(&pack, &geometry, &findings);
    let orphans = logs::orphans(&source, &pack, &geometry, &findings)?;
    let logs = logs::load(&source, &pack, &findings)?;
    step(Phase::Tables, 1, 3);
    let mut nat = NatTable::load(&source, &geometry, &pack.bitmaps.nat)?;
    logs::check_nat_bits(&source, &pack, &geometry, (&nat, &logs.nat_journal), &findings)?;
    nat.apply_journal(&logs.nat_journal, &geometry, &findings);
    step(Phase::Tables, 2, 3);
    let mut sit = SitTable::load(&source, &geometry, &pack.bitmaps.sit)?;
    sit.apply_journal(&logs.sit_journal, &findings);
    let summaries = Summaries::new(logs.summaries, &geometry);
    for log in LogType::ALL.into_iter().filter(|log| geometry.has_log(*log)) {
        sit.check_log(log, pack.log(log), pack.is_ssr(log), &findings);
    }
    recovery::check(&source, &pack, &geometry, &sit, &findings)?;
    step(Phase::Tables, 3, 3);

    let seed = f2fs_format::inode::checksum_seed(&sb);
    let nodes = pack.header().valid_node_count.get().into();
    let quota = Role::Quota { is_counted: !pack.has(flags::QUOTA_NEED_FSCK) };
    let quota_files: Vec<(Nid, Role)> =
        sb.qf_ino.iter().map(|ino| Nid::from(*ino)).filter(|ino| !ino.is_null()).map(|ino| (ino, quota)).collect();
    let subject = Subject::new(&source, &geometry, seed, (nat, sit), summaries, &findings, options.progress, nodes);
    subject.summaries.fill(&subject)?;
    walk::walk(&subject, &orphans, &quota_files)?;
    let free_segments = totals::check(&subject, &pack, &zones)?;
    let counts = subject.counts(free_segments);
    Ok(findings.report(counts, true))
}

/// The example of this crate's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

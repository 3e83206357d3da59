//! How the check reads: in large requests, ahead of what it looks at, never too much at once, and without that
//! mattering.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use f2fs_device::{
    BlockDevice, Claims, Completion, DeviceError, DeviceErrorKind, DeviceInfo, MemoryDevice, Request, Ticket,
};
use f2fs_device_test::Random;
use f2fs_format::BlockAddr;
use f2fs_format::inode::{inline, mode};
use f2fs_format::node::NodeBlock;

use super::hostile::{damage, targets};
use super::image::{Image, populated};
use crate::{CheckError, CheckOptions, CheckReport, check};

const ONE_THREAD: CheckOptions<'_> = CheckOptions { threads: Some(1), progress: None };

/// A device that counts what is asked for. It may refuse longer requests behind some block.
#[derive(Debug)]
struct Watched {
    inner: MemoryDevice,
    refuses_from: u64,
    requests: AtomicUsize,
    /// Blocks of the largest batch.
    largest: AtomicUsize,
}

impl Watched {
    fn new(inner: &MemoryDevice, refuses_from: u64) -> Watched {
        Watched { inner: inner.snapshot(), refuses_from, requests: AtomicUsize::new(0), largest: AtomicUsize::new(0) }
    }

    fn check(&self) -> Result<CheckReport, CheckError> {
        check(self, &ONE_THREAD)
    }
}

impl BlockDevice for Watched {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn claims(&self) -> &Claims {
        self.inner.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        self.requests.fetch_add(requests.len(), Relaxed);
        self.largest.fetch_max(requests.iter().map(|request| request.blocks() as usize).sum(), Relaxed);
        let run = |request: Request| {
            if request.start >= self.refuses_from && request.blocks() > 1 {
                return Completion { result: Err(request.error(DeviceErrorKind::from_errno(5))), request };
            }
            self.inner.execute(request)
        };
        Ticket::ready(requests.into_iter().map(run).collect())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.inner.flush()
    }
}

#[test]
fn neighbours_are_read_together() {
    let device = Watched::new(&populated().device, u64::MAX);
    let report = device.check().unwrap();
    let (requests, blocks) = (device.requests.into_inner(), report.counts.blocks_read);
    assert!(report.counts.nodes > 700, "{report}");
    assert!(requests <= 160, "{requests} requests for {blocks} blocks");
}

/// Puts the inodes of 700 files into each other's blocks, so that neighbours in their directory are far from each
/// other.
fn scatter(image: &Image) {
    let name = |index: usize| format!("many/a name that takes several slots, number {index:04}");
    let inodes: Vec<_> = (0..700).map(|index| image.find(&name(index)).ino).collect();
    let nodes: Vec<_> = inodes.iter().map(|ino| (image.addr(*ino), image.node(*ino))).collect();
    for (index, (ino, (_, node))) in inodes.iter().zip(&nodes).enumerate() {
        let (addr, _) = nodes[index * 277 % 700];
        image.put(addr, node.as_block());
        image.edit_nat(*ino, |entry| entry.block_addr = addr.into());
        let (summary, slot) = image.summary_of(addr);
        image.edit_summary(summary, |summary| summary.entries[slot].nid = (*ino).into());
    }
}

#[test]
fn inodes_are_read_in_the_order_of_their_blocks() {
    let image = populated().copy();
    let requests = |image: &Image| {
        let device = Watched::new(&image.device, u64::MAX);
        let report = device.check().unwrap();
        assert!(report.is_clean() && report.counts.nodes > 700, "{report}");
        device.requests.into_inner()
    };
    let together = requests(&image);
    scatter(&image);
    let scattered = requests(&image);
    assert!(scattered <= together + 10, "{scattered} requests, and {together} where they lie as they are named");
}

#[test]
fn a_read_ahead_that_fails_changes_nothing() {
    let image = populated();
    let targets = targets(image);
    let mut found = 0;
    for round in 0..60 {
        let mutant = image.copy();
        let done = damage(&mutant, &targets, &mut Random::new(round));
        let main = mutant.geometry.main_blkaddr.0.into();
        let (whole, alone) = (Watched::new(&mutant.device, u64::MAX), Watched::new(&mutant.device, main));
        match (whole.check(), alone.check()) {
            (Ok(expected), Ok(report)) => {
                found += usize::from(!expected.is_clean());
                assert_eq!(report.findings, expected.findings, "round {round}: {done:?}");
                assert_eq!(report.counts.nodes, expected.counts.nodes, "round {round}: {done:?}");
                assert!(expected.counts.nodes == 0 || alone.requests.into_inner() > whole.requests.into_inner());
            }
            (expected, report) => {
                let [expected, report] = [expected, report].map(|verdict| verdict.unwrap_err().to_string());
                assert_eq!(report, expected, "round {round}: {done:?}");
            }
        }
    }
    assert!(found > 20, "{found} of 60 mutants have findings");
}

/// Makes a file a directory whose inode refers to a block in every third place of the main area.
fn swell(image: &Image, addr: BlockAddr) {
    let first = image.geometry.main_blkaddr;
    let mut node = *NodeBlock::read(&image.block(addr));
    let inode = node.inode_mut();
    inode.i_mode = (mode::DIRECTORY | 0o755).into();
    inode.i_inline &= !(inline::DATA | inline::DENTRY);
    for (index, slot) in (0..).zip(inode.i_addr[10..800].iter_mut()) {
        *slot = first.offset(3 * index).into();
    }
    image.put(addr, node.as_block());
}

#[test]
fn inodes_that_refer_to_many_blocks_do_not_fill_the_memory() {
    let image = populated().copy();
    for index in 0..200 {
        let name = format!("many/a name that takes several slots, number {index:04}");
        swell(&image, image.addr(image.find(&name).ino));
    }
    let device = Watched::new(&image.device, u64::MAX);
    assert!(!device.check().unwrap().is_consistent());
    let largest = device.largest.into_inner();
    // 768 blocks, and two in each gap. Without a limit it would be a hundred times that: 64 inodes are checked in a
    // row.
    assert!((768..=3 * 768).contains(&largest), "{largest} blocks at once");
}

/// Many processors do not make many threads for little to read.
#[test]
fn a_small_volume_has_few_threads() {
    for (processors, mib, threads) in
        [(1, 64, 1), (2, 1, 2), (128, 1, 2), (128, 64, 4), (128, 4096, 128), (4096, 1 << 20, 256)]
    {
        assert_eq!(crate::usual_threads(processors, mib << 8), threads, "{processors} processors, {mib} MiB");
    }
}

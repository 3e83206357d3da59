//! `cargo xtask mount peers`: the rates of a mount, beside those of a fair peer.
//!
//! ```text
//!   ours:    a program ── kernel ── /dev/fuse ── f2fs mount ─────────────────────────── image
//!   theirs:  a program ── kernel ── /dev/fuse ── libfuse's pass-through ── ext4 ── loop ── image
//! ```
//!
//! Both sides have an image of the same size without holes on the same disk, a kernel that keeps names, attributes and
//! contents without a time limit and writes later (`cache=writeback`), and as many threads as they like. The pass-through
//! is libfuse's `passthrough_hp`, the one that was made to be fast. Below it ext4 has all memory for its cache; ours has
//! [`PAGE_CACHE`]. The loop device transfers directly, so that its file is not kept twice.
//!
//! Each row has volumes of its own, which are mounted anew in front of each round: the pass-through has each file open
//! that the kernel knows, and may not open more than the limit of the machine. The sides take turns, and who is first
//! changes from round to round. A ratio is of one round. Where a row says *durable*, the clock stops when all is on the disk: behind `syncfs` of the
//! mount and then, ours, a sync of its root directory, which is a checkpoint; theirs, `syncfs` of ext4.
//!
//! Processor time is that of the program and of the server, user and system. What the kernel's own threads do (the loop
//! device, ext4's journal) is not in it.

mod contest;
mod data;
mod metadata;
mod pass_through;
mod sides;

use std::thread;

use anyhow::ensure;

use super::Bench;
use crate::{Result, tools};

use contest::Contest;
use data::{SmallFiles, Transfer};
use metadata::Fxmark;
use sides::Images;

/// The page cache of our server.
const PAGE_CACHE: &str = "256M";

/// How much is measured.
#[derive(Debug)]
pub(crate) struct Amount {
    pub(crate) rounds: u32,
    /// Files of a row of metadata, or operations where a row has none of its own.
    pub(crate) files: u64,
    /// Bytes of a file of fio.
    pub(crate) bytes: u64,
    /// Only rows with this in their names.
    pub(crate) only: String,
}

/// What a row does, on either side.
trait Work {
    fn name(&self) -> String;
    /// Whether both sides are mounted anew, without caches, behind what is prepared.
    fn begins_cold(&self) -> bool {
        false
    }
    /// What is there before the clock starts. `round` counts from 0.
    fn prepare(&mut self, side: &dyn sides::Side, round: u32) -> Result<()>;
    /// What the clock runs for; how many operations, and their seconds if it has a clock of its own.
    fn work(&mut self, side: &dyn sides::Side, round: u32) -> Result<(f64, Option<f64>)>;
}

pub(crate) fn run(bench: &Bench, amount: &Amount) -> Result<()> {
    tools::require(&["fio", "mkfs.ext4", "losetup", "fsck.f2fs"])?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    ensure!(
        amount.rounds > 0 && amount.files >= threads as u64,
        "at least one round, and a file for each of {threads} threads"
    );
    let mut rows: Vec<Box<dyn Work>> = Vec::new();
    for workload in metadata::ALL {
        rows.push(Box::new(Fxmark { workload: *workload, threads, files: amount.files }));
    }
    rows.push(Box::new(SmallFiles { threads, files: amount.files }));
    for transfer in data::ALL {
        rows.push(Box::new(Transfer { jobs: threads, bytes: amount.bytes, ..*transfer }));
    }
    rows.retain(|row| row.name().contains(&amount.only));
    ensure!(!rows.is_empty(), "no row has `{}` in its name", amount.only);
    let images = Images::new(bench, pass_through::installed()?, amount)?;
    println!(
        "{threads} threads, {} rounds of both in turn; theirs: passthrough_hp of libfuse above ext4",
        amount.rounds
    );
    println!("{}", contest::HEAD);
    let mut failed = Vec::new();
    for row in &mut rows {
        match (Contest { images: &images, rounds: amount.rounds }).run(row.as_mut()) {
            Ok(line) => println!("{line}"),
            Err(error) => {
                println!("{:24} not measured: {error:#}", row.name());
                failed.push(row.name());
            }
        }
    }
    ensure!(failed.is_empty(), "not measured: {}", failed.join(", "));
    Ok(())
}

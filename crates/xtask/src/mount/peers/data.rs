//! Small files, and fio.

use std::fs::{self, File};
use std::io::Write;
use std::process::Command;

use anyhow::Context;

use super::Work;
use super::metadata::together;
use super::sides::Side;
use crate::{Result, process};

/// Files of a directory.
const DIRECTORY: u64 = 1000;

/// New files of 4 KiB, durable.
#[derive(Debug)]
pub(super) struct SmallFiles {
    pub(super) threads: usize,
    pub(super) files: u64,
}

impl Work for SmallFiles {
    fn name(&self) -> String {
        "files of 4 KiB, durable".into()
    }

    fn prepare(&mut self, _side: &dyn Side, _round: u32) -> Result<()> {
        Ok(())
    }

    fn work(&mut self, side: &dyn Side, round: u32) -> Result<(f64, Option<f64>)> {
        let (share, page) = (self.files / self.threads as u64, [0xa5; 4096]);
        let root = side.dir().join(format!("round-{round}"));
        let (made, _) = together(self.threads, |thread| {
            let root = root.join(thread.to_string());
            for number in 0..share {
                let directory = root.join((number / DIRECTORY).to_string());
                if number % DIRECTORY == 0 {
                    fs::create_dir_all(&directory)?;
                }
                File::create_new(directory.join(number.to_string()))?.write_all(&page)?;
            }
            Ok(share)
        })?;
        side.settle()?;
        Ok((made, None))
    }
}

/// Transfers by fio, of a file for each job.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transfer {
    pub(super) name: &'static str,
    /// fio's name of it.
    pub(super) pattern: &'static str,
    /// Bytes of a transfer.
    pub(super) block: u32,
    pub(super) jobs: usize,
    pub(super) bytes: u64,
}

/// All of them; the number of jobs and the sizes of their files come later.
pub(super) const ALL: &[Transfer] = &[
    transfer("fio read 4 KiB, random", "randread", 4096),
    transfer("fio read 1 MiB", "read", 1 << 20),
    transfer("fio write 4 KiB, random", "randwrite", 4096),
    transfer("fio write 1 MiB", "write", 1 << 20),
];

const fn transfer(name: &'static str, pattern: &'static str, block: u32) -> Transfer {
    Transfer { name, pattern, block, jobs: 0, bytes: 0 }
}

impl Transfer {
    fn fio(&self, side: &dyn Side, pattern: &str, block: u32) -> Result<f64> {
        let mut fio = Command::new("fio");
        fio.args(["--name=peers", "--ioengine=psync", "--fallocate=none", "--group_reporting", "--output-format=json"]);
        // The caches are dropped by us, where they are to be cold; here it would be another order on either side.
        fio.args(["--invalidate=0", "--end_fsync=1"]);
        fio.arg(format!("--directory={}", side.dir().display())).arg(format!("--rw={pattern}"));
        fio.args([format!("--bs={block}"), format!("--size={}", self.bytes), format!("--numjobs={}", self.jobs)]);
        if pattern.starts_with("rand") {
            // A quarter of each file.
            fio.arg(format!("--io_size={}", self.bytes / 4));
        }
        let report: serde_json::Value = serde_json::from_slice(&process::output(&mut fio)?)?;
        let job = report["jobs"].get(0).context("fio reports no job")?;
        let kind = if pattern.ends_with("read") { "read" } else { "write" };
        let rate = job[kind]["bw_bytes"].as_f64().context("fio reports no rate")?;
        Ok(rate / f64::from(block))
    }
}

impl Work for Transfer {
    fn name(&self) -> String {
        self.name.into()
    }

    fn begins_cold(&self) -> bool {
        true
    }

    fn prepare(&mut self, side: &dyn Side, round: u32) -> Result<()> {
        if round == 0 { self.fio(side, "write", 1 << 20).map(drop) } else { Ok(()) }
    }

    fn work(&mut self, side: &dyn Side, _round: u32) -> Result<(f64, Option<f64>)> {
        // fio's own clock: with the sync at the end, and without the start of the program.
        Ok((self.fio(side, self.pattern, self.block)?, Some(1.0)))
    }
}

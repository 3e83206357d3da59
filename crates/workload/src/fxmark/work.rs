//! The work of each worker between the start and its end.

use std::time::{Duration, Instant};

use super::error::FxmarkError;
use super::names::PathBuffer;
use super::setting::{BLOCK, PART, Setting, Workload};
use super::system::System;
use crate::report::Latencies;

/// The result of a worker.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) start: Instant,
    pub(super) end: Instant,
    pub(super) operations: u64,
    pub(super) latencies: Latencies,
}

impl Work {
    pub(super) fn time(&self) -> Duration {
        self.end - self.start
    }
}

/// Does all operations of a worker.
pub(super) fn work<S: System>(system: &S, setting: &Setting, worker: usize) -> Result<Work, FxmarkError> {
    let workload = setting.workload;
    let count = setting.share(worker);
    let mut path = PathBuffer::new(system.root());
    match workload {
        Workload::Mwul | Workload::Mwum => timed(count, |number| {
            let path = path.file(workload, worker, number);
            system.remove(path).map_err(FxmarkError::at("unlink", path))
        }),
        Workload::Mwcl => timed(count, |number| {
            let path = path.file(workload, worker, number);
            system.create(path).map(drop).map_err(FxmarkError::at("create", path))
        }),
        Workload::Mwcm => {
            let page = [0; BLOCK];
            timed(count, |number| {
                let path = path.file(workload, worker, number);
                let file = system.create(path).map_err(FxmarkError::at("create", path))?;
                let bytes = system.write_at(&file, &page, 0).map_err(FxmarkError::at("write", path))?;
                whole("write", path, bytes)
            })
        }
        Workload::Mwrl | Workload::Mwrm => {
            let mut to = PathBuffer::new(system.root());
            timed(count, |number| {
                let from = path.file(workload, worker, number);
                let to = to.renamed(workload, worker, number);
                system.rename(from, to).map_err(FxmarkError::at("rename", from))
            })
        }
        Workload::Drbl | Workload::Drbm | Workload::Drbh => {
            let path = path.file(workload, worker, 0);
            let file = system.open(path).map_err(FxmarkError::at("open", path))?;
            let (mut page, offset) = ([0; BLOCK], offset(workload, worker));
            timed(count, |_| {
                let bytes = system.read_at(&file, &mut page, offset).map_err(FxmarkError::at("read", path))?;
                whole("read", path, bytes)
            })
        }
        Workload::Dwol | Workload::Dwom => {
            let path = path.file(workload, worker, 0);
            let file = system.open(path).map_err(FxmarkError::at("open", path))?;
            let (page, offset) = ([0xa5; BLOCK], offset(workload, worker));
            timed(count, |_| {
                let bytes = system.write_at(&file, &page, offset).map_err(FxmarkError::at("write", path))?;
                whole("write", path, bytes)
            })
        }
    }
}

/// Where a worker's block is in its file.
fn offset(workload: Workload, worker: usize) -> u64 {
    if workload.shares_parts() { PART * worker as u64 } else { 0 }
}

fn whole(what: &'static str, path: &str, bytes: usize) -> Result<(), FxmarkError> {
    if bytes == BLOCK {
        return Ok(());
    }
    Err(FxmarkError::Short { what, path: path.to_owned(), bytes, wanted: BLOCK })
}

/// Runs and times `count` operations, numbered from 0.
#[inline]
fn timed(count: u64, mut operation: impl FnMut(u64) -> Result<(), FxmarkError>) -> Result<Work, FxmarkError> {
    let mut latencies = Latencies::new();
    let start = Instant::now();
    let mut last = start;
    for number in 0..count {
        operation(number)?;
        let now = Instant::now();
        latencies.record(now - last);
        last = now;
    }
    Ok(Work { start, end: last, operations: count, latencies })
}

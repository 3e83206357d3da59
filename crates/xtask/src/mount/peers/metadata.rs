//! FxMark's workloads of metadata, by system calls.
//!
//! Names and directories are those of `f2fs_workload::fxmark`, which does the same on the library: fixed work instead of
//! fixed time, full paths, threads that start together.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;

use anyhow::Context;

use super::Work;
use super::sides::Side;
use crate::Result;

/// A workload of FxMark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Workload {
    /// Create empty files in private directories.
    Mwcl,
    /// Create files in a shared directory and write 4 KiB to each.
    Mwcm,
    /// Unlink in private directories.
    Mwul,
    /// Unlink in a shared directory.
    Mwum,
    /// Rename a file within a private directory.
    Mwrl,
    /// Move files of private directories into a shared one.
    Mwrm,
    /// Open a private file, five directories deep.
    Mrpl,
    /// Open one of many shared files, five directories deep.
    Mrpm,
    /// Open the same file, five directories deep.
    Mrph,
    /// List a private directory.
    Mrdl,
    /// List a shared directory.
    Mrdm,
}

use Workload::*;

/// All of them.
pub(super) const ALL: &[Workload] = &[Mwcl, Mwcm, Mwul, Mwum, Mwrl, Mwrm, Mrpl, Mrpm, Mrph, Mrdl, Mrdm];

/// Files of a directory that is listed, and shared files that are opened.
const FEW: u64 = 1000;

impl Workload {
    /// Files that are there before, of one thread that does `share` operations.
    fn files_before(self, thread: usize, share: u64) -> u64 {
        match self {
            Mwcl | Mwcm => 0,
            Mwul | Mwum | Mwrm => share,
            Mwrl | Mrpl => 1,
            Mrdl => FEW,
            Mrdm | Mrpm => FEW * u64::from(thread == 0),
            Mrph => u64::from(thread == 0),
        }
    }

    /// The directory of a thread's files.
    fn directory(self, root: &Path, thread: usize) -> PathBuf {
        match self {
            Mwcm | Mwum | Mrdm => root.to_owned(),
            Mrpm | Mrph => root.join("a/b/c/d/e"),
            Mrpl => root.join(thread.to_string()).join("a/b/c/d"),
            Mwcl | Mwul | Mwrl | Mwrm | Mrdl => root.join(thread.to_string()),
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// A row.
#[derive(Debug)]
pub(super) struct Fxmark {
    pub(super) workload: Workload,
    pub(super) threads: usize,
    /// Operations of all threads together.
    pub(super) files: u64,
}

impl Fxmark {
    /// Operations of each thread.
    fn share(&self) -> u64 {
        (self.files / self.threads as u64).max(1)
    }

    /// The file of a thread with this number, in front of the operation.
    fn file(&self, directory: &Path, thread: usize, number: u64) -> PathBuf {
        match self.workload {
            Mrpm => directory.join(format!("shared-{number}.dat")),
            Mrph => directory.join("same.dat"),
            _ => directory.join(format!("file-{thread}-{number}.dat")),
        }
    }

    /// The work of one thread between the start and its end; operations that it did.
    fn thread(&self, root: &Path, thread: usize) -> io::Result<u64> {
        let directory = self.workload.directory(root, thread);
        let page = [0xa5; 4096];
        let share = self.share();
        let mut done = 0;
        for number in 0..share {
            match self.workload {
                Mwcl => drop(File::create_new(self.file(&directory, thread, number))?),
                Mwcm => File::create_new(self.file(&directory, thread, number))?.write_all(&page)?,
                Mwul | Mwum => fs::remove_file(self.file(&directory, thread, number))?,
                Mwrl => fs::rename(self.file(&directory, thread, number), self.file(&directory, thread, number + 1))?,
                Mwrm => fs::rename(self.file(&directory, thread, number), self.file(root, thread, number))?,
                Mrpl => drop(File::open(self.file(&directory, thread, 0))?),
                // A multiple of an odd number walks through all of them.
                Mrpm => drop(File::open(self.file(&directory, thread, number * 377 % FEW))?),
                Mrph => drop(File::open(self.file(&directory, thread, 0))?),
                Mrdl | Mrdm => {
                    // An operation is one entry.
                    done += fs::read_dir(&directory)?.try_fold(0, |count, entry| entry.map(|_| count + 1))?;
                    if done >= share {
                        break;
                    }
                    continue;
                }
            }
            done += 1;
        }
        Ok(done)
    }
}

impl Work for Fxmark {
    fn name(&self) -> String {
        self.workload.to_string()
    }

    fn prepare(&mut self, side: &dyn Side, round: u32) -> Result<()> {
        let root = side.dir().join(format!("round-{round}"));
        for thread in 0..self.threads {
            let directory = self.workload.directory(&root, thread);
            fs::create_dir_all(&directory)?;
            for number in 0..self.workload.files_before(thread, self.share()) {
                let file = self.file(&directory, thread, number);
                OpenOptions::new().write(true).create(true).truncate(false).open(file)?;
            }
        }
        Ok(())
    }

    fn work(&mut self, side: &dyn Side, round: u32) -> Result<(f64, Option<f64>)> {
        let root = side.dir().join(format!("round-{round}"));
        together(self.threads, |thread| self.thread(&root, thread)).with_context(|| self.name())
    }
}

/// Runs a worker on each of some threads, which start together; what they did, and the seconds from the start to the
/// last end.
pub(super) fn together(threads: usize, worker: impl Fn(usize) -> io::Result<u64> + Sync) -> Result<(f64, Option<f64>)> {
    let line = Barrier::new(threads + 1);
    let (line, worker) = (&line, &worker);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    line.wait();
                    worker(thread)
                })
            })
            .collect();
        line.wait();
        let start = std::time::Instant::now();
        let mut all = 0;
        for worker in workers {
            all += worker.join().map_err(|_| anyhow::anyhow!("a worker panicked"))??;
        }
        Ok((all as f64, Some(start.elapsed().as_secs_f64())))
    })
}

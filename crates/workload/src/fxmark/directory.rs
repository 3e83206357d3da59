//! FxMark in a directory of a file system that the kernel has mounted, by system calls.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::error::FxmarkError;
use super::measured::{Fill, Measured};
use super::observer::Observer;
use super::race::race;
use super::setting::Setting;
use super::system::System;

/// The files lie in a directory `fxmark` within that one.
#[derive(Debug)]
struct Directory {
    root: String,
}

impl System for Directory {
    type File = File;
    type Error = io::Error;

    fn root(&self) -> &str {
        &self.root
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn create(&self, path: &str) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o700).open(path)
    }

    fn open(&self, path: &str) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).open(path)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn read_at(&self, file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
        file.read_at(into, at)
    }

    fn write_at(&self, file: &File, bytes: &[u8], at: u64) -> io::Result<usize> {
        file.write_at(bytes, at)
    }
}

/// As [`run`](super::run), by system calls in a directory of a file system that the kernel has mounted. A directory
/// `fxmark` is made in it, and removed afterwards, also if the measurement fails. Of the setting, only the workload, the
/// threads and the files count.
///
/// # Errors
/// [`FxmarkError`], for example if there is a directory `fxmark`, or the path is not UTF-8.
pub fn run_in_directory(directory: &Path, setting: &Setting, observer: &dyn Observer) -> Result<Measured, FxmarkError> {
    setting.validate().map_err(FxmarkError::Setting)?;
    let root = directory.join("fxmark").into_os_string().into_string();
    let root = root.map_err(|_| FxmarkError::Setting("the directory's path is not UTF-8"))?;
    let system = Directory { root };
    let root = &*system.root;
    system.create_dir(root).map_err(FxmarkError::at("mkdir", root))?;
    let measured = measure(&system, setting, observer);
    let removed = fs::remove_dir_all(root).map_err(FxmarkError::at("remove", root));
    // Why it failed says more than why nothing can be removed then.
    measured.and_then(|measured| removed.map(|()| measured))
}

fn measure(system: &Directory, setting: &Setting, observer: &dyn Observer) -> Result<Measured, FxmarkError> {
    let root = &*system.root;
    observer.begin(setting, setting.prepared_files());
    let (fill, work) = race(system, setting, observer, || ready(root).map_err(FxmarkError::at("sync", root)))?;
    let mut measured = Measured::new(setting, fill, work, Default::default());
    measured.in_directory = true;
    let found = files(Path::new(root)).map_err(FxmarkError::at("list", root))?;
    measured.left(setting.prepared_files() as i64, found)?;
    observer.end(&measured);
    Ok(measured)
}

/// All files are there: makes them durable.
fn ready(root: &str) -> io::Result<Fill> {
    rustix::fs::syncfs(File::open(root)?)?;
    let stat = rustix::fs::statvfs(root)?;
    Ok(Fill {
        nids: stat.f_files,
        used_nids: stat.f_files - stat.f_ffree,
        free_nids: stat.f_ffree,
        cached_nat_entries: 0,
        blocks: (stat.f_blocks - stat.f_bfree) as f64 / stat.f_blocks.max(1) as f64,
    })
}

/// Files below a directory.
fn files(directory: &Path) -> io::Result<i64> {
    fs::read_dir(directory)?.try_fold(0, |count, entry| {
        let entry = entry?;
        Ok(count + if entry.file_type()?.is_dir() { files(&entry.path())? } else { 1 })
    })
}

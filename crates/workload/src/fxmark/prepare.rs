//! The preparations of each worker before the start.

use f2fs::FileSystem;

use super::error::FxmarkError;
use super::names::PathBuffer;
use super::run::Observer;
use super::setting::{Setting, Workload};

/// Bytes of a block, and of an operation of the workloads on blocks.
pub(super) const BLOCK: usize = 4096;
/// Bytes of a worker's part of a shared file.
pub(super) const PART: u64 = 8 << 20;
/// Files after which the observer is told.
const BATCH: u64 = 256;

/// Files that a worker makes before the start.
pub(super) fn files(setting: &Setting, worker: usize) -> u64 {
    match setting.workload {
        Workload::Mwul | Workload::Mwum | Workload::Mwrm => setting.share(worker),
        Workload::Mwrl | Workload::Drbl | Workload::Dwol => 1,
        Workload::Drbh | Workload::Drbm | Workload::Dwom => u64::from(worker == 0),
        Workload::Mwcl | Workload::Mwcm => 0,
    }
}

/// Bytes of each of those files.
fn size(setting: &Setting) -> u64 {
    match setting.workload {
        Workload::Drbl | Workload::Drbh | Workload::Dwol => BLOCK as u64,
        workload if workload.shares_parts() => PART * setting.threads as u64,
        _ => 0,
    }
}

/// Makes a worker's directory and files.
pub(super) fn prepare(
    fs: &FileSystem,
    setting: &Setting,
    worker: usize,
    observer: &dyn Observer,
) -> Result<(), FxmarkError> {
    let mut path = PathBuffer::default();
    let directory = path.directory(worker);
    fs.create_dir(directory, 0o700).map_err(FxmarkError::at("mkdir", directory))?;
    let (files, size) = (files(setting, worker), size(setting));
    for number in 0..files {
        let path = path.file(setting.workload, worker, number);
        let file = fs.create_file(path, 0o700).map_err(FxmarkError::at("create", path))?;
        if size > 0 {
            fill(&file, path, size)?;
        }
        if (number + 1) % BATCH == 0 {
            observer.advance(BATCH);
        }
    }
    observer.advance(files % BATCH);
    Ok(())
}

fn fill(file: &f2fs::File, path: &str, size: u64) -> Result<(), FxmarkError> {
    let piece = vec![0x5a; size.min(1 << 20) as usize];
    let mut offset = 0;
    while offset < size {
        let wanted = piece.len().min((size - offset) as usize);
        let bytes = file.write_at(&piece[..wanted], offset).map_err(FxmarkError::at("write", path))?;
        if bytes != wanted {
            return Err(FxmarkError::Short { what: "write", path: path.to_owned(), bytes, wanted });
        }
        offset += wanted as u64;
    }
    Ok(())
}

//! The preparations of each worker before the start.

use super::error::FxmarkError;
use super::names::PathBuffer;
use super::observer::Observer;
use super::setting::{BLOCK, PART, Setting, Workload};
use super::system::System;

/// Files after which the observer is told.
const BATCH: u64 = 256;

/// Bytes of each of those files.
fn size(setting: &Setting) -> u64 {
    match setting.workload {
        Workload::Drbl | Workload::Drbh | Workload::Dwol => BLOCK as u64,
        workload if workload.shares_parts() => PART * setting.threads as u64,
        _ => 0,
    }
}

/// Makes a worker's directory and files.
pub(super) fn prepare<S: System>(
    system: &S,
    setting: &Setting,
    worker: usize,
    observer: &dyn Observer,
) -> Result<(), FxmarkError> {
    let mut path = PathBuffer::new(system.root());
    let directory = path.directory(worker);
    system.create_dir(directory).map_err(FxmarkError::at("mkdir", directory))?;
    let (files, size) = (setting.files_of(worker), size(setting));
    for number in 0..files {
        let path = path.file(setting.workload, worker, number);
        let file = system.create(path).map_err(FxmarkError::at("create", path))?;
        if size > 0 {
            fill(system, &file, path, size)?;
        }
        if (number + 1) % BATCH == 0 {
            observer.advance(BATCH);
        }
    }
    observer.advance(files % BATCH);
    Ok(())
}

fn fill<S: System>(system: &S, file: &S::File, path: &str, size: u64) -> Result<(), FxmarkError> {
    let piece = vec![0x5a; size.min(1 << 20) as usize];
    let mut offset = 0;
    while offset < size {
        let wanted = piece.len().min((size - offset) as usize);
        let bytes = system.write_at(file, &piece[..wanted], offset).map_err(FxmarkError::at("write", path))?;
        if bytes != wanted {
            return Err(FxmarkError::Short { what: "write", path: path.to_owned(), bytes, wanted });
        }
        offset += wanted as u64;
    }
    Ok(())
}

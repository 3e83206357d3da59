//! A journal in a file that is only read.
//!
//! It is read by calls and not mapped: a file that has holes on a full disk, or that somebody cuts off meanwhile, is
//! then an error, and not a signal that ends the program. And it may be the copy of a journal that lay on a block
//! device, whose grain is a block.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use f2fs::device::Claims;
use f2fs::journal::{Error, Gather, Journal, LARGEST_GRAIN, Medium, MediumError, SMALLEST_GRAIN, SharedMedium};
use f2fs::pmem::{MappedRegion, PersistentRegion};

/// The file, and the grain of the journal in it.
#[derive(Debug)]
pub(crate) struct JournalFile {
    file: Arc<File>,
    bytes: u64,
    grain: usize,
    /// Keeps the file locked; nothing is read there.
    _region: Arc<MappedRegion>,
    claims: Claims,
}

impl JournalFile {
    /// The journal in a file, which was mapped before.
    pub(crate) fn medium(file: File, region: MappedRegion) -> SharedMedium {
        let (file, bytes, region) = (Arc::new(file), region.len() as u64, Arc::new(region));
        let with = |grain| {
            Arc::new(JournalFile { file: file.clone(), bytes, grain, _region: region.clone(), claims: Claims::new() })
                as SharedMedium
        };
        let is_of_a_device = matches!(Journal::open(with(SMALLEST_GRAIN), None), Err(Error::BadGrain { .. }));
        with(if is_of_a_device { LARGEST_GRAIN } else { SMALLEST_GRAIN })
    }
}

fn refused() -> MediumError {
    MediumError::Other(Box::new(io::Error::from(ErrorKind::ReadOnlyFilesystem)))
}

impl Medium for JournalFile {
    fn grain(&self) -> usize {
        self.grain
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read_only(&self) -> bool {
        true
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        let bytes = into.len() as u64;
        self.file.read_exact_at(into, offset).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => MediumError::Unreadable { offset, bytes },
            _ => MediumError::Other(Box::new(error)),
        })
    }

    fn write(&self, _: u64, _: Gather<'_>) -> Result<(), MediumError> {
        Err(refused())
    }

    fn persist(&self) -> Result<(), MediumError> {
        Err(refused())
    }
}

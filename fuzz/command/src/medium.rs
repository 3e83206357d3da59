//! All images are one volume in memory.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use f2fs::{JournalOptions, JournalRescue};
use f2fs::device::BlockDevice;
use f2fs::journal::SharedMedium;
use f2fs::uring::{OpenError, OpenOptions};
use f2fs_device_test::SparseDevice;
use f2fs_workload::copy::VolumeFiles;

use crate::args::journal::JournalChoice;
use crate::error::CliError;
use crate::image::Access;

thread_local! {
    static IMAGE: RefCell<Arc<SparseDevice>> = RefCell::new(Arc::new(SparseDevice::new(0)));
}

/// From here on this is the image.
pub(crate) fn put(image: Arc<SparseDevice>) {
    IMAGE.set(image);
}

pub(crate) fn device(_: &Path, _: Access) -> Result<Arc<dyn BlockDevice>, CliError> {
    Ok(IMAGE.with_borrow(Arc::clone))
}

pub(crate) fn choose(_pmem: bool, _devices: &[PathBuf], _journal: &JournalChoice, _page_cache: Option<u64>) {}

/// There is none.
pub(crate) fn journal(_: &Path, _: Access) -> Result<Option<JournalOptions>, CliError> {
    Ok(None)
}

pub(crate) fn expect_another(_image: &Path, _journal: &Path) -> Result<(), CliError> {
    Ok(())
}

/// Nothing outside is the image.
pub(crate) fn is_same(_one: &Path, _other: &Path) -> bool {
    false
}

/// As there.
pub(crate) fn volume_files(_image: &Path) -> VolumeFiles {
    VolumeFiles::default()
}

/// As there.
pub(crate) fn others() -> &'static [PathBuf] {
    &[]
}

pub(crate) fn pmem() -> bool {
    false
}

pub(crate) fn journal_path() -> Option<&'static Path> {
    None
}

/// None, as where nothing is said.
pub(crate) fn page_cache_or(_default: u64) -> u64 {
    0
}

pub(crate) fn page_cache() -> u64 {
    0
}

pub(crate) fn has_page_cache() -> bool {
    false
}

pub(crate) fn journal_shown() -> Option<String> {
    None
}

pub(crate) fn without_journal() -> bool {
    false
}

pub(crate) fn rescue() -> JournalRescue {
    JournalRescue::default()
}

pub(crate) fn journal_at(path: &Path, _read_only: bool) -> Result<SharedMedium, CliError> {
    Err(CliError::at(path, "there is no journal here"))
}

pub(crate) fn whole(image: &Path) -> Result<Arc<dyn BlockDevice>, CliError> {
    device(image, Access::Write)
}

/// There are no others.
pub(crate) fn whole_with(_image: &Path, first: Arc<dyn BlockDevice>) -> Result<Arc<dyn BlockDevice>, CliError> {
    Ok(first)
}

pub(crate) fn open_plain(image: &Path, read_only: bool, how: OpenOptions) -> Result<Arc<dyn BlockDevice>, CliError> {
    open(image, read_only, how)
}

pub(crate) fn open(image: &Path, _read_only: bool, _how: OpenOptions) -> Result<Arc<dyn BlockDevice>, CliError> {
    device(image, Access::Write)
}

pub(crate) fn create(image: &Path, _bytes: u64) -> Result<Arc<dyn BlockDevice>, CliError> {
    device(image, Access::Write)
}

pub(crate) fn open_to_copy(image: &Path, access: Access) -> Result<Arc<dyn BlockDevice>, CliError> {
    device(image, access)
}

pub(crate) fn cannot_open(error: &OpenError) -> CliError {
    CliError::new(error)
}

pub(crate) fn reason(_: &Path, error: &std::io::Error) -> String {
    error.to_string()
}

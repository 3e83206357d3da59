//! Volumes of ours on the image file.

use std::path::Path;
use std::sync::Arc;

use f2fs::device::BlockDevice;
use f2fs::files::{Flusher, FlusherOptions};
use f2fs::uring::{Direct, Engine, OpenOptions, UringDevice};
use f2fs::volume::format::{FormatOptions, format};
use f2fs::{FileSystem, Options};

use crate::Result;

/// A new volume on a file, with direct transfers; with a page cache of so many bytes and a thread that writes back, or
/// neither.
pub(crate) fn volume(image: &Path, cache: u64) -> Result<(FileSystem, Option<Flusher>)> {
    let options = OpenOptions::new().engine(Engine::IoUring).direct(Direct::Required);
    let device: Arc<dyn BlockDevice> = UringDevice::open(image, options)?;
    // Not discarded: the image must stay without holes.
    let mut options = FormatOptions::default().forced();
    options.discard = false;
    format(&*device, &options)?;
    let fs = FileSystem::open(device, Options::new().page_cache(cache))?;
    let flusher = (cache != 0).then(|| fs.start_flusher(FlusherOptions::default()).expect("a thread"));
    Ok((fs, flusher))
}

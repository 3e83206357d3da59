//! Volumes in files and on block devices, opened by their path through `io_uring` (feature `uring`).

use std::fs;
use std::io;
use std::path::Path;

use f2fs_device::{BlockDevice, SpanError};
use f2fs_format::superblock::VolumeDevice;
use f2fs_sync::PlainArc;
use f2fs_uring::{OpenError, OpenOptions, UringDevice};
use f2fs_volume::devices::{DevicesError, assemble};
use f2fs_volume::format::{FormatOptions, FormatReport, FormatVolumeError, format};
use thiserror::Error;

use crate::{FileSystem, FsError, Options};

/// Why a file system was not opened or made by its path.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The file or device could not be opened or made.
    #[error(transparent)]
    Device(#[from] OpenError),
    /// It could not be formatted.
    #[error(transparent)]
    Format(Box<FormatVolumeError>),
    /// The devices of a volume on several were not put together.
    #[error(transparent)]
    Devices(Box<DevicesError<OpenError>>),
    /// It holds no volume that can be opened.
    #[error(transparent)]
    FileSystem(Box<FsError>),
}

/// The error itself stays inside: `error.downcast::<ImageError>()` brings it back.
impl From<ImageError> for io::Error {
    fn from(error: ImageError) -> io::Error {
        let kind = match &error {
            ImageError::Device(error) => error.io_kind(),
            ImageError::Format(error) => match &**error {
                FormatVolumeError::AlreadyOpen(_) => io::ErrorKind::ResourceBusy,
                FormatVolumeError::Exists { .. } => io::ErrorKind::AlreadyExists,
                FormatVolumeError::Plan(_)
                | FormatVolumeError::ZoneUnlike { .. }
                | FormatVolumeError::ZoneLimit { .. } => io::ErrorKind::InvalidInput,
                FormatVolumeError::Device(error) => io::Error::from(error.clone()).kind(),
                _ => io::ErrorKind::Other,
            },
            ImageError::Devices(error) => match &**error {
                DevicesError::Open { source, .. } => source.io_kind(),
                DevicesError::Span(SpanError::AlreadyOpen { .. }) => io::ErrorKind::ResourceBusy,
                _ => io::ErrorKind::InvalidInput,
            },
            ImageError::FileSystem(error) => error.kind(),
        };
        io::Error::new(kind, error)
    }
}

impl From<FormatVolumeError> for ImageError {
    fn from(error: FormatVolumeError) -> ImageError {
        ImageError::Format(Box::new(error))
    }
}

impl From<FsError> for ImageError {
    fn from(error: FsError) -> ImageError {
        ImageError::FileSystem(Box::new(error))
    }
}

impl FileSystem {
    /// Makes a new, empty volume of the whole device, as [`format()`] does.
    ///
    /// # Errors
    /// Those of [`format()`].
    pub fn format(device: &dyn BlockDevice, options: &FormatOptions) -> Result<FormatReport, FormatVolumeError> {
        format(device, options)
    }

    /// Opens the volume in a file or on a block device. A volume that is opened [for reading](Options::read_only) needs
    /// a path that can be read, any other one that can be written. A volume on several devices needs the paths of the
    /// others, too ([`Options::devices`]): those that it names itself are not opened unasked.
    ///
    /// # Errors
    /// [`ImageError::Device`] if the path cannot be opened, or another process has it open; [`ImageError::FileSystem`]
    /// if what is there cannot be opened as a file system: see [`FileSystem::open`].
    pub fn open_path(path: impl AsRef<Path>, options: Options) -> Result<FileSystem, ImageError> {
        let how = OpenOptions::new().read_only(options.volume.read_only);
        let path = path.as_ref();
        let first = f2fs_uring::open(path, how)?;
        if options.devices.is_empty() {
            return Ok(FileSystem::open(first, options)?);
        }
        f2fs_uring::each_once(std::iter::once(path).chain(options.devices.iter().map(AsRef::as_ref)))?;
        let others = options.devices.len();
        let open = |index: usize, _: &VolumeDevice| -> Result<PlainArc<dyn BlockDevice>, OpenError> {
            f2fs_uring::open(&options.devices[index - 1], how)
        };
        let device = assemble(first, others, open).map_err(|error| ImageError::Devices(Box::new(error)))?;
        Ok(FileSystem::open(device, options)?)
    }

    /// Makes a file of `bytes` bytes (sparse: it takes space only where it was written), makes a volume in it, and
    /// opens that.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("volume.img");
    /// use f2fs_files::{FileSystem, Options};
    ///
    /// let fs = FileSystem::create_path(&path, 64 << 20, &Default::default(), Options::new())?;
    /// fs.create_file("/hello", 0o644)?.write_at(b"world", 0)?;
    /// fs.close()?;
    /// drop(fs); // and with it the lock on the file
    ///
    /// let fs = FileSystem::open_path(&path, Options::new().read_only(true))?;
    /// assert_eq!(fs.metadata("/hello")?.size, 5);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ImageError::Device`] if the path exists or cannot be made; [`ImageError::Format`] if the size or an option
    /// does not fit. The file is removed again if it cannot be formatted, or opened with these options.
    pub fn create_path(
        path: impl AsRef<Path>,
        bytes: u64,
        format: &FormatOptions,
        options: Options,
    ) -> Result<FileSystem, ImageError> {
        let path = path.as_ref();
        let device = UringDevice::create(path, bytes, OpenOptions::new())?;
        let made = FileSystem::format(&*device, format).map_err(ImageError::from);
        made.and_then(|_| Ok(FileSystem::open(device, options)?)).inspect_err(|_| {
            // It is ours: `create` makes a new file only. If it cannot be removed, the first error says more.
            let _ = fs::remove_file(path);
        })
    }
}

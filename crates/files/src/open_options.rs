//! How a file is opened, and whether it is made.

use std::path::Path;

use crate::FsError;
use crate::access::Access;
use crate::file::File;
use crate::filesystem::FileSystem;
use crate::namespace::path::{MAX_LINKS, bytes};

/// How a file is opened: [`std::fs::OpenOptions`], for a file system of this library. All options are off at first.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let device = std::sync::Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
/// # f2fs_volume::format::format(&*device, &Default::default())?;
/// # let fs = f2fs_files::FileSystem::open(device, f2fs_files::Options::new())?;
/// use f2fs_files::{FsError, OpenOptions};
///
/// let mut exclusive = OpenOptions::new();
/// exclusive.write(true).create_new(true);
/// exclusive.open(&fs, "/lock")?;
/// assert!(matches!(exclusive.open(&fs, "/lock"), Err(FsError::Exists)));
///
/// let log = OpenOptions::new().append(true).create(true).open(&fs, "/log")?;
/// log.append(b"one line\n")?;
/// assert!(matches!(log.read_at(&mut [0], 0), Err(FsError::NotOpenFor(_))));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenOptions {
    access: Access,
    truncate: bool,
    create: bool,
    create_new: bool,
    mode: u16,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions::new()
    }
}

impl OpenOptions {
    /// All options are off; new files get the permissions 0644.
    #[must_use]
    pub fn new() -> OpenOptions {
        let access = Access { read: false, write: false, append: false };
        OpenOptions { access, truncate: false, create: false, create_new: false, mode: 0o644 }
    }

    /// For reading.
    pub fn read(&mut self, yes: bool) -> &mut Self {
        self.access.read = yes;
        self
    }

    /// For writing.
    pub fn write(&mut self, yes: bool) -> &mut Self {
        self.access.write = yes;
        self
    }

    /// For writing at the end: each write goes there, whatever its offset.
    pub fn append(&mut self, yes: bool) -> &mut Self {
        self.access.append = yes;
        self
    }

    /// Cuts the file to nothing; needs [`write`](Self::write).
    pub fn truncate(&mut self, yes: bool) -> &mut Self {
        self.truncate = yes;
        self
    }

    /// Makes the file if it is not there; needs [`write`](Self::write) or [`append`](Self::append).
    pub fn create(&mut self, yes: bool) -> &mut Self {
        self.create = yes;
        self
    }

    /// Makes the file, and fails if the name exists, also as a symbolic link: of several threads that try, one
    /// succeeds. Needs [`write`](Self::write) or [`append`](Self::append); [`create`](Self::create) and
    /// [`truncate`](Self::truncate) do not count then.
    pub fn create_new(&mut self, yes: bool) -> &mut Self {
        self.create_new = yes;
        self
    }

    /// Permission bits (07777) of a file that is made; 0644 at first. There is no mask of the process here.
    pub fn mode(&mut self, permissions: u16) -> &mut Self {
        self.mode = permissions;
        self
    }

    /// Opens the regular file that a path means.
    ///
    /// # Errors
    /// [`FsError::Invalid`] for options that do not go together, as in the standard library; [`FsError::NotFound`];
    /// [`FsError::Exists`] with [`create_new`](Self::create_new); [`FsError::IsDirectory`], [`FsError::WrongKind`] for
    /// anything but a regular file; [`FsError::ReadOnly`] for writing to a volume that is open for reading;
    /// [`FsError::NoSpace`].
    pub fn open(&self, fs: &FileSystem, path: impl AsRef<Path>) -> Result<File, FsError> {
        let access = self.access()?;
        let path = path.as_ref();
        let mut file = if self.create_new {
            fs.create_file(path, self.mode)?
        } else if self.create {
            self.open_or_create(fs, path)?
        } else {
            fs.open_file(path)?
        };
        if access.write && fs.volume().is_read_only() {
            return Err(FsError::ReadOnly);
        }
        if self.truncate && !self.create_new {
            file.set_len(0)?;
        }
        file.access = access;
        Ok(file)
    }

    /// The access that the file is opened with.
    fn access(&self) -> Result<Access, FsError> {
        let Access { read, write, append } = self.access;
        if !(read || write || append) {
            return Err(FsError::Invalid("none of read, write and append is set"));
        }
        if !write && !append && (self.truncate || self.create || self.create_new) {
            return Err(FsError::Invalid("create and truncate need write or append"));
        }
        if append && self.truncate && !self.create_new {
            return Err(FsError::Invalid("truncate does not go with append"));
        }
        Ok(Access { read, write: write || append, append })
    }

    /// A symbolic link whose target is missing is followed, as by Linux: the file is made where it leads.
    fn open_or_create(&self, fs: &FileSystem, path: &Path) -> Result<File, FsError> {
        let mut path = path.to_owned();
        for _ in 0..=MAX_LINKS {
            match fs.open_file(&path) {
                Err(FsError::NotFound) => {}
                result => return result,
            }
            match fs.create_file(&path, self.mode) {
                Err(FsError::Exists) => {}
                result => return result,
            }
            match fs.read_link(&path) {
                Ok(target) => path = beside(&path, &target),
                // Somebody made, removed or replaced it meanwhile.
                Err(FsError::NotFound | FsError::WrongKind { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(FsError::Loop { limit: MAX_LINKS })
    }
}

/// The path that a link's target means.
fn beside(link: &Path, target: &[u8]) -> std::path::PathBuf {
    let link = bytes(link);
    let name = link.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let parent = if target.first() == Some(&b'/') { &[] } else { &link[..name] };
    crate::path_from_bytes(&[parent, target].concat()).to_owned()
}

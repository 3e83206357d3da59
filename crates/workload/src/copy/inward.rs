//! From the host into a volume.
//!
//! # Locking
//!
//! The lock of the hard links is held while the first name of a file with several is made, so that the others find it.
//! No other lock is taken for longer than a call of [`Crew`] or [`Tally`].

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, ReadDir};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use f2fs::sync::{Arc, Mutex};
use f2fs::{FileKind, FileSystem, FsError, InodeRef, NewFile};
use rustix::fs::OFlags;

use super::attributes::attributes;
use super::content::{content, stream};
use super::crew::{Crew, Node};
use super::place::Place;
use super::stream::Buffer;
use super::tally::Tally;
use super::volume_files::Identity;
use super::{CopyError, CopyOptions, CopyProgress, VolumeFiles, Watch, host, incomplete, volume};

/// Entries of a directory that one worker copies before another may go on.
const PAGE: usize = 128;

/// Copies `from` of this machine to `to` in the volume. A directory that exists there is merged into, a file replaced.
/// A symbolic link is followed if it is `from` itself, and copied as a link below. An entry that is neither file nor
/// directory is read to its end if it is `from` itself: a pipe, a device.
///
/// Entries of a directory that cannot be copied are told to `watch` and counted; the rest is copied.
///
/// # Errors
/// [`CopyError`], where nothing more can be copied; files copied until then stay. [`CopyError::OwnFile`] if the volume
/// lies on `from`.
pub fn copy_in(
    fs: &FileSystem,
    from: &Path,
    to: &Path,
    options: &CopyOptions,
    watch: Watch<'_>,
) -> Result<CopyProgress, CopyError> {
    let metadata = fs::metadata(from).map_err(host(from))?;
    let total = if metadata.is_file() { metadata.len() } else { 0 };
    let copy = Inward::new(fs, &options.volume_files, watch, total);
    if !metadata.is_dir() {
        copy.expect_foreign(from, &metadata)?;
        let permissions = if metadata.is_file() { metadata.mode() & 0o7777 } else { 0o644 };
        let new = NewFile::new(FileKind::Regular, permissions as u16).owner(metadata.uid(), metadata.gid());
        let file = File::open(from).map_err(host(from))?;
        copy.named(&Source { file, from, whole: metadata.is_file().then_some(&metadata), new }, to)?;
        return copy.tally.result();
    }
    if !options.recursive {
        return Err(CopyError::IsDirectory { path: from.to_path_buf() });
    }
    let into = copy.directory(to, &metadata, Make::Named)?;
    let iter = fs::read_dir(from).map_err(host(from))?;
    let what = Directory { from: from.to_path_buf(), to: to.to_path_buf(), metadata, into };
    let top = Node { parent: None, what };
    let job = Job::Page { node: Arc::new(top), iter };
    Crew::run(job, options.workers(), Buffer::new, |buffer, job, crew| copy.work(buffer, job, crew));
    copy.tally.result()
}

/// Copies what is left to read of an open file, such as standard input, to a file `to` of the volume, which is made as
/// `new` says or replaced. `name` is the source's in errors.
///
/// # Errors
/// [`CopyError`]; a file that was there is then as it was.
pub fn copy_in_open(
    fs: &FileSystem,
    file: File,
    name: &Path,
    to: &Path,
    new: NewFile,
    watch: Watch<'_>,
) -> Result<CopyProgress, CopyError> {
    let none = VolumeFiles::default();
    let copy = Inward::new(fs, &none, watch, 0);
    copy.named(&Source { file, from: name, whole: None, new }, to)?;
    copy.tally.result()
}

/// A source that the user named, and that is no directory.
struct Source<'a> {
    file: File,
    from: &'a Path,
    /// Of a regular file, which is copied as a whole and with its attributes. Anything else is read to its end.
    whole: Option<&'a Metadata>,
    /// What it becomes if nothing is there.
    new: NewFile,
}

/// A directory on its way.
struct Directory {
    from: PathBuf,
    to: PathBuf,
    metadata: Metadata,
    /// It in the volume.
    into: InodeRef,
}

/// A directory that was found.
struct Found {
    from: PathBuf,
    to: PathBuf,
    metadata: Metadata,
}

enum Job {
    /// A directory is made.
    Enter { parent: Arc<Node<Directory>>, directory: Box<Found> },
    /// Some entries of a directory are copied.
    Page { node: Arc<Node<Directory>>, iter: ReadDir },
}

struct Inward<'a> {
    fs: &'a FileSystem,
    volume_files: &'a VolumeFiles,
    /// Where the first name of a file with several names went.
    links: Mutex<HashMap<(u64, u64), PathBuf>>,
    tally: Tally<'a>,
}

impl<'a> Inward<'a> {
    fn new(fs: &'a FileSystem, volume_files: &'a VolumeFiles, watch: Watch<'a>, total_bytes: u64) -> Inward<'a> {
        Inward { fs, volume_files, links: Mutex::new(HashMap::new()), tally: Tally::new(watch, true, total_bytes) }
    }

    /// Refuses what the volume itself lies on: it changes while it is copied, and would fill the volume with itself.
    fn expect_foreign(&self, from: &Path, metadata: &Metadata) -> Result<(), CopyError> {
        match self.volume_files.has(Identity::of(metadata)) {
            true => Err(CopyError::OwnFile { path: from.to_path_buf() }),
            false => Ok(()),
        }
    }

    fn work(&self, buffer: &mut Buffer, job: Job, crew: &Crew<Job>) {
        let (node, iter) = match job {
            Job::Page { node, iter } => (node, iter),
            Job::Enter { parent, directory } => match self.enter(*directory, &parent.what.into) {
                Ok((what, iter)) => (Arc::new(Node { parent: Some(parent), what }), iter),
                Err(error) => {
                    self.tally.failed(error);
                    return self.release(parent);
                }
            },
        };
        if !self.tally.is_stopped() {
            self.page(buffer, &node, iter, crew);
        }
        self.release(node);
    }

    /// Directories get their times last, when nothing in them changes any more.
    fn release(&self, node: Arc<Node<Directory>>) {
        Node::release(node, |node| {
            let Directory { from, to, metadata, into } = &node.what;
            if self.tally.is_stopped() {
                return;
            }
            match attributes(from, into, to, metadata) {
                Ok(lost) => self.tally.copied(0, &lost),
                Err(error) => self.tally.failed(error),
            }
        });
    }

    fn enter(&self, found: Found, above: &InodeRef) -> Result<(Directory, ReadDir), CopyError> {
        let Found { from, to, metadata } = found;
        let iter = fs::read_dir(&from).map_err(host(&from))?;
        let into = self.directory(&to, &metadata, Make::In(above))?;
        Ok((Directory { from, to, metadata, into }, iter))
    }

    fn page(&self, buffer: &mut Buffer, node: &Arc<Node<Directory>>, mut iter: ReadDir, crew: &Crew<Job>) {
        let Directory { from, to, into, .. } = &node.what;
        let mut below = Vec::new();
        let mut ends = false;
        while below.len() < PAGE && !ends {
            match iter.next() {
                Some(Ok(entry)) => below.push((entry.path(), to.join(entry.file_name()))),
                Some(Err(error)) => {
                    self.tally.failed(host(from)(error));
                    ends = true;
                }
                None => ends = true,
            }
        }
        if !ends {
            crew.add(Job::Page { node: Arc::clone(node), iter });
        }
        below.sort();
        for (from, to) in below {
            if self.tally.is_stopped() {
                break;
            }
            let result = match fs::symlink_metadata(&from).map_err(host(&from)) {
                Ok(metadata) if metadata.is_dir() => {
                    let directory = Box::new(Found { from, to, metadata });
                    crew.add(Job::Enter { parent: Arc::clone(node), directory });
                    continue;
                }
                Ok(metadata) => {
                    let place = Place { into, name: name_of(&to), to: &to };
                    self.entry(buffer, &from, &place, &metadata)
                }
                Err(error) => Err(error),
            };
            if let Err(error) = result {
                self.tally.failed(error);
            }
        }
    }

    /// The directory of the volume for one of the host, made if it is not there.
    fn directory(&self, to: &Path, metadata: &Metadata, make: Make<'_>) -> Result<InodeRef, CopyError> {
        let new = new(FileKind::Directory, metadata);
        let made = match make {
            Make::Named if to.file_name().is_none() => self.fs.inode_at(to),
            // With a slash at the end only an existing directory could be meant.
            Make::Named => match self.fs.create(without_slashes(to), &new) {
                Ok(_) | Err(FsError::Exists) => self.fs.inode_at(to),
                Err(error) => Err(error),
            },
            Make::In(into) => {
                let name = name_of(to);
                match into.create(name, &new) {
                    Err(FsError::Exists) => into.lookup(name),
                    made => made,
                }
            }
        };
        let made = made.map_err(volume(to))?;
        if made.kind() == FileKind::Directory { Ok(made) } else { Err(volume(to)(FsError::Exists)) }
    }

    fn named(&self, source: &Source<'_>, to: &Path) -> Result<(), CopyError> {
        let (above, name) = split(to)?;
        let from = source.from;
        let into = self.fs.inode_at(above).map_err(volume(to))?;
        let there = match into.lookup(name) {
            Ok(found) => Some(found.kind()),
            Err(FsError::NotFound) => None,
            Err(error) => return Err(volume(to)(error)),
        };
        let mut buffer = Buffer::new();
        let mut fill = |file: &f2fs::File| {
            if let Some(metadata) = source.whole {
                return content(&source.file, from, file, to, metadata.len(), &mut buffer).map(|()| metadata.len());
            }
            stream(&source.file, from, file, to, &mut buffer).inspect(|bytes| self.tally.found(*bytes))
        };
        let (bytes, lost) = match there {
            Some(FileKind::Directory) => return Err(volume(to)(FsError::IsDirectory)),
            // As cp does: into what the link names, and not through one that names nothing.
            Some(FileKind::Symlink) => {
                if self.fs.metadata(to).is_err() {
                    return Err(CopyError::Dangling { path: to.to_path_buf() });
                }
                let file = self.fs.open_file(to).map_err(volume(to))?;
                file.set_len(0).map_err(volume(to))?;
                (fill(&file).map_err(|error| incomplete(to, error))?, Vec::new())
            }
            _ => {
                // The attributes are those of the file that a link names.
                let resolved = fs::canonicalize(from).unwrap_or_else(|_| from.to_path_buf());
                Place { into: &into, name, to }.make(&source.new, u64::MAX, |made| {
                    let bytes = fill(&made.open_file().map_err(volume(to))?)?;
                    let attributes = source.whole.map(|metadata| attributes(&resolved, made, to, metadata));
                    Ok((bytes, attributes.transpose()?.unwrap_or_default()))
                })?
            }
        };
        self.tally.copied(bytes, &lost);
        Ok(())
    }

    /// Copies an entry of a directory that is not a directory itself.
    fn entry(&self, buffer: &mut Buffer, from: &Path, place: &Place<'_>, metadata: &Metadata) -> Result<(), CopyError> {
        if metadata.is_file() {
            self.expect_foreign(from, metadata)?;
            self.tally.found(metadata.len());
        }
        if metadata.nlink() < 2 {
            return self.make(buffer, from, place, metadata);
        }
        let mut links = self.links.lock();
        let identity = (metadata.dev(), metadata.ino());
        let Some(first) = links.get(&identity) else {
            self.make(buffer, from, place, metadata)?;
            links.insert(identity, place.to.to_path_buf());
            return Ok(());
        };
        let (above, name) = split(first)?;
        let first = self.fs.inode_at(above).and_then(|above| above.lookup(name)).map_err(volume(first))?;
        place.link(&first)?;
        self.tally.copied(if metadata.is_file() { metadata.len() } else { 0 }, &[]);
        Ok(())
    }

    fn make(&self, buffer: &mut Buffer, from: &Path, place: &Place<'_>, metadata: &Metadata) -> Result<(), CopyError> {
        let (kind, to) = (metadata.file_type(), place.to);
        let mut bytes = 0;
        let lost = if kind.is_file() {
            let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
            let source = OpenOptions::new().read(true).custom_flags(flags).open(from).map_err(host(from))?;
            bytes = metadata.len();
            place.make(&new(FileKind::Regular, metadata), metadata.len(), |made| {
                let file = made.open_file().map_err(volume(to))?;
                content(&source, from, &file, to, metadata.len(), buffer)?;
                attributes(from, made, to, metadata)
            })?
        } else if kind.is_symlink() {
            let target = fs::read_link(from).map_err(host(from))?;
            let made = place.symlink(target.as_os_str().as_bytes(), &new(FileKind::Symlink, metadata))?;
            attributes(from, &made, to, metadata)?
        } else {
            let kind = if kind.is_block_device() {
                FileKind::BlockDevice
            } else if kind.is_char_device() {
                FileKind::CharDevice
            } else if kind.is_fifo() {
                FileKind::Fifo
            } else {
                FileKind::Socket
            };
            let (major, minor) = (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev()));
            let new = new(kind, metadata).device(major, minor);
            place.make(&new, 0, |made| attributes(from, made, to, metadata))?
        };
        self.tally.copied(bytes, &lost);
        Ok(())
    }
}

/// Who makes a directory.
#[derive(Clone, Copy)]
enum Make<'a> {
    /// The user named it; a symbolic link to one is followed.
    Named,
    /// It stands in this one.
    In(&'a InodeRef),
}

/// The directory of a path, and the name in it.
fn split(path: &Path) -> Result<(&Path, &[u8]), CopyError> {
    let bytes = path.as_os_str().as_bytes();
    let at = bytes.iter().rposition(|byte| *byte == b'/');
    let (above, name) = at.map_or((&b"/"[..], bytes), |at| (&bytes[..=at], &bytes[at + 1..]));
    match name {
        b"" if above.len() > 1 => Err(volume(path)(FsError::NotDirectory)),
        b"" | b"." | b".." => Err(volume(path)(FsError::IsDirectory)),
        name => Ok((Path::new(OsStr::from_bytes(above)), name)),
    }
}

fn name_of(path: &Path) -> &[u8] {
    path.file_name().unwrap_or_default().as_bytes()
}

fn without_slashes(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    let len = bytes.iter().rposition(|byte| *byte != b'/').map_or(bytes.len(), |last| last + 1);
    Path::new(OsStr::from_bytes(&bytes[..len]))
}

fn new(kind: FileKind, metadata: &Metadata) -> NewFile {
    NewFile::new(kind, (metadata.mode() & 0o7777) as u16).owner(metadata.uid(), metadata.gid())
}

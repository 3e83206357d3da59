//! The manifest of a volume as this library shows it.

use std::collections::{BTreeSet, HashMap, HashSet};

use f2fs_files::{FileKind, FileSystem, FsError, InodeRef, Metadata, Nid};

use crate::shell::Quoted;

use super::{Content, ContentHasher, EntryKind, Manifest, ManifestEntry, Unread};

/// Inodes that are read together.
const AHEAD: usize = 256;

/// A path that could not be read while a volume was walked.
#[derive(Debug, thiserror::Error)]
#[error("{action} {path}: {source}")]
pub struct VolumeWalkError {
    /// The operation.
    pub action: &'static str,
    /// The path in the volume, quoted as for a shell.
    pub path: String,
    /// The library's error.
    pub source: Box<FsError>,
}

/// Walks a whole volume. Every byte of every regular file is read, unless it needs a key or a decompressor, which the
/// entry says; one file with several names is read once. `progress` is called with the number of entries read so far,
/// after each. All of them are in memory: [`visit_volume`] shows them one by one.
///
/// # Errors
///
/// The first path that could not be read.
///
/// ```
/// use f2fs_sync::Arc;
/// use f2fs_workload::manifest::walk_volume;
/// let device = Arc::new(f2fs_device::MemoryDevice::new(32 * 1024)); // 128 MiB
/// f2fs_volume::format::format(&*device, &Default::default())?;
/// let fs = f2fs_files::FileSystem::open(device, f2fs_files::Options::new())?;
/// fs.create_file("/hello", 0o640)?.write_at(b"abc", 0)?;
/// let manifest = walk_volume(&fs, |_| {})?.to_string();
/// assert!(manifest.contains("f\t0640\t0\t0\t3\t1\tba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\t-\t/hello\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn walk_volume(fs: &FileSystem, progress: impl FnMut(u64)) -> Result<Manifest, VolumeWalkError> {
    walk_volume_with(fs, u64::MAX, progress, Err)
}

/// As [`walk_volume`], but a file of more than `max_hash` bytes, holes included, is [`Content::Unhashed`], and paths that
/// could not be read go to `failure`, as in [`visit_volume`].
///
/// # Errors
///
/// What `failure` returned.
pub fn walk_volume_with(
    fs: &FileSystem,
    max_hash: u64,
    mut progress: impl FnMut(u64),
    failure: impl FnMut(VolumeWalkError) -> Result<(), VolumeWalkError>,
) -> Result<Manifest, VolumeWalkError> {
    let mut entries = Vec::new();
    let each = |entry| {
        entries.push(entry);
        progress(entries.len() as u64);
        Ok(())
    };
    visit_volume(fs, max_hash, each, failure)?;
    Ok(Manifest::new(entries))
}

/// Walks a whole volume, and calls `each` with each entry in the order of a manifest, bytewise by path. What is kept
/// meanwhile are the names of the directories on the way to the entry, not the tree.
///
/// A file of more than `max_hash` bytes, holes included, is [`Content::Unhashed`]: a digest takes its time for each byte of
/// a hole as well, though holes are not read. `failure` is called with each path that could not be read, and says whether
/// to go on. Such a path is [`Unread::Damaged`], or left out if not even its attributes could be read; a directory may
/// lack entries.
///
/// # Errors
///
/// What `each` or `failure` returned.
pub fn visit_volume<E>(
    fs: &FileSystem,
    max_hash: u64,
    each: impl FnMut(ManifestEntry) -> Result<(), E>,
    failure: impl FnMut(VolumeWalkError) -> Result<(), E>,
) -> Result<(), E> {
    let reader = Reader { max_hash, known: HashMap::new(), buffer: vec![0; 1 << 20] };
    let mut walk = Walk { reader, path: b"/".to_vec(), directories: HashSet::new(), each, failure };
    let root = match fs.root() {
        Ok(root) => root,
        Err(error) => return (walk.failure)(failed("stat", b"/", error)),
    };
    walk.directories.insert(root.ino());
    walk.show(&root)?;
    // Depth first by a stack of our own: a volume's depth is not ours to trust. What lies below a directory is found
    // from there, so that the way to it is not walked again for each entry.
    let mut levels = vec![walk.enter(root)?];
    while let Some(level) = levels.last_mut() {
        if level.read == 0 {
            let next = level.steps.iter().take(AHEAD).map(|step| step.ino);
            fs.read_inodes_ahead(&next.collect::<Vec<_>>());
            level.read = AHEAD;
        }
        level.read -= 1;
        let Some(Step { key, into, .. }) = level.steps.pop_first() else {
            walk.path.truncate(level.parent);
            levels.pop();
            continue;
        };
        let here = walk.path.len();
        if here > 1 {
            walk.path.push(b'/');
        }
        // The key of a directory's content ends with a slash.
        let name = &key[..key.len() - usize::from(into)];
        walk.path.extend_from_slice(name);
        match level.directory.lookup(name) {
            Ok(directory) if into => {
                let below = walk.enter(directory)?;
                levels.push(Level { parent: here, ..below });
                continue;
            }
            Ok(inode) => {
                if walk.show(&inode)? {
                    level.steps.insert(Step { key: [name, b"/"].concat(), into: true, ino: inode.ino() });
                }
            }
            Err(error) => (walk.failure)(failed(if into { "read the directory" } else { "stat" }, &walk.path, error))?,
        }
        walk.path.truncate(here);
    }
    Ok(())
}

/// What is to be done in a directory: to show what a name means, or to go into the directory of that name. Done in the
/// order of their keys, they show all paths in theirs: those in `a` come behind `a-b`, as `/` comes behind `-`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    key: Vec<u8>,
    into: bool,
    ino: Nid,
}

/// A directory on the way to the one that is read.
struct Level {
    directory: InodeRef,
    /// How long the path of the directory that it is in is.
    parent: usize,
    steps: BTreeSet<Step>,
    /// So many of the next steps have their inodes in memory.
    read: usize,
}

struct Walk<F, G> {
    reader: Reader,
    /// Where the walk is.
    path: Vec<u8>,
    directories: HashSet<Nid>,
    each: F,
    failure: G,
}

impl<E, F: FnMut(ManifestEntry) -> Result<(), E>, G: FnMut(VolumeWalkError) -> Result<(), E>> Walk<F, G> {
    /// Notes the names in a directory, whose path this is.
    fn enter(&mut self, directory: InodeRef) -> Result<Level, E> {
        let unreadable = |path: &[u8], source| failed("read the directory", path, source);
        let mut level = Level { directory, parent: 0, steps: BTreeSet::new(), read: 0 };
        let entries = match level.directory.open_dir() {
            Ok(opened) => opened.into_iter(),
            Err(error) => {
                (self.failure)(unreadable(&self.path, error))?;
                return Ok(level);
            }
        };
        for entry in entries {
            match entry {
                Ok(entry) => drop(level.steps.insert(Step { key: entry.name, into: false, ino: entry.ino })),
                Err(error) => (self.failure)(unreadable(&self.path, error))?,
            }
        }
        Ok(level)
    }

    /// Tells of what the path means, and says whether it is a directory to go into.
    fn show(&mut self, inode: &InodeRef) -> Result<bool, E> {
        let is_directory = inode.kind() == FileKind::Directory;
        if is_directory && self.path == b"/lost+found" && is_empty(inode) {
            return Ok(false);
        }
        let Some(entry) = self.reader.entry(&self.path, inode, &mut self.failure)? else { return Ok(false) };
        (self.each)(entry)?;
        if is_directory && self.path != b"/" && !self.directories.insert(inode.ino()) {
            (self.failure)(failed("walk", &self.path, crate::second_name()))?;
            return Ok(false);
        }
        Ok(is_directory)
    }
}

/// Whether a directory has no entry that can be read.
fn is_empty(directory: &InodeRef) -> bool {
    directory.open_dir().is_ok_and(|opened| !opened.entries().any(|entry| entry.is_ok()))
}

/// Reads what a manifest says about inodes.
struct Reader {
    max_hash: u64,
    /// Content of files with several names, by inode number.
    known: HashMap<u32, Content>,
    buffer: Vec<u8>,
}

impl Reader {
    /// The entry of an inode; none if its attributes could not be read. What fails goes to `failure`.
    fn entry<E>(
        &mut self,
        path: &[u8],
        inode: &InodeRef,
        failure: &mut impl FnMut(VolumeWalkError) -> Result<(), E>,
    ) -> Result<Option<ManifestEntry>, E> {
        let stat = match inode.metadata() {
            Ok(stat) => stat,
            Err(source) => {
                failure(failed("stat", path, source))?;
                return Ok(None);
            }
        };
        let content = match self.content(path, inode, &stat) {
            Ok(content) => content,
            Err(error) => {
                failure(error)?;
                Content::Unread(Unread::Damaged)
            }
        };
        let (content, xattrs) = match inode.xattrs() {
            Ok(xattrs) => (content, xattrs),
            Err(source) => {
                failure(failed("list the attributes of", path, source))?;
                (Content::Unread(Unread::Damaged), Vec::new())
            }
        };
        Ok(Some(ManifestEntry {
            path: path.to_vec(),
            kind: kind(stat.kind),
            mode: stat.permissions,
            uid: stat.uid,
            gid: stat.gid,
            size: stat.size,
            nlink: stat.links.into(),
            content,
            xattrs,
        }))
    }

    fn content(&mut self, path: &[u8], inode: &InodeRef, stat: &Metadata) -> Result<Content, VolumeWalkError> {
        match stat.kind {
            FileKind::Regular => match self.regular(inode, stat) {
                Err(FsError::Encrypted { .. }) => Ok(Content::Unread(Unread::Encrypted)),
                Err(FsError::Compressed { .. }) => Ok(Content::Unread(Unread::Compressed)),
                Err(FsError::Unsupported { .. }) => Ok(Content::Unread(Unread::DeviceAlias)),
                content => content.map_err(|source| failed("read", path, source)),
            },
            FileKind::Symlink => match inode.read_link() {
                Ok(target) => Ok(Content::Target(target)),
                Err(FsError::NoTarget) => Ok(Content::None),
                Err(source) => Err(failed("read the link", path, source)),
            },
            _ => match stat.device {
                Some(device) => Ok(Content::Device { major: device.major, minor: device.minor }),
                None => Ok(Content::None),
            },
        }
    }

    fn regular(&mut self, inode: &InodeRef, stat: &Metadata) -> Result<Content, FsError> {
        if stat.size > self.max_hash {
            return Ok(Content::Unhashed);
        }
        if let Some(known) = self.known.get(&stat.ino.get()) {
            return Ok(known.clone());
        }
        let file = inode.open_file()?;
        let mut hasher = ContentHasher::new();
        let mut at = 0;
        while let Some(data) = file.next_data(at)? {
            hasher.zeros(data.start.saturating_sub(at));
            at = data.start;
            while at < data.end {
                let wanted = (data.end - at).min(self.buffer.len() as u64) as usize;
                let count = file.read_at(&mut self.buffer[..wanted], at)?;
                if count == 0 {
                    break;
                }
                hasher.update(&self.buffer[..count]);
                at += count as u64;
            }
        }
        hasher.zeros(file.size().saturating_sub(at));
        let content = hasher.finish();
        if stat.links > 1 {
            self.known.insert(stat.ino.get(), content.clone());
        }
        Ok(content)
    }
}

fn failed(action: &'static str, path: &[u8], source: FsError) -> VolumeWalkError {
    VolumeWalkError { action, path: Quoted(path).to_string(), source: Box::new(source) }
}

fn kind(kind: FileKind) -> EntryKind {
    match kind {
        FileKind::Regular => EntryKind::Regular,
        FileKind::Directory => EntryKind::Directory,
        FileKind::Symlink => EntryKind::Symlink,
        FileKind::BlockDevice => EntryKind::BlockDevice,
        FileKind::CharDevice => EntryKind::CharDevice,
        FileKind::Fifo => EntryKind::Fifo,
        FileKind::Socket => EntryKind::Socket,
    }
}

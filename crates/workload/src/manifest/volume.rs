//! The manifest of a volume as this library shows it.

use std::collections::{HashMap, HashSet};

use f2fs_files::{FileKind, FileSystem, FsError, InodeRef, Metadata, Nid};

use crate::shell::Quoted;

use super::{Content, ContentHasher, EntryKind, Manifest, ManifestEntry, Unread};

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
/// after each.
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

/// As [`walk_volume`], but a file of more than `max_hash` bytes, holes included, is [`Content::Unhashed`]: a digest
/// takes its time for each byte of a hole as well, though holes are not read. `failure` is called with each path that
/// could not be read, and says whether to go on. Such a path is [`Unread::Damaged`], or left out if not even its
/// attributes could be read; a directory may lack entries.
///
/// # Errors
///
/// What `failure` returned.
pub fn walk_volume_with(
    fs: &FileSystem,
    max_hash: u64,
    progress: impl FnMut(u64),
    mut failure: impl FnMut(VolumeWalkError) -> Result<(), VolumeWalkError>,
) -> Result<Manifest, VolumeWalkError> {
    let buffer = vec![0; 1 << 20];
    let mut walk = Walk { max_hash, entries: Vec::new(), known: HashMap::new(), buffer, progress };
    let root = match fs.root() {
        Ok(root) => root,
        Err(error) => {
            failure(failed("stat", b"/", error))?;
            return Ok(Manifest::new(walk.entries));
        }
    };
    let mut directories = HashSet::from([root.ino()]);
    if let Err(error) = walk.visit(b"/", &root, &mut failure) {
        failure(error)?;
    }
    // Depth first by a stack of our own: a volume's depth is not ours to trust. What lies below a directory is found
    // from there, so that the way to it is not walked again for each entry.
    let mut levels = vec![Level { path: b"/".to_vec(), below: Vec::new(), directory: root }];
    walk.list(&mut levels[0], &mut directories, &mut failure)?;
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.below.pop() else {
            levels.pop();
            continue;
        };
        let path = crate::join(&level.path, &name);
        match level.directory.lookup(&name) {
            Ok(directory) => {
                let mut next = Level { path, below: Vec::new(), directory };
                walk.list(&mut next, &mut directories, &mut failure)?;
                levels.push(next);
            }
            Err(error) => failure(failed("read the directory", &path, error))?,
        }
    }
    Ok(Manifest::new(walk.entries))
}

/// A directory on the way to the one that is read.
struct Level {
    path: Vec<u8>,
    directory: InodeRef,
    /// Names of the directories in it that are still to be read.
    below: Vec<Vec<u8>>,
}

struct Walk<F> {
    max_hash: u64,
    entries: Vec<ManifestEntry>,
    /// Content of files with several names, by inode number.
    known: HashMap<u32, Content>,
    buffer: Vec<u8>,
    progress: F,
}

impl<F: FnMut(u64)> Walk<F> {
    /// Adds what a directory holds, and notes the directories in it.
    fn list(
        &mut self,
        level: &mut Level,
        directories: &mut HashSet<Nid>,
        failure: &mut impl FnMut(VolumeWalkError) -> Result<(), VolumeWalkError>,
    ) -> Result<(), VolumeWalkError> {
        let unreadable = |path: &[u8], source| failed("read the directory", path, source);
        let directory = match level.directory.open_dir() {
            Ok(directory) => directory,
            Err(error) => return failure(unreadable(&level.path, error)),
        };
        for child in directory.entries() {
            let name = match child {
                Ok(child) => child.name,
                Err(error) => {
                    failure(unreadable(&level.path, error))?;
                    continue;
                }
            };
            let path = crate::join(&level.path, &name);
            let found = level.directory.lookup(&name).map_err(|source| failed("stat", &path, source));
            match found.and_then(|inode| self.visit(&path, &inode, failure).map(|()| inode)) {
                Ok(inode) if inode.kind() != FileKind::Directory => {}
                Ok(inode) if directories.insert(inode.ino()) => level.below.push(name),
                Ok(_) => failure(failed("walk", &path, crate::second_name()))?,
                Err(error) => failure(error)?,
            }
        }
        Ok(())
    }

    /// Adds the entry of an inode. The error is that its attributes could not be read; others go to `failure`.
    fn visit(
        &mut self,
        path: &[u8],
        inode: &InodeRef,
        failure: &mut impl FnMut(VolumeWalkError) -> Result<(), VolumeWalkError>,
    ) -> Result<(), VolumeWalkError> {
        let stat = inode.metadata().map_err(|source| failed("stat", path, source))?;
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
        self.entries.push(ManifestEntry {
            path: path.to_vec(),
            kind: kind(stat.kind),
            mode: stat.permissions,
            uid: stat.uid,
            gid: stat.gid,
            size: stat.size,
            nlink: stat.links.into(),
            content,
            xattrs,
        });
        (self.progress)(self.entries.len() as u64);
        Ok(())
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

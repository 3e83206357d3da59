//! The manifest of a directory as the operating system shows it.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{SeekFrom, lgetxattr, llistxattr, major, minor, seek};
use rustix::io::Errno;

use crate::shell::Quoted;

use super::{Content, ContentHasher, EntryKind, Manifest, ManifestEntry, Unread};

/// A path that could not be read while a directory was walked.
#[derive(Debug, thiserror::Error)]
#[error("{action} {}: {source}", Quoted::path(.path))]
pub struct HostWalkError {
    /// The operation.
    pub action: &'static str,
    /// Where.
    pub path: PathBuf,
    /// The operating system's error.
    pub source: io::Error,
}

/// Walks the directory `root`, which becomes the manifest's `/`, without following symbolic links. Every byte of every
/// regular file is read, unless the kernel has no key for it; one file with several names is read once.
///
/// # Errors
///
/// The first path that could not be read.
pub fn walk_host(root: &Path) -> Result<Manifest, HostWalkError> {
    walk_host_limited(root, u64::MAX)
}

/// As [`walk_host`], but a file of more than `max_hash` bytes, holes included, is [`Content::Unhashed`].
///
/// # Errors
///
/// The first path that could not be read.
pub fn walk_host_limited(root: &Path, max_hash: u64) -> Result<Manifest, HostWalkError> {
    let mut buffer = vec![0; 1 << 20];
    walk_host_with(root, |file, meta| {
        if meta.len() > max_hash { Ok(Content::Unhashed) } else { digest(file, meta.len(), &mut buffer) }
    })
}

/// As [`walk_host`], with the content of each regular file from `content`, which is called once for a file with several
/// names.
///
/// # Errors
///
/// The first path that could not be read, or for which `content` failed.
pub fn walk_host_with(
    root: &Path,
    content: impl FnMut(&mut File, &Metadata) -> io::Result<Content>,
) -> Result<Manifest, HostWalkError> {
    let mut walk = Walk { entries: Vec::new(), known: HashMap::new(), content };
    walk.visit(root, b"/")?;
    Ok(Manifest::new(walk.entries))
}

struct Walk<F> {
    entries: Vec<ManifestEntry>,
    /// Content of files with several names, by device and inode number.
    known: HashMap<(u64, u64), Content>,
    content: F,
}

impl<F: FnMut(&mut File, &Metadata) -> io::Result<Content>> Walk<F> {
    fn visit(&mut self, host: &Path, path: &[u8]) -> Result<(), HostWalkError> {
        let fail = |action| move |source| HostWalkError { action, path: host.to_owned(), source };
        let meta = fs::symlink_metadata(host).map_err(fail("stat"))?;
        let kind = EntryKind::from_mode(meta.mode())
            .ok_or_else(|| fail("stat")(io::Error::other(format!("unknown file type in mode {:o}", meta.mode()))))?;
        let content = match kind {
            EntryKind::Regular => match self.regular(host, &meta) {
                Err(error) if Errno::from_io_error(&error) == Some(Errno::NOKEY) => Content::Unread(Unread::Encrypted),
                content => content.map_err(fail("read"))?,
            },
            EntryKind::Symlink => match fs::read_link(host) {
                Ok(target) => Content::Target(target.into_os_string().into_vec()),
                // Linux, of a link on F2FS that has no target.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Content::None,
                Err(error) => return Err(fail("readlink")(error)),
            },
            EntryKind::BlockDevice | EntryKind::CharDevice => {
                Content::Device { major: major(meta.rdev()), minor: minor(meta.rdev()) }
            }
            EntryKind::Directory | EntryKind::Fifo | EntryKind::Socket => Content::None,
        };
        self.entries.push(ManifestEntry {
            path: path.to_vec(),
            kind,
            mode: (meta.mode() & 0o7777) as u16,
            uid: meta.uid(),
            gid: meta.gid(),
            size: meta.size(),
            nlink: meta.nlink(),
            content,
            xattrs: xattrs(host).map_err(fail("list the extended attributes of"))?,
        });
        if kind == EntryKind::Directory {
            for child in fs::read_dir(host).map_err(fail("read the directory"))? {
                let name = child.map_err(fail("read the directory"))?.file_name();
                let mut below = path.to_vec();
                if path != b"/" {
                    below.push(b'/');
                }
                below.extend_from_slice(name.as_bytes());
                self.visit(&host.join(&name), &below)?;
            }
        }
        Ok(())
    }

    fn regular(&mut self, host: &Path, meta: &Metadata) -> io::Result<Content> {
        let identity = (meta.dev(), meta.ino());
        if let Some(known) = self.known.get(&identity) {
            return Ok(known.clone());
        }
        let content = (self.content)(&mut File::open(host)?, meta)?;
        if meta.nlink() > 1 {
            self.known.insert(identity, content.clone());
        }
        Ok(content)
    }
}

/// Holes are not read, where the file system tells of them.
fn digest(file: &File, size: u64, buffer: &mut [u8]) -> io::Result<Content> {
    let mut hasher = ContentHasher::new();
    let mut at = 0;
    while at < size {
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => size,
            Err(_) => at,
        };
        hasher.zeros(data.saturating_sub(at));
        at = at.max(data);
        let end = seek(file, SeekFrom::Hole(at)).unwrap_or(size).min(size);
        while at < end {
            let wanted = (end - at).min(buffer.len() as u64) as usize;
            match file.read_at(&mut buffer[..wanted], at) {
                // It was cut meanwhile.
                Ok(0) => return Ok(hasher.finish()),
                Ok(count) => {
                    hasher.update(&buffer[..count]);
                    at += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(hasher.finish())
}

/// All extended attributes that the caller may see; none where the file system has no such thing.
fn xattrs(path: &Path) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let names = match sized(|buffer| llistxattr(path, buffer)) {
        Err(Errno::NOTSUP) => return Ok(Vec::new()),
        names => names?,
    };
    let mut all = Vec::new();
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let value = sized(|buffer| lgetxattr(path, name, buffer))?;
        all.push((name.to_vec(), value));
    }
    Ok(all)
}

/// Calls with a larger buffer until the answer fits.
fn sized(mut call: impl FnMut(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; 1024];
    loop {
        match call(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(Errno::RANGE) if buffer.len() < 1 << 20 => buffer.resize(buffer.len() * 8, 0),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_small_tree() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::set_permissions(root, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(root.join("b"), b"abc").unwrap();
        fs::set_permissions(root.join("b"), fs::Permissions::from_mode(0o640)).unwrap();
        fs::hard_link(root.join("b"), root.join("c")).unwrap();
        symlink("b\n", root.join("a")).unwrap();
        let lines: Vec<String> = walk_host(root).unwrap().entries()[1..].iter().map(ToString::to_string).collect();
        let meta = fs::metadata(root.join("b")).unwrap();
        let owner = format!("{}\t{}", meta.uid(), meta.gid());
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(lines[0], format!("l\t0777\t{owner}\t2\t1\tb\\x0a\t-\t/a"));
        assert_eq!(lines[1], format!("f\t0640\t{owner}\t3\t2\t{digest}\t-\t/b"));
        assert_eq!(lines[2], format!("f\t0640\t{owner}\t3\t2\t{digest}\t-\t/c"));
    }

    #[test]
    fn a_missing_root_is_an_error_that_names_it() {
        let error = walk_host(Path::new("/nonexistent-root")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent-root"), "{error}");
    }
}

//! Opening directories of the host below one of them, and never outside, with any names and symbolic links below.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Bytes of a path that are opened in one call: below `PATH_MAX`.
const PIECE: usize = 4000;

/// A directory, below which all is opened.
pub(super) struct Below {
    root: OwnedFd,
}

impl Below {
    /// Opens the directory itself; symbolic links on the way to it are followed, because the user named it.
    pub(super) fn new(root: &Path) -> io::Result<Below> {
        let root = rustix::fs::open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Below { root })
    }

    /// A directory by its name in another one.
    pub(super) fn child(parent: &OwnedFd, name: &[u8]) -> io::Result<Below> {
        Ok(Below { root: beneath(parent.as_fd(), name, OFlags::PATH)? })
    }

    /// Opens a directory below by its names, separated by slashes; no name: the directory itself. `flags` may be
    /// [`OFlags::PATH`]. A symbolic link on the way or at the end is an error.
    pub(super) fn directory(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let mut at: Option<OwnedFd> = None;
        let mut rest = if path.is_empty() { &b"."[..] } else { path };
        loop {
            let (piece, behind) = cut(rest, PIECE);
            let flags = if behind.is_empty() { flags } else { OFlags::PATH };
            let from = at.as_ref().unwrap_or(&self.root).as_fd();
            let opened = beneath(from, piece, flags)?;
            if behind.is_empty() {
                return Ok(opened);
            }
            at = Some(opened);
            rest = behind;
        }
    }
}

/// Cuts a path behind a name, so that the first part is at most `most` bytes long, or one name.
fn cut(path: &[u8], most: usize) -> (&[u8], &[u8]) {
    if path.len() <= most {
        return (path, &[]);
    }
    let slash = path[..most].iter().rposition(|byte| *byte == b'/');
    match slash.or_else(|| path.iter().position(|byte| *byte == b'/')) {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (path, &[]),
    }
}

fn beneath(from: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(from, OsStr::from_bytes(path), flags, Mode::empty(), resolve) {
        // Before Linux 5.6, or behind a filter of system calls that does not know it.
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::TOOBIG) => one_by_one(from, path, flags),
        opened => Ok(opened?),
    }
}

/// The same, name by name.
fn one_by_one(from: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let mut at: Option<OwnedFd> = None;
    let mut names = path.split(|byte| *byte == b'/').peekable();
    while let Some(name) = names.next() {
        if name == b".." || name.is_empty() {
            return Err(Errno::XDEV.into());
        }
        let last = names.peek().is_none();
        let flags = if last { flags } else { OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC };
        let from = at.as_ref().map_or(from, |at| at.as_fd());
        let opened = rustix::fs::openat(from, OsStr::from_bytes(name), flags, Mode::empty())?;
        if last {
            return Ok(opened);
        }
        at = Some(opened);
    }
    Err(Errno::NOENT.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Way = fn(BorrowedFd<'_>, &[u8], OFlags) -> io::Result<OwnedFd>;

    #[test]
    fn both_ways_open_below_and_nowhere_else() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir(place.path().join("outside")).unwrap();
        for (link, target) in [("link", "../outside"), ("inside", "a"), ("a/up", ".."), ("abs", "/tmp")] {
            std::os::unix::fs::symlink(target, root.join(link)).unwrap();
        }
        let below = Below::new(&root).unwrap();
        let ways: [Way; 2] = [beneath, |from, path, flags| {
            one_by_one(from, path, flags | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC)
        }];
        for way in ways {
            for good in ["a", "a/b", "."] {
                assert!(way(below.root.as_fd(), good.as_bytes(), OFlags::PATH).is_ok(), "{good}");
            }
            for bad in ["..", "a/../..", "link", "inside", "inside/b", "a/up", "a/up/a", "abs", "/tmp", "none"] {
                assert!(way(below.root.as_fd(), bad.as_bytes(), OFlags::PATH).is_err(), "{bad}");
            }
        }
    }

    #[test]
    fn paths_longer_than_the_host_takes_are_opened_in_pieces() {
        let place = tempfile::tempdir().unwrap();
        let below = Below::new(place.path()).unwrap();
        let name = [b'n'; 200];
        let mut path = Vec::new();
        while path.len() < 3 * PIECE {
            let parent = below.directory(&path, OFlags::PATH).unwrap();
            rustix::fs::mkdirat(&parent, OsStr::from_bytes(&name), Mode::from_raw_mode(0o700)).unwrap();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(&name);
        }
        below.directory(&path, OFlags::RDONLY).unwrap();
        assert_eq!(cut(&path, PIECE).0.len(), 19 * 201 + 200 - 201);
    }
}

//! One line of a manifest.

use std::fmt;

use sha2::{Digest, Sha256};

use super::escape::{Escaped, Hex};

/// The kind of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharDevice,
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
}

impl EntryKind {
    /// The letter of the type field.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Regular => 'f',
            Self::Directory => 'd',
            Self::Symlink => 'l',
            Self::BlockDevice => 'b',
            Self::CharDevice => 'c',
            Self::Fifo => 'p',
            Self::Socket => 's',
        }
    }

    /// The kind that the type bits (`S_IFMT`) of a full `st_mode` name; `None` if they name none.
    #[must_use]
    pub fn from_mode(mode: u32) -> Option<Self> {
        Some(match mode & 0o170_000 {
            0o100_000 => Self::Regular,
            0o040_000 => Self::Directory,
            0o120_000 => Self::Symlink,
            0o060_000 => Self::BlockDevice,
            0o020_000 => Self::CharDevice,
            0o010_000 => Self::Fifo,
            0o140_000 => Self::Socket,
            _ => return None,
        })
    }
}

/// The content of a path, apart from attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Nothing that is shown: directories, FIFOs, sockets, symbolic links without a target.
    None,
    /// SHA-256 of a regular file's data, holes as zeros.
    Sha256([u8; 32]),
    /// What is there and could not be read.
    Unread(Unread),
    /// A regular file's data that was not digested, since the file is larger than was asked for.
    Unhashed,
    /// The target of a symbolic link.
    Target(Vec<u8>),
    /// The number of a device.
    Device {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
}

/// Why something could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// There is no key for it.
    Encrypted,
    /// A part of it is compressed, and nothing here decompresses it.
    Compressed,
    /// It is another device's.
    DeviceAlias,
    /// The volume is damaged there, or the device fails.
    Damaged,
}

impl Unread {
    /// The word of a manifest in place of a digest.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Encrypted => "encrypted",
            Self::Compressed => "compressed",
            Self::DeviceAlias => "device-alias",
            Self::Damaged => "unreadable",
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("-"),
            Self::Sha256(digest) => write!(f, "{}", Hex(digest)),
            Self::Unread(why) => f.write_str(why.name()),
            Self::Unhashed => f.write_str("unhashed"),
            Self::Target(target) => write!(f, "{}", Escaped { bytes: target, also: "" }),
            Self::Device { major, minor } => write!(f, "{major}:{minor}"),
        }
    }
}

/// Everything that a manifest says about one path. Printing it gives its line, without a newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestEntry {
    /// Path from the root of the tree, beginning with `/`, raw bytes.
    pub path: Vec<u8>,
    /// Its kind.
    pub kind: EntryKind,
    /// Permission, set-id and sticky bits (`07777`); higher bits are ignored.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes; not shown for directories.
    pub size: u64,
    /// Link count.
    pub nlink: u64,
    /// Its content.
    pub content: Content,
    /// Extended attributes with their full names (`user.x`), in any order.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Display for ManifestEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = self.mode & 0o7777;
        write!(f, "{}\t{mode:04o}\t{}\t{}\t", self.kind.letter(), self.uid, self.gid)?;
        match self.kind {
            EntryKind::Directory => f.write_str("-")?,
            _ => write!(f, "{}", self.size)?,
        }
        write!(f, "\t{}\t{}\t", self.nlink, self.content)?;
        write_xattrs(f, &self.xattrs)?;
        write!(f, "\t{}", Escaped { bytes: &self.path, also: "" })
    }
}

fn write_xattrs(f: &mut fmt::Formatter<'_>, xattrs: &[(Vec<u8>, Vec<u8>)]) -> fmt::Result {
    if xattrs.is_empty() {
        return f.write_str("-");
    }
    let mut sorted: Vec<_> = xattrs.iter().collect();
    sorted.sort();
    for (index, (name, value)) in sorted.into_iter().enumerate() {
        let separator = if index == 0 { "" } else { ";" };
        write!(f, "{separator}{}={}", Escaped { bytes: name, also: "=;" }, Hex(value))?;
    }
    Ok(())
}

/// Digests a regular file's data piece by piece.
///
/// ```
/// use f2fs_workload::manifest::ContentHasher;
/// let mut sparse = ContentHasher::new();
/// sparse.update(b"head");
/// sparse.zeros(3);
/// let mut plain = ContentHasher::new();
/// plain.update(b"head\0\0\0");
/// assert_eq!(sparse.finish(), plain.finish());
/// ```
#[derive(Debug, Clone, Default)]
pub struct ContentHasher(Sha256);

impl ContentHasher {
    /// Nothing digested yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds data.
    pub fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    /// Adds `count` zero bytes: a hole.
    pub fn zeros(&mut self, mut count: u64) {
        static ZEROS: [u8; 16 << 10] = [0; 16 << 10];
        while count > 0 {
            // The minimum fits a usize: it is at most the array's length.
            let step = count.min(ZEROS.len() as u64);
            self.0.update(&ZEROS[..step as usize]);
            count -= step;
        }
    }

    /// The digest as a manifest's content.
    #[must_use]
    pub fn finish(self) -> Content {
        Content::Sha256(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_all_fields_in_order() {
        let entry = ManifestEntry {
            path: b"/a\xffb".to_vec(),
            kind: EntryKind::Regular,
            mode: 0o4755,
            uid: 1000,
            gid: 65534,
            size: 0,
            nlink: 2,
            content: ContentHasher::new().finish(),
            xattrs: vec![(b"user.z".to_vec(), vec![0, 255]), (b"user.a=".to_vec(), Vec::new())],
        };
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let line = format!("f\t4755\t1000\t65534\t0\t2\t{empty}\tuser.a\\x3d=;user.z=00ff\t/a\\xffb");
        assert_eq!(entry.to_string(), line);
    }

    #[test]
    fn devices_links_and_directories() {
        let mut entry = ManifestEntry {
            path: b"/x".to_vec(),
            kind: EntryKind::CharDevice,
            mode: 0o600,
            uid: 0,
            gid: 0,
            size: 0,
            nlink: 1,
            content: Content::Device { major: 5, minor: 1 },
            xattrs: Vec::new(),
        };
        assert_eq!(entry.to_string(), "c\t0600\t0\t0\t0\t1\t5:1\t-\t/x");
        (entry.kind, entry.size, entry.content) = (EntryKind::Symlink, 3, Content::Target(b"a\tb".to_vec()));
        assert_eq!(entry.to_string(), "l\t0600\t0\t0\t3\t1\ta\\x09b\t-\t/x");
        (entry.kind, entry.content) = (EntryKind::Directory, Content::None);
        assert_eq!(entry.to_string(), "d\t0600\t0\t0\t-\t1\t-\t-\t/x");
    }

    #[test]
    fn kinds_follow_the_type_bits() {
        for (mode, letter) in [
            (0o100_644, 'f'),
            (0o040_755, 'd'),
            (0o120_777, 'l'),
            (0o060_600, 'b'),
            (0o020_600, 'c'),
            (0o010_600, 'p'),
            (0o140_600, 's'),
        ] {
            assert_eq!(EntryKind::from_mode(mode).map(EntryKind::letter), Some(letter));
        }
        assert_eq!(EntryKind::from_mode(0o644), None);
    }
}

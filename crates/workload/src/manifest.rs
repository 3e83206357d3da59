//! A whole tree as text: one line per path, tab-separated, sorted bytewise by path.
//!
//! The fields of a line, in order:
//!
//! | Field | Content |
//! |---|---|
//! | type | `f` file, `d` directory, `l` symbolic link, `b` block device, `c` character device, `p` FIFO, `s` socket |
//! | mode | permission bits with set-id and sticky bits, four octal digits |
//! | uid, gid | decimal |
//! | size | bytes; `-` for directories |
//! | nlink | link count |
//! | content | SHA-256 of a file's data in hex, or `unhashed` for a file larger than asked for; a link's target; `major:minor` of a device; else `-` |
//! | | `encrypted`, `compressed` or `device-alias` for a file whose data could not be read for that |
//! | | `unreadable` where the volume is damaged or the device fails, also if only the xattrs could not be read |
//! | xattrs | `name=hex;name=hex` sorted by name; `-` when there are none |
//! | path | from `/`, which is the root's own path |
//!
//! In paths, targets and attribute names, bytes outside printable UTF-8 (and tab, newline and backslash) stand as
//! `\xNN`; in attribute names also `;` and `=`. An empty `/lost+found` is left out.
//!
//! The same code prints volumes ([`walk_volume`]) and host directories ([`walk_host`]), so two
//! views of one tree can be compared byte by byte.

mod entry;
mod escape;
mod host;
mod volume;

pub use entry::{Content, ContentHasher, EntryKind, ManifestEntry, Unread};
pub use host::{HostWalkError, walk_host, walk_host_limited, walk_host_with};
pub use volume::{VolumeWalkError, visit_volume, walk_volume, walk_volume_with};

use std::fmt;

/// A tree's entries, in the order of their paths. Printing it gives the whole text, a newline after each line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    entries: Vec<ManifestEntry>,
}

impl Manifest {
    /// Sorts the entries bytewise by path and leaves out an empty `/lost+found`.
    #[must_use]
    pub fn new(mut entries: Vec<ManifestEntry>) -> Self {
        const LOST_FOUND: &[u8] = b"/lost+found";
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let used = entries.iter().any(|entry| entry.path.starts_with(b"/lost+found/"));
        if !used {
            entries.retain(|entry| entry.path != LOST_FOUND || entry.kind != EntryKind::Directory);
        }
        Self { entries }
    }

    /// How many paths are files whose data was not digested, because they are too large.
    #[must_use]
    pub fn unhashed(&self) -> usize {
        self.entries.iter().filter(|entry| entry.content == Content::Unhashed).count()
    }

    /// The entries, sorted.
    #[must_use]
    pub fn entries(&self) -> &[ManifestEntry] {
        &self.entries
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.iter().try_for_each(|entry| writeln!(f, "{entry}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(path: &[u8]) -> ManifestEntry {
        ManifestEntry {
            path: path.to_vec(),
            kind: EntryKind::Directory,
            mode: 0o755,
            uid: 0,
            gid: 0,
            size: 4096,
            nlink: 2,
            content: Content::None,
            xattrs: Vec::new(),
        }
    }

    #[test]
    fn sorted_bytewise_by_the_raw_path() {
        let manifest = Manifest::new([&b"/a/b"[..], b"/a-b", b"/\xff", b"/a", b"/"].map(directory).to_vec());
        let paths: Vec<&[u8]> = manifest.entries().iter().map(|entry| entry.path.as_slice()).collect();
        assert_eq!(paths, [&b"/"[..], b"/a", b"/a-b", b"/a/b", b"/\xff"]);
    }

    #[test]
    fn only_an_empty_lost_found_directory_is_left_out() {
        let empty = Manifest::new(vec![directory(b"/"), directory(b"/lost+found")]);
        assert_eq!(empty.to_string(), "d\t0755\t0\t0\t-\t2\t-\t-\t/\n");
        let used = Manifest::new(vec![directory(b"/lost+found"), directory(b"/lost+found/1")]);
        assert_eq!(used.entries().len(), 2);
        let nested = Manifest::new(vec![directory(b"/a/lost+found")]);
        assert_eq!(nested.entries().len(), 1);
        let mut file = directory(b"/lost+found");
        file.kind = EntryKind::Regular;
        assert_eq!(Manifest::new(vec![file]).entries().len(), 1);
    }
}

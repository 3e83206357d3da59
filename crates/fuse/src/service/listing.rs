//! Listings of directories.

use f2fs_files::{DirEntry, FileKind, FsError, Metadata};
use rustix::io::Errno;

use super::Service;

/// An entry of a listing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    /// The number of the inode in the mount.
    pub(crate) number: u64,
    /// Where the listing goes on behind it.
    pub(crate) next: u64,
    pub(crate) kind: FileKind,
    pub(crate) name: &'a [u8],
}

/// What is shown of an entry beside its name.
#[derive(Debug)]
pub(crate) enum Listed {
    /// The attributes, which count as a look-up.
    Looked(Metadata),
    /// None, and no look-up is counted: of the directory itself and the one above, and of an inode that is damaged, of
    /// which the kernel keeps nothing.
    Plain { kept: bool },
}

/// An error is told when nothing in front of it is, with the next request.
fn in_reach(entries: Result<Vec<DirEntry>, FsError>, empty: bool) -> Result<Vec<DirEntry>, FsError> {
    if empty { entries } else { entries.or_else(|_| Ok(Vec::new())) }
}

impl Service {
    /// Entries behind `offset`, until `add` says that there is no room for one.
    pub(crate) fn list(&self, number: u64, offset: u64, mut add: impl FnMut(Named<'_>) -> bool) -> Result<(), Errno> {
        let mut empty = true;
        self.run(|volume| {
            let mut from = offset;
            loop {
                let entries = in_reach(volume.list(number, from), empty)?;
                let Some(last) = entries.last() else { return Ok(()) };
                from = last.next;
                for entry in entries {
                    let kind = entry.kind.unwrap_or(FileKind::Regular);
                    let number = volume.entry_number(&entry);
                    if add(Named { number, next: entry.next, kind, name: &entry.name }) {
                        return Ok(());
                    }
                    empty = false;
                }
            }
        })
    }

    /// The same with the attributes of each, which counts as a look-up of it.
    pub(crate) fn list_with_attributes(
        &self,
        directory: u64,
        offset: u64,
        mut add: impl FnMut(Named<'_>, &Listed) -> bool,
    ) -> Result<(), Errno> {
        let mut empty = true;
        self.run(|volume| {
            let mut from = offset;
            loop {
                let entries = in_reach(volume.list(directory, from), empty)?;
                let Some(last) = entries.last() else { return Ok(()) };
                from = last.next;
                volume.fs().read_inodes_ahead(&entries.iter().map(|entry| entry.ino).collect::<Vec<_>>());
                for entry in entries {
                    let number = volume.entry_number(&entry);
                    let mut kind = entry.kind.unwrap_or(FileKind::Regular);
                    // The kernel counts no look-up of these two. Programs do not see an entry with the number 0.
                    let dots = matches!(entry.name.as_slice(), b"." | b"..");
                    let listed = if dots {
                        kind = FileKind::Directory;
                        Listed::Plain { kept: true }
                    } else {
                        match volume.lookup(directory, &entry.name) {
                            Ok(data) => {
                                kind = data.kind;
                                Listed::Looked(data)
                            }
                            // It went a moment ago.
                            Err(FsError::NotFound) => continue,
                            // The name is there; who asks for more than that is told the error. What the kernel counts
                            // here and gives back is no look-up that was counted.
                            Err(error) if error.is_corruption() && !volume.is_known(number) => {
                                Listed::Plain { kept: false }
                            }
                            // The kernel would take those of an inode that it has for new ones.
                            Err(error) => return if empty { Err(error) } else { Ok(()) },
                        }
                    };
                    if add(Named { number, next: entry.next, kind, name: &entry.name }, &listed) {
                        if matches!(listed, Listed::Looked(_)) {
                            volume.forget(number, 1);
                        }
                        return Ok(());
                    }
                    empty = false;
                }
            }
        })
    }
}

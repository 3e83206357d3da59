//! Listings of directories.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use f2fs_files::{DirEntry, FileKind, FsError};
use fuser::{FileAttr, Generation, INodeNo, ReplyDirectory, ReplyDirectoryPlus};

use super::Transport;
use super::answers::KEPT;
use crate::attributes::{file_type, nothing};

/// An error is told when nothing in front of it is, with the next request.
fn in_reach(entries: Result<Vec<DirEntry>, FsError>, empty: bool) -> Result<Vec<DirEntry>, FsError> {
    if empty { entries } else { entries.or_else(|_| Ok(Vec::new())) }
}

impl Transport {
    /// Entries behind `offset`, as many as the kernel has room for.
    pub(super) fn list(&self, ino: INodeNo, offset: u64, mut reply: ReplyDirectory) {
        let mut empty = true;
        let listed = self.run(|volume| {
            let mut from = offset;
            loop {
                let entries = in_reach(volume.list(ino.0, from), empty)?;
                let Some(last) = entries.last() else { return Ok(()) };
                from = last.next;
                for entry in entries {
                    let kind = file_type(entry.kind.unwrap_or(FileKind::Regular));
                    let number = INodeNo(volume.entry_number(&entry));
                    if reply.add(number, entry.next, kind, OsStr::from_bytes(&entry.name)) {
                        return Ok(());
                    }
                    empty = false;
                }
            }
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    /// The same with the attributes of each, which counts as a look-up of it.
    pub(super) fn list_with_attributes(&self, ino: INodeNo, offset: u64, mut reply: ReplyDirectoryPlus) {
        let mut empty = true;
        let listed = self.run(|volume| {
            let mut from = offset;
            loop {
                let entries = in_reach(volume.list(ino.0, from), empty)?;
                let Some(last) = entries.last() else { return Ok(()) };
                from = last.next;
                volume.fs().read_inodes_ahead(&entries.iter().map(|entry| entry.ino).collect::<Vec<_>>());
                for entry in entries {
                    let number = volume.entry_number(&entry);
                    let kind = file_type(entry.kind.unwrap_or(FileKind::Regular));
                    let without_attributes =
                        |kind| (FileAttr { ino: INodeNo(number), kind, ..nothing() }, Generation(0));
                    // The kernel counts no look-up of these two. Programs do not see an entry with the number 0.
                    let dots = matches!(entry.name.as_slice(), b"." | b"..");
                    let (counted, ttl, (shown, generation)) = if dots {
                        (false, KEPT, without_attributes(file_type(FileKind::Directory)))
                    } else {
                        match volume.lookup(ino.0, &entry.name) {
                            Ok(data) => (true, KEPT, (self.attr(&data), Generation(data.generation.into()))),
                            // It went a moment ago.
                            Err(FsError::NotFound) => continue,
                            // The name is there; who asks for more than that is told the error. What the kernel counts
                            // here and gives back is no look-up that was counted.
                            Err(error) if error.is_corruption() && !volume.is_known(number) => {
                                (false, Duration::ZERO, without_attributes(kind))
                            }
                            // The kernel would take those of an inode that it has for new ones.
                            Err(error) => return if empty { Err(error) } else { Ok(()) },
                        }
                    };
                    let name = OsStr::from_bytes(&entry.name);
                    if reply.add(INodeNo(number), entry.next, name, &ttl, &shown, generation) {
                        if counted {
                            volume.forget(number, 1);
                        }
                        return Ok(());
                    }
                    empty = false;
                }
            }
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }
}

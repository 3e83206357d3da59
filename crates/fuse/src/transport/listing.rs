//! Listings of directories.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use f2fs_files::{FileKind, FsError};
use fuser::{FileAttr, Generation, INodeNo, ReplyDirectory, ReplyDirectoryPlus};

use super::Transport;
use super::answers::KEPT;
use crate::attributes::{file_type, nothing};

impl Transport {
    /// Entries behind `offset`, as many as the kernel has room for.
    pub(super) fn list(&self, ino: INodeNo, offset: u64, mut reply: ReplyDirectory) {
        let listed = self.run(|volume| {
            let mut from = offset;
            loop {
                let entries = volume.list(ino.0, from)?;
                let Some(last) = entries.last() else { return Ok(()) };
                from = last.next;
                for entry in entries {
                    let kind = file_type(entry.kind.unwrap_or(FileKind::Regular));
                    let number = INodeNo(volume.entry_number(&entry));
                    if reply.add(number, entry.next, kind, OsStr::from_bytes(&entry.name)) {
                        return Ok(());
                    }
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
                let entries = volume.list(ino.0, from)?;
                let Some(last) = entries.last() else { return Ok(()) };
                from = last.next;
                for entry in entries {
                    let number = volume.entry_number(&entry);
                    // The kernel counts no look-up of these two. Programs do not see an entry with the number 0.
                    let dots = matches!(entry.name.as_slice(), b"." | b"..");
                    let (shown, generation) = if dots {
                        let kind = file_type(FileKind::Directory);
                        (FileAttr { ino: INodeNo(number), kind, ..nothing() }, Generation(0))
                    } else {
                        match volume.lookup(ino.0, &entry.name) {
                            Ok(data) => (self.attr(&data), Generation(data.generation.into())),
                            // It went a moment ago.
                            Err(FsError::NotFound) => continue,
                            // It is told when nothing in front of it is, with the next request.
                            Err(error) => return if empty { Err(error) } else { Ok(()) },
                        }
                    };
                    let name = OsStr::from_bytes(&entry.name);
                    if reply.add(INodeNo(number), entry.next, name, &KEPT, &shown, generation) {
                        if !dots {
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

//! How answers are put into the memory of a request.

use f2fs_files::{FileKind, Metadata, Time};
use fuser::FopenFlags;
use rustix::io::Errno;
use zerocopy::{FromZeros, IntoBytes};

use super::abi::{Attr, AttrOut, CreateOut, Dirent, EntryOut, OpenOut, StatfsOut};
use crate::attributes::encode;
use crate::service::{KEPT, Listed, Named, Space};

/// Puts one value behind another.
#[derive(Debug)]
pub(super) struct Reply<'a> {
    room: &'a mut [u8],
    length: usize,
}

impl<'a> Reply<'a> {
    pub(super) fn new(room: &'a mut [u8]) -> Reply<'a> {
        Reply { room, length: 0 }
    }

    /// The same, with no more than `size` bytes.
    pub(super) fn within(room: &'a mut [u8], size: u32) -> Reply<'a> {
        let size = room.len().min(size as usize);
        Reply::new(&mut room[..size])
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// `EIO` if there is no room for them.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        let free = self.room[self.length..].get_mut(..bytes.len()).ok_or(Errno::IO)?;
        free.copy_from_slice(bytes);
        self.length += bytes.len();
        Ok(())
    }

    /// Adds an entry of a listing, with the zeros that bring its length to a multiple of 8. Whether there was no room.
    pub(super) fn dirent(&mut self, entry: &Named<'_>, shown: Option<&EntryOut>) -> bool {
        let head = Dirent {
            ino: entry.number,
            off: entry.next,
            namelen: entry.name.len() as u32,
            kind: u32::from(entry.kind.to_mode()) >> 12,
        };
        let shown = shown.map_or(&[][..], IntoBytes::as_bytes);
        let zeros = entry.name.len().next_multiple_of(8) - entry.name.len();
        let length = shown.len() + size_of::<Dirent>() + entry.name.len() + zeros;
        if self.room.len() - self.length < length {
            return true;
        }
        [shown, head.as_bytes(), entry.name, &[0; 8][..zeros]].iter().any(|part| self.bytes(part).is_err())
    }

    /// How long the answer is.
    pub(super) fn finish(self) -> usize {
        self.length
    }
}

/// The attributes of a file, which has this number in the mount.
fn attr(data: &Metadata, number: u64) -> Attr {
    let [accessed, modified, changed] = [data.accessed, data.modified, data.changed].map(Time::nearest);
    Attr {
        ino: number,
        size: data.size,
        blocks: data.blocks.saturating_mul(8),
        atime: accessed.seconds,
        mtime: modified.seconds,
        ctime: changed.seconds,
        atimensec: accessed.nanoseconds,
        mtimensec: modified.nanoseconds,
        ctimensec: changed.nanoseconds,
        mode: u32::from(data.kind.to_mode() | data.permissions),
        nlink: data.links,
        uid: data.uid,
        gid: data.gid,
        rdev: data.device.map_or(0, encode),
        blksize: 4096,
        flags: 0,
    }
}

pub(super) fn attributes(data: &Metadata, number: u64) -> AttrOut {
    AttrOut { attr_valid: KEPT.as_secs(), attr_valid_nsec: 0, dummy: 0, attr: attr(data, number) }
}

pub(super) fn entry(data: &Metadata, number: u64) -> EntryOut {
    EntryOut {
        nodeid: number,
        generation: data.generation.into(),
        entry_valid: KEPT.as_secs(),
        attr_valid: KEPT.as_secs(),
        entry_valid_nsec: 0,
        attr_valid_nsec: 0,
        attr: attr(data, number),
    }
}

/// The answer that there is no file of a name: the kernel keeps that as well.
pub(super) fn nothing() -> EntryOut {
    EntryOut { entry_valid: KEPT.as_secs(), ..EntryOut::new_zeroed() }
}

/// What a listing shows of an entry.
pub(super) fn listed(named: &Named<'_>, listed: &Listed) -> EntryOut {
    match listed {
        Listed::Looked(data) => entry(data, named.number),
        Listed::Plain { kept } => {
            let seconds = if *kept { KEPT.as_secs() } else { 0 };
            let kind: FileKind = named.kind;
            let attr = Attr { ino: named.number, mode: kind.to_mode().into(), blksize: 4096, ..Attr::new_zeroed() };
            EntryOut { nodeid: named.number, entry_valid: seconds, attr_valid: seconds, attr, ..EntryOut::new_zeroed() }
        }
    }
}

pub(super) fn opened(flags: FopenFlags) -> OpenOut {
    OpenOut { fh: 0, open_flags: flags.bits(), backing_id: 0 }
}

pub(super) fn created(data: &Metadata, number: u64, flags: FopenFlags) -> CreateOut {
    CreateOut { entry: entry(data, number), open: opened(flags) }
}

pub(super) fn space(space: &Space) -> StatfsOut {
    StatfsOut {
        blocks: space.blocks,
        bfree: space.free,
        bavail: space.free,
        files: space.files,
        ffree: space.free_files,
        bsize: 4096,
        namelen: 255,
        frsize: 4096,
        padding: 0,
        spare: [0; 6],
    }
}

//! A mounted volume: what each request does, without the protocol.
//!
//! No locks of its own; the table of inodes and the streams have some.

mod making;
mod privileges;

use std::fmt::Debug;

use f2fs_device::{AlignedBuf, BLOCK_SIZE};
use f2fs_files::{
    AllocateFlags, DirEntry, FileSystem, FsError, InodeRef, Metadata, Nid, RenameMode, SetAttributes, SetMode, Time,
};
use f2fs_sync::atomic::Ordering;
use f2fs_sync::{Arc, OnceLock};

use self::privileges::{CAPABILITIES, drop_capabilities, without_privileges};
use crate::acl;
use crate::caller::Caller;
use crate::forgotten::Forgotten;
use crate::kept::KeptPages;
use crate::options::{Cache, MountOptions};
use crate::stream::Piece;
use crate::streams::Streams;
use crate::table::{Known, ROOT, Table};

/// Entries of a directory that are read together.
const LISTED: usize = 128;

/// The changes that a request may ask for in an inode.
#[derive(Debug, Default)]
pub(crate) struct Change {
    pub(crate) size: Option<u64>,
    pub(crate) attributes: SetAttributes,
}

/// What the kernel is told without having asked.
pub(crate) trait Kernel: Debug + Send + Sync {
    /// It asks for the attributes of this inode before it uses them again.
    fn forget_attributes(&self, number: u64);
}

/// A mounted volume.
#[derive(Debug)]
pub(crate) struct Mounted {
    fs: FileSystem,
    table: Table,
    streams: Streams,
    options: MountOptions,
    forgotten: Forgotten,
    kernel: Arc<OnceLock<Box<dyn Kernel>>>,
    kept: Arc<KeptPages>,
}

/// What was read.
#[derive(Debug)]
pub(crate) enum Read {
    /// So many bytes at the beginning of the buffer.
    Buffer(usize),
    /// A piece of a file that is read in order. What follows is read by [`Mounted::read_on`], behind the answer.
    Piece(Arc<Known>, Piece),
}

impl Mounted {
    pub(crate) fn new(fs: &FileSystem, options: MountOptions) -> Result<Mounted, FsError> {
        let (table, streams) = (Table::new(fs.root()?, options.inodes), Streams::default());
        let (kernel, kept) = (Arc::default(), Arc::default());
        Ok(Mounted { fs: fs.clone(), table, streams, options, forgotten: Forgotten::default(), kernel, kept })
    }

    /// Where to set whom to tell of attributes that change in a request whose answer has none.
    pub(crate) fn kernel(&self) -> Arc<OnceLock<Box<dyn Kernel>>> {
        self.kernel.clone()
    }

    /// The requests of pages that the kernel has kept.
    pub(crate) fn kept(&self) -> Arc<KeptPages> {
        self.kept.clone()
    }

    pub(crate) fn options(&self) -> &MountOptions {
        &self.options
    }

    pub(crate) fn fs(&self) -> &FileSystem {
        &self.fs
    }

    fn get(&self, number: u64) -> Result<Arc<Known>, FsError> {
        self.table.get(number, |ino, generation| self.fs.inode_again(ino, generation))
    }

    /// An inode whose data is changed. Where the library writes it back later, an error of that is told to those who had
    /// the file open then: so this one does not rest.
    fn changed(&self, number: u64) -> Result<Arc<Known>, FsError> {
        let known = self.get(number)?;
        if self.fs.has_page_cache() {
            known.hold();
        }
        Ok(known)
    }

    /// A name is about to go, and maybe the last one of an inode that the kernel has open.
    fn hold(&self, parent: &InodeRef, name: &[u8]) -> Result<(), FsError> {
        match parent.lookup(name) {
            Ok(inode) => self.table.hold(inode),
            // The removal says it, or there is nothing to be replaced.
            Err(_) => Ok(()),
        }
    }

    /// The attributes that the kernel is shown of an inode: its number, and owner and mode as the options say.
    fn shown(&self, inode: &InodeRef) -> Result<Metadata, FsError> {
        let mut data = inode.metadata()?;
        data.uid = self.options.uid.unwrap_or(data.uid);
        data.gid = self.options.gid.unwrap_or(data.gid);
        if let Some(umask) = self.options.umask {
            data.permissions = data.permissions & !0o777 | 0o777 & !umask;
        }
        Ok(data)
    }

    pub(crate) fn number(&self, data: &Metadata) -> u64 {
        self.table.number(data.ino.0.into())
    }

    pub(crate) fn entry_number(&self, entry: &DirEntry) -> u64 {
        self.table.number(entry.ino.0.into())
    }

    /// Counts the telling of an inode; if its attributes cannot be had, nothing was told.
    fn told(&self, inode: InodeRef) -> Result<Metadata, FsError> {
        let data = self.shown(&inode)?;
        self.table.tell(inode, data.generation);
        Ok(data)
    }

    pub(crate) fn lookup(&self, parent: u64, name: &[u8]) -> Result<Metadata, FsError> {
        if name == b"." {
            return self.again(parent);
        }
        self.told(self.get(parent)?.inode.lookup(name)?)
    }

    /// The inode of a number that the kernel has given back, and of which somebody has kept a handle
    /// (`open_by_handle_at`, an export by NFS). Nobody has it open: then the kernel would not ask.
    fn again(&self, number: u64) -> Result<Metadata, FsError> {
        let data = match self.table.tell_again(number) {
            Some(known) => self.shown(&known.inode).inspect_err(|_| self.forget(number, 1))?,
            None => {
                let ino = u32::try_from(number).map_err(|_| FsError::NotFound)?;
                self.told(self.fs.inode(Nid(ino))?)?
            }
        };
        if data.links == 0 {
            self.forget(number, 1);
            return Err(FsError::NotFound);
        }
        Ok(data)
    }

    pub(crate) fn forget(&self, number: u64, count: u64) {
        if self.table.forget(number, count) && self.forgotten.is_much(|| self.table.len()) {
            self.fs.drop_unused();
        }
    }

    pub(crate) fn is_known(&self, number: u64) -> bool {
        self.table.is_known(number)
    }

    pub(crate) fn attributes(&self, number: u64) -> Result<Metadata, FsError> {
        self.shown(&self.get(number)?.inode)
    }

    pub(crate) fn change(&self, caller: Caller, number: u64, change: &Change) -> Result<Metadata, FsError> {
        let known = if change.size.is_some() { self.changed(number) } else { self.get(number) }?;
        let inode = &known.inode;
        let mut attributes = change.attributes;
        if let Some(size) = change.size {
            let cut = known.file()?.set_len(size);
            known.stream.changed();
            cut?;
        }
        let owner = attributes.uid.is_some() || attributes.gid.is_some();
        if attributes.permissions.is_none() && (owner || change.size.is_some() && caller.uid != 0) {
            attributes.permissions = without_privileges(&inode.metadata()?, caller);
        }
        if owner {
            drop_capabilities(&known)?;
        }
        if attributes != SetAttributes::default() {
            inode.set_attributes(&attributes)?;
        }
        if let Some(permissions) = change.attributes.permissions {
            match inode.xattr(acl::ACCESS) {
                Ok(list) => inode.set_xattr(acl::ACCESS, &acl::set_mode(&list, permissions)?, SetMode::Any)?,
                Err(FsError::NoAttribute | FsError::Attribute { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.shown(inode)
    }

    pub(crate) fn remove_file(&self, parent: u64, name: &[u8]) -> Result<(), FsError> {
        let parent = self.get(parent)?;
        self.hold(&parent.inode, name)?;
        parent.inode.remove_file(name)
    }

    pub(crate) fn remove_dir(&self, parent: u64, name: &[u8]) -> Result<(), FsError> {
        let parent = self.get(parent)?;
        self.hold(&parent.inode, name)?;
        parent.inode.remove_dir(name)
    }

    pub(crate) fn rename(&self, from: (u64, &[u8]), to: (u64, &[u8]), mode: RenameMode) -> Result<(), FsError> {
        let (source, target) = (self.get(from.0)?, self.get(to.0)?);
        if mode == RenameMode::Replace {
            self.hold(&target.inode, to.1)?;
        }
        source.inode.rename(from.1, &target.inode, to.1, mode)
    }

    pub(crate) fn read_link(&self, number: u64) -> Result<Vec<u8>, FsError> {
        self.get(number)?.inode.read_link()
    }

    /// Reads up to `size` bytes, with `buf` to read into. Where the kernel caches, it asks for what it has not, and
    /// keeps it: then the page cache of the library takes no second copy.
    pub(crate) fn read(&self, number: u64, buf: &mut AlignedBuf, offset: u64, size: usize) -> Result<Read, FsError> {
        let known = self.get(number)?;
        let file = known.file()?;
        let size = size.min(usize::try_from(file.size().saturating_sub(offset)).unwrap_or(usize::MAX));
        let caches = self.options.cache != Cache::None;
        if caches {
            let begins = || self.streams.begin(&known);
            if let Some(piece) = known.stream.read(file, offset, size, &self.streams.memory, begins)? {
                return Ok(Read::Piece(known, piece));
            }
        }
        buf.resize(size.div_ceil(BLOCK_SIZE));
        let read = match caches {
            true => file.read_into(buf, offset)?.min(size),
            false => file.read_at(&mut buf.as_bytes_mut()[..size], offset)?,
        };
        Ok(Read::Buffer(read))
    }

    /// Reads what will be asked for next.
    pub(crate) fn read_on(&self, known: &Known, answered: &Piece) -> Result<(), FsError> {
        known.stream.go_on(known.file()?, answered, &self.streams.memory);
        Ok(())
    }

    /// Writes at a position, and says how many bytes. Pages that the kernel has `kept` are clean for it when the answer
    /// is no error, whatever count it has: of these, all are written. `by`: somebody who may not write to a file that
    /// has privileges without taking them.
    pub(crate) fn write(
        &self,
        number: u64,
        buf: &[u8],
        offset: u64,
        kept: bool,
        by: Option<Caller>,
    ) -> Result<usize, FsError> {
        let _handed_over = kept.then(|| self.kept.begin());
        let known = self.changed(number)?;
        match by {
            Some(caller) => self.drop_privileges(caller, &known)?,
            // Who may keep set-id bits loses these all the same. Where the kernel caches, it takes them away itself.
            None if !kept && self.options.cache == Cache::None => drop_capabilities(&known)?,
            None => {}
        }
        let file = known.file()?;
        let mut written = file.write_at(buf, offset);
        while let Ok(count) = written
            && kept
            && count < buf.len()
        {
            // Where the volume is full, this is the error.
            written = file.write_at(&buf[count..], offset + count as u64).map(|more| count + more);
        }
        // Also behind an error, which may leave a part of it.
        known.stream.changed();
        written
    }

    pub(crate) fn sync(&self, number: u64) -> Result<(), FsError> {
        self.get(number)?.inode.sync_all()
    }

    /// With a journal the record of a directory holds names and what they lead to. Of the directory that the volume is
    /// mounted on it is everything, as it is of any directory without a journal: a `sync` does not reach this server.
    pub(crate) fn sync_directory(&self, number: u64) -> Result<(), FsError> {
        let volume = self.fs.volume();
        if number == ROOT && !volume.is_read_only() && volume.journal_usage().is_some() {
            return self.fs.checkpoint().map(drop);
        }
        self.sync(number)
    }

    /// Entries of a directory from a position on; none at its end.
    pub(crate) fn list(&self, number: u64, from: u64) -> Result<Vec<DirEntry>, FsError> {
        self.get(number)?.list(from, LISTED)
    }

    pub(crate) fn allocate(
        &self,
        caller: Caller,
        number: u64,
        offset: u64,
        len: u64,
        flags: AllocateFlags,
    ) -> Result<(), FsError> {
        let known = self.changed(number)?;
        let allocated = known.file()?.allocate(offset, len, flags);
        known.stream.changed();
        allocated?;
        // The kernel says of a write whether it takes the privileges, but not here.
        if caller.uid != 0 { self.drop_privileges(caller, &known) } else { drop_capabilities(&known) }
    }

    /// The first byte at or behind `offset` that is data, or that is in a hole; `None` behind the end of the file.
    pub(crate) fn seek(&self, number: u64, offset: u64, hole: bool) -> Result<Option<u64>, FsError> {
        let known = self.get(number)?;
        let file = known.file()?;
        if offset >= file.size() {
            return Ok(None);
        }
        if !hole {
            return Ok(file.next_data(offset)?.map(|data| data.start));
        }
        let mut at = offset;
        while let Some(data) = file.next_data(at)? {
            if data.start > at {
                return Ok(Some(at));
            }
            at = data.end;
        }
        Ok(Some(at.min(file.size())))
    }

    pub(crate) fn xattr(&self, number: u64, name: &[u8]) -> Result<Vec<u8>, FsError> {
        self.get(number)?.inode.xattr(name)
    }

    /// The names of all attributes that the caller may know of (`f2fs_xattr_trusted_list`), each with a zero behind it.
    pub(crate) fn xattr_names(&self, caller: Caller, number: u64) -> Result<Vec<u8>, FsError> {
        let all = self.get(number)?.inode.xattrs()?.into_iter().map(|(name, _)| name);
        let shown = all.filter(|name| caller.uid == 0 || !name.starts_with(b"trusted."));
        Ok(shown.flat_map(|name| name.into_iter().chain([0])).collect())
    }

    pub(crate) fn set_xattr(
        &self,
        caller: Caller,
        number: u64,
        name: &[u8],
        value: &[u8],
        mode: SetMode,
    ) -> Result<(), FsError> {
        if acl::is_name(name) && acl::is_empty(value)? {
            return self.remove_xattr(number, name);
        }
        let known = self.get(number)?;
        if name != acl::ACCESS {
            let set = known.inode.set_xattr(name, value, mode);
            if name == CAPABILITIES {
                // Behind it, so that no look that came before says that there are none.
                known.capable.store(true, Ordering::Release);
            }
            return set;
        }
        let (bits, whole) = acl::mode(value)?;
        if whole {
            match known.inode.remove_xattr(name) {
                Ok(()) | Err(FsError::NoAttribute) => {}
                Err(error) => return Err(error),
            }
        } else {
            known.inode.set_xattr(name, value, mode)?;
        }
        let data = known.inode.metadata()?;
        let mut permissions = data.permissions & !0o777 | bits;
        // As with `chmod`: only who is in the group makes its programs run as the group.
        if permissions & 0o2000 != 0 && caller.uid != 0 && !caller.is_in(data.gid) {
            permissions &= !0o2000;
        }
        known.inode.set_attributes(&SetAttributes::default().permissions(Some(permissions)))
    }

    /// Removes an attribute. Without an access control list there is nothing to remove, and that is no error: the
    /// kernel asks so for an empty one, and tar does so for each directory that has none.
    pub(crate) fn remove_xattr(&self, number: u64, name: &[u8]) -> Result<(), FsError> {
        match self.get(number)?.inode.remove_xattr(name) {
            Err(FsError::NoAttribute) if acl::is_name(name) => Ok(()),
            done => done,
        }
    }
}

/// The present, for requests that ask for it.
pub(crate) fn now() -> Time {
    Time::now()
}

#[cfg(test)]
mod resting;
#[cfg(test)]
mod tests;

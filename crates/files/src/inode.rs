//! An inode in memory: its node, its locks, and how long it lives.
//!
//! # Locking
//!
//! Outer locks are taken before an operation begins on the volume (before its gate), inner ones within it:
//!
//! ```text
//! rename lock > directory stripes (ancestor first) > ranges of the content, xattrs > gate > life > pages of nodes and directories
//! ```
//!
//! - `content`: locks of ranges of the data, see `content.rs`. Made when the data is first used, from the node's page;
//!   it is asked for with no page locked.
//! - `xattrs`: shared to read xattrs, exclusive to change them. Attributes need only the node's page.
//! - `life`: how many handles there are, and whether the inode was freed.
//!
//! ```text
//!          open            last link goes, open          last handle closes
//!   idle <------> open  ------------------------> orphan -------------------> freed
//!     |   close                                                                 ^
//!     +---------------------- last link goes, not open -------------------------+
//! ```
//!
//! A freed inode never comes back: its number may be given to a new inode after the next checkpoint, in a new object.

use f2fs_format::feature::Features;
use f2fs_format::inode::{self as raw, EXTRA_SIZE, advise, inline};
use f2fs_format::{Corruption, Nid};
use f2fs_sync::atomic::{AtomicBool, AtomicU8};
use f2fs_sync::{Arc, Mutex, OnceLock, RwLock};
use f2fs_volume::{Node, NodeWrite, Op, Volume};

use crate::FsError;
use crate::content::Content;
use crate::device_number::DeviceNumber;
use crate::directory::{Directories, Directory};
use crate::form::{self, Form};
use crate::mark::Mark;
use crate::page_cache::{FilePages, Seen};
use crate::stat::{self, FileKind, Metadata, Time};

/// How an inode lives.
#[derive(Debug, Default)]
pub(crate) struct Life {
    /// Handles, of which those that share one count as one.
    pub(crate) opens: u32,
    /// How many of them are shared ([`crate::open_files`]).
    pub(crate) kept: u32,
    pub(crate) freed: bool,
    /// It was made without a name, and may get one.
    pub(crate) linkable: bool,
    /// The words of a device file's number, as long as it has no name.
    device: Option<[u32; 2]>,
}

/// The word from which on a device file has its number.
fn words_at(inode: &raw::Inode) -> usize {
    inode.extra().map_or(0, |extra| usize::from(extra.i_extra_isize.get()) / 4)
}

/// An inode in memory.
#[derive(Debug)]
pub(crate) struct Inode {
    pub(crate) ino: Nid,
    pub(crate) kind: FileKind,
    pub(crate) form: Form,
    pub(crate) node: Node,
    pub(crate) xattrs: RwLock<()>,
    content: OnceLock<Box<Content>>,
    pub(crate) life: Mutex<Life>,
    /// The number of its [`WriteHint`](crate::WriteHint).
    pub(crate) hint: AtomicU8,
    /// Whether its mark is hot or cold.
    pub(crate) mark: Mark,
    /// A processor may remember it open, by a name: see [`crate::open_files`].
    pub(crate) remembered: AtomicBool,
    pub(crate) directory: Option<Box<Directory>>,
}

impl Inode {
    /// Takes a node as an inode, after checking what everything else relies on.
    pub(crate) fn load(volume: &Volume, ino: Nid, directories: &Arc<Directories>) -> Result<Inode, FsError> {
        let node = volume.nodes().get(ino)?;
        let (kind, form) = {
            let block = node.read();
            if !block.is_inode() {
                return Err(Corruption::Mismatch {
                    what: "owner of a node that a directory entry names",
                    expected: ino.0.into(),
                    found: block.ino().0.into(),
                }
                .into());
            }
            (check(volume, ino, block.inode())?, Form::of(block.inode(), volume.features()))
        };
        Ok(Inode::with_form(node, kind, form, directories))
    }

    /// An inode around a node that was just made.
    pub(crate) fn new(node: Node, kind: FileKind, directories: &Arc<Directories>) -> Inode {
        Inode::with_form(node, kind, Form::default(), directories)
    }

    /// An inode around a node that is known to be good.
    fn with_form(node: Node, kind: FileKind, form: Form, directories: &Arc<Directories>) -> Inode {
        let directory = (kind == FileKind::Directory).then(|| Box::new(Directory::new(&node, form, directories)));
        Inode {
            ino: node.nid(),
            kind,
            form,
            node,
            xattrs: RwLock::new(()),
            content: OnceLock::new(),
            life: Mutex::new(Life::default()),
            hint: AtomicU8::new(0),
            mark: Mark::default(),
            remembered: AtomicBool::new(false),
            directory,
        }
    }

    /// The directory that this is.
    pub(crate) fn directory(&self) -> Result<&Directory, FsError> {
        self.directory.as_deref().ok_or(FsError::NotDirectory)
    }

    fn is_device(&self) -> bool {
        matches!(self.kind, FileKind::BlockDevice | FileKind::CharDevice)
    }

    /// Takes the number of a device file that has no name out of the node. fsck.f2fs does not ask what kind of file an
    /// orphan is, and takes the number for the address of a block.
    pub(crate) fn take_device(&self, op: &Op<'_>, life: &mut Life) {
        if self.is_device() {
            let mut block = self.node.write(op);
            let inode = block.inode_mut();
            let at = words_at(inode);
            life.device = Some([at, at + 1].map(|at| inode.i_addr[at].get()));
            inode.i_addr[at..at + 2].fill(0.into());
        }
    }

    /// Puts it back: the file has a name.
    pub(crate) fn put_device(&self, op: &Op<'_>, life: &mut Life) {
        if let Some(words) = life.device.take() {
            let mut block = self.node.write(op);
            let inode = block.inode_mut();
            let at = words_at(inode);
            (inode.i_addr[at], inode.i_addr[at + 1]) = (words[0].into(), words[1].into());
        }
    }

    /// Whether it has blocks of data, or may get some.
    pub(crate) fn has_blocks(&self) -> bool {
        matches!(self.kind, FileKind::Regular | FileKind::Directory | FileKind::Symlink) && !is_inline(&self.node)
    }

    /// Whether the file has no direct or indirect nodes: it is freed within one operation.
    pub(crate) fn is_small(&self) -> bool {
        !self.has_blocks() || self.node.read().inode().i_nid.iter().all(|nid| nid.get() == 0)
    }

    /// The file's data in memory. A change of the size asks for this first, so that the copy in it is right.
    #[inline]
    pub(crate) fn content_or(&self, make: impl FnOnce(&raw::Inode) -> Content) -> &Content {
        match self.content.get() {
            Some(content) => content,
            None => self.content.get_or_init(|| Box::new(make(self.node.read().inode()))),
        }
    }

    /// Raises `i_size`, and the copy in the content. The caller has the inode's page locked, and asked for the content
    /// before.
    pub(crate) fn grow(&self, inode: &mut raw::Inode, size: u64) {
        match self.content.get() {
            Some(content) => content.grow(inode, size),
            None => inode.i_size = size.into(),
        }
    }

    /// The file's data in memory, if it was used.
    pub(crate) fn content(&self) -> Option<&Content> {
        self.content.get().map(|content| &**content)
    }

    /// Its part of the page cache, if it was used.
    pub(crate) fn pages(&self) -> Option<&FilePages> {
        self.content.get().and_then(|content| content.pages())
    }

    /// Lists what its range locks take; see [`Content::list_locks`].
    pub(crate) fn list_locks(&self) -> u64 {
        self.content.get().map_or(0, |content| content.list_locks())
    }

    /// They are not listed any more.
    pub(crate) fn unlist_locks(&self) {
        if let Some(content) = self.content.get() {
            content.unlist_locks();
        }
    }

    /// Forgets where its blocks lie: their slots were cleared.
    pub(crate) fn forget_addresses(&self) {
        if let Some(content) = self.content.get() {
            content.cache.forget(0);
        }
    }

    /// The errors of write-back that a new handle counts as told.
    pub(crate) fn seen_errors(&self) -> Seen {
        self.pages().map_or_else(Seen::default, |pages| pages.errors.opened())
    }

    /// Locks the inode's page for a change of attributes. They are all in it then: a directory tells it of its last
    /// change, which else a checkpoint would do later.
    pub(crate) fn write_attributes<'n>(&'n self, op: &'n Op<'_>) -> NodeWrite<'n> {
        let mut block = self.node.write(op);
        if let Some(content) = self.content() {
            content.times.look();
        }
        if let Some(directory) = &self.directory {
            directory.settle_touch(block.inode_mut());
        }
        block
    }

    /// The attributes that `stat` gives.
    pub(crate) fn stat(&self, features: Features) -> Result<Metadata, FsError> {
        // The number of a device file is in one place or the other.
        let life = self.is_device().then(|| self.life.lock());
        let block = self.node.read();
        if self.node.is_removed() {
            return Err(FsError::NotFound);
        }
        if let Some(content) = self.content() {
            content.times.look();
        }
        let inode = block.inode();
        let (accessed, mut modified, mut changed) = stat::times(inode);
        if let Some(touched) = self.directory.as_ref().and_then(|directory| directory.touched()) {
            modified = modified.max(touched);
            changed = changed.max(touched);
        }
        let device = life.map(|life| {
            let [old, new] = life.device.unwrap_or_else(|| {
                let at = words_at(inode);
                [at, at + 1].map(|at| inode.i_addr[at].get())
            });
            DeviceNumber::decode(old, new)
        });
        let created = inode
            .extra()
            .filter(|extra| features.contains(Features::INODE_CRTIME) && extra.i_extra_isize.get() >= 24)
            .map(|extra| Time { seconds: extra.i_crtime.get() as i64, nanoseconds: extra.i_crtime_nsec.get() });
        Ok(Metadata {
            ino: self.ino,
            kind: self.kind,
            permissions: inode.i_mode.get() & 0o7777,
            uid: inode.i_uid.get(),
            gid: inode.i_gid.get(),
            links: inode.i_links.get(),
            size: match self.kind {
                FileKind::Symlink => self.form.target_size(inode.i_size.get()),
                _ => self.content.get().map_or_else(|| inode.i_size.get(), |content| content.size()),
            },
            // With those of the page cache that have a place, and are not there yet.
            blocks: inode.i_blocks.get().saturating_add(self.pages().map_or(0, FilePages::reserved)),
            accessed,
            modified,
            changed,
            created,
            device,
            generation: inode.i_generation.get(),
            inline: inode.i_inline & (inline::DATA | inline::DENTRY) != 0,
            encrypted: self.form.encrypted,
            casefolded: self.form.casefolded,
            verity: inode.i_advise & advise::VERITY != 0,
            compression: inode.compression(features),
        })
    }

    pub(crate) fn size(&self) -> u64 {
        if let Some(content) = self.content.get() {
            return content.size();
        }
        self.node.read().inode().i_size.get()
    }
}

/// The properties that all other code relies on in an inode (`sanity_check_inode` in `fs/f2fs/inode.c`).
pub(crate) fn check(volume: &Volume, ino: Nid, inode: &raw::Inode) -> Result<FileKind, FsError> {
    let kind = FileKind::from_mode(inode.i_mode.get())
        .ok_or_else(|| FsError::corrupt_inode(ino, "its file type is none that F2FS has"))?;
    form::check(ino, inode, kind, volume.features())?;
    if let Some(extra) = inode.extra() {
        let size = extra.i_extra_isize.get();
        if !volume.features().contains(Features::EXTRA_ATTR)
            || usize::from(size) > EXTRA_SIZE
            || size % 4 != 0
            || size < 4
        {
            return Err(FsError::corrupt("i_extra_isize", size.into(), 4, EXTRA_SIZE as u64));
        }
        let xattr = usize::from(extra.i_inline_xattr_size.get());
        let most = raw::MAX_INLINE_XATTR_WORDS;
        if volume.features().contains(Features::FLEXIBLE_INLINE_XATTR) && xattr > most {
            return Err(FsError::corrupt("i_inline_xattr_size", xattr as u64, 0, most as u64));
        }
    }
    // A file that nobody counts as linked is freed when it is closed: only if the checkpoint says so as well.
    if inode.i_links.get() == 0 && !volume.is_orphan(ino) {
        return Err(FsError::corrupt_inode(ino, "it has no links, and is no orphan of the checkpoint"));
    }
    let data = inode.i_inline & inline::DATA != 0;
    let dentry = inode.i_inline & inline::DENTRY != 0;
    if data && !matches!(kind, FileKind::Regular | FileKind::Symlink) {
        return Err(FsError::corrupt_inode(
            ino,
            "it has inline data, and is neither a regular file nor a symbolic link",
        ));
    }
    if dentry && kind != FileKind::Directory {
        return Err(FsError::corrupt_inode(ino, "it has inline dentries, and is no directory"));
    }
    if data {
        let room = inode.layout(volume.features()).inline_data_size() as u64;
        if inode.i_size.get() > room {
            return Err(FsError::corrupt("size of inline data", inode.i_size.get(), 0, room));
        }
    }
    let limit = match kind {
        // The kernel reads one page.
        FileKind::Symlink => f2fs_format::BLOCK_SIZE as u64,
        _ => {
            f2fs_format::path::max_file_blocks(inode.layout(volume.features()).addresses())
                * f2fs_format::BLOCK_SIZE as u64
        }
    };
    if inode.i_size.get() > limit {
        return Err(FsError::corrupt("i_size", inode.i_size.get(), 0, limit));
    }
    if kind == FileKind::Directory && inode.i_current_depth.get() > f2fs_format::hash::MAX_DEPTH {
        return Err(FsError::corrupt(
            "i_current_depth",
            inode.i_current_depth.get().into(),
            0,
            f2fs_format::hash::MAX_DEPTH.into(),
        ));
    }
    Ok(kind)
}

/// Whether data or entries stand in the inode itself.
pub(crate) fn is_inline(node: &Node) -> bool {
    node.read().inode().i_inline & (inline::DATA | inline::DENTRY) != 0
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

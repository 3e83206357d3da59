//! One inode: its fields, and the order in which its parts are checked.

use f2fs_format::dentry::FileType;
use f2fs_format::feature::Features;
use f2fs_format::inode::{
    self, EXTRA_SIZE, Inode, MAX_INLINE_XATTR_WORDS, NAME_LEN, SIZE_WITH_CHECKSUM, advise, flags, inline,
};
use f2fs_format::node::NodeBlock;
use f2fs_format::{BlockAddr, Nid, hash, path};
use f2fs_sync::atomic::Ordering::Relaxed;

use super::ahead::Ahead;
use super::alias;
use super::directory;
use super::error::CheckError;
use super::finding::{FindingKind, Place, Problem};
use super::quota;
use super::subject::Subject;
use super::tree::TreeWalk;
use super::walk::{Role, Task};
use super::xattr;

/// Least size of the extra attributes: the fields that say how large they are.
const MIN_EXTRA_SIZE: u64 = 4;
/// Words of the xattr header, and the most that leaves room for inline dentries (`MAX_INLINE_XATTR_SIZE`).
const INLINE_XATTR_WORDS: (u64, u64) = (6, MAX_INLINE_XATTR_WORDS as u64);
/// `i_flags` that need a feature.
const FLAGS: [(u32, Features); 3] = [
    (flags::COMPR, Features::COMPRESSION),
    (flags::CASEFOLD, Features::CASEFOLD),
    (flags::DEVICE_ALIAS, Features::DEVICE_ALIAS),
];
/// `i_advise` that needs a feature.
const ADVICE: [(u8, Features); 2] = [(advise::ENCRYPT, Features::ENCRYPT), (advise::ENC_NAME, Features::ENCRYPT)];

/// The `i_flags` that need a feature which is off.
pub(super) fn foreign_flags(features: Features) -> u32 {
    FLAGS.iter().filter(|(_, feature)| !features.contains(*feature)).fold(0, |all, (flag, _)| all | flag)
}

/// The `i_advise` that needs a feature which is off.
pub(super) fn foreign_advice(features: Features) -> u8 {
    ADVICE.iter().filter(|(_, feature)| !features.contains(*feature)).fold(0, |all, (flag, _)| all | flag)
}
/// Longest target of a symbolic link, with its end.
const MAX_TARGET: u64 = 4096;

/// Where the parts of a check find the inode.
pub(super) struct InodeView<'s, 'a> {
    pub(super) subject: &'s Subject<'a>,
    /// Blocks that were read ahead.
    pub(super) ahead: &'s Ahead,
    pub(super) ino: Nid,
    pub(super) place: Place,
    pub(super) node: &'s NodeBlock,
    pub(super) role: Role,
}

impl InodeView<'_, '_> {
    pub(super) fn inode(&self) -> &Inode {
        self.node.inode()
    }

    pub(super) fn add(&self, kind: FindingKind, problem: Problem) {
        self.subject.findings.add(kind, self.place.clone(), problem);
    }

    pub(super) fn fault(&self, kind: FindingKind, what: &'static str, found: impl Into<u64>) {
        self.add(kind, Problem::Fault { what, found: found.into() });
    }

    pub(super) fn has_inline(&self, flag: u8) -> bool {
        self.inode().i_inline & flag != 0
    }

    fn range(&self, kind: FindingKind, what: &'static str, found: u64, min: u64, max: u64) {
        if !(min..=max).contains(&found) {
            self.add(kind, Problem::Range { what, found, min, max });
        }
    }
}

/// Checks an inode whose block was read, with all that hangs on it. Returns the inodes that its entries name first.
pub(super) fn check(
    (subject, ahead): (&Subject<'_>, &Ahead),
    task: &Task,
    addr: BlockAddr,
    node: &NodeBlock,
) -> Result<Vec<Task>, CheckError> {
    let ino = task.ino;
    if !subject.check_footer(node, addr, ino, ino, 0) {
        return Ok(Vec::new());
    }
    subject.tally.inodes.fetch_add(1, Relaxed);
    let view = InodeView { subject, ahead, ino, place: Place::Node { nid: ino, addr }, node, role: task.role };
    let file_type = FileType::from_mode(view.inode().i_mode.get());
    check_checksum(&view);
    check_type(&view, file_type);
    check_extra(&view);
    check_fields(&view, file_type);
    let xattr_nodes = xattr::check(&view)?;
    match file_type {
        FileType::Directory => {
            subject.tally.directories.fetch_add(1, Relaxed);
            check_directory(&view, xattr_nodes)
        }
        FileType::Regular | FileType::Symlink => {
            declare(&view);
            check_file(&view, file_type, xattr_nodes)?;
            Ok(Vec::new())
        }
        _ => {
            declare(&view);
            check_blocks(&view, xattr_nodes);
            Ok(Vec::new())
        }
    }
}

fn check_checksum(view: &InodeView<'_, '_>) {
    let inode = view.inode();
    let Some(extra) = inode.extra().filter(|_| inode::has_checksum(inode, view.subject.features)) else { return };
    let expected = inode::checksum(view.node, view.subject.checksum_seed);
    let found = extra.i_inode_checksum.get();
    if expected != found {
        let problem = Problem::Bits { what: "i_inode_checksum", expected: expected.into(), found: found.into() };
        view.add(FindingKind::InodeChecksum, problem);
    }
}

/// The mode against what the directory entry said.
fn check_type(view: &InodeView<'_, '_>, file_type: FileType) {
    let (kind, found) = (FindingKind::FileType, u64::from(file_type.number()));
    let i_mode = view.inode().i_mode.get();
    match view.role {
        _ if file_type == FileType::Unknown => view.fault(FindingKind::Inode, "i_mode of no known type", i_mode),
        Role::Linked { file_type: expected, .. } => {
            let what = "type by i_mode, against the directory entry";
            view.subject.findings.expect(kind, &view.place, what, expected.into(), found);
        }
        Role::Root => {
            let expected = FileType::Directory.number().into();
            view.subject.findings.expect(kind, &view.place, "type of the root", expected, found);
        }
        Role::Quota { .. } => {
            let expected = FileType::Regular.number().into();
            view.subject.findings.expect(kind, &view.place, "type of a quota file", expected, found);
        }
        Role::Orphan => {}
    }
}

/// Extra attributes and the room for inline xattrs (`sanity_check_inode` in `fs/f2fs/inode.c`).
fn check_extra(view: &InodeView<'_, '_>) {
    let (inode, features) = (view.inode(), view.subject.features);
    let Some(extra) = inode.extra() else { return };
    if !features.contains(Features::EXTRA_ATTR) {
        return view.fault(FindingKind::Inode, "extra attributes, but the feature is off; i_inline", inode.i_inline);
    }
    let size = u64::from(extra.i_extra_isize.get());
    // With checksums each inode has one: fsck.f2fs looks at no size.
    let least = if features.contains(Features::INODE_CHECKSUM) { SIZE_WITH_CHECKSUM.into() } else { MIN_EXTRA_SIZE };
    view.range(FindingKind::Inode, "i_extra_isize", size, least, EXTRA_SIZE as u64);
    if !size.is_multiple_of(4) {
        view.fault(FindingKind::Inode, "i_extra_isize is not a multiple of 4", size);
    }
    if features.contains(Features::FLEXIBLE_INLINE_XATTR) {
        let (least, most) = INLINE_XATTR_WORDS;
        let least = if view.has_inline(inline::XATTR) { least } else { 0 };
        view.range(FindingKind::Inode, "i_inline_xattr_size", extra.i_inline_xattr_size.get().into(), least, most);
    }
}

fn check_fields(view: &InodeView<'_, '_>, file_type: FileType) {
    let inode = view.inode();
    view.range(FindingKind::Inode, "i_namelen", inode.i_namelen.get().into(), 0, NAME_LEN as u64);
    let foreign = inode.i_flags.get() & foreign_flags(view.subject.features);
    if foreign != 0 {
        view.add(FindingKind::Inode, Problem::Bits { what: "i_flags", expected: 0, found: foreign.into() });
    }
    let foreign = inode.i_advise & foreign_advice(view.subject.features);
    if foreign != 0 {
        view.add(FindingKind::Inode, Problem::Bits { what: "i_advise", expected: 0, found: foreign.into() });
    }
    if file_type == FileType::Directory {
        let depth = inode.i_current_depth.get().into();
        view.range(FindingKind::Inode, "i_current_depth", depth, 0, hash::MAX_DEPTH.into());
    }
    if let Some(compression) = inode.compression(view.subject.features)
        && !compression.is_sound()
    {
        let (algorithm, log) = (compression.algorithm, compression.log_cluster_size);
        view.range(FindingKind::Compression, "i_compress_algorithm", algorithm.into(), 0, 3);
        view.range(FindingKind::Compression, "i_log_cluster_size", log.into(), 2, 8);
    }
    let max = path::max_file_blocks(inode.layout(view.subject.features).addresses()) * 4096;
    view.range(FindingKind::FileSize, "i_size", inode.i_size.get(), 0, max);
    let may_inline = matches!(file_type, FileType::Regular | FileType::Symlink);
    if view.has_inline(inline::DATA) && !may_inline {
        view.fault(FindingKind::Inline, "inline data in an inode of another type; i_inline", inode.i_inline);
    }
    if view.has_inline(inline::DENTRY) && file_type != FileType::Directory {
        view.fault(FindingKind::Inline, "inline dentries, but no directory; i_inline", inode.i_inline);
    }
}

/// The links of everything but directories are compared when all entries are known.
fn declare(view: &InodeView<'_, '_>) {
    let i_links = view.inode().i_links.get();
    match view.role {
        Role::Orphan if i_links != 0 => view.fault(FindingKind::Links, "an orphan with links", i_links),
        Role::Quota { .. } => {
            view.subject.findings.expect(FindingKind::Links, &view.place, "i_links", 1, i_links.into());
        }
        _ => view.subject.declare_links(view.ino, i_links),
    }
}

/// `i_blocks`: the inode itself, its nodes and its data, reserved blocks included.
fn check_blocks(view: &InodeView<'_, '_>, below: u64) {
    let found = view.inode().i_blocks.get();
    view.subject.findings.expect(FindingKind::BlockCount, &view.place, "i_blocks", 1 + below, found);
}

/// The reserved word in front of inline content, and that nothing else holds content.
fn check_inline_area(view: &InodeView<'_, '_>) {
    let inode = view.inode();
    let at = inode.layout(view.subject.features).extra_words;
    let reserved = inode.i_addr.get(at).map_or(0, |word| word.get());
    if reserved != 0 {
        view.fault(FindingKind::Inline, "the word in front of inline content is in use", reserved);
    }
    if let Some(nid) = inode.i_nid.iter().find(|nid| nid.get() != 0) {
        view.fault(FindingKind::Inline, "inline content and a node below the inode", nid.get());
    }
    let len = inode.i_ext.len.get();
    if len != 0 {
        view.fault(FindingKind::Extent, "a cached extent beside inline content, blocks", len);
    }
}

/// Where the first byte is that is not zero.
pub(super) fn first_in_use(area: &[u8]) -> Option<usize> {
    // Most are empty: a group without an exit is one comparison of a processor.
    let group = area.chunks(64).position(|group| group.iter().fold(0, |all, byte| all | byte) != 0)? * 64;
    area[group..].iter().position(|byte| *byte != 0).map(|at| group + at)
}

fn check_file(view: &InodeView<'_, '_>, file_type: FileType, xattr_nodes: u64) -> Result<(), CheckError> {
    let inode = view.inode();
    let size = inode.i_size.get();
    if file_type == FileType::Symlink {
        view.range(FindingKind::FileSize, "i_size of a symbolic link", size, 0, MAX_TARGET);
    }
    if view.has_inline(inline::DATA) {
        check_inline_area(view);
        let area = inode.inline_data(view.subject.features);
        view.range(FindingKind::Inline, "i_size of inline data", size, 0, area.len() as u64);
        if !view.has_inline(inline::DATA_EXIST)
            && let Some(junk) = first_in_use(area)
        {
            view.fault(FindingKind::Inline, "no inline data by the flag, but there is some at byte", junk as u64);
        }
        check_blocks(view, xattr_nodes);
        return Ok(());
    }
    if alias::is_alias(inode, view.subject.features) {
        check_blocks(view, xattr_nodes + alias::check(view.subject, &view.place, inode));
        return Ok(());
    }
    let is_read = view.role == Role::Quota { is_counted: true };
    let mut walk = TreeWalk::new(view, is_read);
    walk.walk(view.node, view.subject.nat.get(view.ino).version)?;
    check_blocks(view, xattr_nodes + walk.blocks);
    if let Some(saved) = walk.saved_blocks() {
        let found = inode.compression(view.subject.features).map_or(0, |compression| compression.saved_blocks);
        let what = "i_compr_blocks, by the blocks that compressed clusters save";
        view.subject.findings.expect(FindingKind::Compression, &view.place, what, saved, found);
    }
    if let Some(len) = walk.broken_extent() {
        view.fault(FindingKind::Extent, "the file is not laid out as its cached extent says, blocks", len);
    }
    let beyond_is_fine = inode.i_advise & (advise::KEEP_SIZE | advise::VERITY) != 0 || view.role == Role::Orphan;
    let reaches_behind = walk.last_written.is_some_and(|last| last >= size.div_ceil(4096));
    if let Some(last) = walk.last_behind.max(walk.last_written.filter(|_| reaches_behind))
        && !beyond_is_fine
    {
        // What Linux leaves, of files alone.
        let is_left = !reaches_behind && file_type == FileType::Regular;
        let kind = if is_left { FindingKind::BehindEnd } else { FindingKind::FileSize };
        let (what, found) = ("i_size", size);
        view.add(kind, Problem::Range { what, found, min: last * 4096 + 1, max: u64::MAX });
    }
    if let Some(blocks) = &walk.kept_blocks
        && let Some((what, found)) = quota::check(view.subject.source, size, blocks)?
    {
        view.fault(FindingKind::QuotaFile, what, found);
    }
    if file_type == FileType::Symlink && size == 0 && walk.blocks > 0 && view.role != Role::Orphan {
        view.fault(FindingKind::FileSize, "a symbolic link without a target has blocks", walk.blocks);
    }
    Ok(())
}

fn check_directory(view: &InodeView<'_, '_>, xattr_nodes: u64) -> Result<Vec<Task>, CheckError> {
    let is_orphan = view.role == Role::Orphan;
    let i_links = view.inode().i_links.get();
    if is_orphan && i_links != 0 {
        view.fault(FindingKind::Links, "an orphan with links", i_links);
    }
    let mut entries = directory::Entries::new(view);
    if view.has_inline(inline::DENTRY) {
        check_inline_area(view);
        check_blocks(view, xattr_nodes);
        entries.add_inline(view.inode().inline_data(view.subject.features));
    } else {
        let mut walk = TreeWalk::new(view, true);
        walk.walk(view.node, view.subject.nat.get(view.ino).version)?;
        check_blocks(view, xattr_nodes + walk.blocks);
        if let Some(len) = walk.broken_extent() {
            view.fault(FindingKind::Extent, "the directory is not laid out as its cached extent says, blocks", len);
        }
        entries.add_blocks(&walk.kept_blocks.take().unwrap_or_default())?;
    }
    if is_orphan { Ok(Vec::new()) } else { entries.finish() }
}

//! Extended attributes of an inode: the xattr node, and the entries in the inline area and there.

use f2fs_format::inode::inline;
use f2fs_format::node::{NodeBlock, XATTR_NODE_OFFSET};
use f2fs_format::xattr::{HEADER_SIZE, MAGIC, XattrBuffer, XattrHeader, full_name, index};
use f2fs_format::{Corruption, Nid};
use zerocopy::FromBytes;

use super::error::CheckError;
use super::finding::{FindingKind, Place, Problem};
use super::inode::{InodeView, first_in_use};
use super::summary::SummaryCursor;

/// The slot number under which reports name the reference to the xattr node; tree nodes have 0 to 4.
const SLOT: u32 = 5;

/// Checks the attributes. Returns the blocks that they take: 1 with an xattr node.
pub(super) fn check(view: &InodeView<'_, '_>) -> Result<u64, CheckError> {
    let subject = view.subject;
    let inode = view.inode();
    // Without room stated by the inode itself, the flag says whether the area is there; with it, the size may stay
    // reserved while nothing was ever stored.
    let area = if view.has_inline(inline::XATTR) { inode.inline_xattr(subject.features) } else { &[] };
    let nid = Nid::from(inode.i_xattr_nid);
    if nid.is_null() {
        check_content(view, area, None);
        return Ok(0);
    }
    let place = Place::Slot { nid: view.ino, index: SLOT };
    let Some(addr) = subject.resolve(nid, view.ino, &place, &mut SummaryCursor::default())? else { return Ok(0) };
    let blocks = subject.source.blocks_behind(&[addr], view.ahead)?;
    let node = NodeBlock::read(blocks.get(0));
    if subject.check_footer(node, addr, nid, view.ino, XATTR_NODE_OFFSET) {
        check_content(view, area, Some(&node.body));
    }
    Ok(1)
}

fn check_content(view: &InodeView<'_, '_>, area: &[u8], node: Option<&[u8; f2fs_format::node::BODY_SIZE]>) {
    let mut start = [0; HEADER_SIZE];
    let bytes = area.iter().chain(node.into_iter().flatten());
    for (to, from) in start.iter_mut().zip(bytes) {
        *to = *from;
    }
    if let Ok(header) = XattrHeader::read_from_bytes(&start)
        && header.h_magic.get() != MAGIC
    {
        // Never used: zeros. The kernel would take anything else for entries behind a header that it writes itself.
        let in_node = || Some(area.len() + first_in_use(node?)?);
        let junk = first_in_use(area).or_else(in_node);
        if let Some(at) = junk {
            let (found, what) = (header.h_magic.get().into(), "xattr magic");
            let problem = Problem::Bits { what, expected: MAGIC.into(), found };
            view.add(FindingKind::Xattr, if at < 4 { problem } else { junk_behind_header(at) });
        }
        return;
    }
    match XattrBuffer::read(area, node) {
        Ok(buffer) => check_entries(view, &buffer),
        Err(corruption) => view.add(FindingKind::Xattr, Problem::Corrupt(corruption)),
    }
}

fn junk_behind_header(at: usize) -> Problem {
    Problem::Fault { what: "xattr bytes without a header, first at", found: at as u64 }
}

/// Names that are possible, and none of them twice.
fn check_entries(view: &InodeView<'_, '_>, buffer: &XattrBuffer) {
    let entries: Result<Vec<_>, Corruption> = buffer.entries().collect();
    let Ok(mut entries) = entries else { return };
    for entry in &entries {
        let internal = matches!(entry.index, index::ENCRYPTION | index::VERITY);
        if !internal && full_name(entry.index, entry.name).is_none() {
            view.fault(FindingKind::Xattr, "no such name index", entry.index);
        }
        if entry.name.contains(&0) {
            view.fault(FindingKind::Xattr, "a zero byte in the name at offset", entry.offset as u64);
        }
    }
    entries.sort_unstable_by_key(|entry| (entry.index, entry.name));
    if let Some(pair) = entries.windows(2).find(|pair| (pair[0].index, pair[0].name) == (pair[1].index, pair[1].name)) {
        let at = pair[0].offset.max(pair[1].offset);
        view.fault(FindingKind::Xattr, "a second attribute of one name at offset", at as u64);
    }
}

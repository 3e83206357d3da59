//! A file that stands for a device of the volume (feature `device_alias`). Its cached extent names all blocks of that
//! device, and no node does. The summaries of these blocks say nothing: mkfs.f2fs writes none, and Linux asks for none.

use f2fs_format::BlockAddr;
use f2fs_format::feature::Features;
use f2fs_format::inode::{Inode, flags, inline};

use super::finding::{FindingKind, Place, Problem};
use super::subject::Subject;

/// Whether the inode is such a file's.
pub(super) fn is_alias(inode: &Inode, features: Features) -> bool {
    inode.i_flags.get() & flags::DEVICE_ALIAS != 0 && features.contains(Features::DEVICE_ALIAS)
}

/// Checks such a file and takes its blocks; returns how many. Where the extent is no device's, they are not taken: each
/// of them is then one that nothing refers to.
pub(super) fn check(subject: &Subject<'_>, place: &Place, inode: &Inode) -> u64 {
    let fault = |kind, what, found| subject.findings.add(kind, place.clone(), Problem::Fault { what, found });
    if inode.i_inline & inline::PIN_FILE == 0 {
        let what = "a file that stands for a device and is not pinned; i_inline";
        fault(FindingKind::Inode, what, inode.i_inline.into());
    }
    let [first, addr, len] = [inode.i_ext.fofs, inode.i_ext.blk_addr, inode.i_ext.len].map(|raw| u64::from(raw.get()));
    let (what, size) = ("i_size of a file that stands for a device", inode.i_size.get());
    subject.findings.expect(FindingKind::FileSize, place, what, len * 4096, size);
    if first != 0 || !is_a_device(subject.source.device_parts(), addr, len) {
        fault(FindingKind::Extent, "a file stands for a device, and its extent is none; first block", addr);
        return 0;
    }
    // Within the main area: it is no device's otherwise.
    for block in addr..addr + len {
        subject.claim(BlockAddr(block as u32), false, place);
    }
    len
}

/// Whether these blocks are all that the volume has of one device, other than the first: that has the metadata.
fn is_a_device(parts: &[(u64, u64)], addr: u64, len: u64) -> bool {
    let mut begin = 0;
    parts.iter().enumerate().any(|(number, (used, _))| {
        let found = number != 0 && (addr, len) == (begin, *used);
        begin += used;
        found
    })
}

#[cfg(test)]
mod tests {
    use super::is_a_device;

    #[test]
    fn only_a_whole_device_behind_the_first_is_one() {
        let parts = [(1000, 1200), (500, 500), (700, 800)];
        assert!(is_a_device(&parts, 1000, 500) && is_a_device(&parts, 1500, 700));
        for (addr, len) in [(0, 1000), (1000, 499), (1000, 501), (1001, 500), (1500, 800), (2200, 0), (0, 0)] {
            assert!(!is_a_device(&parts, addr, len), "{addr} {len}");
        }
        assert!(!is_a_device(&[], 0, 0) && !is_a_device(&[(1000, 1000)], 0, 1000));
    }
}

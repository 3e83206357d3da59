//! Attributes, inline directories, deep trees: made by hand, then broken.

use f2fs_device::BlockDevice;
use f2fs_format::dentry::{DentryViewMut, FileType};
use f2fs_format::feature::Features;
use f2fs_format::inode::{Inode, inline};
use f2fs_format::node::NodeBlock;
use f2fs_format::path::{self, DOUBLE_INDIRECT};
use f2fs_format::summary::Summary;
use f2fs_format::xattr::{SetMode, XattrBuffer, index};
use f2fs_format::{BlockAddr, LogType, Nid, hash};
use f2fs_sync::{Arc, PlainArc};

use super::cases::{Case, Fsck, case, run};
use super::image::{Image, populated};
use crate::{CheckOptions, FindingKind as Kind, repair};

/// Both judges must accept what was made by hand, or breaking it proves nothing.
pub(super) fn accepted(image: Image) -> Image {
    let report = image.check();
    assert!(report.is_clean(), "{report}");
    let fsck = image.fsck();
    assert!(fsck.is_clean(), "{fsck}");
    image
}

/// `tiny` with attributes in the inode and in a node of its own.
pub(super) fn with_xattrs() -> Image {
    let image = populated().copy();
    let (ino, features) = (image.find("tiny").ino, image.geometry.features);
    let xnid = image.add_xattr_node(ino);
    let mut node = image.node(ino);
    assert!(node.inode().i_inline & inline::XATTR != 0, "sload.f2fs makes room for inline attributes");
    let inode = node.inode_mut();
    let mut buffer = XattrBuffer::read(inode.inline_xattr(features), Some(&[0; 4072])).unwrap();
    buffer.set(index::USER, b"first", b"value", SetMode::Create).unwrap();
    buffer.set(index::SECURITY, b"large", &[7; 1000], SetMode::Create).unwrap();
    buffer.set(index::USER, b"third", b"", SetMode::Create).unwrap();
    image.edit_node(ino, |node| {
        node.inode_mut().inline_xattr_mut(features).copy_from_slice(buffer.inline());
    });
    image.edit_node(xnid, |node| node.body = *buffer.node().unwrap());
    accepted(image)
}

fn edit_inline_xattr(image: &Image, change: impl FnOnce(&mut [u8])) {
    let features = image.geometry.features;
    image.edit_node(image.find("tiny").ino, |node| change(node.inode_mut().inline_xattr_mut(features)));
}

#[test]
fn attributes() {
    use Fsck::{Blind, Finds};
    let xnid = |image: &Image| Nid::from(image.node(image.find("tiny").ino).inode().i_xattr_nid);
    let image = with_xattrs();
    assert_ne!(xnid(&image), Nid::NULL);
    let cases: Vec<Case> = vec![
        case("magic", Kind::Xattr, Blind, |image| edit_inline_xattr(image, |area| area[0] ^= 1)),
        case("value that ends behind the buffer", Kind::Xattr, Blind, |image| {
            edit_inline_xattr(image, |area| area[24 + 2..24 + 4].copy_from_slice(&60_000u16.to_le_bytes()));
        }),
        case("index unknown", Kind::Xattr, Blind, |image| edit_inline_xattr(image, |area| area[24] = 99)),
        case("a name twice", Kind::Xattr, Blind, |image| {
            let nid = Nid::from(image.node(image.find("tiny").ino).inode().i_xattr_nid);
            image.edit_node(nid, |node| {
                let at = node.body.windows(5).position(|bytes| bytes == b"third").unwrap();
                node.body[at..at + 5].copy_from_slice(b"first");
            });
        }),
        case("a zero byte in a name", Kind::Xattr, Blind, |image| edit_inline_xattr(image, |area| area[24 + 4] = 0)),
        case("footer offset of the node", Kind::NodeFooter, Finds, |image| {
            let nid = Nid::from(image.node(image.find("tiny").ino).inode().i_xattr_nid);
            image.edit_node(nid, |node| node.footer.set_node_offset(1));
        }),
        case("node taken away", Kind::UnreachableNid, Finds, |image| {
            image.edit_node(image.find("tiny").ino, |node| node.inode_mut().i_xattr_nid = 0.into());
        }),
        case("node of another file", Kind::NatEntry, Finds, |image| {
            let nid = Nid::from(image.node(image.find("tiny").ino).inode().i_xattr_nid);
            image.edit_node(image.find("small").ino, |node| node.inode_mut().i_xattr_nid = nid.into());
        }),
    ];
    run(&image, &cases);
}

/// `deep/er/still`, an empty directory, with its entries in the inode.
pub(super) fn with_inline_directory() -> Image {
    let image = populated().copy();
    let (parent, features) = (image.find("deep/er").ino, image.geometry.features);
    let dir = image.find("deep/er/still").ino;
    let block = image.data(dir, 0);
    image.edit_node(dir, |node| {
        node.set_address(0, BlockAddr::NULL, features);
        let inode = node.inode_mut();
        inode.i_inline |= inline::DENTRY;
        inode.i_blocks = 1.into();
        assert!(DentryViewMut::inline(inode.inline_data_mut(features)).make_empty(dir, parent));
    });
    image.give_block(block);
    accepted(image)
}

fn edit_inline(image: &Image, change: impl FnOnce(&mut Inode, Features)) {
    let features = image.geometry.features;
    image.edit_node(image.find("deep/er/still").ino, |node| change(node.inode_mut(), features));
}

fn edit_inline_entries(image: &Image, change: impl FnOnce(&mut DentryViewMut<'_>)) {
    edit_inline(image, |inode, features| change(&mut DentryViewMut::inline(inode.inline_data_mut(features))));
}

#[test]
fn inline_content() {
    use Fsck::{Blind, Finds};
    let cases: Vec<Case> = vec![
        case("reserved word", Kind::Inline, Finds, |image| {
            edit_inline(image, |inode, features| inode.i_addr[inode.layout(features).extra_words] = 5000.into());
        }),
        case("a node below", Kind::Inline, Blind, |image| edit_inline(image, |inode, _| inode.i_nid[0] = 77.into())),
        case("cached extent", Kind::Extent, Finds, |image| edit_inline(image, |inode, _| inode.i_ext.len = 1.into())),
        case("i_blocks", Kind::BlockCount, Finds, |image| edit_inline(image, |inode, _| inode.i_blocks = 2.into())),
        case("dot-dot", Kind::Dots, Finds, |image| {
            edit_inline_entries(image, |entries| {
                assert!(entries.set_target(1, Nid::ROOT, FileType::Directory).unwrap());
            });
        }),
        case("dot taken away", Kind::Dots, Finds, |image| {
            edit_inline_entries(image, |entries| {
                entries.remove(0).unwrap();
            });
        }),
        case("hash of an entry", Kind::DentryHash, Finds, |image| {
            let other = image.find("small").ino;
            edit_inline_entries(image, |entries| assert!(entries.insert(2, b"more", 7, other, FileType::Regular)));
        }),
        case("one entry too many for a file", Kind::Links, Finds, |image| {
            let other = image.find("small").ino;
            let hash = hash::dentry_hash(b"more");
            edit_inline_entries(image, |entries| assert!(entries.insert(2, b"more", hash, other, FileType::Regular)));
        }),
        case("inline data: size", Kind::Inline, Finds, |image| {
            image.edit_node(image.find("tiny").ino, |node| {
                let inode = node.inode_mut();
                assert!(inode.i_inline & inline::DATA != 0, "sload.f2fs stores small files inline");
                inode.i_size = 4000.into();
            });
        }),
        case("inline data: junk without the flag", Kind::Inline, Finds, |image| {
            image.edit_node(image.find("tiny").ino, |node| node.inode_mut().i_inline &= !inline::DATA_EXIST);
        }),
    ];
    run(&with_inline_directory(), &cases);
}

/// `large` with one more block, reached through the double indirect node.
pub(super) fn with_deep_tree() -> Image {
    let image = populated().copy();
    let ino = image.find("large").ino;
    let double = image.add_node(ino, DOUBLE_INDIRECT);
    let indirect = image.add_node(ino, path::child(DOUBLE_INDIRECT, 7).unwrap());
    let direct = image.add_node(ino, path::child(path::child(DOUBLE_INDIRECT, 7).unwrap(), 9).unwrap());
    image.edit_node(double, |node| node.slots_mut()[7] = indirect.into());
    image.edit_node(indirect, |node| node.slots_mut()[9] = direct.into());
    let block = image.take_block(LogType::WarmData, Summary::new(direct, 0, 11));
    image.edit_node(direct, |node| node.slots_mut()[11] = block.into());
    image.edit_node(ino, |node| {
        let inode = node.inode_mut();
        inode.i_nid[4] = double.into();
        inode.i_blocks = (inode.i_blocks.get() + 1).into();
        inode.i_size = (1 << 40).into();
    });
    accepted(image)
}

#[test]
fn reserved_blocks_are_counted() {
    let image = populated().copy();
    let ino = image.find("large").ino;
    let direct = Nid::from(image.node(ino).inode().i_nid[1]);
    let given = BlockAddr::from(image.node(direct).slots()[5]);
    image.edit_node(direct, |node| node.slots_mut()[5] = BlockAddr::NEW.into());
    image.give_block(given);
    // The block stays in use, only without a place; and no extent may promise it.
    image.edit_checkpoint(|cp| cp.header.valid_block_count = (cp.header.valid_block_count.get() + 1).into());
    image.edit_node(ino, |node| node.inode_mut().i_ext.len = 0.into());
    let image = accepted(image);
    assert_eq!(image.check().counts.reserved_blocks, 1);
    image.edit_node(direct, |node| node.slots_mut()[5] = BlockAddr::NULL.into());
    let report = image.check();
    assert!(report.has(Kind::BlockCount) && report.has(Kind::Counts) && !image.fsck().is_accepted(), "{report}");
}

#[test]
fn deep_trees() {
    use Fsck::{Blind, Finds};
    fn below(image: &Image, slots: &[usize]) -> Nid {
        let first = Nid::from(image.node(image.find("large").ino).inode().i_nid[4]);
        slots.iter().fold(first, |nid, slot| image.node(nid).slots()[*slot].into())
    }
    let cases: Vec<Case> = vec![
        case("footer of the double indirect node", Kind::NodeFooter, Blind, |image| {
            image.edit_node(below(image, &[]), |node| node.footer.set_node_offset(3));
        }),
        case("footer of the indirect node", Kind::NodeFooter, Blind, |image| {
            image.edit_node(below(image, &[7]), |node| node.footer.set_node_offset(DOUBLE_INDIRECT + 1));
        }),
        case("moved in the indirect node", Kind::NodeFooter, Blind, |image| {
            image.edit_node(below(image, &[7]), |node| node.slots_mut().swap(9, 10));
        }),
        case("moved in the direct node", Kind::Summary, Finds, |image| {
            image.edit_node(below(image, &[7, 9]), |node| node.slots_mut().swap(11, 12));
        }),
        case("a loop", Kind::NodeTree, Finds, |image| {
            let top = below(image, &[]);
            image.edit_node(below(image, &[7]), |node| node.slots_mut()[10] = top.into());
        }),
        case("size in front of the last block", Kind::FileSize, Blind, |image| {
            // Its node begins in front of the end.
            image.edit_node(image.find("large").ino, |node| node.inode_mut().i_size = ((far(node) + 5) * 4096).into());
        }),
    ];
    run(&with_deep_tree(), &cases);
}

/// The first file block of the direct node that [`with_deep_tree`] adds to `large`.
fn far(inode: &NodeBlock) -> u64 {
    let direct = path::child(path::child(DOUBLE_INDIRECT, 7).unwrap(), 9).unwrap();
    path::first_block(direct, inode.inode().layout(Features(0)).addresses()).unwrap()
}

/// What Linux leaves when it recovers a file that was cut and synced: nodes behind the end, and no block in those in
/// front of it. The file has its size, so a repair leaves it alone.
#[test]
fn nodes_behind_the_end_are_told_from_a_wrong_size() {
    let image = with_deep_tree();
    image.edit_node(image.find("large").ino, |node| node.inode_mut().i_size = (far(node) * 4096).into());
    let report = image.check();
    assert!(report.has(Kind::BehindEnd) && report.is_consistent() && !report.is_clean(), "{report}");
    assert!(image.fsck().is_accepted());
    let device: PlainArc<dyn BlockDevice> = Arc::new(image.device.snapshot());
    let repair = repair::plan(&device, &CheckOptions::new().threads(1)).unwrap();
    assert_eq!(repair.after.findings, report.findings);
    assert!(!repair.actions.iter().any(|action| action.starts_with("inode")), "{:?}", repair.actions);
}

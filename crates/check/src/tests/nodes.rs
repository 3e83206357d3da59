//! Mutants of nodes: footers, inodes, trees, addresses.

use f2fs_device::BlockDevice;
use f2fs_format::inode::{advise, inline, mode};
use f2fs_format::{BlockAddr, Nid, SegmentNo};
use f2fs_sync::{Arc, PlainArc};

use super::cases::{Case, Fsck, case, run};
use super::image::{Image, populated};
use crate::{CheckOptions, FindingKind as Kind, repair};

/// Block and inode number of the node in slot `slot` of `large`'s `i_nid`.
fn child(image: &Image, slot: usize) -> Nid {
    image.node(image.find("large").ino).inode().i_nid[slot].into()
}

#[test]
fn footers_and_trees() {
    use Fsck::{Blind, Finds};
    let cases: Vec<Case> = vec![
        case("footer nid of an inode", Kind::NodeFooter, Finds, |image| {
            image.edit_node(image.find("tiny").ino, |node| node.footer.nid = 77.into());
        }),
        case("footer ino of an inode", Kind::NodeFooter, Finds, |image| {
            image.edit_node(image.find("tiny").ino, |node| node.footer.ino = 77.into());
        }),
        case("footer offset of an inode", Kind::NodeFooter, Blind, |image| {
            image.edit_node(image.find("tiny").ino, |node| node.footer.set_node_offset(9));
        }),
        case("footer nid of a direct node", Kind::NodeFooter, Finds, |image| {
            image.edit_node(child(image, 0), |node| node.footer.nid = 77.into());
        }),
        case("footer ino of a direct node", Kind::NodeFooter, Finds, |image| {
            image.edit_node(child(image, 1), |node| node.footer.ino = 77.into());
        }),
        case("footer offset of a direct node", Kind::NodeFooter, Blind, |image| {
            image.edit_node(child(image, 1), |node| node.footer.set_node_offset(1));
        }),
        case("footer of an indirect node", Kind::NodeFooter, Finds, |image| {
            image.edit_node(child(image, 2), |node| node.footer.nid = 3.into());
        }),
        case("the root's entry and footer", Kind::NatEntry, Finds, |image| {
            image.edit_node(Nid::ROOT, |node| (node.footer.nid, node.footer.ino) = (77.into(), 78.into()));
            image.edit_nat(Nid::ROOT, |entry| (entry.ino, entry.block_addr) = (0.into(), 0.into()));
        }),
        case("nid out of range", Kind::NodeTree, Finds, |image| {
            image.edit_node(image.find("large").ino, |node| node.inode_mut().i_nid[4] = u32::MAX.into());
        }),
        case("reserved nid", Kind::NodeTree, Finds, |image| {
            image.edit_node(image.find("large").ino, |node| node.inode_mut().i_nid[4] = 2.into());
        }),
        case("free nid", Kind::NatEntry, Finds, |image| {
            image.edit_node(image.find("large").ino, |node| node.inode_mut().i_nid[4] = 4000.into());
        }),
        case("the same node twice", Kind::NodeTree, Finds, |image| {
            let twice = child(image, 0);
            image.edit_node(image.find("large").ino, |node| node.inode_mut().i_nid[1] = twice.into());
        }),
        case("an indirect node that holds itself", Kind::NodeTree, Finds, |image| {
            let itself = child(image, 2);
            image.edit_node(itself, |node| node.slots_mut()[5] = itself.into());
        }),
        case("another file's node", Kind::NatEntry, Finds, |image| {
            let other = image.find("tiny").ino;
            image.edit_node(child(image, 2), |node| node.slots_mut()[5] = other.into());
        }),
        case("a node taken away", Kind::UnreachableNid, Finds, |image| {
            image.edit_node(image.find("large").ino, |node| node.inode_mut().i_nid[1] = 0.into());
        }),
        case("xattr node is a direct node", Kind::NodeTree, Finds, |image| {
            let other = child(image, 0);
            image.edit_node(image.find("large").ino, |node| node.inode_mut().i_xattr_nid = other.into());
        }),
        case("xattr node is the inode", Kind::NodeTree, Finds, |image| {
            let ino = image.find("large").ino;
            image.edit_node(ino, |node| node.inode_mut().i_xattr_nid = ino.into());
        }),
    ];
    run(populated(), &cases);
}

/// A new root needs a block; the SIT calls the segments of a large file free, and others, all but one, in use.
#[test]
fn what_is_lost_is_not_written_over() {
    let image = populated().copy();
    let large = image.find("large").ino;
    let content = |image: &Image| {
        let blocks = (0..800).map(|index| image.data(large, index));
        blocks.map(|addr| (addr, image.block(addr))).collect::<Vec<_>>()
    };
    let before = content(&image);
    image.edit_node(Nid::ROOT, |node| (node.footer.nid, node.footer.ino) = (77.into(), 78.into()));
    image.edit_nat(Nid::ROOT, |entry| (entry.ino, entry.block_addr) = (0.into(), 0.into()));
    for segment in (0..image.geometry.main_segments - 1).map(SegmentNo) {
        let of_large = before.iter().any(|(addr, _)| image.geometry.locate(*addr).unwrap().0 == segment);
        image.edit_sit(segment, |entry| {
            entry.valid_map.fill(0);
            entry.valid_map[0] = if of_large { 0 } else { 0x80 };
            entry.vblocks = (entry.vblocks.get() & !0x3ff | u16::from(!of_large)).into();
        });
    }
    let device: PlainArc<dyn BlockDevice> = Arc::new(image.device.snapshot().read_only());
    let repair = repair::plan(&device, &CheckOptions::default()).unwrap();
    assert!(repair.after.is_clean() && repair.after.complete, "{}", repair.after);
    repair.apply(&image.device).unwrap();
    assert!(content(&image) == before, "{:?}", repair.actions);
    assert!(image.fsck().is_clean());
}

#[test]
fn addresses() {
    use Fsck::Finds;
    let cases: Vec<Case> = vec![
        case("address in the metadata", Kind::Address, Finds, |image| {
            let features = image.geometry.features;
            image.edit_node(image.find("large").ino, |node| {
                node.set_address(3, BlockAddr(100), features);
            });
        }),
        case("address beyond the end", Kind::Address, Finds, |image| {
            image.edit_node(child(image, 0), |node| node.slots_mut()[9] = 0x7fff_ffff.into());
        }),
        case("address of a compressed cluster", Kind::Address, Finds, |image| {
            image.edit_node(child(image, 0), |node| node.slots_mut()[9] = BlockAddr::COMPRESS.into());
        }),
        case("one block twice in a file", Kind::DuplicateBlock, Finds, |image| {
            image.edit_node(child(image, 1), |node| node.slots_mut()[9] = node.slots()[8]);
        }),
        case("one block in two files", Kind::DuplicateBlock, Finds, |image| {
            let (features, stolen) = (image.geometry.features, image.data(image.find("small").ino, 0));
            image.edit_node(image.find("large").ino, |node| {
                node.set_address(3, stolen, features);
            });
        }),
        case("a node's block as data", Kind::DuplicateBlock, Finds, |image| {
            let (features, stolen) = (image.geometry.features, image.addr(image.find("small").ino));
            image.edit_node(image.find("large").ino, |node| {
                node.set_address(3, stolen, features);
            });
        }),
        case("a block taken away", Kind::Unreached, Finds, |image| {
            image.edit_node(child(image, 0), |node| node.slots_mut()[9] = 0.into());
        }),
    ];
    run(populated(), &cases);
}

#[test]
fn inodes() {
    use Fsck::{Blind, Finds};
    let cases: Vec<Case> = vec![
        case("checksum", Kind::InodeChecksum, Finds, |image| {
            image.edit(image.addr(image.find("tiny").ino), |block| block[16] ^= 1);
        }),
        case("mode of no type", Kind::Inode, Finds, |image| {
            image.edit_node(image.find("tiny").ino, |node| node.inode_mut().i_mode = 0o644.into());
        }),
        case("mode of another type", Kind::FileType, Finds, |image| {
            image.edit_node(image.find("tiny").ino, |node| node.inode_mut().i_mode = (mode::FIFO | 0o644).into());
        }),
        case("links of a file: more", Kind::Links, Finds, |image| {
            image.edit_node(image.find("tiny").ino, |node| node.inode_mut().i_links = 2.into());
        }),
        case("links of a file: none", Kind::Links, Blind, |image| {
            image.edit_node(image.find("tiny").ino, |node| node.inode_mut().i_links = 0.into());
        }),
        case("links of a hard link: less", Kind::Links, Finds, |image| {
            image.edit_node(image.find("small").ino, |node| node.inode_mut().i_links = 1.into());
        }),
        case("links of a directory", Kind::Links, Finds, |image| {
            image.edit_node(image.find("deep").ino, |node| node.inode_mut().i_links = 2.into());
        }),
        case("i_blocks", Kind::BlockCount, Finds, |image| {
            image.edit_node(image.find("large").ino, |node| {
                node.inode_mut().i_blocks = (node.inode().i_blocks.get() + 1).into();
            });
        }),
        case("i_size too small for its blocks", Kind::FileSize, Blind, |image| {
            image.edit_node(image.find("large").ino, |node| node.inode_mut().i_size = 4096.into());
        }),
        case("i_size absurd", Kind::FileSize, Blind, |image| {
            image.edit_node(image.find("large").ino, |node| node.inode_mut().i_size = (1 << 60).into());
        }),
        case("extra size no multiple of 4", Kind::Inode, Blind, |image| {
            image.edit_node(image.find("tiny").ino, |node| node.inode_mut().extra_mut().i_extra_isize = 34.into());
        }),
        case("extra size too large", Kind::Inode, Finds, |image| {
            image.edit_node(image.find("tiny").ino, |node| node.inode_mut().extra_mut().i_extra_isize = 60_000.into());
        }),
        case("name too long", Kind::Inode, Finds, |image| {
            image.edit_node(image.find("tiny").ino, |node| node.inode_mut().i_namelen = 256.into());
        }),
        case("casefold flag", Kind::Inode, Finds, |image| {
            image.edit_node(image.find("tiny").ino, |node| node.inode_mut().i_flags = 0x4000_0000.into());
        }),
        case("depth of a directory", Kind::Inode, Blind, |image| {
            image.edit_node(image.find("many").ino, |node| node.inode_mut().i_current_depth = 64.into());
        }),
        case("cached extent elsewhere", Kind::Extent, Finds, |image| {
            image.edit_node(image.find("large").ino, |node| {
                let first = node.inode().i_addr[9].get();
                let extent = &mut node.inode_mut().i_ext;
                (extent.fofs, extent.blk_addr, extent.len) = (0.into(), (first + 1).into(), 2.into());
            });
        }),
        case("cached extent beyond the file", Kind::Extent, Finds, |image| {
            image.edit_node(image.find("tiny").ino, |node| node.inode_mut().i_ext.len = 5000.into());
        }),
        case("inline data that is a tree", Kind::Inline, Finds, |image| {
            image.edit_node(image.find("large").ino, |node| node.inode_mut().i_inline |= inline::DATA);
        }),
        case("inline dentries in a file", Kind::Inline, Finds, |image| {
            image.edit_node(image.find("small").ino, |node| node.inode_mut().i_inline |= inline::DENTRY);
        }),
        case("symbolic link without a target", Kind::FileSize, Finds, |image| {
            image.edit_node(image.find("long link").ino, |node| node.inode_mut().i_size = 0.into());
        }),
    ];
    run(populated(), &cases);
}

#[test]
fn blocks_behind_the_end_are_fine_where_they_are_meant() {
    let image = populated().copy();
    image.edit_node(image.find("large").ino, |node| {
        node.inode_mut().i_size = 4096.into();
        node.inode_mut().i_advise |= advise::KEEP_SIZE;
    });
    let report = image.check();
    assert!(report.is_clean(), "{report}");
}

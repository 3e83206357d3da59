//! Volumes that were not unmounted: no node summaries in the pack, and perhaps a chain of nodes to roll forward.

use f2fs_device::BlockDevice;
use f2fs_format::checkpoint::flags;
use f2fs_format::feature::Features;
use f2fs_format::inode::mode;
use f2fs_format::node::{NodeBlock, mark};
use f2fs_format::{BlockAddr, LogType, Nid};
use f2fs_sync::{Arc, PlainArc};

use super::cases::{Case, Fsck, case, run};
use super::image::{Image, populated};
use crate::repair::RepairError;
use crate::{CheckOptions, FindingKind as Kind, repair};

/// The populated volume as a checkpoint in the middle of its life leaves it.
pub(super) fn unclean() -> Image {
    unclean_of(populated())
}

/// The same of another one.
pub(super) fn unclean_of(image: &Image) -> Image {
    let image = image.copy();
    let pack = image.pack();
    let total = pack.total() - 3;
    let mut checkpoint = pack.block;
    let header = &mut checkpoint.header;
    let kept = header.ckpt_flags.get() & !(flags::UMOUNT | flags::NAT_BITS);
    header.ckpt_flags = (kept | flags::CRC_RECOVERY).into();
    header.cp_pack_total_block_count = total.into();
    checkpoint.seal();
    for block in [0, total - 1] {
        image.put(pack.start.offset(block), checkpoint.as_block());
    }
    image
}

/// The block that the warm-node log takes next, `skip` blocks further on.
pub(super) fn next(image: &Image, skip: u32) -> BlockAddr {
    let (segment, offset) = image.pack().log(LogType::WarmNode);
    image.geometry.block_at(segment, offset + skip)
}

/// Puts an fsync'd inode behind the checkpoint: `tiny` again, with one block at `data`.
pub(super) fn fsynced(image: &Image, at: BlockAddr, next: BlockAddr, data: BlockAddr) {
    let tiny = image.find("tiny").ino;
    let mut node = NodeBlock::ZERO;
    (node.footer.nid, node.footer.ino) = (tiny.into(), tiny.into());
    node.footer.cp_ver = image.pack().block.footer_version().into();
    node.footer.next_blkaddr = next.into();
    node.footer.set_mark(mark::FSYNC, true);
    let inode = node.inode_mut();
    inode.i_mode = (mode::REGULAR | 0o644).into();
    inode.i_addr[7] = data.into();
    image.put(at, node.as_block());
}

#[test]
fn a_checkpoint_without_an_unmount_is_clean() {
    let image = unclean();
    let report = image.check();
    assert!(report.is_clean(), "{report}");
    assert!(image.fsck().is_clean());
}

#[test]
fn a_chain_of_nodes_is_no_damage() {
    let image = unclean();
    let free = image.data(image.find("large").ino, 700);
    fsynced(&image, next(&image, 0), next(&image, 1), free);
    fsynced(&image, next(&image, 1), BlockAddr(0), BlockAddr::NULL);
    let report = image.check();
    assert!(report.is_clean(), "{report}");
    assert!(image.fsck().is_clean());
}

/// On a read-only volume the pack may say anything of a log that is not in use: nobody looks for a chain there.
#[test]
fn a_log_that_is_not_in_use_may_stand_anywhere() {
    let image = unclean();
    for copy in [0, 1] {
        image.edit_superblock(copy, |sb| sb.feature = (sb.feature.get() | Features::READONLY.0).into());
    }
    image.edit_checkpoint(|cp| cp.header.cur_node_segno[1] = u32::MAX.into());
    let report = image.check();
    assert!(report.complete && !report.has(Kind::RecoveryChain), "{report}");
    let device: PlainArc<dyn BlockDevice> = Arc::new(image.device.snapshot());
    let refused = repair::plan(&device, &CheckOptions::default()).unwrap_err();
    assert!(matches!(refused, RepairError::Unsupported { .. }), "{refused}");
}

#[test]
fn broken_chains() {
    use Fsck::Finds;
    let cases: Vec<Case> = vec![
        case("a node that follows itself", Kind::RecoveryChain, Finds, |image| {
            fsynced(image, next(image, 0), next(image, 0), BlockAddr::NULL);
        }),
        case("two nodes that follow each other", Kind::RecoveryChain, Finds, |image| {
            fsynced(image, next(image, 0), next(image, 1), BlockAddr::NULL);
            fsynced(image, next(image, 1), next(image, 0), BlockAddr::NULL);
        }),
        case("on into a valid block", Kind::RecoveryChain, Finds, |image| {
            let valid = image.addr(Nid::ROOT);
            fsynced(image, next(image, 0), valid, BlockAddr::NULL);
            fsynced(image, valid, BlockAddr(0), BlockAddr::NULL);
        }),
        case("data outside the main area", Kind::RecoveryChain, Finds, |image| {
            fsynced(image, next(image, 0), next(image, 1), BlockAddr(600));
        }),
    ];
    run(&unclean(), &cases);
}

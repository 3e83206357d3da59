//! Two blocks that were lost at once, of which the second is the witness that would have told of the first: what is left
//! elsewhere still tells.

use f2fs_format::summary::SummaryBlock;
use f2fs_format::{BlockAddr, LogType, Nid, SegmentNo};

use super::image::{Image, populated};
use super::lost::{repaired, tree};

/// Both copies of the whole NAT are zeros.
pub(super) fn lose_nat(image: &Image) {
    for index in 0..image.geometry.nat_blocks() {
        for second in [false, true] {
            image.edit(image.geometry.nat_block(index, second), |block| block.fill(0));
        }
    }
}

pub(super) fn lose(image: &Image, addr: BlockAddr) {
    image.edit(addr, |block| block.fill(0));
}

/// The block of the summary of a block's segment; `None` for a log, whose summary is in the pack.
fn own_summary(image: &Image, addr: BlockAddr) -> Option<BlockAddr> {
    let segment = image.geometry.locate(addr).unwrap().0;
    let logs: Vec<SegmentNo> = LogType::ALL.into_iter().map(|log| image.pack().log(log).0).collect();
    (!logs.contains(&segment)).then(|| image.geometry.summary_block(segment))
}

fn inodes(image: &Image) -> u64 {
    image.check().counts.inodes
}

#[test]
fn names_come_back_from_inodes_that_the_nat_forgot() {
    let whole = populated();
    let many = whole.find("many").ino;
    let blocks: Vec<BlockAddr> =
        whole.node(many).addresses(whole.geometry.features).filter(|addr| addr.is_real()).collect();
    assert!(blocks.len() > 4);
    for block in [blocks[1], blocks[blocks.len() - 1]] {
        let image = whole.copy();
        lose(&image, block);
        lose_nat(&image);
        let actions = repaired(&image);
        assert_eq!(inodes(&image), inodes(whole), "{actions:?}");
        for index in 0..700 {
            image.find(&format!("many/a name that takes several slots, number {index:04}"));
        }
    }
}

#[test]
fn a_node_is_put_together_again_without_its_entry_in_the_nat() {
    let whole = populated();
    let ino = whole.find("large").ino;
    let before = tree(whole, ino);
    let [one, _, three, ..] = whole.node(ino).inode().i_nid.map(Nid::from);
    let below = Nid::from(whole.node(three).slots()[0]);
    for (name, nid) in [("inode", ino), ("direct node", one), ("indirect node", three), ("node below", below)] {
        let image = whole.copy();
        let addr = image.addr(nid);
        lose(&image, addr);
        lose_nat(&image);
        let actions = repaired(&image);
        assert_eq!(image.find("large").ino, ino, "{name}: {actions:?}");
        assert!(tree(&image, ino) == before, "{name}: {actions:?}");
        assert_eq!(inodes(&image), inodes(whole), "{name}: {actions:?}");
    }
    let many = whole.find("many").ino;
    let image = whole.copy();
    lose(&image, image.addr(many));
    lose_nat(&image);
    let actions = repaired(&image);
    assert_eq!((image.find("many").ino, inodes(&image)), (many, inodes(whole)), "{actions:?}");
}

#[test]
fn a_node_is_put_together_again_without_its_summary() {
    let whole = populated();
    let ino = whole.find("large").ino;
    let before = tree(whole, ino);
    let [one, _, three, ..] = whole.node(ino).inode().i_nid.map(Nid::from);
    for nid in [ino, one, three] {
        let image = whole.copy();
        let addr = image.addr(nid);
        let (summary, index) = image.summary_of(addr);
        match own_summary(&image, addr) {
            Some(own) => lose(&image, own),
            None => image.edit_summary(summary, |summary| summary.entries[index].nid = 0.into()),
        }
        lose(&image, addr);
        let actions = repaired(&image);
        assert_eq!(image.find("large").ino, ino, "{nid}: {actions:?}");
        assert!(tree(&image, ino) == before, "{nid}: {actions:?}");
    }
}

/// The summary names other nodes, which are elsewhere.
#[test]
fn a_node_that_neither_nat_nor_summary_know_is_found_by_its_footer() {
    let whole = populated();
    let ino = whole.find("small").ino;
    let others = [whole.find("tiny").ino, whole.find("large").ino];
    for other in others {
        // Nothing, and junk.
        for (block, of, version) in [(0, 0, 0), (0x7654_3210, 0xFEDC_BA98, 77)] {
            let image = whole.copy();
            let (summary, index) = image.summary_of(image.addr(ino));
            image.edit_summary(summary, |summary| summary.entries[index].nid = other.into());
            image.edit_nat(ino, |entry| {
                (entry.block_addr, entry.ino, entry.version) = (block.into(), of.into(), version);
            });
            let actions = repaired(&image);
            assert_eq!(image.find("small").ino, ino, "{other}: {actions:?}");
            assert_eq!(inodes(&image), inodes(whole), "{actions:?}");
        }
    }
}

/// The SIT holds junk for the segment, and one entry of the summary names another.
#[test]
fn a_block_stays_its_slots_where_the_sit_is_junk() {
    let whole = populated();
    let ino = whole.find("large").ino;
    let before = tree(whole, ino);
    let addr = before[100];
    let (segment, offset) = whole.geometry.locate(addr).unwrap();
    let image = whole.copy();
    image.edit_sit(segment, |entry| {
        let bytes = &mut entry.valid_map;
        (0..).zip(bytes.iter_mut()).for_each(|(index, byte): (u8, _)| *byte = index.wrapping_mul(37) ^ 0x5A);
        bytes[offset as usize / 8] = 0;
    });
    let (summary, index) = image.summary_of(addr);
    image.edit_summary(summary, |summary: &mut SummaryBlock| {
        summary.entries[index].nid = image.find("small").ino.into();
    });
    let actions = repaired(&image);
    assert!(tree(&image, ino) == before, "{actions:?}");
}

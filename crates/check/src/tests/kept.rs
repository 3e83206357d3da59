//! A repair that keeps what was synced after the checkpoint, and what it must not keep.

use f2fs_device::BlockDevice;
use f2fs_format::checkpoint::flags;
use f2fs_format::nat::RawNatEntry;
use f2fs_format::node::mark;
use f2fs_format::sit::RawSitEntry;
use f2fs_format::summary::{Journal, SummaryBlock};
use f2fs_format::{BlockAddr, LogType, Nid, SegmentNo};
use f2fs_sync::{Arc, PlainArc};

use super::image::{Image, filled};
use super::unclean::{fsynced, next, unclean, unclean_of};
use crate::repair::{self, Repair};
use crate::{CheckOptions, FindingKind as Kind};

/// A free block, which the chain may name.
fn free(image: &Image) -> BlockAddr {
    let logs = LogType::ALL.map(|log| image.pack().log(log).0);
    let is_free = |segment: &SegmentNo| !logs.contains(segment) && image.sit(*segment).valid_blocks() == 0;
    let segment = (0..image.geometry.main_segments).map(SegmentNo).find(is_free).unwrap();
    image.geometry.block_at(segment, 3)
}

/// `tiny` was synced behind the checkpoint, with a block of its own.
pub(super) fn synced() -> Image {
    let image = unclean();
    fsynced(&image, next(&image, 0), next(&image, 1), free(&image));
    image
}

/// The NAT entry of `small` leads elsewhere.
pub(super) fn flip_nat(image: &Image) {
    image.edit_nat(image.find("small").ino, |entry| entry.block_addr = (entry.block_addr.get() ^ 0x40).into());
}

pub(super) fn planned(image: &Image) -> Repair {
    let device: PlainArc<dyn BlockDevice> = Arc::new(image.device.snapshot().read_only());
    repair::plan(&device, &CheckOptions::default()).unwrap()
}

/// A repair of it would give up what was synced.
#[track_caller]
fn assert_not_kept(image: &Image) -> Repair {
    let repair = planned(image);
    assert!(!repair.keeps_synced() && repair.gives_up_synced(), "{:?}\n{}", repair.actions, repair.before);
    repair
}

#[track_caller]
fn assert_kept(image: &Image) -> Repair {
    let repair = planned(image);
    assert!(repair.keeps_synced() && !repair.gives_up_synced(), "{:?}\n{}", repair.actions, repair.before);
    assert!(repair.after.is_clean() && repair.after.complete, "{}", repair.after);
    repair
}

/// The summary of a log, in a pack that has only those of data.
pub(super) fn summary(image: &Image, log: LogType) -> BlockAddr {
    let pack = image.pack();
    assert!(!pack.has(flags::COMPACT_SUM));
    pack.start.offset(pack.start_sum() + u32::from(log.number()))
}

/// Puts these entries into the journal of the NAT.
pub(super) fn journal(image: &Image, entries: &[(Nid, RawNatEntry)]) {
    let journal = Journal::from_nat(entries).unwrap();
    image.edit_summary(summary(image, LogType::HotData), |summary| summary.journal = journal);
}

fn journaled(image: &Image) -> Option<Vec<(Nid, RawNatEntry)>> {
    SummaryBlock::read(&image.block(summary(image, LogType::HotData))).journal.nat_entries()
}

#[test]
fn the_checkpoint_and_the_chain_stay_as_they_are() {
    let image = synced();
    let before = image.copy();
    flip_nat(&image);
    let harmed = image.copy();
    let repair = assert_kept(&image);
    let small = image.nat_block(image.find("tiny").ino);
    assert_eq!(repair.blocks().collect::<Vec<_>>(), [u64::from(small.0)], "{:?}", repair.actions);
    let mut backup = Vec::new();
    repair.write_backup(&image.device, &mut backup).unwrap();
    repair.apply(&image.device).unwrap();
    assert!(image.device.to_bytes() == before.device.to_bytes());
    assert!(image.fsck().is_clean());
    assert!(planned(&image).is_empty());
    repair::undo(&image.device, &backup[..]).unwrap();
    assert!(image.device.to_bytes() == harmed.device.to_bytes());
    // A sync, or a mount, changes the block that the chain begins with, or a checkpoint.
    repair.apply(&image.device).unwrap();
    image.edit(next(&image, 0), |block| block[0] ^= 1);
    repair::undo(&image.device, &backup[..]).unwrap_err();
}

#[test]
fn the_preview_is_the_device_as_it_will_be() {
    let image = synced();
    flip_nat(&image);
    let device: PlainArc<dyn BlockDevice> = Arc::new(image.device.snapshot());
    let repair = repair::plan(&device, &CheckOptions::default()).unwrap();
    let shown = repair.preview(&device);
    // The repair has the device; what it shows can be opened.
    assert!(crate::check(&*device, &CheckOptions::default()).is_err());
    assert!(crate::check(&*shown, &CheckOptions::default()).unwrap().is_clean());
    repair.apply(&*device).unwrap();
    for block in 0..device.info().blocks {
        let [shown, there] = [&shown, &device].map(|device| device.read(block, 1).unwrap());
        assert!(shown.block(0) == there.block(0), "{block}");
    }
}

#[test]
fn an_entry_of_a_journal_is_put_right_there() {
    let (image, flipped) = (synced(), synced());
    let [small, tiny] = ["small", "tiny"].map(|path| image.find(path).ino);
    let right = [(small, image.nat(small)), (tiny, image.nat(tiny))];
    flip_nat(&flipped);
    let wrong = (small, flipped.nat(small));
    // The table below has what was in force before.
    image.edit_nat(tiny, |entry| entry.block_addr = (entry.block_addr.get() + 3).into());
    journal(&image, &right);
    let whole = image.copy();
    assert!(whole.check().is_clean(), "{}", whole.check());
    for entries in [&[wrong, right[1]][..], &[right[0], right[1], wrong], &[right[0], right[1], (Nid(1), wrong.1)]] {
        journal(&image, entries);
        let repair = assert_kept(&image);
        let place = summary(&image, LogType::HotData);
        assert_eq!(repair.blocks().collect::<Vec<_>>(), [u64::from(place.0)], "{:?}", repair.actions);
        repair.apply(&image.device).unwrap();
        assert_eq!(journaled(&image).unwrap(), right);
    }
    // One of them is of another NID now: the table gets the entry that is in no journal.
    journal(&image, &[right[0], (Nid(tiny.0 ^ 0x1000), right[1].1)]);
    assert_kept(&image).apply(&image.device).unwrap();
    assert_eq!(image.nat(tiny), right[1].1);
    assert!(image.fsck().is_clean());
    // Below an entry of the journal stands one that cannot be.
    image.put(summary(&image, LogType::HotData), &whole.block(summary(&image, LogType::HotData)));
    image.edit_nat(tiny, |entry| entry.ino = 0.into());
    assert_kept(&image).apply(&image.device).unwrap();
    assert_eq!(image.nat(tiny), right[1].1);
}

#[test]
fn an_entry_of_the_sits_journal_is_put_right_there() {
    let image = synced();
    let segment = image.geometry.locate(image.data(image.find("large").ino, 700)).unwrap().0;
    let right = image.sit(segment);
    let place = summary(&image, LogType::ColdData);
    let put = |entry: RawSitEntry| {
        let journal = Journal::from_sit(&[(segment, entry)]).unwrap();
        image.edit_summary(place, |summary| summary.journal = journal);
    };
    put(right);
    image.edit_sit(segment, |entry| *entry = RawSitEntry::ZERO);
    assert!(image.check().is_clean(), "{}", image.check());
    let mut wrong = right;
    wrong.valid_map[7] ^= 4;
    put(wrong);
    let repair = assert_kept(&image);
    assert_eq!(repair.blocks().collect::<Vec<_>>(), [u64::from(place.0)], "{:?}", repair.actions);
    repair.apply(&image.device).unwrap();
    assert_eq!(SummaryBlock::read(&image.block(place)).journal.sit_entries().unwrap(), [(segment, right)]);
    // Below it stands one that contradicts itself.
    image.edit_sit(segment, |entry| entry.vblocks = 5.into());
    assert_kept(&image).apply(&image.device).unwrap();
    assert_eq!(image.sit(segment), right);
}

#[test]
fn a_version_is_put_back_by_the_summaries() {
    let image = synced();
    let before = image.copy();
    image.edit_nat(image.find("large").ino, |entry| entry.version ^= 8);
    assert_kept(&image).apply(&image.device).unwrap();
    assert!(image.device.to_bytes() == before.device.to_bytes());
}

#[test]
fn a_bit_of_an_inode_is_put_back_beside_a_chain() {
    let image = synced();
    let small = image.addr(image.find("small").ino);
    image.edit(small, |block| block[1000] ^= 4);
    let repair = assert_kept(&image);
    assert_eq!(repair.blocks().collect::<Vec<_>>(), [u64::from(small.0)], "{:?}", repair.actions);
}

/// The chain has the file's newest inode: the checkpoint's is not looked for there.
#[test]
fn the_nat_leads_into_the_chain_no_more() {
    let image = synced();
    let tiny = image.find("tiny").ino;
    let home = image.addr(tiny);
    image.edit_nat(tiny, |entry| entry.block_addr = next(&image, 0).into());
    let repair = assert_kept(&image);
    repair.apply(&image.device).unwrap();
    assert_eq!(image.addr(tiny), home);
}

/// The SIT holds a block of the chain for valid, and the footer there names a node that the NAT does not know.
#[test]
fn a_new_inode_of_the_chain_is_not_found_by_its_footer() {
    let image = synced();
    let (segment, offset) = image.geometry.locate(next(&image, 0)).unwrap();
    image.edit_node_at(next(&image, 0), |node| {
        (node.footer.nid, node.footer.ino) = (5000.into(), 5000.into());
        node.footer.set_mark(mark::DENTRY, true);
    });
    image.edit_sit(segment, |entry| entry.valid_map[offset as usize / 8] ^= 0x80 >> (offset % 8));
    let before = image.sit(segment);
    let repair = assert_kept(&image);
    repair.apply(&image.device).unwrap();
    assert_ne!(image.sit(segment).valid_map, before.valid_map);
}

/// An older copy of the inode stands where the entry leads, and nothing but the SIT tells it from the right one.
#[test]
fn an_older_copy_is_not_taken_for_the_node() {
    for image in [unclean(), synced()] {
        let ino = image.find("small").ino;
        let (home, older) = (image.addr(ino), next(&image, 7));
        let copy = image.block(home);
        image.put(older, &copy);
        image.edit_nat(ino, |entry| entry.block_addr = older.into());
        let repair = planned(&image);
        assert!(repair.after.is_clean(), "{}", repair.after);
        repair.apply(&image.device).unwrap();
        assert_eq!(image.addr(ino), home, "{:?}", repair.actions);
    }
}

/// The SIT is that of an older checkpoint, and the NAT leads to a newer node.
#[test]
fn an_older_sit_does_not_bring_an_older_copy_back() {
    let image = unclean();
    let ino = image.find("small").ino;
    let (home, older) = (image.addr(ino), next(&image, 7));
    let copy = image.block(home);
    image.put(older, &copy);
    image.edit_node_at(home, |node| node.footer.cp_ver = (node.footer.cp_ver.get() + 1).into());
    for (addr, valid) in [(older, true), (home, false)] {
        let (segment, offset) = image.geometry.locate(addr).unwrap();
        image.edit_sit(segment, |entry| {
            let mask = 0x80 >> (offset % 8);
            let byte = &mut entry.valid_map[offset as usize / 8];
            *byte = if valid { *byte | mask } else { *byte & !mask };
        });
    }
    let repair = planned(&image);
    assert!(repair.after.is_clean(), "{}", repair.after);
    repair.apply(&image.device).unwrap();
    assert_eq!(image.addr(ino), home, "{:?}", repair.actions);
}

#[test]
fn a_block_that_the_chain_names_is_given_to_nobody_else() {
    let image = unclean();
    let of_large = image.data(image.find("large").ino, 700);
    fsynced(&image, next(&image, 0), next(&image, 1), of_large);
    // Where both are valid, the block went from one to the other.
    flip_nat(&image);
    assert_kept(&image);
    let (segment, offset) = image.geometry.locate(of_large).unwrap();
    image.edit_sit(segment, |entry| entry.valid_map[offset as usize / 8] ^= 0x80 >> (offset % 8));
    assert_not_kept(&image);
}

#[test]
fn a_chain_that_names_a_node_as_data_is_not_kept() {
    let image = unclean();
    fsynced(&image, next(&image, 0), next(&image, 1), image.addr(Nid::ROOT));
    flip_nat(&image);
    assert_not_kept(&image);
}

#[test]
fn a_block_that_the_chain_names_is_not_written() {
    let image = unclean();
    let entries = image.find("many").ino;
    let block = image.node(entries).addresses(image.geometry.features).find(|addr| addr.is_real()).unwrap();
    fsynced(&image, next(&image, 0), next(&image, 1), block);
    // The hash of the first entry behind both dots.
    image.edit(block, |block| block[30 + 2 * 11] ^= 1);
    assert!(image.check().has(Kind::DentryHash), "{}", image.check());
    assert_not_kept(&image);
}

#[test]
fn inodes_of_the_chain_are_new_or_there() {
    for change in [
        // New, and there.
        (|image| image.edit_node_at(next(image, 0), |node| node.footer.set_mark(mark::DENTRY, true))) as fn(&Image),
        // Neither.
        |image| {
            image.edit_node_at(next(image, 0), |node| {
                (node.footer.nid, node.footer.ino) = (5000.into(), 5000.into());
            });
        },
    ] {
        let image = synced();
        flip_nat(&image);
        assert_kept(&image);
        change(&image);
        assert_not_kept(&image);
    }
}

#[test]
fn wrong_counts_need_a_checkpoint() {
    let image = unclean();
    image.edit_checkpoint(|cp| cp.header.valid_node_count = (cp.header.valid_node_count.get() + 1).into());
    fsynced(&image, next(&image, 0), next(&image, 1), free(&image));
    assert_not_kept(&image);
}

/// A checkpoint that stays cannot say that they are to be counted anew, as one of a repair does.
#[test]
fn nothing_that_is_counted_changes_beside_quotas() {
    let image = unclean_of(&filled(&["-O", "quota,extra_attr,inode_checksum"]));
    fsynced(&image, next(&image, 0), next(&image, 1), free(&image));
    flip_nat(&image);
    assert_kept(&image).apply(&image.device).unwrap();
    let small = image.addr(image.find("small").ino);
    image.edit(small, |block| block[1000] ^= 4);
    assert_not_kept(&image);
}

#[test]
fn what_is_to_be_given_up_is_not_kept() {
    let image = synced();
    flip_nat(&image);
    let device: PlainArc<dyn BlockDevice> = Arc::new(image.device.snapshot().read_only());
    let repair = repair::plan_without_synced(&device, &CheckOptions::default()).unwrap();
    assert!(!repair.keeps_synced() && repair.gives_up_synced() && repair.after.is_clean(), "{}", repair.after);
}

#[test]
fn a_loop_is_not_kept() {
    let image = unclean();
    fsynced(&image, next(&image, 0), next(&image, 0), BlockAddr::NULL);
    flip_nat(&image);
    assert_not_kept(&image);
}

/// It is sound: it is opened first, which brings back all of it.
#[test]
fn a_torn_pack_is_no_reason_to_mend_tables() {
    let image = synced();
    let other = image.geometry.checkpoint_pack(1 - image.pack().index);
    image.edit(other, |block| block[100] ^= 1);
    let report = image.check();
    assert!(report.is_consistent() && report.needs_repair(), "{report}");
    assert_not_kept(&image);
}

/// It lost its first block, and the older one is not whole either. What was synced after it is given up with it.
#[test]
fn a_checkpoint_that_comes_back_is_the_end_of_the_chain() {
    let image = synced();
    flip_nat(&image);
    let pack = image.pack();
    let mut older = pack.block;
    older.header.checkpoint_ver = (pack.header().checkpoint_ver.get() - 1).into();
    older.seal();
    let other = image.geometry.checkpoint_pack(1 - pack.index);
    for block in 0..pack.total() {
        image.put(other.offset(block), &image.block(pack.start.offset(block)));
    }
    for block in [0, pack.total() - 1] {
        image.put(other.offset(block), older.as_block());
    }
    assert_kept(&image);
    image.edit(pack.start, |block| block.fill(0));
    let repair = assert_not_kept(&image);
    assert!(repair.brings_back_checkpoint() && repair.after.is_clean(), "{}", repair.after);
}

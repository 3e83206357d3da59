//! Mutants of the superblock, the pack, NAT, SIT and SSA.

use f2fs_format::checkpoint::{CheckpointBlock, alloc_type, flags};
use f2fs_format::feature::Features;
use f2fs_format::sit::RawSitEntry;
use f2fs_format::summary::{Journal, TYPE_DATA, TYPE_NODE};
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, LogType, Nid, SegmentNo, nat_bits};

use super::cases::{Case, Fsck, case, run};
use super::image::{Image, populated};
use crate::FindingKind as Kind;

/// A data segment without blocks that is no log's.
fn free_segment(image: &Image) -> SegmentNo {
    let logs = LogType::ALL.map(|log| image.pack().log(log).0);
    let free = |segment: &SegmentNo| !logs.contains(segment) && image.sit(*segment).valid_blocks() == 0;
    (0..image.geometry.main_segments).map(SegmentNo).find(free).unwrap()
}

/// The first NID from the end of the table on which nothing stands.
fn free_nid(image: &Image) -> Nid {
    (4000..).map(Nid).find(|nid| image.nat(*nid).block_addr.get() == 0).unwrap()
}

/// A segment of `large`, full of data.
fn data_segment(image: &Image) -> SegmentNo {
    image.geometry.locate(image.data(image.find("large").ino, 700)).unwrap().0
}

fn edit_pack_summary(image: &Image, log: LogType, journal: Journal) {
    image.edit_summary(image.log_summary(log), |summary| summary.journal = journal);
}

#[test]
fn superblock() {
    use Fsck::{Blind, Finds};
    let cases: Vec<Case> = vec![
        case("first copy lost", Kind::SuperblockCopy, Blind, |image| image.put(BlockAddr(0), &[0; 4096])),
        case("second copy lost", Kind::SuperblockCopy, Blind, |image| image.put(BlockAddr(1), &[0; 4096])),
        case("first copy: bit flip", Kind::SuperblockCopy, Blind, |image| {
            image.edit(BlockAddr(0), |block| block[1024 + 130] ^= 4);
        }),
        case("copies differ", Kind::SuperblockCopy, Blind, |image| {
            image.edit_superblock(1, |sb| sb.volume_name[0] = 65.into());
        }),
        case("copies differ in a feature", Kind::SuperblockCopy, Blind, |image| {
            image.edit_superblock(1, |sb| sb.feature = (sb.feature.get() ^ Features::LOST_FOUND.0).into());
        }),
        case("first copy: a feature that nobody can read", Kind::Superblock, Blind, |image| {
            image.edit_superblock(0, |sb| sb.feature = (sb.feature.get() | Features::ATOMIC_WRITE.0).into());
        }),
        case("unknown feature", Kind::Features, Blind, |image| {
            for copy in 0..2 {
                image.edit_superblock(copy, |sb| sb.feature = (sb.feature.get() | 0x0100_0000).into());
            }
        }),
        case("extra_attr taken away", Kind::Features, Finds, |image| {
            for copy in 0..2 {
                image.edit_superblock(copy, |sb| sb.feature = (sb.feature.get() & !8).into());
            }
        }),
        case("larger than the device", Kind::Superblock, Blind, |image| {
            for copy in 0..2 {
                image.edit_superblock(copy, |sb| sb.block_count = (sb.block_count.get() + 512).into());
            }
        }),
        case("segment_count too large", Kind::Superblock, Finds, |image| {
            for copy in 0..2 {
                image.edit_superblock(copy, |sb| {
                    sb.block_count = (sb.block_count.get() + 512).into();
                    sb.segment_count = (sb.segment_count.get() + 1).into();
                });
            }
        }),
        case("secs_per_zone", Kind::Superblock, Finds, |image| {
            for copy in 0..2 {
                image.edit_superblock(copy, |sb| sb.secs_per_zone = (sb.section_count.get() + 1).into());
            }
        }),
    ];
    run(populated(), &cases);
}

#[test]
fn checkpoint() {
    use Fsck::{Blind, Finds};
    let cases: Vec<Case> = vec![
        case("checksum in front of its place", Kind::Checkpoint, Blind, |image| {
            image.edit_checkpoint(|block| block.header.checksum_offset = 3840.into());
        }),
        case("older pack lost", Kind::TornPack, Blind, |image| {
            image.put(image.geometry.checkpoint_pack(1 - image.pack().index), &[0; 4096]);
        }),
        case("last block of a pack torn", Kind::TornPack, Blind, |image| {
            // Both packs say the same after sload.f2fs, so that either can be lost.
            let pack = image.pack();
            let other = image.geometry.checkpoint_pack(1 - pack.index);
            for block in 0..BLOCKS_PER_SEGMENT {
                image.put(other.offset(block), &image.block(pack.start.offset(block)));
            }
            image.edit(pack.start.offset(pack.total() - 1), |block| block[9] ^= 1);
        }),
        case("first block of the newest pack lost", Kind::LostCheckpoint, Blind, |image| {
            let pack = image.pack();
            let other = image.geometry.checkpoint_pack(1 - pack.index);
            let (old, new) =
                (CheckpointBlock::read(&image.block(other)), CheckpointBlock::read(&image.block(pack.start)));
            if !new.follows(&old) {
                // sload.f2fs left a pack that does not count: one of the version before.
                for block in 0..BLOCKS_PER_SEGMENT {
                    image.put(other.offset(block), &image.block(pack.start.offset(block)));
                }
                for block in [0, pack.total() - 1] {
                    image.edit(other.offset(block), |raw| {
                        let mut checkpoint = CheckpointBlock::read(raw);
                        let version = checkpoint.header.checkpoint_ver.get();
                        checkpoint.header.checkpoint_ver = (version - 1).into();
                        checkpoint.seal();
                        *raw = *checkpoint.as_block();
                    });
                }
            }
            image.put(pack.start, &[0; 4096]);
        }),
        case("both packs lost", Kind::NoCheckpoint, Finds, |image| {
            for pack in 0..2 {
                image.edit(image.geometry.checkpoint_pack(pack), |block| block[40] ^= 1);
            }
        }),
        case("error flag", Kind::Marked, Finds, |image| {
            image.edit_checkpoint(|cp| cp.header.ckpt_flags = (cp.header.ckpt_flags.get() | flags::ERROR).into());
        }),
        case("fsck flag", Kind::Marked, Finds, |image| {
            image.edit_checkpoint(|cp| cp.header.ckpt_flags = (cp.header.ckpt_flags.get() | flags::FSCK).into());
        }),
        case("orphan flag without orphans", Kind::Orphan, Blind, |image| {
            image.edit_checkpoint(|cp| {
                cp.header.ckpt_flags = (cp.header.ckpt_flags.get() | flags::ORPHAN_PRESENT).into();
            });
        }),
        case("sit bitmap size", Kind::Checkpoint, Finds, |image| {
            image.edit_checkpoint(|cp| cp.header.sit_ver_bitmap_bytesize = 32.into());
        }),
        case("nat bitmap size", Kind::Checkpoint, Finds, |image| {
            image.edit_checkpoint(|cp| cp.header.nat_ver_bitmap_bytesize = u32::MAX.into());
        }),
        case("cp_pack_start_sum 0", Kind::Checkpoint, Finds, |image| {
            image.edit_checkpoint(|cp| cp.header.cp_pack_start_sum = 0.into());
        }),
        case("no reserved segments", Kind::Checkpoint, Finds, |image| {
            image.edit_checkpoint(|cp| cp.header.rsvd_segment_count = 0.into());
        }),
        case("no overprovision", Kind::Checkpoint, Finds, |image| {
            image.edit_checkpoint(|cp| cp.header.overprov_segment_count = 0.into());
        }),
        case("user_block_count 0", Kind::Checkpoint, Finds, |image| {
            image.edit_checkpoint(|cp| cp.header.user_block_count = 0.into());
        }),
        case("user_block_count too large", Kind::Checkpoint, Blind, |image| {
            image.edit_checkpoint(|cp| {
                cp.header.user_block_count = (cp.header.user_block_count.get() + 512).into();
            });
        }),
        case("next_free_nid out of range", Kind::Checkpoint, Blind, |image| {
            image.edit_checkpoint(|cp| cp.header.next_free_nid = u32::MAX.into());
        }),
        case("valid_block_count", Kind::Counts, Finds, |image| {
            image.edit_checkpoint(|cp| {
                cp.header.valid_block_count = (cp.header.valid_block_count.get() + 1).into();
            });
        }),
        case("valid_node_count", Kind::Counts, Finds, |image| {
            image.edit_checkpoint(|cp| cp.header.valid_node_count = (cp.header.valid_node_count.get() - 1).into());
        }),
        case("valid_inode_count", Kind::Counts, Finds, |image| {
            image.edit_checkpoint(|cp| cp.header.valid_inode_count = (cp.header.valid_inode_count.get() - 1).into());
        }),
        case("free_segment_count", Kind::Counts, Finds, |image| {
            image.edit_checkpoint(|cp| cp.header.free_segment_count = (cp.header.free_segment_count.get() + 1).into());
        }),
    ];
    run(populated(), &cases);
}

#[test]
fn logs() {
    use Fsck::{Blind, Finds};
    let cases: Vec<Case> = vec![
        case("segment out of range", Kind::Checkpoint, Finds, |image| {
            image.edit_checkpoint(|cp| cp.header.cur_data_segno[1] = 1_000_000.into());
        }),
        case("block offset 512", Kind::Checkpoint, Finds, |image| {
            image.edit_checkpoint(|cp| cp.header.cur_node_blkoff[2] = 512.into());
        }),
        case("two logs in one segment", Kind::Log, Finds, |image| {
            image.edit_checkpoint(|cp| cp.header.cur_data_segno[1] = cp.header.cur_data_segno[0]);
        }),
        case("block offset in use", Kind::Log, Finds, |image| {
            image.edit_checkpoint(|cp| cp.header.cur_node_blkoff[1] = 0.into());
        }),
        case("unknown way of allocation", Kind::Log, Blind, |image| {
            image.edit_checkpoint(|cp| cp.header.alloc_type[3] = 7);
        }),
        case("blocks behind the offset", Kind::Log, Finds, |image| {
            let log = LogType::HotNode;
            image.edit_checkpoint(|cp| cp.header.alloc_type[log.index()] = alloc_type::LFS);
            image.edit_sit(image.pack().log(log).0, |entry| {
                entry.valid_map[63] |= 1;
                entry.set_blocks(log, entry.valid_blocks() + 1);
            });
        }),
        case("type of the segment", Kind::Log, Finds, |image| {
            let (segment, _) = image.pack().log(LogType::ColdData);
            image.edit_sit(segment, |entry| entry.set_blocks(LogType::HotData, entry.valid_blocks()));
        }),
        case("nat bits: signature", Kind::NatBits, Blind, |image| edit_bits(image, 0)),
        case("nat bits: full map", Kind::NatBits, Finds, |image| edit_bits(image, 8)),
        case("nat bits: empty map", Kind::NatBits, Finds, |image| {
            edit_bits(image, 8 + image.geometry.nat_bitmap_size());
        }),
        case("nat journal too long", Kind::NatJournal, Finds, |image| {
            let mut journal = Journal::ZERO;
            journal.count = 39.into();
            edit_pack_summary(image, LogType::HotData, journal);
        }),
        case("nat journal: nid out of range", Kind::NatJournal, Finds, |image| {
            let entry = image.nat(Nid::ROOT);
            edit_pack_summary(image, LogType::HotData, Journal::from_nat(&[(Nid(u32::MAX), entry)]).unwrap());
        }),
        case("nat journal: address", Kind::NatJournal, Finds, |image| {
            let mut entry = image.nat(Nid::ROOT);
            entry.block_addr = 7.into();
            edit_pack_summary(image, LogType::HotData, Journal::from_nat(&[(Nid::ROOT, entry)]).unwrap());
        }),
        case("nat journal: twice", Kind::NatJournal, Blind, |image| {
            let entry = image.nat(Nid::ROOT);
            let journal = Journal::from_nat(&[(Nid::ROOT, entry), (Nid::ROOT, entry)]);
            edit_pack_summary(image, LogType::HotData, journal.unwrap());
        }),
        case("nat journal: an address without an inode below", Kind::NatEntry, Finds, |image| {
            let ino = image.find("tiny").ino;
            let entry = image.nat(ino);
            image.edit_nat(ino, |below| (below.ino, below.block_addr) = (0.into(), 1.into()));
            edit_pack_summary(image, LogType::HotData, Journal::from_nat(&[(ino, entry)]).unwrap());
        }),
        case("sit journal too long", Kind::SitJournal, Finds, |image| {
            let mut journal = Journal::ZERO;
            journal.count = 7.into();
            edit_pack_summary(image, LogType::ColdData, journal);
        }),
        case("sit journal: beyond the main area", Kind::SitJournal, Finds, |image| {
            let segment = SegmentNo(image.geometry.main_segments);
            edit_pack_summary(image, LogType::ColdData, Journal::from_sit(&[(segment, RawSitEntry::ZERO)]).unwrap());
        }),
        case("sit journal: a wrong entry below", Kind::SitEntry, Finds, |image| {
            let segment = data_segment(image);
            let entry = image.sit(segment);
            image.edit_sit(segment, |below| below.valid_map[3] ^= 4);
            edit_pack_summary(image, LogType::ColdData, Journal::from_sit(&[(segment, entry)]).unwrap());
        }),
        case("sit journal: a type that is none below", Kind::SitEntry, Finds, |image| {
            let segment = data_segment(image);
            let entry = image.sit(segment);
            image.edit_sit(segment, |below| below.vblocks = (below.vblocks.get() | 63 << 10).into());
            edit_pack_summary(image, LogType::ColdData, Journal::from_sit(&[(segment, entry)]).unwrap());
        }),
        case("sit journal: twice", Kind::SitJournal, Blind, |image| {
            let segment = data_segment(image);
            let entry = image.sit(segment);
            let journal = Journal::from_sit(&[(segment, entry), (segment, entry)]);
            edit_pack_summary(image, LogType::ColdData, journal.unwrap());
        }),
    ];
    run(populated(), &cases);
}

fn edit_bits(image: &Image, byte: usize) {
    let pack = image.pack();
    let first = pack.start.offset(nat_bits::first_block(&image.geometry, pack.total()).unwrap());
    image.edit(first, |block| block[byte] ^= 1);
}

#[test]
fn nat() {
    use Fsck::Finds;
    let cases: Vec<Case> = vec![
        case("nid 0 in use", Kind::NatEntry, Finds, |image| image.edit_nat(Nid(0), |nat| nat.block_addr = 9000.into())),
        case("reserved nid", Kind::NatEntry, Finds, |image| image.edit_nat(Nid(1), |nat| nat.block_addr = 9000.into())),
        case("a node nobody knows", Kind::UnreachableNid, Finds, |image| {
            let entry = image.nat(image.find("tiny").ino);
            image.edit_nat(free_nid(image), |nat| *nat = entry);
        }),
        case("ino 0", Kind::NatEntry, Finds, |image| image.edit_nat(image.find("tiny").ino, |nat| nat.ino = 0.into())),
        case("another inode's", Kind::NatEntry, Finds, |image| {
            image.edit_nat(Nid(image.node(image.find("large").ino).inode().i_nid[0].get()), |nat| nat.ino = 3.into());
        }),
        case("address outside the main area", Kind::NatEntry, Finds, |image| {
            image.edit_nat(image.find("tiny").ino, |nat| nat.block_addr = 600.into());
        }),
        case("address reserved", Kind::NatEntry, Finds, |image| {
            image.edit_nat(image.find("tiny").ino, |nat| nat.block_addr = u32::MAX.into());
        }),
        case("an inode is free", Kind::Dentry, Finds, |image| {
            image.edit_nat(image.find("tiny").ino, |nat| nat.block_addr = 0.into());
        }),
        case("two nodes at one block", Kind::NodeFooter, Finds, |image| {
            let addr = image.addr(image.find("tiny").ino);
            image.edit_nat(image.find("small").ino, |nat| nat.block_addr = addr.into());
        }),
        case("version", Kind::Summary, Finds, |image| {
            image.edit_nat(image.find("large").ino, |nat| nat.version = nat.version.wrapping_add(1));
        }),
    ];
    run(populated(), &cases);
}

#[test]
fn sit_and_ssa() {
    use Fsck::{Blind, Finds};
    let cases: Vec<Case> = vec![
        case("valid count", Kind::SitEntry, Finds, |image| {
            image.edit_sit(data_segment(image), |entry| entry.set_blocks(LogType::WarmData, 3));
        }),
        case("valid bit lost", Kind::NotValid, Finds, |image| {
            image.edit_sit(data_segment(image), |entry| {
                entry.valid_map[10] = 0;
                entry.set_blocks(LogType::WarmData, entry.valid_blocks() - 8);
            });
        }),
        case("valid bit too many", Kind::Unreached, Finds, |image| {
            image.edit_sit(free_segment(image), |entry| {
                entry.valid_map[0] = 0x80;
                entry.set_blocks(LogType::WarmData, 1);
            });
        }),
        case("type above 5", Kind::SitEntry, Finds, |image| {
            image.edit_sit(data_segment(image), |entry| {
                entry.vblocks = (entry.vblocks.get() & 0x3ff | 9 << 10).into();
            });
        }),
        case("type: data as node", Kind::SegmentType, Finds, |image| {
            image.edit_sit(data_segment(image), |entry| entry.set_blocks(LogType::WarmNode, entry.valid_blocks()));
        }),
        case("summary: nid of data", Kind::Summary, Finds, |image| {
            let (summary, at) = image.summary_of(image.data(image.find("large").ino, 700));
            image.edit_summary(summary, |summary| summary.entries[at].nid = 9.into());
        }),
        case("summary: slot of data", Kind::Summary, Finds, |image| {
            let (summary, at) = image.summary_of(image.data(image.find("large").ino, 700));
            image.edit_summary(summary, |summary| summary.entries[at].ofs_in_node = 9.into());
        }),
        case("summary: version of data", Kind::Summary, Finds, |image| {
            let (summary, at) = image.summary_of(image.data(image.find("small").ino, 0));
            image.edit_summary(summary, |summary| summary.entries[at].version = 200);
        }),
        case("summary: nid of a node", Kind::Summary, Finds, |image| {
            let (summary, at) = image.summary_of(image.addr(image.find("tiny").ino));
            image.edit_summary(summary, |summary| summary.entries[at].nid = 9.into());
        }),
        case("summary: type of a segment", Kind::Summary, Finds, |image| {
            let summary = image.geometry.summary_block(data_segment(image));
            image.edit_summary(summary, |summary| summary.entry_type = TYPE_NODE);
        }),
        case("summary: type of a log", Kind::Summary, Blind, |image| {
            image.edit_summary(image.log_summary(LogType::WarmNode), |summary| summary.entry_type = TYPE_DATA);
        }),
    ];
    run(populated(), &cases);
}

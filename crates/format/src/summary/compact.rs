//! Compact summaries: the summaries of the three data logs packed into one or two blocks of a checkpoint pack.
//!
//! ```text
//! block 0: | NAT journal 507 | SIT journal 507 | 439 entries | 9 unused |
//! block 1: | 584 entries | 8 unused |
//! ```
//!
//! The entries of hot, warm and cold data follow each other without gaps. A log that takes blocks in order (LFS) has as
//! many entries as its next offset says, one that fills holes (SSR) all 512. Source: `f2fs_npages_for_summary_flush`,
//! `write_compacted_summaries` and `read_compacted_summaries` in `fs/f2fs/segment.c`.

use alloc::boxed::Box;
use alloc::vec::Vec;
use zerocopy::{FromBytes, IntoBytes};

use super::{COMPACT_FIRST, COMPACT_NEXT, ENTRIES, JOURNAL_SIZE, Journal, Summary, SummaryBlock, TYPE_DATA};
use crate::checkpoint::alloc_type;
use crate::{BLOCK_SIZE, Corruption, RawBlock};

/// Entries that a data log brings along: its next offset in LFS mode, all 512 in SSR mode.
#[must_use]
pub const fn entry_count(next_offset: u16, allocation: u8) -> usize {
    if allocation == alloc_type::SSR { ENTRIES } else { next_offset as usize }
}

/// Blocks that compact summaries with this many entries take: 1 or 2; `None` if they do not fit, and three full summary
/// blocks are to be written.
#[must_use]
pub const fn blocks_for(entries: usize) -> Option<usize> {
    if entries <= COMPACT_FIRST {
        Some(1)
    } else if entries <= COMPACT_FIRST + COMPACT_NEXT {
        Some(2)
    } else {
        None
    }
}

/// The places of `total` entries: (block, byte in it).
fn places(total: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..total).map(|index| match index.checked_sub(COMPACT_FIRST) {
        None => (0, 2 * JOURNAL_SIZE + index * size_of::<Summary>()),
        Some(next) => (1 + next / COMPACT_NEXT, next % COMPACT_NEXT * size_of::<Summary>()),
    })
}

/// Unpacks the summaries of the hot, warm and cold data logs, which have `counts` entries ([`entry_count`]). The NAT
/// journal comes with the hot log, the SIT journal with the cold one.
///
/// # Errors
/// [`Corruption::Range`] if a count is above 512, or the blocks are too few for the entries.
pub fn parse(blocks: &[RawBlock], counts: [usize; 3]) -> Result<[Box<SummaryBlock>; 3], Corruption> {
    for count in counts {
        let (found, max) = (count as u64, ENTRIES as u64);
        if found > max {
            return Err(Corruption::Range { what: "entries of a compact summary", found, min: 0, max });
        }
    }
    let total = counts.iter().sum();
    let needed = 1 + usize::saturating_sub(total, COMPACT_FIRST).div_ceil(COMPACT_NEXT);
    if blocks.len() < needed {
        return Err(Corruption::Range {
            what: "blocks of a compact summary",
            found: blocks.len() as u64,
            min: needed as u64,
            max: needed as u64,
        });
    }
    let mut logs = [SummaryBlock::new_box(), SummaryBlock::new_box(), SummaryBlock::new_box()];
    let mut places = places(total);
    for (log, count) in logs.iter_mut().zip(counts) {
        log.entry_type = TYPE_DATA;
        for (entry, (block, at)) in log.entries[..count].iter_mut().zip(&mut places) {
            entry.as_mut_bytes().copy_from_slice(&blocks[block][at..at + size_of::<Summary>()]);
        }
    }
    let (journals, _) = blocks[0].split_at(2 * JOURNAL_SIZE);
    if let Ok(both) = <[Journal; 2]>::ref_from_bytes(journals) {
        logs[0].journal = both[0];
        logs[2].journal = both[1];
    }
    Ok(logs)
}

/// Packs the summaries of the hot, warm and cold data logs, of which `counts` entries matter. The NAT journal is taken
/// from the hot log, the SIT journal from the cold one. `None` if they do not fit two blocks ([`blocks_for`]).
#[must_use]
pub fn build(logs: [&SummaryBlock; 3], counts: [usize; 3]) -> Option<Vec<RawBlock>> {
    if counts.iter().any(|count| *count > ENTRIES) {
        return None;
    }
    let total = counts.iter().sum();
    let mut blocks = alloc::vec![[0u8; BLOCK_SIZE]; blocks_for(total)?];
    blocks[0][..JOURNAL_SIZE].copy_from_slice(logs[0].journal.as_bytes());
    blocks[0][JOURNAL_SIZE..2 * JOURNAL_SIZE].copy_from_slice(logs[2].journal.as_bytes());
    let mut places = places(total);
    for (log, count) in logs.iter().zip(counts) {
        for (entry, (block, at)) in log.entries[..count].iter().zip(&mut places) {
            blocks[block][at..at + size_of::<Summary>()].copy_from_slice(entry.as_bytes());
        }
    }
    Some(blocks)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Nid;
    use crate::SegmentNo;
    use crate::nat::RawNatEntry;
    use crate::sit::RawSitEntry;

    fn log(seed: u32) -> Box<SummaryBlock> {
        let mut block = SummaryBlock::new_box();
        for (index, entry) in block.entries.iter_mut().enumerate() {
            *entry = Summary::new(Nid(seed + index as u32), seed as u8, index as u16);
        }
        block
    }

    #[test]
    fn sizes_at_the_borders() {
        assert_eq!([0, 439, 440, 1023, 1024].map(blocks_for), [Some(1), Some(1), Some(2), Some(2), None]);
        assert_eq!((entry_count(7, alloc_type::LFS), entry_count(7, alloc_type::SSR)), (7, 512));
        // The last places touch neither the next block nor the footer's five bytes.
        assert_eq!(places(439).last(), Some((0, 1014 + 438 * 7)));
        assert_eq!(places(440).last(), Some((1, 0)));
        assert_eq!(places(1023).last(), Some((1, 583 * 7)));
        let footer = BLOCK_SIZE - 5;
        assert_eq!((COMPACT_FIRST, COMPACT_NEXT), ((footer - 2 * JOURNAL_SIZE) / 7, footer / 7));
    }

    #[test]
    fn entries_and_journals_come_back() {
        let mut logs = [log(1000), log(2000), log(3000)];
        let nat = [(Nid(5), RawNatEntry { version: 1, ino: 5.into(), block_addr: 77.into() })];
        logs[0].journal = Journal::from_nat(&nat).unwrap();
        logs[2].journal = Journal::from_sit(&[(SegmentNo(9), RawSitEntry::ZERO)]).unwrap();
        for counts in [[0, 0, 0], [1, 0, 3], [439, 0, 0], [100, 300, 40], [512, 0, 511], [511, 511, 1]] {
            let blocks = build([&logs[0], &logs[1], &logs[2]], counts).unwrap();
            assert_eq!(Some(blocks.len()), blocks_for(counts.iter().sum()));
            let back = parse(&blocks, counts).unwrap();
            for index in 0..3 {
                assert_eq!(back[index].entries[..counts[index]], logs[index].entries[..counts[index]]);
                assert!(back[index].entries[counts[index]..].iter().all(|entry| *entry == Summary::default()));
            }
            assert_eq!(back[0].journal.nat_entries().unwrap(), nat);
            assert_eq!(back[2].journal.sit_entries().unwrap()[0].0, SegmentNo(9));
            assert_eq!(back[1].journal, Journal::ZERO);
        }
        assert!(build([&logs[0], &logs[1], &logs[2]], [512, 512, 0]).is_none());
        assert!(build([&logs[0], &logs[1], &logs[2]], [513, 0, 0]).is_none());
    }

    #[test]
    fn too_few_blocks() {
        let error = parse(&[[0; 4096]], [440, 0, 0]).unwrap_err();
        assert!(matches!(error, Corruption::Range { found: 1, min: 2, .. }), "{error}");
        assert!(parse(&[], [0, 0, 0]).is_err());
        assert!(parse(&[[0; 4096]; 4], [513, 0, 0]).is_err());
        assert!(parse(&[[0; 4096]; 3], [512, 512, 512]).is_ok());
    }

    proptest! {
        #[test]
        fn random_blocks_never_panic(seed in any::<[u8; 64]>(), blocks in 0..4usize, counts in any::<[u16; 3]>()) {
            let block: RawBlock = core::array::from_fn(|index| seed[index % 64] ^ (index / 64) as u8);
            if let Ok(logs) = parse(&alloc::vec![block; blocks], counts.map(|count| usize::from(count % 600))) {
                let _ = (logs[0].journal.nat_entries(), logs[2].journal.sit_entries());
                prop_assert_eq!(logs[1].entry_type, TYPE_DATA);
            }
        }
    }
}

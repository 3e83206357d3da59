//! A quota file: whether the numbers of each user, group or project can be found in it (`fs/quota/quota_v2.c`,
//! `fs/quota/quota_tree.c`).
//!
//! The file is cut into blocks of 1 KiB. The first one has a head; from the second one on a tree of four levels leads by
//! the bytes of an identifier to the block that holds its numbers. The numbers themselves are not judged: `fsck.f2fs`
//! counts them again. A file that the checkpoint says is to be counted anew is not looked at.

use std::collections::{HashMap, HashSet};

use f2fs_device::AlignedBuf;
use f2fs_format::BlockAddr;

use super::error::CheckError;
use super::source::Source;

/// What the heads of quota files of users, groups and projects begin with.
const MAGIC: [u32; 3] = [0xd9c0_1f11, 0xd9c0_1927, 0xd9c0_3f14];
/// The version that is judged: numbers of 64 bits.
const VERSION: u32 = 1;
/// Bytes of a block, and how many of them a block of the volume has.
const BLOCK: usize = 1024;
const PER_BLOCK: u64 = 4096 / BLOCK as u64;
/// Where the number of blocks stands in the head.
const COUNT_AT: usize = 20;
/// The block that the tree begins with.
const ROOT: u32 = 1;
const LEVELS: u32 = 4;
/// Bytes in front of the numbers in their block, and of each identifier's numbers.
const ENTRIES_AT: usize = 16;
const ENTRY: usize = 72;

type Block = [u8; BLOCK];

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |bytes| bytes.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte)))
}

struct Reader<'r, 'a> {
    source: &'r Source<'a>,
    /// The blocks of the volume that hold the file, by their place in it.
    blocks: HashMap<u64, BlockAddr>,
    /// The one that was read last.
    last: Option<(u64, AlignedBuf)>,
}

impl Reader<'_, '_> {
    /// A block; zeros where the file has none.
    fn block(&mut self, number: u32) -> Result<Block, CheckError> {
        let (index, part) = (u64::from(number) / PER_BLOCK, (u64::from(number) % PER_BLOCK) as usize);
        let mut block = [0; BLOCK];
        let Some(addr) = self.blocks.get(&index) else { return Ok(block) };
        if self.last.as_ref().is_none_or(|(last, _)| *last != index) {
            self.last = Some((index, self.source.block(*addr)?));
        }
        if let Some((_, bytes)) = &self.last {
            block.copy_from_slice(&bytes.block(0)[part * BLOCK..][..BLOCK]);
        }
        Ok(block)
    }
}

/// The bytes of a quota file as the head in its first block says; `None` if there is no head that is known.
pub(super) fn length(first: &[u8]) -> Option<u64> {
    let is_known = MAGIC.contains(&word(first, 0)) && word(first, 4) == VERSION;
    is_known.then(|| u64::from(word(first, COUNT_AT)) * BLOCK as u64)
}

/// What is wrong, and the number that is.
type Fault = (&'static str, u32);

/// The first fault of the file of so many bytes that lies in these blocks of the volume.
pub(super) fn check(source: &Source<'_>, size: u64, blocks: &[(u64, BlockAddr)]) -> Result<Option<Fault>, CheckError> {
    let mut reader = Reader { source, blocks: blocks.iter().copied().collect(), last: None };
    let head = reader.block(0)?;
    if !MAGIC.contains(&word(&head, 0)) {
        return Ok(Some(("what a quota file begins with", word(&head, 0))));
    }
    if word(&head, 4) != VERSION {
        return Ok(None);
    }
    let count = word(&head, COUNT_AT);
    if u64::from(count) * BLOCK as u64 > size {
        return Ok(Some(("blocks of 1 KiB, more than there are by i_size", count)));
    }
    // The blocks that are still to be looked at: number, level, and the identifier up to there.
    let mut pending = vec![(ROOT, 0, 0)];
    let mut known = HashSet::new();
    while let Some((number, level, upper)) = pending.pop() {
        if level < LEVELS && !known.insert(number) {
            return Ok(Some(("a second way to a block of the tree", number)));
        }
        let block = reader.block(number)?;
        if level == LEVELS {
            if !holds(&block, upper) {
                return Ok(Some(("no numbers where the tree leads for identifier", upper)));
            }
            continue;
        }
        let before = pending.len();
        for index in 0..BLOCK / 4 {
            let next = word(&block, 4 * index);
            if next != 0 && !(ROOT + 1..count).contains(&next) {
                return Ok(Some(("the tree leads to block", next)));
            }
            if next != 0 {
                pending.push((next, level + 1, upper << 8 | index as u32));
            }
        }
        // Linux takes a block away that leads nowhere.
        if pending.len() == before && number != ROOT {
            return Ok(Some(("a block of the tree that leads nowhere", number)));
        }
    }
    Ok(None)
}

/// Whether a block has the numbers of an identifier. An entry of zeros is nobody's.
fn holds(block: &Block, identifier: u32) -> bool {
    let mut entries = block[ENTRIES_AT..].chunks_exact(ENTRY);
    entries.any(|entry| word(entry, 0) == identifier && entry.iter().any(|byte| *byte != 0))
}

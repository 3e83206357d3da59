//! What the superblock remembers of trouble: why the file system stopped (`enum stop_cp_reason`), and what was found wrong
//! (`enum f2fs_error` in `include/linux/f2fs_fs.h`).

use alloc::vec::Vec;

use crate::superblock::SuperBlock;

/// Why a file system stopped; the number is the index of its counter in `s_stop_reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the header's
#[repr(u8)]
pub enum StopReason {
    Shutdown = 0,
    FaultInject = 1,
    MetaPage = 2,
    WriteFail = 3,
    CorruptedSummary = 4,
    UpdateInode = 5,
    FlushFail = 6,
    NoSegment = 7,
    CorruptedFreeBitmap = 8,
    CorruptedNid = 9,
}

/// What was found wrong; the number is the bit in `s_errors`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the header's
#[repr(u8)]
pub enum ErrorKind {
    CorruptedCluster = 0,
    FailDecompression = 1,
    InvalidBlkaddr = 2,
    CorruptedDirent = 3,
    CorruptedInode = 4,
    InconsistentSummary = 5,
    InconsistentFooter = 6,
    InconsistentSumType = 7,
    CorruptedJournal = 8,
    InconsistentNodeCount = 9,
    InconsistentBlockCount = 10,
    InvalidCurseg = 11,
    InconsistentSit = 12,
    CorruptedVerityXattr = 13,
    CorruptedXattr = 14,
    InvalidNodeReference = 15,
    InconsistentNat = 16,
    InconsistentOrphan = 17,
}

const STOP_NAMES: [&str; 10] = [
    "shutdown",
    "fault_inject",
    "meta_page",
    "write_fail",
    "corrupted_summary",
    "update_inode",
    "flush_fail",
    "no_segment",
    "corrupted_free_bitmap",
    "corrupted_nid",
];

const ERROR_NAMES: [&str; 18] = [
    "corrupted_cluster",
    "fail_decompression",
    "invalid_blkaddr",
    "corrupted_dirent",
    "corrupted_inode",
    "inconsistent_summary",
    "inconsistent_footer",
    "inconsistent_sum_type",
    "corrupted_journal",
    "inconsistent_node_count",
    "inconsistent_block_count",
    "invalid_curseg",
    "inconsistent_sit",
    "corrupted_verity_xattr",
    "corrupted_xattr",
    "invalid_node_reference",
    "inconsistent_nat",
    "inconsistent_orphan",
];

impl SuperBlock {
    /// Counts one more stop for this reason, up to 255.
    pub fn count_stop(&mut self, reason: StopReason) {
        let count = &mut self.s_stop_reason[reason as usize];
        *count = count.saturating_add(1);
    }

    /// Remembers that something was found wrong.
    pub fn note_error(&mut self, error: ErrorKind) {
        self.s_errors[error as usize / 8] |= 1 << (error as usize % 8);
    }

    /// Why the file system stopped, by name, and how often. Reasons that this version does not know are not listed.
    #[must_use]
    pub fn stops(&self) -> Vec<(&'static str, u8)> {
        STOP_NAMES.into_iter().zip(self.s_stop_reason).filter(|(_, count)| *count != 0).collect()
    }

    /// What was found wrong, by name. Bits that this version does not know are not listed.
    #[must_use]
    pub fn errors(&self) -> Vec<&'static str> {
        let is_set = |bit: usize| self.s_errors[bit / 8] & 1 << (bit % 8) != 0;
        ERROR_NAMES.into_iter().enumerate().filter(|(bit, _)| is_set(*bit)).map(|(_, name)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_listed() {
        let mut sb = SuperBlock::ZERO;
        assert!(sb.stops().is_empty() && sb.errors().is_empty());
        (0..300).for_each(|_| sb.count_stop(StopReason::FlushFail));
        sb.count_stop(StopReason::CorruptedNid);
        sb.note_error(ErrorKind::InvalidBlkaddr);
        sb.note_error(ErrorKind::InconsistentOrphan);
        assert_eq!(sb.stops(), [("flush_fail", 255), ("corrupted_nid", 1)]);
        assert_eq!(sb.errors(), ["invalid_blkaddr", "inconsistent_orphan"]);
        assert_eq!((sb.s_stop_reason[6], sb.s_errors[0], sb.s_errors[2]), (255, 4, 2));
    }
}

//! The superblock's record of trouble: why the file system stopped (`enum stop_cp_reason`), and what was found wrong
//! (`enum f2fs_error` in `include/linux/f2fs_fs.h`).

use alloc::vec::Vec;

use crate::superblock::SuperBlock;

/// An enumeration of the header's, numbered from 0, and the names of its values in that order.
macro_rules! numbered {
    ($(#[$doc:meta])* $type:ident, $names:ident { $($value:ident = $number:literal => $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)] // the names are the header's
        #[repr(u8)]
        pub enum $type {
            $($value = $number,)*
        }

        const $names: [&str; [$($number),*].len()] = [$($name),*];
        const _: () = {
            let numbers = [$($number),*];
            let mut at = 0;
            while at < numbers.len() {
                assert!(numbers[at] == at, "a name stands at its number");
                at += 1;
            }
        };
    };
}

numbered! {
    /// Why a file system stopped; the number is the index of its counter in `s_stop_reason`.
    StopReason, STOP_NAMES {
        Shutdown = 0 => "shutdown",
        FaultInject = 1 => "fault_inject",
        MetaPage = 2 => "meta_page",
        WriteFail = 3 => "write_fail",
        CorruptedSummary = 4 => "corrupted_summary",
        UpdateInode = 5 => "update_inode",
        FlushFail = 6 => "flush_fail",
        NoSegment = 7 => "no_segment",
        CorruptedFreeBitmap = 8 => "corrupted_free_bitmap",
        CorruptedNid = 9 => "corrupted_nid",
        ReadMeta = 10 => "read_meta",
        ReadNode = 11 => "read_node",
        ReadData = 12 => "read_data",
    }
}

numbered! {
    /// The kind of damage that was found; the number is the bit in `s_errors`.
    ErrorKind, ERROR_NAMES {
        CorruptedCluster = 0 => "corrupted_cluster",
        FailDecompression = 1 => "fail_decompression",
        InvalidBlkaddr = 2 => "invalid_blkaddr",
        CorruptedDirent = 3 => "corrupted_dirent",
        CorruptedInode = 4 => "corrupted_inode",
        InconsistentSummary = 5 => "inconsistent_summary",
        InconsistentFooter = 6 => "inconsistent_footer",
        InconsistentSumType = 7 => "inconsistent_sum_type",
        CorruptedJournal = 8 => "corrupted_journal",
        InconsistentNodeCount = 9 => "inconsistent_node_count",
        InconsistentBlockCount = 10 => "inconsistent_block_count",
        InvalidCurseg = 11 => "invalid_curseg",
        InconsistentSit = 12 => "inconsistent_sit",
        CorruptedVerityXattr = 13 => "corrupted_verity_xattr",
        CorruptedXattr = 14 => "corrupted_xattr",
        InvalidNodeReference = 15 => "invalid_node_reference",
        InconsistentNat = 16 => "inconsistent_nat",
        InconsistentOrphan = 17 => "inconsistent_orphan",
    }
}

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

    /// The kinds of damage that were found, by name. Bits that this version does not know are not listed.
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
        sb.count_stop(StopReason::ReadData);
        assert_eq!(sb.stops(), [("flush_fail", 255), ("corrupted_nid", 1), ("read_data", 1)]);
        assert_eq!(sb.errors(), ["invalid_blkaddr", "inconsistent_orphan"]);
        assert_eq!((sb.s_stop_reason[6], sb.s_errors[0], sb.s_errors[2]), (255, 4, 2));
    }
}

//! The meaning of each line of `fsck.f2fs` 1.15, 1.16, and of the sources after it. Source: the messages in f2fs-tools
//! `fsck/{main,mount,fsck}.c`.

/// How one line of `fsck.f2fs` is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// A clean volume prints it.
    Quiet,
    /// A volume prints it after a power cut at a bad moment: one superblock copy or one checkpoint pack is torn and the
    /// other one is used. Not damage, but not the state that a clean close leaves.
    TornCopy,
    /// Anything else: `[FIX]`, `[ASSERT]`, `[Fail]`, `Error:`, an unreachable NID, or a line that is not known here.
    Finding,
}

/// `Info:` lines that describe the volume or the run. The others (`Fix wrong user_block_count`, `Corrupted valid
/// nat_bits`, `Fix alignment`, ...) report damage.
const QUIET_INFO: [&str; 15] = [
    "Dry run",
    "MKFS version",
    "FSCK version",
    "version timestamp cur:",
    "superblock features =",
    "superblock encrypt level =",
    "Segments per section =",
    "Sections per zone =",
    "total FS sectors =",
    "CKPT version =",
    "Checked valid nat_bits",
    "Device[",
    // Since 1.16: what the superblock remembers of earlier stops and earlier damage. 1.15 does not look at it.
    "checkpoint stop reason:",
    "fs errors:",
    // After 1.16: whether names of casefolded directories are looked for in all blocks.
    "Casefold: linear_lookup [",
];

/// Checkpoint flags that say the volume was found damaged earlier.
const BAD_STATES: [&str; 3] = ["fsck", "error", "quota_need_fsck"];

/// Messages of the reader of the superblock and the packs when one of two copies is bad.
const TORN: [&str; 5] = [
    "Invalid CP CRC",
    "Can't find a valid F2FS superblock",
    "Magic Mismatch",
    "Invalid SB CRC",
    // In front of "Invalid SB CRC"; nothing else is checked this way.
    "[f2fs_crc_valid:",
];

/// Judges one line of output.
///
/// ```
/// use f2fs_oracle::{LineKind, classify};
/// assert_eq!(classify("[FSCK] SIT valid block bitmap checking                [Ok..]"), LineKind::Quiet);
/// assert_eq!(classify("[FIX] (fsck_chk_inode_blk:1186)  --> ..."), LineKind::Finding);
/// ```
#[must_use]
pub fn classify(line: &str) -> LineKind {
    let line = line.trim();
    if line.is_empty() || is_version_text(line) || line.starts_with("Done: ") {
        return LineKind::Quiet;
    }
    if let Some(check) = line.strip_prefix("[FSCK] ") {
        return fsck_line(check);
    }
    if let Some(info) = line.strip_prefix("Info: ") {
        return info_line(info);
    }
    if TORN.iter().any(|start| line.starts_with(start)) { LineKind::TornCopy } else { LineKind::Finding }
}

/// The kernel version strings, which stand alone on their lines: `"..."`, `from "..."`, `to "..."`.
fn is_version_text(line: &str) -> bool {
    let text = line.strip_prefix("from ").or_else(|| line.strip_prefix("to ")).unwrap_or(line);
    text.len() >= 2 && text.starts_with('"') && text.ends_with('"')
}

fn fsck_line(check: &str) -> LineKind {
    let quiet = check.contains("[Ok..]")
        || check.starts_with("Max image size:")
        || check == "fixing SIT types"
        || check.starts_with("Check node ");
    if quiet { LineKind::Quiet } else { LineKind::Finding }
}

fn info_line(info: &str) -> LineKind {
    if let Some(state) = info.strip_prefix("checkpoint state =") {
        let bad = state.split_whitespace().any(|word| BAD_STATES.contains(&word));
        return if bad { LineKind::Finding } else { LineKind::Quiet };
    }
    let quiet = QUIET_INFO.iter().any(|start| info.starts_with(start));
    if quiet { LineKind::Quiet } else { LineKind::Finding }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_run_is_quiet() {
        for line in [
            "Info: Dry run",
            "  from \"Linux version 6.12\"",
            "Info: superblock features = a28 :  extra_attr inode_checksum lost_found sb_checksum",
            "Info: checkpoint state = 185 :  trimmed nat_bits compacted_summary unmount",
            "Info: checkpoint state = 4 :  compacted_summary sudden-power-off",
            "[FSCK] Max image size: 22 MB, Free space: 61 MB",
            "[FSCK] free segment_count matched with CP             [Ok..] [0x32]",
            "[FSCK] fixing SIT types",
            "Info: checkpoint stop reason: shutdown(3) write_fail(1) ",
            "Info: fs errors: invalid_blkaddr ",
            "Info: Casefold: linear_lookup [enable]",
            "",
            "Done: 0.000000 secs",
        ] {
            assert_eq!(classify(line), LineKind::Quiet, "{line}");
        }
    }

    #[test]
    fn damage_is_found_in_every_form_it_is_printed_in() {
        for line in [
            "[FIX] (fsck_chk_dentry_blk:1640)  --> Mismatch hash_code",
            "[ASSERT] (sanity_check_nid: 388)  --> nid[0x4] is invalid",
            "[FSCK] free segment_count matched with CP              [Fail] [0x32]",
            "[FSCK] Reconnect 3 files to lost+found",
            "NID[0x5] is unreachable, blkaddr:0x2802",
            "NID[0x5] has [0x1] more unreachable links",
            "Info: Corrupted valid nat_bits in checkpoint",
            "Info: Fix wrong user_block_count in CP: (1) -> (2)",
            "Info: checkpoint state = 14 :  fsck unmount",
            "Info: checkpoint state = 24 :  error unmount",
            "\tError: nat_entry->ino 9 is not set in",
            "[dev_read: 55] something new",
            "Do you want to restore lost files into ./lost_found/? [Y/N] ",
        ] {
            assert_eq!(classify(line), LineKind::Finding, "{line}");
        }
    }

    #[test]
    fn a_torn_copy_is_its_own_kind() {
        assert_eq!(classify("\tInvalid CP CRC: offset:4092, crc:0x0, calc:0x1"), LineKind::TornCopy);
        assert_eq!(classify("[f2fs_crc_valid: 550] CRC validation failed: cal_crc = 1"), LineKind::TornCopy);
        assert_eq!(classify("\tCan't find a valid F2FS superblock at 0x0"), LineKind::TornCopy);
    }
}

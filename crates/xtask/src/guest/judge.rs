//! The failures of a run: an exit status, a line of the kernel log, a difference between two manifests.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::bail;

use super::machine::GuestOutput;
use crate::Result;

/// F2FS's messages that report no trouble.
const QUIET: [&str; 16] = [
    "Mounted with checkpoint version",
    "Found nat_bits in checkpoint",
    "Start checkpoint disabled",
    // A stop that a test asked for, and a recovery on a volume that is mounted for reading.
    "Stopped filesystem due to reason: 0",
    "recover fsync data on readonly fs",
    // The version of Unicode that folds names.
    "Using encoding defined by superblock",
    // Lines of a recovery; newer kernels say with the first one that they look whether there is anything.
    "f2fs_recover_fsync_data: recovery fsync data",
    "checkpoint: version =",
    // The devices of a volume on several.
    "Mount Device [",
    // A mount looks at the write pointers of a volume on zones, and says where its logs stand.
    "Checking entire write pointers",
    "Open zones: valid block",
    // And mends what a hard cut left of them.
    "Unaligned curseg",
    "Assign new section to curseg",
    "has non-zero write pointer",
    "Valid blocks are not aligned with write pointer",
    // Lines of `norecovery`.
    "drop all fsynced data",
];
/// Messages of roll-forward recovery, which report trouble only by their error number. The last one is of newer kernels,
/// which say what they begin and how much they found.
const RECOVERED: [&str; 4] = ["recover_inode: ino", "recover_dentry: ino", "recover_data: ino", "do_recover_data: "];
/// The kernel's lines on a request that a device refused: `I/O error, dev vda, sector 8`, and with other words in front
/// for other reasons, such as `active zones exceeded`. F2FS says nothing of a write of data that failed.
const REFUSED: [&str; 2] = ["I/O error", " error, dev "];
/// Marks of trouble anywhere in the kernel.
const TROUBLE: [&str; 7] = ["BUG:", "WARNING:", "Oops", "Call Trace", "general protection", "soft lockup", "hung_task"];

fn is_refusal(line: &str) -> bool {
    REFUSED.iter().any(|mark| line.contains(mark))
}

/// Every part of a script said at its end that it went well.
pub(crate) fn happened(output: &GuestOutput, parts: &[&str]) -> Result<()> {
    for part in parts {
        if !output.log.contains(&format!("== {part}: ok")) {
            bail!("the part `{part}` did not happen:\n{}", output.log.trim());
        }
    }
    Ok(())
}

/// The script ended with 0, and neither F2FS nor the rest of the kernel complained.
pub(crate) fn succeeded(output: &GuestOutput) -> Result<()> {
    accept(output, &complaints(&output.dmesg))
}

/// The same, where devices were meant to refuse requests.
pub(crate) fn succeeded_with_refusals(output: &GuestOutput) -> Result<()> {
    let mut complaints = complaints(&output.dmesg);
    complaints.retain(|line| !is_refusal(line));
    accept(output, &complaints)
}

/// The same, where requests to an emulated NVMe controller may take longer than the kernel's 30 seconds (it was not found
/// out why): the kernel then aborts reads and sends them again, all but those that it had sent ahead of anybody's asking.
pub(crate) fn succeeded_but_for_read_ahead(output: &GuestOutput) -> Result<()> {
    let mut complaints = complaints(&output.dmesg);
    complaints.retain(|line| !is_read_ahead(line));
    accept(output, &complaints)
}

/// Whether this is the kernel's line on a request to read ahead that failed.
fn is_read_ahead(line: &str) -> bool {
    /// `REQ_RAHEAD` of `<linux/blk_types.h>`.
    const READ_AHEAD: u32 = 1 << 19;
    let flags = line.split_once("(READ) flags 0x").and_then(|(_, rest)| rest.split(' ').next());
    let flags = flags.and_then(|flags| u32::from_str_radix(flags, 16).ok());
    is_refusal(line) && flags.is_some_and(|flags| flags & READ_AHEAD != 0)
}

fn accept(output: &GuestOutput, complaints: &[&str]) -> Result<()> {
    if output.status == 0 && complaints.is_empty() {
        return Ok(());
    }
    let complaints = complaints.join("\n");
    bail!("exit status {} in the guest\nlog:\n{}\nkernel complaints:\n{complaints}", output.status, output.log.trim());
}

fn complaints(dmesg: &str) -> Vec<&str> {
    let bad = |line: &&str| {
        let number = line.split_once("err = ").or_else(|| line.split_once("err: "));
        let recovered =
            RECOVERED.iter().any(|step| line.contains(step)) && number.is_none_or(|(_, number)| number.trim() == "0");
        let f2fs = line.contains("F2FS-fs") && !recovered && !QUIET.iter().any(|quiet| line.contains(quiet));
        f2fs || is_refusal(line) || TROUBLE.iter().any(|mark| line.contains(mark))
    };
    dmesg.lines().filter(bad).collect()
}

/// `fsck.f2fs` finds nothing.
pub(crate) fn fsck_clean(image: &Path) -> Result<()> {
    let report = f2fs_oracle::fsck(image)?;
    if !report.is_clean() {
        bail!("fsck.f2fs on {}:\n{report}", image.display());
    }
    Ok(())
}

/// `fsck.f2fs` finds no damage; one copy of a superblock or pack may be torn, as a crash leaves it.
pub(crate) fn fsck_accepted(image: &Path) -> Result<()> {
    let report = f2fs_oracle::fsck(image)?;
    if !report.is_accepted() {
        bail!("fsck.f2fs on {}:\n{report}", image.display());
    }
    Ok(())
}

/// Two manifests are the same text; the error shows the first differing lines.
pub(crate) fn same(what: &str, one: (&str, &str), other: (&str, &str)) -> Result<()> {
    if one.1 == other.1 {
        return Ok(());
    }
    let left: std::collections::BTreeSet<&str> = one.1.lines().collect();
    let right: std::collections::BTreeSet<&str> = other.1.lines().collect();
    let mut text = format!("{what}: the manifests differ ({} and {} lines)", left.len(), right.len());
    for (name, lines) in [(one.0, left.difference(&right)), (other.0, right.difference(&left))] {
        let count = lines.clone().count();
        // Writing to a String cannot fail.
        let _ = write!(text, "\nonly in the view of {name} ({count} lines):");
        for line in lines.take(8) {
            let _ = write!(text, "\n  {line}");
        }
    }
    bail!("{text}");
}

#[cfg(test)]
mod tests {
    use super::{complaints, is_read_ahead, same};

    #[test]
    fn f2fs_may_say_that_it_mounted_and_no_more() {
        let log = "[ 1.0] F2FS-fs (vda): Mounted with checkpoint version = 7\n\
                   [ 2.0] F2FS-fs (vda): inconsistent node block, nid:4\n\
                   [ 3.0] usb: nothing\n[ 4.0] WARNING: CPU: 0 PID: 1 at fs/f2fs/node.c";
        let found = complaints(log);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn a_refused_request_is_trouble_whatever_the_reason() {
        for reason in ["I/O", "active zones exceeded", "critical medium"] {
            let line = format!("[ 30.3] {reason} error, dev nullb0, sector 81920 op 0x1:(WRITE) flags 0x4000");
            assert_eq!(complaints(&line), [line.as_str()]);
        }
        assert!(complaints("[ 3.0] RAS: Correctable Errors collector initialized.").is_empty());
    }

    #[test]
    fn steps_of_a_recovery_are_told_by_their_error_number() {
        let log = "[ 1.0] F2FS-fs (vdb): recover_dentry: ino = 9, name = n, dir = 3, err = 0\n\
                   [ 2.0] F2FS-fs (vdb): recover_inode: ino = 9, name = n, inline = 1\n\
                   [ 3.0] F2FS-fs (vdb): do_recover_data: start to recover dnode\n\
                   [ 4.0] F2FS-fs (vdb): do_recover_data: dnode: (recoverable: 7, fsynced: 7, total: 7), err: 0";
        assert!(complaints(log).is_empty(), "{:?}", complaints(log));
        for bad in [
            "F2FS-fs (vdb): recover_dentry: ino = 9, name = n, dir = 3, err = -5",
            "F2FS-fs (vdb): do_recover_data: dnode: (recoverable: 7, fsynced: 7, total: 7), err: -28",
            "F2FS-fs (vdb): invalid recovered filename length 0 for ino 9",
        ] {
            assert_eq!(complaints(bad), [bad]);
        }
    }

    #[test]
    fn of_failed_requests_only_those_that_nobody_asked_for_are_let_pass() {
        let line = |words| format!("[ 9.0] I/O error, dev nvme1n1, sector 8 op {words} phys_seg 1 prio class 2");
        assert!(is_read_ahead(&line("0x0:(READ) flags 0x80700")));
        assert!(!is_read_ahead(&line("0x0:(READ) flags 0x700")));
        assert!(!is_read_ahead(&line("0x1:(WRITE) flags 0x80700")));
        assert!(!is_read_ahead("[ 9.0] F2FS-fs (nvme1n1): (READ) flags 0x80700"));
    }

    #[test]
    fn differences_are_shown_with_their_side() {
        assert!(same("x", ("a", "1\n2\n"), ("b", "1\n2\n")).is_ok());
        let error = same("x", ("a", "1\n2\n"), ("b", "1\n3\n")).unwrap_err().to_string();
        assert!(error.contains("view of a (1 lines):\n  2") && error.contains("view of b (1 lines):\n  3"), "{error}");
    }
}

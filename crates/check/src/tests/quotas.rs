//! Quota files that cannot be read.

use f2fs_format::superblock::SuperBlock;
use f2fs_format::{BlockAddr, Nid};

use super::image::{self, Image};
use crate::{CheckOptions, FindingKind, repair};

/// The blocks of the first quota file.
fn blocks(image: &Image) -> Vec<BlockAddr> {
    let sb = SuperBlock::read(&image.block(BlockAddr(0)));
    let user = image.node(Nid::from(sb.qf_ino[0]));
    user.addresses(image.geometry.features).filter(|addr| addr.is_real()).collect()
}

#[test]
fn a_quota_file_without_its_blocks_is_a_finding_and_fsck_counts_again() {
    let whole = image::fresh(100 << 20, &["-O", "extra_attr,project_quota,quota"]);
    assert!(whole.check().is_clean());
    let all = blocks(&whole);
    assert_eq!(all.len(), 2);
    // Head and upper tree; the rest of the tree and the numbers; all of both.
    for (what, addrs) in [("first", &all[..1]), ("second", &all[1..]), ("both", &all[..])] {
        for byte in [0, 0x5A] {
            let image = whole.copy();
            for addr in addrs {
                image.edit(*addr, |block| block.fill(byte));
            }
            let report = image.check();
            assert!(report.has(FindingKind::QuotaFile), "{what}, {byte}: {report}");
            assert!(!image.fsck().is_clean(), "{what}, {byte}");
            let device = std::sync::Arc::new(image.device.snapshot());
            let planned = repair::plan(&(device as _), &CheckOptions::default()).unwrap();
            assert!(
                !planned.after.needs_repair() && planned.after.has(FindingKind::Quotas),
                "{what}: {}",
                planned.after
            );
        }
    }
}

/// A bit of each word of the tree, and the numbers that it leads to.
#[test]
fn bits_of_the_tree() {
    let whole = image::fresh(100 << 20, &["-O", "extra_attr,project_quota,quota"]);
    let all = blocks(&whole);
    let mut said = String::new();
    for (index, addr) in all.iter().enumerate() {
        let content = whole.block(*addr);
        // The head is the first KiB of the file, the numbers are in the sixth.
        let end = if index == 0 { 4096 } else { 1024 };
        for at in (if index == 0 { 1024 } else { 0 }..end).filter(|at| content[*at] != 0) {
            let image = whole.copy();
            image.edit(*addr, |block| block[at] ^= 0x40);
            let report = image.check();
            assert!(report.has(FindingKind::QuotaFile), "byte {at} of block {index}");
            said += &report.to_string();
        }
    }
    // Upwards all of it leads out of the file.
    assert_eq!(said.matches("the tree leads to block").count(), 4, "{said}");
    // The block of the numbers is there, and has those of nobody.
    let image = whole.copy();
    image.edit(all[1], |block| block[1024..].fill(0));
    let report = image.check();
    assert!(report.to_string().contains("no numbers where the tree leads for identifier"), "{report}");
    assert!(!image.fsck().is_clean());
}

//! Quota files that cannot be read.

use std::fmt::Write;
use std::process::{Command, Stdio};

use f2fs_format::superblock::SuperBlock;
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, Nid};

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

/// Lets fsck.f2fs count the quotas: its exit status, what it says, and the volume then.
fn counted_by_fsck(image: &Image) -> (Option<i32>, String, Image) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    image.device.save(&path).unwrap();
    let output = Command::new("fsck.f2fs").arg("-f").arg(&path).stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), Image::load(&path))
}

/// A slot of the inode that lost its address: fsck.f2fs counts anew in a block that is there, and in no other.
#[test]
fn a_quota_file_that_lost_a_block_has_one_again() {
    let whole = image::filled(&["-O", "extra_attr,project_quota,quota"]);
    // So full that fsck.f2fs takes no free segment any more.
    let segments = whole.geometry.main_segments;
    whole.edit_checkpoint(|checkpoint| {
        let header = &mut checkpoint.header;
        let reserved = header.free_segment_count.get() - 1;
        (header.rsvd_segment_count, header.overprov_segment_count) = (reserved.into(), (reserved + 6).into());
        header.user_block_count = (u64::from(segments - reserved - 6) * u64::from(BLOCKS_PER_SEGMENT)).into();
    });
    let (status, output, whole) = counted_by_fsck(&whole);
    assert!(status == Some(0) && whole.check().is_clean(), "{status:?}\n{output}\n{}", whole.check());
    let sb = SuperBlock::read(&whole.block(BlockAddr(0)));
    let mut failed = String::new();
    for ino in sb.qf_ino.map(Nid::from).into_iter().filter(|ino| !ino.is_null()) {
        for slots in [&[0][..], &[1], &[0, 1]] {
            let image = whole.copy();
            image.edit_node(ino, |node| {
                for slot in slots {
                    assert!(node.set_address(*slot, BlockAddr::NULL, image.geometry.features));
                }
            });
            let device = std::sync::Arc::new(image.device.snapshot());
            let planned = repair::plan(&(device.clone() as _), &CheckOptions::default()).unwrap();
            let said = format!("{ino}, {slots:?}: {:?}\n{}", planned.actions, planned.after);
            assert!(!planned.after.needs_repair(), "{said}");
            planned.apply(&*device).unwrap();
            let image = Image { device: device.snapshot(), geometry: whole.geometry.clone() };
            let (status, output, counted) = counted_by_fsck(&image);
            let report = counted.check();
            if status != Some(0) || !report.is_clean() || !counted.fsck().is_clean() {
                writeln!(failed, "{status:?}, {said}\n{report}\n{output}").unwrap();
            }
        }
    }
    assert!(failed.is_empty(), "{failed}");
}

#[test]
fn a_quota_file_has_one_link() {
    let whole = image::fresh(100 << 20, &["-O", "extra_attr,project_quota,quota"]);
    let sb = SuperBlock::read(&whole.block(BlockAddr(0)));
    for links in [0, 2, 1 << 20] {
        let image = whole.copy();
        let ino = Nid::from(sb.qf_ino[1]);
        image.edit_node(ino, |node| node.inode_mut().i_links = links.into());
        let report = image.check();
        assert!(report.has(FindingKind::Links), "{links}: {report}");
        let device = std::sync::Arc::new(image.device.snapshot());
        let planned = repair::plan(&(device.clone() as _), &CheckOptions::default()).unwrap();
        assert!(!planned.after.needs_repair(), "{links}: {}", planned.after);
        planned.apply(&*device).unwrap();
        let image = Image { device: device.snapshot(), geometry: whole.geometry.clone() };
        assert_eq!(image.node(ino).inode().i_links.get(), 1, "{:?}", planned.actions);
    }
}

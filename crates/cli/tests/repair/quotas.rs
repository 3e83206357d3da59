//! Quotas, which only fsck.f2fs counts.

use super::*;

#[test]
fn quotas_of_a_repaired_volume_are_to_be_counted_anew() {
    const ROOT: u32 = 3;
    let place = Place::new();
    f2fs_oracle::mkfs(&place.image, &["-f", "-O", "extra_attr,quota"]).unwrap();
    let sound = place.bytes();
    assert_eq!(place.ok(&["check", "--repair"], &[]), "");
    assert!(place.bytes() == sound);

    place.edit_inode(ROOT, |node| node.inode_mut().i_links = 7.into());
    let (said, _) = place.code(&["check", "--repair"], &[], 1);
    assert_eq!(lines(&said, "left: quotas"), 1, "{said}");
    // That is told, is no damage, and is nothing that another repair changes.
    let repaired = place.bytes();
    assert!(place.ok(&["check"], &[]).starts_with("quotas"));
    assert_eq!(lines(&place.ok(&["check", "--repair"], &[]), "left: quotas"), 1);
    assert!(place.bytes() == repaired);
    // fsck.f2fs would take the mark away, and finds nothing else to do.
    let seen = f2fs_oracle::fsck(&place.image).unwrap();
    assert!(seen.findings.iter().all(|finding| finding.starts_with("Info: ")), "{seen:?}");
    assert!(seen.output.contains("quota_need_fsck"), "{seen:?}");
    let counted = Command::new("fsck.f2fs").arg("-f").arg(&place.image).stdin(Stdio::null()).output().unwrap();
    assert!(counted.status.success(), "{}", String::from_utf8_lossy(&counted.stdout));
    place.sound();
}

//! POSIX access control lists: users see `posix_acl_xattr` version 2, the volume holds the shorter form of F2FS
//! (`fs/f2fs/acl.c`), in which entries that need no id have none.

use crate::error::{BadAttribute, FsError};

const XATTR_VERSION: u32 = 2;
const DISK_VERSION: u32 = 1;
/// `ACL_USER` and `ACL_GROUP`: the entries with an id.
const WITH_ID: [u16; 2] = [0x02, 0x08];
/// `ACL_USER_OBJ`, `ACL_GROUP_OBJ`, `ACL_MASK`, `ACL_OTHER`.
const WITHOUT_ID: [u16; 4] = [OWNER, GROUP, MASK, OTHER];
const OWNER: u16 = 0x01;
const GROUP: u16 = 0x04;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

fn bad(size: usize) -> FsError {
    FsError::Attribute { why: BadAttribute::NotAnAcl, size, limit: 0 }
}

fn take<'a>(rest: &mut &'a [u8], len: usize, whole: usize) -> Result<&'a [u8], FsError> {
    let (head, tail) = rest.split_at_checked(len).ok_or_else(|| bad(whole))?;
    *rest = tail;
    Ok(head)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// From the user's form of an ACL to the stored one. Refuses the ACLs that the kernel refuses (`posix_acl_valid`).
pub(crate) fn to_disk(value: &[u8]) -> Result<Vec<u8>, FsError> {
    let mut rest = value;
    if take(&mut rest, 4, value.len())? != XATTR_VERSION.to_le_bytes() {
        return Err(bad(value.len()));
    }
    let mut disk = DISK_VERSION.to_le_bytes().to_vec();
    let (mut last, mut named, mut mask) = (0, false, false);
    while !rest.is_empty() {
        let entry = take(&mut rest, 8, value.len())?;
        let (tag, permissions) = (u16_at(entry, 0), u16_at(entry, 2));
        let with_id = WITH_ID.contains(&tag);
        // Owner, users, group, groups, mask, others, in this order, which is that of their tags; one of each but users
        // and groups.
        let in_place = tag > last || with_id && tag == last;
        let skipped = tag > OWNER && last < OWNER || tag > GROUP && last < GROUP;
        if !(with_id || WITHOUT_ID.contains(&tag)) || !in_place || skipped || permissions > 7 {
            return Err(bad(value.len()));
        }
        if with_id && entry[4..] == [0xff; 4] {
            return Err(bad(value.len()));
        }
        disk.extend_from_slice(if with_id { entry } else { &entry[..4] });
        last = tag;
        named |= with_id;
        mask |= tag == MASK;
    }
    if last != OTHER || named && !mask {
        return Err(bad(value.len()));
    }
    Ok(disk)
}

/// From the stored form of an ACL to the user's.
pub(crate) fn from_disk(value: &[u8]) -> Result<Vec<u8>, FsError> {
    let mut rest = value;
    if take(&mut rest, 4, value.len())? != DISK_VERSION.to_le_bytes() {
        return Err(bad(value.len()));
    }
    let mut seen = XATTR_VERSION.to_le_bytes().to_vec();
    while !rest.is_empty() {
        let short = take(&mut rest, 4, value.len())?;
        seen.extend_from_slice(short);
        let tag = u16_at(short, 0);
        if WITH_ID.contains(&tag) {
            seen.extend_from_slice(take(&mut rest, 4, value.len())?);
        } else if WITHOUT_ID.contains(&tag) {
            seen.extend_from_slice(&u32::MAX.to_le_bytes());
        } else {
            return Err(bad(value.len()));
        }
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        let entry =
            |tag: u16, perm: u16, id: u32| [&tag.to_le_bytes()[..], &perm.to_le_bytes(), &id.to_le_bytes()].concat();
        let seen = [
            XATTR_VERSION.to_le_bytes().to_vec(),
            entry(1, 7, u32::MAX),
            entry(2, 5, 1000),
            entry(4, 5, u32::MAX),
            entry(0x10, 7, u32::MAX),
            entry(0x20, 0, u32::MAX),
        ]
        .concat();
        let disk = to_disk(&seen).unwrap();
        assert_eq!(disk.len(), 4 + 4 * 4 + 8);
        assert_eq!(from_disk(&disk).unwrap(), seen);
        for cut in [0, 3, 5, disk.len() - 1] {
            assert!(from_disk(&disk[..cut]).is_err());
        }
        assert!(to_disk(&disk).is_err());
    }

    #[test]
    fn a_stored_list_that_cannot_be_is_an_error() {
        let version = DISK_VERSION.to_le_bytes();
        let short = |tag: u16| [&version[..], &tag.to_le_bytes(), &[7, 0]].concat();
        for bad in [&b""[..], &XATTR_VERSION.to_le_bytes(), &[0; 4], &short(64), &short(0), &short(2), &short(8)] {
            assert!(from_disk(bad).is_err(), "{bad:?}");
        }
        assert_eq!(from_disk(&version).unwrap(), XATTR_VERSION.to_le_bytes());
        for tag in WITHOUT_ID {
            assert_eq!(from_disk(&short(tag)).unwrap()[8..], [0xff; 4]);
        }
    }
}

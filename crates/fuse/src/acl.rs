//! POSIX access control lists as the protocol hands them on: what the kernel leaves to the file system. It enforces
//! them itself.
//!
//! A list is a version (2) and entries of tag, permissions and id, little endian (`struct posix_acl_xattr_entry`).

use f2fs_files::FsError;

pub(crate) const ACCESS: &[u8] = b"system.posix_acl_access";
pub(crate) const DEFAULT: &[u8] = b"system.posix_acl_default";

const HEADER: usize = 4;
const ENTRY: usize = 8;
const USER_OBJ: u16 = 0x01;
const GROUP_OBJ: u16 = 0x04;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

fn tag(entry: &[u8]) -> u16 {
    u16::from_le_bytes([entry[0], entry[1]])
}

/// Replaces the permissions of an entry with those that `change` makes of them.
fn with(entry: &mut [u8], change: impl FnOnce(u16) -> u16) {
    let now = u16::from_le_bytes([entry[2], entry[3]]);
    entry[2..4].copy_from_slice(&change(now).to_le_bytes());
}

/// Whether an attribute of this name is a list.
pub(crate) fn is_name(name: &[u8]) -> bool {
    name == ACCESS || name == DEFAULT
}

/// Whether a list has no entry, and means that there is none.
pub(crate) fn is_empty(list: &[u8]) -> Result<bool, FsError> {
    Ok(entries(list)?.next().is_none())
}

fn entries(list: &[u8]) -> Result<impl Iterator<Item = &[u8]>, FsError> {
    match list.get(HEADER..) {
        Some(entries) if entries.len() % ENTRY == 0 => Ok(entries.chunks_exact(ENTRY)),
        _ => Err(FsError::Invalid("the access control list has a wrong length")),
    }
}

/// The permission bits that go with a list, and whether they say all of it, so that the list need not be stored.
pub(crate) fn mode(list: &[u8]) -> Result<(u16, bool), FsError> {
    let (mut mode, mut mask, mut whole) = (0, None, true);
    for entry in entries(list)? {
        let permissions = u16::from_le_bytes([entry[2], entry[3]]) & 7;
        match tag(entry) {
            USER_OBJ => mode |= permissions << 6,
            GROUP_OBJ => mode |= permissions << 3,
            OTHER => mode |= permissions,
            MASK => (mask, whole) = (Some(permissions), false),
            _ => whole = false,
        }
    }
    Ok((mask.map_or(mode, |mask| mode & !0o070 | mask << 3), whole))
}

/// A list after the permission bits were set: owner, others, and mask or group get theirs.
pub(crate) fn set_mode(list: &[u8], mode: u16) -> Result<Vec<u8>, FsError> {
    let masked = entries(list)?.any(|entry| tag(entry) == MASK);
    let mut list = list.to_vec();
    for entry in list[HEADER..].chunks_exact_mut(ENTRY) {
        match tag(entry) {
            USER_OBJ => with(entry, |_| mode >> 6 & 7),
            OTHER => with(entry, |_| mode & 7),
            MASK => with(entry, |_| mode >> 3 & 7),
            GROUP_OBJ if !masked => with(entry, |_| mode >> 3 & 7),
            _ => {}
        }
    }
    Ok(list)
}

/// The inheritance of a new file from the default list of its directory: its own list, and its permission bits. The
/// bits asked for limit the list.
pub(crate) fn inherit(default: &[u8], asked: u16) -> Result<(Vec<u8>, u16), FsError> {
    let masked = entries(default)?.any(|entry| tag(entry) == MASK);
    let mut list = default.to_vec();
    for entry in list[HEADER..].chunks_exact_mut(ENTRY) {
        match tag(entry) {
            USER_OBJ => with(entry, |now| now & asked >> 6),
            OTHER => with(entry, |now| now & asked),
            MASK => with(entry, |now| now & asked >> 3),
            GROUP_OBJ if !masked => with(entry, |now| now & asked >> 3),
            _ => {}
        }
    }
    let bits = mode(&list)?.0;
    Ok((list, asked & !0o777 | bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(u16, u16)]) -> Vec<u8> {
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, permissions) in entries {
            list.extend(tag.to_le_bytes());
            list.extend(permissions.to_le_bytes());
            list.extend(7_u32.to_le_bytes());
        }
        list
    }

    #[test]
    fn bits_follow_lists_and_lists_bits() {
        let plain = list(&[(USER_OBJ, 6), (GROUP_OBJ, 4), (OTHER, 0)]);
        assert_eq!(mode(&plain).unwrap(), (0o640, true));
        let named = list(&[(USER_OBJ, 7), (2, 7), (GROUP_OBJ, 7), (MASK, 5), (OTHER, 1)]);
        assert_eq!(mode(&named).unwrap(), (0o751, false));
        let changed = set_mode(&named, 0o640).unwrap();
        assert_eq!(changed, list(&[(USER_OBJ, 6), (2, 7), (GROUP_OBJ, 7), (MASK, 4), (OTHER, 0)]));
        let (got, bits) = inherit(&named, 0o1644).unwrap();
        assert_eq!(got, list(&[(USER_OBJ, 6), (2, 7), (GROUP_OBJ, 7), (MASK, 4), (OTHER, 0)]));
        assert_eq!(bits, 0o1640);
        assert!(mode(&named[..9]).is_err() && mode(b"").is_err());
    }
}

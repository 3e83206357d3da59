//! A name of a directory entry with its hash, which is computed once however often the name is looked for.

use f2fs_format::dentry::check_name;
use f2fs_format::hash::dentry_hash;

use crate::FsError;

/// A name that a directory may have, or `..`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'a> {
    bytes: &'a [u8],
    hash: u32,
    /// The bytes are those of an entry, and the hash is the one in the entry.
    stored: bool,
}

impl<'a> Name<'a> {
    /// The entry that leads to the parent. It belongs to no stripe.
    pub(crate) const PARENT: Name<'static> = Name { bytes: b"..", hash: 0, stored: true };

    /// # Errors
    /// [`FsError::Name`] if no entry can have the name: it is empty, too long, `.`, `..`, or has a slash or a zero
    /// byte.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Name<'a>, FsError> {
        check_name(bytes).map_err(FsError::Name)?;
        Ok(Name { bytes, hash: dentry_hash(bytes), stored: false })
    }

    /// The bytes and the hash of an entry of a directory whose names are encrypted or hashed without case. The bytes
    /// may be any.
    pub(crate) fn stored(bytes: &'a [u8], hash: u32) -> Name<'a> {
        Name { bytes, hash, stored: true }
    }

    /// Whether an entry with just this hash and these bytes is meant, whatever the form of the directory's names.
    pub(crate) fn is_stored(&self) -> bool {
        self.stored
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its [`dentry_hash`], or the hash that an entry states.
    pub(crate) fn hash(&self) -> u32 {
        self.hash
    }

    pub(crate) fn is_parent(&self) -> bool {
        self.bytes == b".."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whether_it_was_given_or_is_that_of_an_entry() {
        let given = Name::new(b"name").unwrap();
        assert_eq!((given.bytes(), given.hash(), given.is_stored()), (&b"name"[..], dentry_hash(b"name"), false));
        let stored = Name::stored(b"name", 77);
        assert_eq!((stored.bytes(), stored.hash(), stored.is_stored()), (&b"name"[..], 77, true));
        assert!(Name::PARENT.is_parent() && Name::PARENT.is_stored() && Name::stored(b"..", 1).is_parent());
        assert!(!given.is_parent() && !stored.is_parent());
        for bad in [&b""[..], b".", b"..", b"a/b", b"a\0", &[b'n'; 256]] {
            assert!(matches!(Name::new(bad), Err(FsError::Name(_))), "{bad:?}");
        }
    }
}

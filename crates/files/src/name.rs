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

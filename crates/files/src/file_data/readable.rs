//! Files whose data cannot be read.

use f2fs_format::encryption::EncryptionPolicy;

use super::FileData;
use crate::FsError;
use crate::inode::Inode;
use crate::xattr::Attributes;

impl FileData<'_> {
    /// Refuses a file whose data cannot be read at all.
    #[inline]
    pub(crate) fn require_readable(&self, inode: &Inode) -> Result<(), FsError> {
        if inode.form.encrypted {
            return Err(FsError::Encrypted { ino: inode.ino, policy: self.encryption_policy(inode)? });
        }
        Ok(())
    }

    fn encryption_policy(&self, inode: &Inode) -> Result<Option<EncryptionPolicy>, FsError> {
        let _xattrs = inode.xattrs.read();
        let _gate = self.volume.begin_read();
        Ok(EncryptionPolicy::of(&Attributes(self).xattrs(inode)?))
    }
}

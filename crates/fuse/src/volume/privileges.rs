//! What a file loses of its privileges when somebody changes it: set-id bits, and capabilities.
//!
//! No locks of its own. Whether an inode may have capabilities is said by one flag of it, so that writes of files
//! without any write no line that others read.

use f2fs_files::{FileKind, FsError, Metadata, SetAttributes};
use f2fs_sync::atomic::Ordering;

use super::Mounted;
use crate::caller::Caller;
use crate::table::Known;

pub(super) const CAPABILITIES: &[u8] = b"security.capability";

impl Mounted {
    /// Takes set-id bits and capabilities from a file that somebody writes to. The kernel would go on to run the file
    /// with the rights that it had, because the answer to a write has no permissions.
    pub(super) fn drop_privileges(&self, caller: Caller, known: &Known) -> Result<(), FsError> {
        let inode = &known.inode;
        if let Some(permissions) = without_privileges(&inode.metadata()?, caller) {
            inode.set_attributes(&SetAttributes::default().permissions(Some(permissions)))?;
            if let Some(kernel) = self.kernel.get() {
                kernel.forget_attributes(self.table.number(inode.ino().0.into()));
            }
        }
        drop_capabilities(known)
    }
}

/// Takes capabilities from a file, whoever changes it. A file of which it is known that it has none is not looked at.
pub(super) fn drop_capabilities(known: &Known) -> Result<(), FsError> {
    if known.inode.kind() != FileKind::Regular || !known.capable.load(Ordering::Acquire) {
        return Ok(());
    }
    // In front of the look: who sets them meanwhile says so behind it.
    known.capable.store(false, Ordering::Relaxed);
    match known.inode.xattr(CAPABILITIES).and_then(|_| known.inode.remove_xattr(CAPABILITIES)) {
        Ok(()) | Err(FsError::NoAttribute) => Ok(()),
        Err(error) => {
            known.capable.store(true, Ordering::Relaxed);
            Err(error)
        }
    }
}

/// The permissions without set-id bits, if there are any. Those of a directory mean something else.
pub(super) fn without_privileges(data: &Metadata, caller: Caller) -> Option<u16> {
    let mut left = data.permissions & !0o4000;
    // Without the group's right to execute the bit means something else. It is left to those who could set it.
    if left & 0o010 != 0 || left & 0o2000 != 0 && caller.uid != 0 && !caller.is_in(data.gid) {
        left &= !0o2000;
    }
    (data.kind != FileKind::Directory && left != data.permissions).then_some(left)
}

//! Changes of entries: each is made in its directory, which then stands on the list of directories that the next
//! checkpoint writes.

use f2fs_format::Nid;
use f2fs_format::dentry::FileType;
use f2fs_sync::Arc;
use f2fs_volume::Op;

use super::Namespace;
use crate::FsError;
use crate::directory::Located;
use crate::inode::Inode;
use crate::name::Name;
use crate::stat::FileKind;

impl Namespace<'_> {
    /// Adds a name that is not there. The caller holds its stripe exclusively. On an error nothing was added.
    pub(crate) fn add_entry(
        &self,
        op: &Op<'_>,
        parent: &Arc<Inode>,
        name: Name<'_>,
        ino: Nid,
        kind: FileKind,
    ) -> Result<(), FsError> {
        let added = parent.directory()?.add(op, name, ino, file_type(kind), self.now());
        self.note(op, parent, name);
        self.dirty_directories.add(parent);
        added
    }

    /// Removes a name. The caller holds its stripe exclusively; `located` is where it was found since, if anybody
    /// looked.
    ///
    /// # Errors
    /// [`FsError::NotFound`] if it is not there.
    pub(crate) fn remove_entry(
        &self,
        op: &Op<'_>,
        parent: &Arc<Inode>,
        name: Name<'_>,
        located: Option<&Located>,
    ) -> Result<(), FsError> {
        let removed = parent.directory()?.remove(op, name, located, self.now());
        self.note(op, parent, name);
        self.dirty_directories.add(parent);
        removed?.map(|_| ()).ok_or(FsError::NotFound)
    }

    /// Lets a name, or `..`, name another inode. The caller holds the name's stripe exclusively; for `..` the page is
    /// enough. Tells whether the name is there.
    pub(crate) fn redirect_entry(
        &self,
        op: &Op<'_>,
        parent: &Arc<Inode>,
        name: Name<'_>,
        ino: Nid,
        kind: FileKind,
    ) -> Result<bool, FsError> {
        let redirected = parent.directory()?.redirect(op, name, ino, file_type(kind), self.now());
        self.note(op, parent, name);
        self.dirty_directories.add(parent);
        redirected
    }

    /// Tells the volume that a name changed. `..` goes with the name of the directory that it stands in.
    fn note(&self, op: &Op<'_>, parent: &Inode, name: Name<'_>) {
        if parent.form.has_foreign_names() || (name.is_stored() && !name.is_parent()) {
            self.volume.syncs().note_foreign_name(op);
        } else if !name.is_parent() {
            self.volume.syncs().note_name(op, parent.ino, name.bytes());
        }
    }
}

fn file_type(kind: FileKind) -> FileType {
    FileType::from_mode(kind.to_mode())
}

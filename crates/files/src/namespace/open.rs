//! Opening a file by its path.

use crate::FsError;
use crate::close::Left;
use crate::free::InodeEnds;
use crate::inode::Inode;
use crate::namespace::Namespace;
use crate::namespace::path::split;
use crate::namespace::rename::Place;
use crate::open_files::{KeptOpen, Opened};
use crate::stat::FileKind;

impl<'a> Namespace<'a> {
    /// Opens the regular file that a path means. `None`: it means none, or there is a symbolic link on the way.
    pub(crate) fn open(&self, path: &[u8]) -> Result<Option<Opened>, FsError> {
        let Some((parent, name)) = split(path) else { return Ok(None) };
        let Some(parent) = self.cached_directory(parent)? else { return Ok(None) };
        if let Some(kept) = self.open_files.get(&parent, name) {
            return Ok(Some(Opened::Shared(kept)));
        }
        let mut surplus = None;
        let opened = self.with_child(&parent, name, |child, _| {
            if child.kind != FileKind::Regular {
                return Ok(None);
            }
            // A foreign name is one of many that mean the same: it would not be forgotten with the others. And where
            // damage has `..` lead to a file, nobody ever takes that name away.
            let is_forgotten = !parent.form.has_foreign_names() && name != b"..";
            if !InodeEnds(self).open_handle(&child, is_forgotten)? {
                return Ok(Some(Opened::Own(child)));
            }
            let kept = KeptOpen::new(child);
            surplus = Some(Left { core: self.0, files: self.open_files.note(&parent, name, &kept) });
            Ok(Some(Opened::Shared(kept)))
        });
        // The stripe is free.
        drop(surplus);
        opened
    }

    /// Has all processors forget a name of `inode` that is about to go. The caller holds the name's stripe exclusively,
    /// and drops what it gets when the stripe is free.
    pub(crate) fn forget(&self, place: Place<'_>, inode: &Inode) -> Left<'a> {
        Left { core: self.0, files: self.open_files.forget(place.parent, place.name.bytes(), inode) }
    }
}

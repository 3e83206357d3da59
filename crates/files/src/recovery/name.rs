//! The name of a new file (`recover_dentry`).

use f2fs_format::inode::Inode as RawInode;
use f2fs_sync::Arc;

use crate::FsError;
use crate::inode::Inode;
use crate::name::Name;
use crate::namespace::Namespace;
use crate::recovery::RollForward;

impl RollForward<'_> {
    /// Puts the name that an inode of the chain carries into its directory; what stands there under the name goes.
    pub(super) fn recover_name(&self, inode: &Arc<Inode>, raw: &RawInode, new: bool) -> Result<(), FsError> {
        if !new {
            return Err(FsError::corrupt("inode that a sync marks as new", inode.ino.0.into(), 0, 0));
        }
        let len = raw.i_namelen.get();
        let name = raw
            .i_name
            .get(..len as usize)
            .ok_or_else(|| FsError::corrupt("i_namelen of a synced inode", len.into(), 1, raw.i_name.len() as u64))?;
        let parent = self.inode(raw.i_pino.into())?;
        let directory = parent.directory()?;
        let stored = directory.recovered_hash(name, raw.i_name.get(name.len()..).unwrap_or_default());
        // An encrypted name may be any bytes.
        let name = match stored {
            Some(hash) if parent.form.encrypted => Name::stored(name, hash),
            _ => Name::new(name)?,
        };
        match Namespace(self).exists(&parent, name)? {
            Some(ino) if ino == inode.ino => return Ok(()),
            Some(_) if stored.is_some() => {
                let what = "a synced name that another file has, in an encrypted or casefolded directory";
                return Err(FsError::Unsupported { ino: parent.ino, what });
            }
            Some(_) => Namespace(self).remove_tree(&parent, name)?,
            None => {}
        }
        let name = stored.map_or(name, |hash| Name::stored(name.bytes(), hash));
        self.change(|op| {
            Namespace(self).add_entry(op, &parent, name, inode.ino, inode.kind)?;
            let mut block = inode.node.write(op);
            block.inode_mut().i_pino = parent.ino.into();
            crate::namespace::create::set_name(block.inode_mut(), name.bytes());
            Ok(())
        })
    }
}

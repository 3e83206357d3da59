//! The mark of a file, hot or cold, that chooses the log of its data.

use f2fs_format::inode::advise;

use super::FileData;
use crate::inode::Inode;
use crate::temperature::Temperature;
use crate::{FsError, stat};

impl FileData<'_> {
    pub(crate) fn set_temperature(&self, inode: &Inode, temperature: Temperature) -> Result<(), FsError> {
        self.balance()?;
        self.change(|op| {
            let mut block = inode.node.write(op);
            let raw = block.inode_mut();
            raw.i_advise &= !(advise::COLD | advise::HOT);
            raw.i_advise |= match temperature {
                Temperature::Hot => advise::HOT,
                Temperature::Warm => 0,
                Temperature::Cold => advise::COLD,
            };
            inode.mark.set(raw.i_advise);
            stat::set_changed(raw, self.now());
            Ok(())
        })
    }
}

//! Damage that an opening works around.

use f2fs_format::Corruption;

/// Damage that was found when the volume was opened, in copies that were not needed because the other one is good.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// Which superblock is in use: the one in block 0 or in block 1.
    pub superblock_copy: u32,
    /// The fault of the other superblock.
    pub superblock: Option<Corruption>,
    /// The fault of the other checkpoint pack.
    pub pack: Option<Corruption>,
    /// The version of a checkpoint in that pack which is newer than the one in use. Its last block says so, which is
    /// written when all others are durable: no power cut leaves that. [`VolumeOptions::newest_only`] refuses to write to
    /// such a volume; a repair brings the checkpoint back.
    ///
    /// [`VolumeOptions::newest_only`]: crate::VolumeOptions::newest_only
    pub newer: Option<u64>,
}

//! How a file is stored, where that is not plainly. The crate's documentation lists the parts that are read.

use f2fs_format::encryption::{no_key_len, no_key_name};
use f2fs_format::feature::Features;
use f2fs_format::inode::{Inode as RawInode, advise, flags};

use crate::FsError;
use crate::stat::FileKind;

/// Bytes in front of the ciphertext of a symbolic link: its length (`struct fscrypt_symlink_data`).
const TARGET_HEADER: usize = 2;

/// How a file is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form {
    /// Its data, its names, or its target.
    pub(crate) encrypted: bool,
    /// A directory whose names are hashed without case.
    pub(crate) casefolded: bool,
    /// It stands for a device, and has no addresses.
    pub(crate) alias: bool,
    /// Blocks of a cluster of a compressed file; 0 for others.
    cluster: u16,
}

impl Form {
    /// The form of an inode that was checked.
    pub(crate) fn of(inode: &RawInode, features: Features) -> Form {
        let all = inode.i_flags.get();
        Form {
            encrypted: inode.i_advise & advise::ENCRYPT != 0,
            casefolded: all & flags::CASEFOLD != 0,
            alias: all & flags::DEVICE_ALIAS != 0 && features.contains(Features::DEVICE_ALIAS),
            cluster: inode.compression(features).map_or(0, |compression| compression.cluster_blocks() as u16),
        }
    }

    /// Blocks of a cluster of a compressed file.
    pub(crate) fn cluster(self) -> Option<u64> {
        (self.cluster != 0).then_some(self.cluster.into())
    }

    /// Whether names of such a directory are found otherwise than by their hash and their bytes.
    pub(crate) fn has_foreign_names(self) -> bool {
        self.encrypted || self.casefolded
    }

    /// The size of a symbolic link without its key; `size` is the stored one.
    pub(crate) fn target_size(self, size: u64) -> u64 {
        if self.encrypted { no_key_len((size as usize).saturating_sub(TARGET_HEADER)) as u64 } else { size }
    }

    /// The visible form of an encrypted symbolic link's target, which is stored like this.
    pub(crate) fn target(stored: &[u8]) -> Result<Vec<u8>, FsError> {
        let most = stored.len().saturating_sub(TARGET_HEADER);
        let Some((len, rest)) = stored.split_first_chunk().filter(|_| most > 0) else {
            return Err(FsError::corrupt("bytes of an encrypted target", stored.len() as u64, 3, 4096));
        };
        let len = usize::from(u16::from_le_bytes(*len));
        match rest.get(..len) {
            Some(target) if len > 0 => Ok(no_key_name(0, target)),
            _ => Err(FsError::corrupt("length of an encrypted target", len as u64, 1, most as u64)),
        }
    }
}

/// Refuses what the features of the volume, or its opening for writing, do not allow an inode to be.
pub(crate) fn check(
    ino: f2fs_format::Nid,
    inode: &RawInode,
    kind: FileKind,
    features: Features,
) -> Result<(), FsError> {
    let unsupported = |what| Err(FsError::Unsupported { ino, what });
    if inode.i_advise & (advise::ENCRYPT | advise::ENC_NAME) != 0 && !features.contains(Features::ENCRYPT) {
        return unsupported("encryption on a volume without it");
    }
    if inode.i_flags.get() & flags::CASEFOLD != 0 && !features.contains(Features::CASEFOLD) {
        return unsupported("case folding on a volume without it");
    }
    let compressed = inode.i_flags.get() & flags::COMPR != 0 && features.contains(Features::COMPRESSION);
    if compressed && kind == FileKind::Regular {
        return match inode.compression(features) {
            Some(compression) if compression.is_sound() => Ok(()),
            Some(compression) => Err(FsError::corrupt(
                "i_log_cluster_size of a compressed file",
                compression.log_cluster_size.into(),
                2,
                8,
            )),
            None => unsupported("a compressed file without the attributes for it"),
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_that_contradict_themselves_are_errors() {
        let form = Form { encrypted: true, ..Form::default() };
        let stored = [&16u16.to_le_bytes()[..], &[9; 16]].concat();
        let shown = Form::target(&stored).unwrap();
        assert_eq!((shown.len() as u64, &shown), (form.target_size(stored.len() as u64), &no_key_name(0, &[9; 16])));
        assert_eq!(Form::default().target_size(5), 5);
        for bad in [&b""[..], &[1], &[0, 0], &[0, 0, 9], &[17, 0, 9, 9], &[0xff, 0xff, 9]] {
            assert!(Form::target(bad).unwrap_err().is_corruption(), "{bad:?}");
        }
    }
}

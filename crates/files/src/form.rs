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
    /// It stands for a device: its cached extent is all that it has, and its addresses mean nothing.
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

    use f2fs_format::Nid;
    use f2fs_format::node::NodeBlock;

    fn inode(change: impl FnOnce(&mut RawInode)) -> NodeBlock {
        let mut node = NodeBlock::ZERO;
        change(node.inode_mut());
        node
    }

    #[test]
    fn a_form_is_what_flags_and_features_say() {
        let form = |change: &dyn Fn(&mut RawInode), features| Form::of(inode(change).inode(), features);
        let plain = Form::default();
        for features in [Features(0), Features::DEVICE_ALIAS, Features::CASEFOLD, Features::ENCRYPT] {
            assert_eq!(form(&|_| {}, features), plain, "{features:?}");
        }
        let other =
            |raw: &mut RawInode| (raw.i_flags, raw.i_advise) = ((!(flags::CASEFOLD | flags::DEVICE_ALIAS)).into(), !0);
        assert!(form(&other, Features(0)).encrypted && !form(&other, Features(0)).casefolded);
        assert_eq!(form(&|raw| raw.i_advise = !advise::ENCRYPT, Features::ENCRYPT), plain);
        let encrypted = form(&|raw| raw.i_advise = advise::ENCRYPT, Features::ENCRYPT);
        assert_eq!(encrypted, Form { encrypted: true, ..plain });
        let folded = form(&|raw| raw.i_flags = flags::CASEFOLD.into(), Features::CASEFOLD);
        assert_eq!(folded, Form { casefolded: true, ..plain });
        // Without the feature the flag says nothing.
        let alias = |raw: &mut RawInode| raw.i_flags = flags::DEVICE_ALIAS.into();
        assert_eq!(form(&alias, Features(0)), plain);
        assert_eq!(form(&alias, Features::DEVICE_ALIAS), Form { alias: true, ..plain });
        assert!(encrypted.has_foreign_names() && folded.has_foreign_names());
        assert!(!plain.has_foreign_names() && !Form { alias: true, ..plain }.has_foreign_names());
        assert_eq!((plain.cluster(), Form { cluster: 4, ..plain }.cluster()), (None, Some(4)));
    }

    #[test]
    fn a_form_that_the_volume_does_not_have_is_refused() {
        let looked =
            |change: &dyn Fn(&mut RawInode), kind, features| match check(Nid(7), inode(change).inode(), kind, features)
            {
                Ok(()) => "",
                Err(FsError::Unsupported { ino: Nid(7), what }) => what,
                Err(error) if error.is_corruption() => "corrupt",
                Err(error) => panic!("{error}"),
            };
        let regular = FileKind::Regular;
        assert_eq!(looked(&|_| {}, regular, Features(!0)), "");
        for mark in [advise::ENCRYPT, advise::ENC_NAME] {
            let marked = |raw: &mut RawInode| raw.i_advise = mark;
            assert_eq!(looked(&marked, regular, Features(!Features::ENCRYPT.0)), "encryption on a volume without it");
            assert_eq!(looked(&marked, regular, Features::ENCRYPT), "");
        }
        let folded = |raw: &mut RawInode| raw.i_flags = flags::CASEFOLD.into();
        let directory = FileKind::Directory;
        assert_eq!(looked(&folded, directory, Features(!Features::CASEFOLD.0)), "case folding on a volume without it");
        assert_eq!(looked(&folded, directory, Features::CASEFOLD), "");
        assert_eq!(looked(&|raw| raw.i_flags = (!flags::CASEFOLD).into(), regular, Features(0)), "");
        // A compressed file needs the attributes for it; for a directory the flag is what new files inherit.
        let compressed = |raw: &mut RawInode| raw.i_flags = flags::COMPR.into();
        let lacking = "a compressed file without the attributes for it";
        assert_eq!(looked(&compressed, regular, Features::COMPRESSION), lacking);
        assert_eq!(looked(&compressed, directory, Features::COMPRESSION), "");
        assert_eq!(looked(&compressed, regular, Features(0)), "");
        assert_eq!(looked(&|raw| raw.i_flags = (!flags::COMPR).into(), regular, Features(!0)), "");
        let clusters = |log: u8| {
            move |raw: &mut RawInode| {
                raw.i_mode = FileKind::Regular.to_mode().into();
                raw.i_flags = flags::COMPR.into();
                raw.i_inline = f2fs_format::inode::inline::EXTRA_ATTR;
                raw.extra_mut().i_extra_isize = (f2fs_format::inode::EXTRA_SIZE as u16).into();
                raw.extra_mut().i_log_cluster_size = log;
            }
        };
        let features = Features::COMPRESSION.union(Features::EXTRA_ATTR);
        assert_eq!(looked(&clusters(2), regular, features), "");
        assert_eq!(looked(&clusters(1), regular, features), "corrupt");
    }

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

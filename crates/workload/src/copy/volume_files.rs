//! What a copy leaves alone on the host.

use std::path::Path;

/// The files of the host that the volume itself lies on: its image, further devices, a journal. No copy into the volume
/// reads them, and none out of it replaces them, whatever names the volume holds.
#[derive(Clone, Debug, Default)]
pub struct VolumeFiles(Vec<Identity>);

/// A file's device and number, by any of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) device: u64,
    pub(super) ino: u64,
}

impl VolumeFiles {
    /// The files that these paths lead to; those that are not there are none.
    pub fn at<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> VolumeFiles {
        VolumeFiles(paths.into_iter().filter_map(|path| Identity::at(path.as_ref())).collect())
    }

    pub(super) fn has(&self, file: Identity) -> bool {
        self.0.contains(&file)
    }

    /// Whether an open file is one of them.
    pub fn has_open(&self, file: &std::fs::File) -> bool {
        file.metadata().is_ok_and(|found| self.has(Identity::of(&found)))
    }

    /// Whether a path leads to one of them.
    pub(super) fn has_at(&self, path: &Path) -> bool {
        !self.0.is_empty() && Identity::at(path).is_some_and(|file| self.has(file))
    }
}

impl Identity {
    fn at(path: &Path) -> Option<Identity> {
        std::fs::metadata(path).ok().as_ref().map(Identity::of)
    }

    pub(super) fn of(metadata: &std::fs::Metadata) -> Identity {
        use std::os::unix::fs::MetadataExt;

        Identity { device: metadata.dev(), ino: metadata.ino() }
    }
}

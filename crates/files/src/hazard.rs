//! Names whose place roll-forward must not fill.
//!
//! Roll-forward puts the name of a new file back, and takes away what stands there at the checkpoint. That is right if
//! that was unlinked, and wrong if it moved: the new name of the moved file is not durable, so its only durable one
//! would go. It is wrong as well if the file had several names: it would come back with some of them, as it never was.
//! And it cannot take away a directory that was not empty yet at the checkpoint. A new file under such a name is made
//! durable by a checkpoint, or with a journal by a record of all names.
//!
//! # Locking
//!
//! One mutex a stripe of the directories, held for a look-up; last in every order.

use std::collections::HashMap;

use f2fs_format::Nid;
use f2fs_sync::{Mutex, Striped, stripes_here};
use f2fs_volume::Volume;

const STRIPES: usize = if cfg!(loom) { 2 } else { 64 };
/// Names kept in a stripe; more make every name of the stripe's directories one to be careful with.
const MOST: usize = 4096;

/// The names that moved away, or were directories, and whose change is not durable.
#[derive(Debug)]
pub(crate) struct Hazards {
    stripes: Striped<Mutex<Names>>,
}

#[derive(Debug, Default)]
struct Names {
    /// The last version of the names at which one was noted: when it is durable they are forgotten.
    latest: u64,
    /// Directory and hash of the name, without a hash all names of it; and at which version it was noted.
    names: HashMap<(Nid, Option<u32>), u64>,
}

/// The versions of the names.
pub(crate) trait Versions {
    /// The version of changes that are made now.
    fn now(&self) -> u64;
    /// Whether changes of this version are durable.
    fn is_durable(&self, version: u64) -> bool;
}

impl Versions for Volume {
    fn now(&self) -> u64 {
        self.syncs().name_version()
    }

    fn is_durable(&self, version: u64) -> bool {
        self.syncs().is_name_version_durable(version)
    }
}

impl Hazards {
    pub(crate) fn new() -> Hazards {
        Hazards { stripes: Striped::new(stripes_here(STRIPES), |_| Mutex::new(Names::default())) }
    }

    /// Notes a name, or with `None` all names of a directory, that changes at this version of the names.
    pub(crate) fn note(&self, volume: &impl Versions, directory: Nid, hash: Option<u32>) {
        let mut names = self.stripes.stripe(&directory).lock();
        if volume.is_durable(names.latest) {
            names.names = HashMap::new();
        }
        names.latest = volume.now();
        if names.names.len() < MOST {
            let latest = names.latest;
            names.names.insert((directory, hash), latest);
        }
    }

    /// Whether a name, or all names of its directory, were noted at a version that is not durable.
    pub(crate) fn has(&self, volume: &impl Versions, directory: Nid, hash: u32) -> bool {
        let names = self.stripes.stripe(&directory).lock();
        let noted = |hash| names.names.get(&(directory, hash)).is_some_and(|version| !volume.is_durable(*version));
        !volume.is_durable(names.latest) && (names.names.len() >= MOST || noted(Some(hash)) || noted(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::formatted;

    /// The version of now, and the last one that is durable.
    struct At(u64, u64);

    impl Versions for At {
        fn now(&self) -> u64 {
            self.0
        }

        fn is_durable(&self, version: u64) -> bool {
            version <= self.1
        }
    }

    #[test]
    fn they_are_forgotten_when_they_are_durable_and_too_many_are_all() {
        let hazards = Hazards::new();
        hazards.note(&At(7, 6), Nid(3), Some(1));
        assert!(hazards.has(&At(7, 6), Nid(3), 1) && !hazards.has(&At(7, 6), Nid(3), 2));
        assert!(!hazards.has(&At(7, 6), Nid(4), 1));
        assert!(hazards.has(&At(8, 6), Nid(3), 1), "taken, and not durable yet");
        hazards.note(&At(8, 6), Nid(3), Some(2));
        assert!(!hazards.has(&At(8, 7), Nid(3), 1) && hazards.has(&At(8, 7), Nid(3), 2));
        assert!(!hazards.has(&At(9, 8), Nid(3), 2));
        hazards.note(&At(9, 8), Nid(3), None);
        assert!(hazards.has(&At(9, 8), Nid(3), 2) && !hazards.has(&At(10, 9), Nid(3), 2));
        (0..2 * MOST as u32).for_each(|hash| hazards.note(&At(10, 9), Nid(5), Some(hash)));
        assert!(hazards.has(&At(10, 9), Nid(5), u32::MAX) && !hazards.has(&At(11, 10), Nid(5), 1));
        // Those that were too many are gone with the first name that is noted when they are durable.
        hazards.note(&At(11, 10), Nid(5), Some(1));
        assert!(hazards.has(&At(11, 10), Nid(5), 1) && !hazards.has(&At(11, 10), Nid(5), 2));
    }

    #[cfg(not(any(loom, shuttle)))]
    #[test]
    fn a_name_that_moved_is_one_until_a_checkpoint() {
        use f2fs_format::hash::dentry_hash;

        use crate::{FileSystem, Options, RenameMode};

        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device, Options::new()).unwrap();
        let root = fs.root().unwrap().ino();
        let is_one = |name: &[u8]| fs.core.hazards.has(&fs.core.volume, root, dentry_hash(name));
        fs.create_file("/a", 0o644).unwrap();
        fs.checkpoint().unwrap();
        assert!(!is_one(b"a"));
        fs.rename("/a", "/b", RenameMode::Replace).unwrap();
        assert!(is_one(b"a") && !is_one(b"c"));
        fs.checkpoint().unwrap();
        assert!(!is_one(b"a"));
    }
}

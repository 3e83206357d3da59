//! Names whose place roll-forward must not fill.
//!
//! Roll-forward puts the name of a new file back, and takes away what stands there at the checkpoint. That is right if
//! that was unlinked, and wrong if it moved: the new name of the moved file is not durable, so its only durable one
//! would go. And it cannot take away a directory that was not empty yet at the checkpoint. A new file under such a name
//! is made durable by a checkpoint.
//!
//! # Locking
//!
//! One mutex a stripe of the directories, held for a look-up; last in every order.

use std::collections::HashSet;

use f2fs_format::Nid;
use f2fs_sync::{Mutex, Striped, stripes_here};

const STRIPES: usize = if cfg!(loom) { 2 } else { 64 };
/// Names kept in a stripe; more make every name of the stripe's directories one to be careful with.
const MOST: usize = 4096;

/// The names that moved away, or were directories, since the last checkpoint.
#[derive(Debug)]
pub(crate) struct Hazards {
    stripes: Striped<Mutex<Names>>,
}

#[derive(Debug, Default)]
struct Names {
    /// The epoch that these names are of: with the next checkpoint they are forgotten.
    epoch: u64,
    /// Directory and hash of the name; without a hash all names of it.
    names: HashSet<(Nid, Option<u32>)>,
}

impl Hazards {
    pub(crate) fn new() -> Hazards {
        Hazards { stripes: Striped::new(stripes_here(STRIPES), |_| Mutex::new(Names::default())) }
    }

    /// Notes a name, or with `None` all names of a directory.
    pub(crate) fn note(&self, epoch: u64, directory: Nid, hash: Option<u32>) {
        let mut names = self.stripes.stripe(&directory).lock();
        if names.epoch != epoch {
            *names = Names { epoch, names: HashSet::new() };
        }
        if names.names.len() < MOST {
            names.names.insert((directory, hash));
        }
    }

    /// Whether a name, or all names of its directory, were noted since the last checkpoint.
    pub(crate) fn has(&self, epoch: u64, directory: Nid, hash: u32) -> bool {
        let names = self.stripes.stripe(&directory).lock();
        names.epoch == epoch
            && (names.names.len() >= MOST
                || names.names.contains(&(directory, Some(hash)))
                || names.names.contains(&(directory, None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_forgets_them_and_too_many_are_all() {
        let hazards = Hazards::new();
        hazards.note(7, Nid(3), Some(1));
        assert!(hazards.has(7, Nid(3), 1) && !hazards.has(7, Nid(3), 2) && !hazards.has(7, Nid(4), 1));
        assert!(!hazards.has(8, Nid(3), 1));
        hazards.note(8, Nid(3), None);
        assert!(hazards.has(8, Nid(3), 2) && !hazards.has(7, Nid(3), 1));
        (0..2 * MOST as u32).for_each(|hash| hazards.note(9, Nid(5), Some(hash)));
        assert!(hazards.has(9, Nid(5), u32::MAX));
    }
}

//! Learning the names of a directory that was found on the device.
//!
//! Such a directory is searched level by level, two blocks of each. A stripe that has been searched so often that this
//! took about as long as reading its names does reads them: the entries of its hashes, in the blocks of the buckets that
//! these belong to. On the first levels those are all blocks, on the others one in as many as there are stripes. From
//! then on it [knows its names](super::names), as a stripe of a new directory does. So a directory in which nobody looks
//! for much costs nothing, and none costs more than twice.
//!
//! # Locking
//!
//! The caller holds the stripe, shared or exclusively, or no operation is under way: names of the stripe stay where they
//! are. Those of other stripes come and go in the same blocks meanwhile. The names are read with no lock held but that of
//! a page at a time, and put in place under the names' own lock.

use f2fs_format::dentry::DentryView;
use f2fs_format::hash::{block_index, buckets, locate_block};
use f2fs_volume::Volume;
use f2fs_volume::tree::present_blocks;

use super::Directory;
use super::names::Names;
use crate::FsError;

/// Searches of a stripe before its names are read, however few they are.
const LEAST: u64 = 4;

impl Directory {
    /// Notes that a name of this hash, whose stripe does not know its names, is about to be searched for; reads them, if
    /// that is due. Tells whether they are known now. A stripe whose names cannot be read is searched from then on.
    pub(super) fn learns(&self, volume: &Volume, hash: u32) -> bool {
        let enough = enough(self.depth(), self.dir_level, self.stripes.len());
        if !self.names(hash).read().is_due(enough) {
            return false;
        }
        let mut read = Names::default();
        let result = self.read_names(volume, self.stripe_of(hash), &mut read);
        if result.is_err() {
            read.forget(&self.shared.names);
        }
        self.names(hash).write().learn(read)
    }

    /// Notes all names of a stripe, and where they are.
    fn read_names(&self, volume: &Volume, stripe: usize, names: &mut Names) -> Result<(), FsError> {
        names.begin();
        let depth = self.depth();
        let end = block_index(depth, self.dir_level, 0);
        let mut block = 0;
        while block < end {
            let mut present = Vec::new();
            block = present_blocks(volume, &self.node, block, end, &mut present)?;
            for number in present {
                let Some((level, bucket)) = locate_block(number, self.dir_level) else { continue };
                let width = buckets(level, self.dir_level);
                let common = self.stripes.len().min(width as usize) - 1;
                if (bucket as usize ^ stripe) & common != 0 {
                    continue;
                }
                let Some(page) = self.page(volume, number)? else { continue };
                let data = page.data.read();
                if page.is_dead() {
                    continue;
                }
                for entry in DentryView::block(&data).entries() {
                    // Where entries are damaged a search may see others than are listed.
                    let entry = entry?;
                    let is_ours = self.stripe_of(entry.hash) == stripe && entry.hash % width == bucket;
                    if is_ours && !entry.is_dot() {
                        names.note(entry.hash, Some((number, entry.slot)), &self.shared.names);
                        if !names.is_known() {
                            return Ok(());
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// After how many searches a stripe of a directory reads its names. A search looks at two blocks of each level, and
/// takes an entry as read by a fraction of what noting it takes.
fn enough(depth: u32, dir_level: u8, stripes: usize) -> u64 {
    let (blocks, stripes) = (block_index(depth, dir_level, 0), stripes as u64);
    let read = blocks / stripes + blocks.min(2 * stripes);
    LEAST + 2 * read / u64::from(depth.max(1))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use f2fs_device::MemoryDevice;
    use f2fs_format::dentry::{DentryLayout, ENTRY_SIZE};

    use super::*;
    use crate::samples::formatted;
    use crate::{FileSystem, FsError, InodeRef, Options};

    const NAMES: u32 = 3000;

    fn name(number: u32) -> String {
        format!("name {number}{}", "-".repeat(number as usize % 40))
    }

    /// A volume with that many files in `/d`.
    fn volume() -> Arc<MemoryDevice> {
        let device = formatted(16 * 1024);
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        fs.create_dir("/d", 0o755).unwrap();
        (0..NAMES).for_each(|number| drop(fs.create_file(format!("/d/{}", name(number)), 0o644).unwrap()));
        fs.close().unwrap();
        device
    }

    fn open(device: &Arc<MemoryDevice>) -> (FileSystem, InodeRef) {
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        let dir = fs.inode_at("/d").unwrap();
        (fs, dir)
    }

    /// How many stripes know their names.
    fn known(dir: &InodeRef) -> usize {
        let directory = dir.inode().directory().unwrap();
        directory.stripes.iter().filter(|stripe| stripe.names.read().is_known()).count()
    }

    /// The stripes that the names fall into that are looked for: all, but on machines with very many processors.
    fn searched(dir: &InodeRef) -> std::collections::BTreeSet<usize> {
        let directory = dir.inode().directory().unwrap();
        let stripe = |number| directory.stripe_of(f2fs_format::hash::dentry_hash(name(number).as_bytes()));
        (0..2 * NAMES).map(stripe).collect()
    }

    /// Looks for names again and again until all stripes know theirs. The more stripes, the fewer searches come to each.
    fn look_until_known(dir: &InodeRef, mut look: impl FnMut()) {
        let searched = searched(dir).len();
        (0..64).find(|_| {
            look();
            known(dir) == searched
        });
        assert_eq!(known(dir), searched);
    }

    /// Looks for all names that there are below `NAMES`, and for as many that there are not.
    fn look(dir: &InodeRef, is_there: impl Fn(u32) -> bool) {
        for number in 0..2 * NAMES {
            let found = dir.lookup(name(number));
            let wanted = number < NAMES && is_there(number);
            match found {
                Ok(_) => assert!(wanted, "{number} is there"),
                Err(FsError::NotFound) => assert!(!wanted, "{number} is not there"),
                Err(error) => panic!("{number}: {error}"),
            }
        }
    }

    #[test]
    fn a_directory_that_was_found_knows_its_names_after_some_searches() {
        let device = volume();
        let (fs, dir) = open(&device);
        let (directory, budget) =
            (dir.inode().directory().unwrap(), dir.inode().directory().unwrap().shared.names.available_exact());
        let stripes = directory.stripes.len();
        assert!(directory.depth() > 3 && known(&dir) == 0);
        dir.lookup(name(1)).unwrap();
        assert_eq!(known(&dir), 0, "one look teaches nothing");
        look_until_known(&dir, || look(&dir, |_| true));
        let taken = budget - directory.shared.names.available_exact();
        assert!(
            (u64::from(NAMES)..u64::from(NAMES) + 64 * stripes as u64).contains(&taken),
            "{taken} names were taken"
        );

        // What changes then is known, too.
        (0..NAMES).step_by(3).for_each(|number| dir.remove_file(name(number)).unwrap());
        look(&dir, |number| number % 3 != 0);
        let file = dir.lookup(name(1)).unwrap();
        (0..NAMES).step_by(6).for_each(|number| dir.link(name(number), &file).unwrap());
        look(&dir, |number| number % 3 != 0 || number % 6 == 0);
        let shared = Arc::clone(&directory.shared);
        drop((file, dir));
        fs.close().unwrap();
        drop(fs);
        assert_eq!(shared.names.available_exact(), budget, "all of them were given back");
    }

    #[test]
    fn names_change_on_the_way_to_being_known() {
        let device = volume();
        let (fs, dir) = open(&device);
        let file = dir.lookup(name(1)).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (dir, file) = (&dir, &file);
                scope.spawn(move || {
                    for number in (thread..NAMES).step_by(4) {
                        if number % 2 == 0 {
                            dir.remove_file(name(number)).unwrap();
                        }
                        dir.link(name(number + NAMES), file).unwrap();
                        assert!(
                            dir.lookup(name(number + NAMES)).is_ok()
                                && dir.lookup(name(number)).is_ok() == (number % 2 != 0)
                        );
                    }
                });
            }
        });
        look_until_known(&dir, || {
            for number in 0..2 * NAMES {
                assert_eq!(dir.lookup(name(number)).is_ok(), number >= NAMES || number % 2 != 0, "{number}");
            }
        });
        drop((dir, file, fs));
    }

    #[test]
    fn without_a_budget_it_is_searched_for_good() {
        let device = volume();
        let (_fs, dir) = open(&device);
        let directory = dir.inode().directory().unwrap();
        let budget = directory.shared.names.available_exact();
        assert!(directory.shared.names.try_take(budget - 100));
        // The more stripes, the fewer searches come to each.
        let (stripes, searched) = (directory.stripes.len(), searched(&dir));
        (0..(stripes / 64).pow(2).clamp(1, 64)).for_each(|_| look(&dir, |_| true));
        assert!(known(&dir) < searched.len() && directory.shared.names.available_exact() <= 100);
        let due = |searches| searched.iter().any(|stripe| directory.stripes[*stripe].names.read().is_due(searches));
        assert!(!(1..1000).any(due), "a stripe counts on");
        look(&dir, |_| true);
    }

    #[test]
    fn a_damaged_stripe_is_searched_for_good_and_finds_what_it_can() {
        let (fs, dir) = open(&volume());
        let directory = dir.inode().directory().unwrap();
        let shared = Arc::clone(&directory.shared);
        let budget = shared.names.available_exact();
        // The length of one name becomes 0. The page stays in memory as long as it is held.
        let page = directory.page(&fs.core_ref().volume, 2).unwrap().unwrap();
        let slot = DentryView::block(&page.data.read()).entries().next().unwrap().unwrap().slot;
        let at = DentryLayout::BLOCK.entries_at + slot * ENTRY_SIZE + 8;
        page.data.write()[at..at + 2].fill(0);
        for _ in 0..2.max(directory.stripes.len() / 32) {
            let found = (0..NAMES).filter(|number| dir.lookup(name(*number)).is_ok()).count();
            assert_eq!(found, NAMES as usize - 1);
        }
        assert!((1..directory.stripes.len()).contains(&known(&dir)), "{} stripes know", known(&dir));
        drop((page, dir, fs));
        assert_eq!(shared.names.available_exact(), budget, "what was read in part was given back");
    }

    /// Entries that the hash does not lead to are not found, whether the names are known or not.
    #[cfg(feature = "baselines")]
    #[test]
    fn a_name_in_another_bucket_is_not_learned() {
        // With one stripe it learns from all buckets.
        let options = Options::new().directory_lock(crate::DirectoryLock::Whole);
        let fs = FileSystem::open(volume(), options).unwrap();
        let dir = fs.inode_at("/d").unwrap();
        let directory = dir.inode().directory().unwrap();
        // The first blocks of both buckets of a level change places.
        let pages = [2, 4].map(|block| directory.page(&fs.core_ref().volume, block).unwrap().unwrap());
        let [first, second] = pages.each_ref().map(|page| page.data.read().clone());
        (*pages[0].data.write(), *pages[1].data.write()) = (second, first);
        let lost = pages.iter().map(|page| DentryView::block(&page.data.read()).entries().count()).sum::<usize>();
        for _ in 0..2 {
            let found = (0..NAMES).filter(|number| dir.lookup(name(*number)).is_ok()).count();
            assert_eq!(found, NAMES as usize - lost);
        }
        assert_eq!(known(&dir), 1);
    }

    #[test]
    fn what_it_takes_follows_from_the_size() {
        assert_eq!(enough(1, 0, 64), LEAST + 4);
        assert!((20..80).contains(&enough(12, 0, 64)));
        // Nobody searches a sparse directory of the greatest depth so often.
        assert!(enough(63, 31, 64) > 50_000_000);
    }
}

//! A small volume, sound, to be damaged.

use std::path::PathBuf;
use std::sync::Arc;

use f2fs_files::{FileSystem, Options};
use f2fs_format::Geometry;
use f2fs_format::superblock::SuperBlock;

use super::damage::{Change, Damage, Patch, seal};
use super::readers::each_path;
use super::recipes;
use super::structures::{Kind, Structures};
use f2fs_device_test::SparseDevice;

/// Paths that are used at most.
const PATHS: usize = 24;

/// A small volume with every kind of structure in it.
#[derive(Debug)]
pub struct Base {
    device: SparseDevice,
    geometry: Geometry,
    /// Blocks that patches hit.
    used: Vec<u64>,
    structures: Structures,
    /// Paths for those who change the volume.
    names: Vec<PathBuf>,
}

impl Base {
    /// Volumes of different features: `kind` is reduced to how many there are.
    pub fn new(kind: u8) -> Base {
        Base::from_device(&recipes::small(kind))
    }

    /// Volumes on which files were synced after the last checkpoint. Most damage is to what the syncs wrote.
    pub fn synced(kind: u8) -> Base {
        let base = recipes::small(kind);
        let device = Arc::new(base.snapshot());
        recipes::sync_some(&device).expect("the volume has room");
        let mut found = Base::from_device(&device.frozen());
        let changed = |block: &u64| device.block(*block) != base.block(*block);
        let written: Vec<u64> = found.used.iter().copied().filter(changed).collect();
        assert!(written.len() > 20, "the chain has {} blocks", written.len());
        found.hit_mostly(&written, base.used());
        found
    }

    /// A volume of another program that was stopped behind syncs: most damage is to the chain of their nodes.
    pub fn stopped(device: &SparseDevice) -> Base {
        let mut found = Base::from_device(device);
        let mut chain: Vec<u64> = found.structures.places(Kind::Chain).iter().map(|place| place.block).collect();
        chain.dedup();
        found.hit_mostly(&chain, device.used());
        found
    }

    /// Three of four patches hit these blocks, and the rest the others.
    fn hit_mostly(&mut self, these: &[u64], others: Vec<u64>) {
        let times = (others.len() / these.len().max(1) * 3).max(1);
        self.used = these.iter().copied().cycle().take(these.len() * times).chain(others).collect();
    }

    /// The volume on a device.
    pub fn from_device(device: &SparseDevice) -> Base {
        let superblock = SuperBlock::read(&device.block(0));
        let geometry = Geometry::from_superblock(&superblock).expect("a sound superblock");
        let device = device.snapshot();
        let structures = Structures::of(&device);
        let mut names = Vec::new();
        {
            let reader = Arc::new(device.snapshot());
            let fs = FileSystem::open(reader, Options::new().read_only(true)).expect("a sound volume");
            each_path(&fs, |path, _| names.push(path.to_path_buf()));
        }
        names.retain(|path| path.as_os_str() != "/");
        // Those in front and those behind are of different directories.
        names.sort();
        let step = names.len().div_ceil(PATHS).max(1);
        let names = names.into_iter().step_by(step).collect();
        Base { used: device.used(), device, geometry, structures, names }
    }

    /// The volume with damage, its checksums put right.
    pub fn damaged(&self, patches: &[Patch]) -> Arc<SparseDevice> {
        self.with(patches.iter().cloned().map(Damage::Patch))
    }

    /// The volume with damage of any kind, its checksums put right.
    pub fn with(&self, damage: impl IntoIterator<Item = Damage>) -> Arc<SparseDevice> {
        let device = self.device.snapshot();
        let mut touched = Vec::new();
        for damage in damage {
            match damage {
                Damage::Patch(patch) => touched.push(patch.apply(&device, &self.used)),
                Damage::Change(change) => touched.extend(change.apply(&device, &self.structures)),
            }
        }
        touched.sort_unstable();
        touched.dedup();
        for block in touched {
            seal(&device, block, &self.device, &self.geometry);
        }
        Arc::new(device)
    }

    /// The volume as it is.
    pub fn device(&self) -> &SparseDevice {
        &self.device
    }

    /// The volume's structures of each kind.
    pub fn structures(&self) -> &Structures {
        &self.structures
    }

    /// Whether a change of a field changes anything.
    pub fn has(&self, change: &Change) -> bool {
        !self.structures.places(change.kind()).is_empty()
    }

    /// Paths of the volume.
    pub fn names(&self) -> &[PathBuf] {
        &self.names
    }
}

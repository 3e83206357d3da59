//! The volumes that inputs damage. Each is made when the first input asks for it.

use std::sync::{Arc, OnceLock};

use f2fs_format::feature::Features;
use f2fs_format::mkfs::FormatOptions;
use f2fs_volume::{Allocation, CostModel};

use crate::Input;
use crate::harness::Base;
use crate::harness::recipes::{SMALLEST, aged, shaped};
use crate::packed;
use f2fs_device_test::SparseDevice;

/// From this number on, an input means a volume of the second kind: one that was aged, or that the kernel made.
const OTHERS: u8 = 120;
/// Features of the volumes that have all that are written.
const ALL: u32 = Features::EXTRA_ATTR.0
    | Features::INODE_CHECKSUM.0
    | Features::SB_CHECKSUM.0
    | Features::INODE_CRTIME.0
    | Features::FLEXIBLE_INLINE_XATTR.0
    | Features::LOST_FOUND.0;

/// A volume, and how it is made.
struct Volume {
    make: fn() -> Base,
    made: OnceLock<Base>,
}

impl Volume {
    const fn new(make: fn() -> Base) -> Volume {
        Volume { make, made: OnceLock::new() }
    }

    fn get(&self) -> &Base {
        self.made.get_or_init(self.make)
    }
}

fn all_features() -> FormatOptions {
    FormatOptions::default().with_features(Features(ALL))
}

/// The usual ones, by their features.
static SMALL: [Volume; 6] = [
    Volume::new(|| Base::new(0)),
    Volume::new(|| Base::new(1)),
    Volume::new(|| Base::new(2)),
    Volume::new(|| Base::new(3)),
    Volume::new(|| Base::new(4)),
    Volume::new(|| Base::new(5)),
];

/// With a chain of nodes behind the checkpoint.
static SYNCED: [Volume; 3] =
    [Volume::new(|| Base::synced(0)), Volume::new(|| Base::synced(1)), Volume::new(|| Base::synced(2))];

/// Aged here.
static AGED: [Volume; 3] = [
    Volume::new(|| Base::from_device(&aged(Allocation::ssr(), &FormatOptions::default()))),
    Volume::new(|| Base::from_device(&aged(Allocation::selective_greedy(CostModel::sata_ssd()), &all_features()))),
    Volume::new(|| Base::from_device(&aged(Allocation::partial(CostModel::sata_ssd()), &FormatOptions::default()))),
];

/// Of other sizes, sections and zones.
static SHAPED: [Volume; 8] = [
    Volume::new(|| Base::from_device(&shaped(SMALLEST, &FormatOptions::default(), 0))),
    Volume::new(|| Base::from_device(&shaped(128, &FormatOptions::default().with_sections(2, 1), 1))),
    Volume::new(|| Base::from_device(&shaped(256, &all_features().with_sections(3, 2), 5))),
    Volume::new(|| Base::from_device(&shaped(512, &FormatOptions::default().with_sections(4, 4), 2))),
    Volume::new(|| {
        let mut options = all_features();
        (options.large_nat_bitmap, options.heap) = (true, true);
        Base::from_device(&shaped(1 << 10, &options.with_sections(1, 3), 3))
    }),
    Volume::new(|| Base::from_device(&shaped(64 << 10, &FormatOptions::default().with_sections(8, 2), 0))),
    Volume::new(|| Base::from_device(&shaped(1 << 20, &all_features(), 1))),
    // As large as a volume may be.
    Volume::new(|| Base::from_device(&shaped((16 << 20) - 2, &FormatOptions::default(), 5))),
];

fn of(volumes: &'static [Volume], number: u8) -> &'static Base {
    volumes[usize::from(number) % volumes.len()].get()
}

impl Input {
    /// A usual volume, one that was aged, or one of the kernel's.
    pub fn usual(&self) -> &'static Base {
        match self.base.checked_sub(OTHERS) {
            None => of(&SMALL, self.base),
            Some(number) if number % 2 == 0 => of(&AGED, number / 2),
            Some(number) => packed::closed(usize::from(number / 2)),
        }
    }

    /// A volume with files that were synced after its checkpoint, here or by the kernel.
    pub fn synced(&self) -> &'static Base {
        match self.base.checked_sub(OTHERS) {
            None => of(&SYNCED, self.base),
            Some(number) => packed::synced(number.into()),
        }
    }

    /// A volume of another geometry. The largest, for which everything takes longest (a second, for 16 TiB), are for
    /// few inputs.
    pub fn shaped(&self) -> &'static Base {
        match (self.base, self.choices.first()) {
            (255, Some(0)) => SHAPED[7].get(),
            (252..=254, _) => SHAPED[6].get(),
            (number, _) => of(&SHAPED[..6], number),
        }
    }

    /// A volume with the damage of this input.
    pub fn device(&self, base: &Base) -> Arc<SparseDevice> {
        base.with(self.damage.iter().cloned())
    }
}

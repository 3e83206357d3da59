//! The bits that a block can have.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

/// A set of state bits of a block, with the meanings of Btrfs' extent states where the names agree.
///
/// That a block is locked is not among them: locks are taken and given back by guards, and tested by
/// [`ExtentTable::locked`](crate::ExtentTable::locked).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Bits(u8);

impl Bits {
    /// No bit.
    pub const NONE: Bits = Bits(0);
    /// Changed in memory, not yet written.
    pub const DIRTY: Bits = Bits(1);
    /// Promised space that is allocated when the block is written.
    pub const DELALLOC: Bits = Bits(1 << 1);
    /// Memory holds the same as the file.
    pub const UPTODATE: Bits = Bits(1 << 2);
    /// Being written.
    pub const WRITEBACK: Bits = Bits(1 << 3);
    /// Allocated and never written.
    pub const NEW: Bits = Bits(1 << 4);
    /// For the table's user.
    pub const USER_0: Bits = Bits(1 << 5);
    /// For the table's user.
    pub const USER_1: Bits = Bits(1 << 6);
    /// For the table's user.
    pub const USER_2: Bits = Bits(1 << 7);
    /// Every bit.
    pub const ALL: Bits = Bits(u8::MAX);

    const NAMES: [&'static str; 8] =
        ["DIRTY", "DELALLOC", "UPTODATE", "WRITEBACK", "NEW", "USER_0", "USER_1", "USER_2"];

    /// The bits as a number, [`Bits::DIRTY`] lowest.
    #[must_use]
    pub const fn raw(self) -> u8 {
        self.0
    }

    /// The bits of a number.
    #[must_use]
    pub const fn from_raw(raw: u8) -> Bits {
        Bits(raw)
    }

    /// Whether there is no bit.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of the other's bits are in this set.
    #[must_use]
    pub const fn has_all(self, other: Bits) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether one of the other's bits is in this set.
    #[must_use]
    pub const fn has_any(self, other: Bits) -> bool {
        self.0 & other.0 != 0
    }

    /// With the bits of `set`, and then without those of `clear`, except where they are in both: those are set.
    #[must_use]
    pub const fn changed(self, set: Bits, clear: Bits) -> Bits {
        Bits((self.0 & !clear.0) | set.0)
    }

    /// The bits in each of eight bytes.
    pub(crate) const fn in_every_byte(self) -> u64 {
        self.0 as u64 * 0x0101_0101_0101_0101
    }
}

impl BitOr for Bits {
    type Output = Bits;

    fn bitor(self, other: Bits) -> Bits {
        Bits(self.0 | other.0)
    }
}

impl BitOrAssign for Bits {
    fn bitor_assign(&mut self, other: Bits) {
        self.0 |= other.0;
    }
}

impl BitAnd for Bits {
    type Output = Bits;

    fn bitand(self, other: Bits) -> Bits {
        Bits(self.0 & other.0)
    }
}

impl Not for Bits {
    type Output = Bits;

    fn not(self) -> Bits {
        Bits(!self.0)
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("NONE");
        }
        let names = Bits::NAMES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0).map(|(_, name)| *name);
        f.write_str(&names.collect::<Vec<_>>().join("|"))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn names_and_sets() {
        assert_eq!(format!("{:?}", Bits::DIRTY | Bits::NEW), "DIRTY|NEW");
        assert_eq!(format!("{:?}", Bits::NONE), "NONE");
        assert!(Bits::ALL.has_all(Bits::USER_2 | Bits::DELALLOC));
        assert!(!(Bits::ALL & !Bits::DIRTY).has_any(Bits::DIRTY));
        assert_eq!(Bits::DIRTY.changed(Bits::WRITEBACK, Bits::DIRTY), Bits::WRITEBACK);
        assert_eq!(Bits::DIRTY.changed(Bits::DIRTY, Bits::ALL), Bits::DIRTY);
        let mut bits = Bits::DIRTY;
        bits |= Bits::NEW;
        assert_eq!(bits, Bits::DIRTY | Bits::NEW);
    }
}

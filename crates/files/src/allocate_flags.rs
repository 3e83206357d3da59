//! The effects of `fallocate` on a range of a file.

use core::fmt;
use core::ops::BitOr;

/// The effect of [`File::allocate`](crate::File::allocate) on a range: the flags of Linux's `fallocate`, with the same
/// numbers.
///
/// | Flags | what becomes of the range | the size |
/// |---|---|---|
/// | none | holes get blocks that read as zeros | grows to the end of the range |
/// | [`KEEP_SIZE`](Self::KEEP_SIZE) | the same | stays |
/// | [`PUNCH_HOLE`](Self::PUNCH_HOLE) with [`KEEP_SIZE`](Self::KEEP_SIZE) | a hole; what is left of its first and last block is zeroed | stays |
/// | [`ZERO_RANGE`](Self::ZERO_RANGE) | blocks that read as zeros | grows to the end of the range |
/// | [`ZERO_RANGE`](Self::ZERO_RANGE) with [`KEEP_SIZE`](Self::KEEP_SIZE) | the same | stays |
///
/// All else is refused with `EOPNOTSUPP`, as Linux refuses it: in particular a hole without `KEEP_SIZE`, and flags of
/// Linux that are not named here (collapsing and inserting ranges).
///
/// ```
/// use f2fs_files::AllocateFlags;
///
/// let hole = AllocateFlags::PUNCH_HOLE | AllocateFlags::KEEP_SIZE;
/// assert_eq!(hole.bits(), 3);
/// assert!(hole.contains(AllocateFlags::KEEP_SIZE));
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct AllocateFlags(u32);

impl AllocateFlags {
    /// No flag: reserve blocks, and let the file grow.
    pub const NONE: AllocateFlags = AllocateFlags(0);
    /// The size stays (`FALLOC_FL_KEEP_SIZE`).
    pub const KEEP_SIZE: AllocateFlags = AllocateFlags(0x01);
    /// The range becomes a hole (`FALLOC_FL_PUNCH_HOLE`); only with [`KEEP_SIZE`](Self::KEEP_SIZE).
    pub const PUNCH_HOLE: AllocateFlags = AllocateFlags(0x02);
    /// The range becomes zeros, with blocks reserved for it (`FALLOC_FL_ZERO_RANGE`).
    pub const ZERO_RANGE: AllocateFlags = AllocateFlags(0x10);

    /// Flags by the number that Linux gives them; one that is not known is kept, and refused by
    /// [`File::allocate`](crate::File::allocate).
    #[must_use]
    pub const fn from_bits(bits: u32) -> AllocateFlags {
        AllocateFlags(bits)
    }

    /// The number that Linux gives these flags.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The same, with [`KEEP_SIZE`](Self::KEEP_SIZE) or without it.
    #[must_use]
    pub const fn keep_size(self, yes: bool) -> AllocateFlags {
        AllocateFlags(self.0 & !AllocateFlags::KEEP_SIZE.0 | yes as u32)
    }

    /// Whether all of `flags` are set.
    #[must_use]
    pub const fn contains(self, flags: AllocateFlags) -> bool {
        self.0 & flags.0 == flags.0
    }
}

impl BitOr for AllocateFlags {
    type Output = AllocateFlags;

    fn bitor(self, other: AllocateFlags) -> AllocateFlags {
        AllocateFlags(self.0 | other.0)
    }
}

impl fmt::Debug for AllocateFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(AllocateFlags, &str); 3] = [
            (AllocateFlags::KEEP_SIZE, "KEEP_SIZE"),
            (AllocateFlags::PUNCH_HOLE, "PUNCH_HOLE"),
            (AllocateFlags::ZERO_RANGE, "ZERO_RANGE"),
        ];
        let mut rest = self.0;
        let mut set = f.debug_set();
        for (flag, name) in NAMES {
            if self.contains(flag) {
                set.entry(&format_args!("{name}"));
                rest &= !flag.0;
            }
        }
        if rest != 0 {
            set.entry(&format_args!("{rest:#x}"));
        }
        set.finish()
    }
}

/// The meaning of a set of flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeChange {
    /// Reserve blocks.
    Reserve { keep_size: bool },
    /// Make a hole.
    Punch,
    /// Make zeros with blocks.
    Zero { keep_size: bool },
}

impl AllocateFlags {
    /// Their meaning; `None` for a set that Linux refuses, or that this library does not know.
    pub(crate) fn change(self) -> Option<RangeChange> {
        let keep_size = self.contains(AllocateFlags::KEEP_SIZE);
        match AllocateFlags(self.0 & !AllocateFlags::KEEP_SIZE.0) {
            AllocateFlags::NONE => Some(RangeChange::Reserve { keep_size }),
            AllocateFlags::PUNCH_HOLE if keep_size => Some(RangeChange::Punch),
            AllocateFlags::ZERO_RANGE => Some(RangeChange::Zero { keep_size }),
            _ => None,
        }
    }
}

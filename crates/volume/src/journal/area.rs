//! The fields that a volume keeps in the header of its journal.
//!
//! ```text
//!  0      8      16
//!  +------+------+
//!  | base | next |   little-endian; footer versions of checkpoints, 0: none
//!  +------+------+
//! ```

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The checkpoints that a journal knows of, by the version that node footers carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalArea {
    /// The one that its records build on; 0: it was never attached.
    pub base: u64,
    /// One that was about to be written; 0: none.
    pub next: u64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Raw {
    base: U64,
    next: U64,
}

impl JournalArea {
    /// As it lies in the journal's header.
    pub(crate) fn bytes(self) -> [u8; 16] {
        zerocopy::transmute!(Raw { base: self.base.into(), next: self.next.into() })
    }

    /// `None` if these bytes are nothing that a volume wrote. An empty area is that of a journal that was never
    /// attached.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<JournalArea> {
        if bytes.is_empty() {
            return Some(JournalArea { base: 0, next: 0 });
        }
        let raw = Raw::read_from_bytes(bytes).ok()?;
        Some(JournalArea { base: raw.base.get(), next: raw.next.get() })
    }
}

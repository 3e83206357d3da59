//! Names that stand twice in one directory.

use std::hash::{BuildHasher, RandomState};

/// Remembers a directory's names by a keyed 64-bit fingerprint: 16 bytes a name, and no image can aim for a collision,
/// because the key is drawn again for each check.
#[derive(Debug, Default)]
pub(super) struct Names {
    keys: RandomState,
    seen: Vec<(u64, NameAt)>,
}

/// Where a name stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NameAt {
    /// File block; `None` for inline dentries.
    pub(super) block: Option<u32>,
    /// Slot in it.
    pub(super) slot: u16,
}

impl Names {
    pub(super) fn add(&mut self, name: &[u8], at: NameAt) {
        self.seen.push((self.keys.hash_one(name), at));
    }

    /// The places of all names that stood somewhere before.
    pub(super) fn repeated(mut self) -> Vec<NameAt> {
        self.seen.sort_unstable();
        self.seen.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].1).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_repeated_names_are_found() {
        let mut names = Names::default();
        for slot in 0..2000u16 {
            names.add(format!("name-{}", slot % 1998).as_bytes(), NameAt { block: Some(0), slot });
        }
        let mut repeated = names.repeated();
        repeated.sort_unstable();
        assert_eq!(repeated, [1998, 1999].map(|slot| NameAt { block: Some(0), slot }));
    }
}

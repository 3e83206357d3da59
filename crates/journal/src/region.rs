//! A journal in persistent memory.

use f2fs_device::Claims;
use f2fs_pmem::{Durability, LINE, PersistentRegion};

use crate::{Gather, Medium, MediumError};

/// A region as a medium. Its grain is a line. Grains are stored past the cache, and one fence makes them durable; a
/// region that is not persistent memory ([`Durability::Sync`]) is synced behind the fence.
#[derive(Debug)]
pub struct RegionMedium<R> {
    region: R,
    claims: Claims,
}

impl<R: PersistentRegion> RegionMedium<R> {
    /// The region as a medium.
    #[must_use]
    pub fn new(region: R) -> Self {
        RegionMedium { region, claims: Claims::new() }
    }

    /// The region.
    #[must_use]
    pub fn region(&self) -> &R {
        &self.region
    }

    /// The region, back again.
    #[must_use]
    pub fn into_region(self) -> R {
        self.region
    }
}

/// An offset in memory. A number that does not fit is outside of every region.
fn address(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

impl<R: PersistentRegion> Medium for RegionMedium<R> {
    fn grain(&self) -> usize {
        LINE
    }

    fn bytes(&self) -> u64 {
        self.region.len() as u64
    }

    fn read_only(&self) -> bool {
        self.region.read_only()
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        Ok(self.region.load(address(offset), into)?)
    }

    fn write(&self, offset: u64, bytes: Gather<'_>) -> Result<(), MediumError> {
        let mut at = address(offset);
        // A line that lies in several slices is put together here; whole lines are stored from where they are.
        let (mut line, mut filled) = ([0; LINE], 0);
        for mut slice in bytes.slices() {
            if filled > 0 {
                let (first, rest) = slice.split_at(slice.len().min(LINE - filled));
                line[filled..filled + first.len()].copy_from_slice(first);
                filled += first.len();
                if filled < LINE {
                    continue;
                }
                self.region.store_nontemporal(at, &line)?;
                at += LINE;
                slice = rest;
            }
            let (whole, rest) = slice.split_at(slice.len() / LINE * LINE);
            if !whole.is_empty() {
                self.region.store_nontemporal(at, whole)?;
                at += whole.len();
            }
            line[..rest.len()].copy_from_slice(rest);
            filled = rest.len();
        }
        if filled > 0 {
            line[filled..].fill(0);
            self.region.store_nontemporal(at, &line)?;
        }
        Ok(())
    }

    fn persist(&self) -> Result<(), MediumError> {
        self.region.fence();
        if self.region.durability() == Durability::Sync {
            self.region.sync().map_err(MediumError::Sync)?;
        }
        Ok(())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use f2fs_pmem::MemoryRegion;

    use super::*;

    #[test]
    fn slices_of_any_lengths_are_stored_as_they_are() {
        let medium = RegionMedium::new(MemoryRegion::new(4096).unwrap());
        let bytes: Vec<u8> = (0..1000_u32).map(|at| (at % 251 + 1) as u8).collect();
        for (first, second, third) in [(40, 0, 0), (40, 24, 1), (40, 23, 1), (64, 64, 64), (1, 200, 300), (0, 129, 62)]
        {
            medium.write(0, Gather::from(&[0xff; 2048][..])).unwrap();
            let parts = [&bytes[first..first + second], &bytes[first + second..first + second + third]];
            medium.write(64, Gather::new(&bytes[..first], &parts, second + third)).unwrap();
            let all = first + second + third;
            let mut read = vec![0; all.next_multiple_of(64) + 64];
            medium.read(64, &mut read).unwrap();
            assert_eq!(read[..all], bytes[..all]);
            assert!(read[all..all.next_multiple_of(64)].iter().all(|byte| *byte == 0), "filled up with zeros");
            assert!(read[all.next_multiple_of(64)..].iter().all(|byte| *byte == 0xff), "and no further");
        }
        medium.read(4096, &mut [0]).unwrap_err();
        medium.write(u64::MAX / 64 * 64, Gather::from(&[1][..])).unwrap_err();
    }
}

//! A region in ordinary memory.

use std::io;

use crate::{Durability, PersistentRegion, RegionError, cpu, mapping::Mapping};

/// A region in ordinary memory, used by the same instructions as persistent memory. It ends with the process.
///
/// It stands in for persistent memory where only speed or plain function matters; what a power cut leaves is asked of a
/// `SimulatedRegion` of `f2fs-device-test`.
#[derive(Debug)]
pub struct MemoryRegion {
    mapping: Mapping,
}

impl MemoryRegion {
    /// `bytes` bytes (at least 1) that read as zeros, and take memory once they are written.
    ///
    /// # Errors
    /// Those of `mmap`: there are not so many addresses, or none was asked for.
    pub fn new(bytes: usize) -> io::Result<Self> {
        Ok(Self { mapping: Mapping::of_memory(bytes)? })
    }
}

impl PersistentRegion for MemoryRegion {
    fn len(&self) -> usize {
        self.mapping.len()
    }

    fn durability(&self) -> Durability {
        Durability::Volatile
    }

    fn load(&self, offset: usize, into: &mut [u8]) -> Result<(), RegionError> {
        self.mapping.load(offset, into)
    }

    fn store(&self, offset: usize, bytes: &[u8]) -> Result<(), RegionError> {
        self.mapping.store(offset, bytes)
    }

    fn store_nontemporal(&self, offset: usize, bytes: &[u8]) -> Result<(), RegionError> {
        self.mapping.store_nontemporal(offset, bytes)
    }

    fn expect_store(&self, offset: usize) {
        self.mapping.expect_store(offset);
    }

    fn write_back(&self, offset: usize, bytes: usize) -> Result<(), RegionError> {
        self.mapping.write_back(offset, bytes)
    }

    fn fence(&self) {
        cpu::fence();
    }
}

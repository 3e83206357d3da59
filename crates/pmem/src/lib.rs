//! Persistent memory for f2fs: regions of it, and a block device on them.
//!
//! | Item | What it is |
//! |---|---|
//! | [`PersistentRegion`] | bytes in the address space of the process: loads, stores, write-back of lines, fences |
//! | [`MemoryRegion`] | ordinary memory, for tests of function and of speed |
//! | [`simulated`] | a simulator of lines: what a power cut may leave |
//! | [`PmemDevice`] | a [`BlockDevice`](f2fs_device::BlockDevice) on a region: no system call on a read or write |

mod copy;
mod counted;
mod cpu;
mod device;
mod extents;
mod mapped;
mod mapping;
mod memory;
mod open;
mod region;
pub mod simulated;
mod sysfs;

pub use counted::{CountedRegion, LineCounts};
pub use cpu::WriteBack;
pub use device::PmemDevice;
pub use mapped::MappedRegion;
pub use memory::MemoryRegion;
pub use open::{Dax, OpenError, OpenOptions};
pub use region::{Durability, LINE, PersistentRegion, RegionError, WORD};

#[cfg(test)]
mod tests {
    /// A directory where the build lies, which is a disk: the usual one may be in memory.
    pub(crate) fn on_disk() -> tempfile::TempDir {
        let program = std::env::current_exe().unwrap();
        tempfile::tempdir_in(program.parent().unwrap()).unwrap()
    }
}

//! Persistent memory for f2fs: regions of it, and a block device on them.
//!
//! | Item | What it is |
//! |---|---|
//! | [`PersistentRegion`] | bytes in the address space of the process: loads, stores, write-back of lines, fences |
//! | [`MappedRegion`] | a file mounted with dax, or a character device `/dev/dax*`; any other file through its page cache |
//! | [`MemoryRegion`] | ordinary memory, for tests of function and of speed |
//! | [`PmemDevice`] | a [`BlockDevice`](f2fs_device::BlockDevice) on a region: no system call on a read or write |
//!
//! ```no_run
//! use f2fs_device::BlockDevice;
//! use f2fs_pmem::{OpenOptions, PmemDevice};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = PmemDevice::open("/mnt/dax/volume", OpenOptions::new())?;
//! println!("{}", device.info().description); // persistent memory, MAP_SYNC, clwb, /mnt/dax/volume
//! device.write_slice(7, b"durable when the call returns")?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is durable when
//!
//! ```text
//!  store ─────────► cache ──── write_back ──────────────────┐
//!                     └─ eviction, at any time ──► media    ├─ fence of the same thread ─► certainly on the media
//!  store_nontemporal ─► the processor's buffers ────────────┘
//!                     └─ at any time, in any order ─► media
//! ```
//! [`WORD`]s of 8 bytes are stored as a whole, and nothing larger is. Stores to one [`LINE`] through the cache reach
//! the media in their order; lines do so in any order; stores past the cache have no order before the fence. A fence
//! counts for the thread that makes it. That holds where [`durability`](PersistentRegion::durability) is
//! [`Durability::Fence`]: there `MAP_SYNC` makes the file system keep its own records of the file durable before a page
//! can be written. Elsewhere a fence only orders, and [`sync`](PersistentRegion::sync) is a system call.
//!
//! [`PmemDevice`] adds two promises: a completed write is durable, and the last word of a block reaches the media after
//! the rest of it. The effects of a tear on each structure of F2FS, and why they do no harm, are in `docs/PMEM.md`.
//!
//! # Locking model
//!
//! No lock is taken to read or write. [`FlushGate`](f2fs_device::FlushGate) makes flushes one where they are system
//! calls. Between processes, and between two openings in one, `flock` says who may open.
//!
//! # Unsafe code
//!
//! This crate is an unsafe leaf: the instructions that copy, write back and wait (`copy.rs`, `cpu.rs`), the mapping
//! (`mapping.rs`), and one ioctl (`extents.rs`). Each says why it is sound; they rest on two rules: a range is checked
//! before it becomes an address, and no reference to mapped bytes is ever made. Neither loom nor miri has instructions
//! of a processor: the simulator of lines in `f2fs-device-test`, which is safe code, judges the order of stores.

mod copy;
mod cpu;
mod device;
mod extents;
mod mapped;
mod mapping;
mod memory;
mod open;
mod region;
mod sysfs;

pub use cpu::WriteBack;
pub use device::PmemDevice;
pub use mapped::MappedRegion;
pub use memory::MemoryRegion;
pub use open::{Dax, OpenError, OpenOptions};
pub use region::{Durability, LINE, PersistentRegion, RegionError, WORD, check_range, lines, split_lines};

#[cfg(test)]
mod tests {
    /// A directory where the build lies, which is a disk: the usual one may be in memory.
    pub(crate) fn on_disk() -> tempfile::TempDir {
        let program = std::env::current_exe().unwrap();
        tempfile::tempdir_in(program.parent().unwrap()).unwrap()
    }
}

/// The example of the README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! FxMark in process: the metadata and block workloads of "Understanding Manycore Scalability of File Systems" (Min et
//! al., USENIX ATC 2016), through the library instead of system calls.
//!
//! | Workload | Before | An operation |
//! |---|---|---|
//! | `mwul` | files are made in private directories until no NID is free | unlink the next one of the worker's own directory |
//! | `mwum` | files are made in one directory until no NID is free | unlink the worker's next one there |
//! | `mwcl` | | create an empty file in the worker's own directory |
//! | `mwcm` | | create a file in the shared directory and write 4 KiB |
//! | `mwrl` | a file in each private directory | rename it within the directory |
//! | `mwrm` | files are made in private directories | move the next one into the shared directory |
//! | `drbl` | a file of 4 KiB in each private directory | read its block |
//! | `drbm` | a shared file with 8 MiB for each worker | read the first block of the worker's part |
//! | `drbh` | a shared file of 4 KiB | read its block |
//! | `dwol` | a file of 4 KiB in each private directory | overwrite its block |
//! | `dwom` | a shared file with 8 MiB for each worker | overwrite the first block of the worker's part |
//!
//! Names, the order (ascending) and what is done before are FxMark's (`src/MWUL.c` and so on); paths are full and
//! resolved from the root each time. The differences, and why:
//!
//! * Fixed work instead of fixed time: with more threads than processors, threads hardly overlap in a fixed time, and
//!   the rate is nonsense. The time is that from the first worker's start to the last one's end.
//! * FxMark's `mwul` and `mwum` create files until the volume has no more (`ENOSPC`); on the 250 GB SSD of the paper on
//!   CLUE that is when no NID is left. Here [`Setting::files`] are created, and the other free NIDs are
//!   [held](f2fs::FileSystem::hold_nids), so that the allocator is in the same state: none free until a checkpoint.
//!   Other numbers of free NIDs can be [set](Setting::free_nids).
//! * A checkpoint before the start stands for FxMark's `sync()`.
//! * No checkpoint comes in between unless the volume runs short of free segments; [`Measured::checkpoints`] tells.
//!   (Linux writes one after a minute, or when a tenth of the NIDs or a twentieth of the segments wait for it.)
//! * Threads are not bound to processors.
//!
//! ```
//! use std::sync::Arc;
//! use f2fs::device::MemoryDevice;
//! use f2fs_workload::fxmark::{Setting, Workload, run};
//!
//! let device = Arc::new(MemoryDevice::new(64 * 1024)); // 256 MiB
//! let setting = Setting { files: 1000, threads: 2, ..Setting::new(Workload::Mwul) };
//! let measured = run(device, &setting, &())?;
//! assert_eq!(measured.operations, 1000);
//! # Ok::<(), f2fs_workload::fxmark::FxmarkError>(())
//! ```
//!
//! [`run_in_directory`] does the same by system calls in a directory of a mounted file system, for comparison. Nothing is
//! done there about free NIDs, and its `syncfs` stands for the checkpoint.
//!
//! # What a measurement costs and holds
//!
//! Each operation is timed on its own: one look at the clock and one count in the worker's own histogram, about 40 ns.
//! The workers share the file system and nothing of the driver between the start and their end. Nodes stay in memory
//! ([`Setting::files`] of 4 KiB), as they would on the machines for which FxMark was made.
//!
//! # Locking model
//!
//! One lock, of the start line: workers wait there until all are ready and the volume is checkpointed. See [`line`].

mod directory;
mod error;
mod line;
mod measured;
mod names;
mod observer;
mod prepare;
mod race;
mod run;
mod setting;
mod system;
mod work;

pub use directory::run_in_directory;
pub use error::FxmarkError;
pub(crate) use line::StartLine;
pub use measured::{Fill, Measured};
pub use observer::Observer;
pub use run::{run, run_formatted, run_journaled};
pub use setting::{Setting, UnknownWorkload, Workload};

//! Persistent memory that a test can cut the power of: it knows the contents of every line that may have reached the
//! media.
//!
//! ```text
//!                       evicted at any time: any prefix of the line's stores
//!  store ───────────► in the cache ─────────────────────────────────────────┐
//!                         │ write-back by a thread: under way                ├──► media
//!                         └──────────► certain at a fence of that thread ────┤
//!  store, nontemporal ► in the thread's buffers: any part of its words ──────┤
//!                         └──────────► certain at a fence of that thread ────┘
//! ```
//! That is x86-TSO. Stores to one line through the cache reach the media in their order, in words of 8 bytes; lines do
//! so in any order. Stores past the cache are not ordered at all before their fence, not even within their line. A
//! fence counts for the thread that made it. Nothing else is assumed: no line is written whole, and a write-back that
//! no fence followed may have happened or not.
//!
//! [`SimulatedRegion`] is a region for whatever runs on one. [`SimulatedRegion::cut`] gives the [`PowerCut`] of this
//! moment, and [`SimulatedRegion::log`] all stores and fences, of which a [`Replay`] gives the cut at each. A cut
//! counts its states, lists them, or draws some by a seed. [`CountedRegion`] counts lines and fences instead. All of it
//! is safe code, and its results depend on the calls and the seed alone.
//!
//! ```
//! use f2fs_device_test::pmem::SimulatedRegion;
//! use f2fs_pmem::PersistentRegion;
//!
//! # fn main() -> Result<(), f2fs_pmem::RegionError> {
//! let region = SimulatedRegion::new(4096);
//! region.store(0, &1_u64.to_le_bytes())?; // a record
//! region.store(64, &1_u64.to_le_bytes())?; // and in another line the word that says it is there
//! // Nothing orders the two lines: the second may be on the media without the first.
//! let cut = region.cut();
//! assert_eq!(cut.states(), 4);
//! assert!(cut.all(4).any(|state| state.load_u64(64) == 1 && state.load_u64(0) == 0));
//! region.write_back(0, 72)?;
//! region.fence();
//! assert_eq!(region.cut().states(), 1);
//! # Ok(())
//! # }
//! ```

mod counted;
mod cut;
mod line;
mod lines;
mod log;
mod region;

pub use counted::{CountedRegion, LineCounts};
pub use cut::{PowerCut, State, WAYS};
pub use log::{Event, LineLog, Replay};
pub use region::SimulatedRegion;

//! Helpers that the benches share.

pub mod arguments;
#[cfg(f2fs_counting)]
pub mod cache_lines;
pub mod filled;
#[cfg(f2fs_manycore)]
pub mod manycore;
pub mod range_locks;
pub mod report;
pub mod scaling;
pub mod segments;
pub mod workers;

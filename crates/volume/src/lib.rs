//! F2FS volumes: superblock, checkpoint packs, node store, format and check.
#![forbid(unsafe_code)]

pub mod check;
pub mod format;

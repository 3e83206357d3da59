//! Workload drivers shared by the f2fs benches, examples and command
//!
//! * [`copy`]: trees in and out of a volume; what `f2fs put` and `f2fs get` do.
//! * [`manifest`]: a whole tree as text, one line per path; what `f2fs manifest` prints, of an image or of a directory.
//! * [`quickstart`]: a whole life of a volume, from format to check, with rates; what the example of that name runs.
//! * [`tree`]: scripts of file system operations that make and change trees of every kind of file, to be run alike by the
//!   kernel and by the library.
#![forbid(unsafe_code)]

pub mod copy;
pub mod manifest;
pub mod quickstart;
pub mod tree;

//! Volumes with arbitrary damage behind right checksums, and what is done with them: shared by the property tests and
//! the fuzz targets. Nothing here may panic, hang, or take memory without bound.
//!
//! | Module | What it has |
//! |---|---|
//! | `base`, `recipes` | the volumes, made as they are needed |
//! | `structures`, `damage` | where their structures stand, and changes of bytes and of fields |
//! | `readers`, `writers`, `mending` | what is done with them |

mod base;
mod damage;
mod mending;
mod readers;
pub mod recipes;
mod structures;
mod writers;

pub use base::Base;
pub use damage::{Change, Damage, Patch};
pub use mending::{repair, roll_forward};
pub use readers::{each_path, open_and_check, read_everything, walk};
pub use structures::{KINDS, Kind, Structures};
pub use writers::{Fault, Operations, at_once, change, change_by_two, change_on_failing, read_from_failing};

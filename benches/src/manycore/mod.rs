//! Workloads on a machine that is played (`f2fs_sync::manycore`): the production code on up to 128 virtual cores.
//!
//! | File | What it is |
//! |---|---|
//! | `play.rs` | a workload on so many cores |
//! | `reads.rs` | reads of one file through one tree of locked ranges, on a device of 440,000 requests a second |
//! | `pause.rs` | operations beside a checkpoint |
//! | `curve.rs` | a workload on several numbers of cores |
//! | `svg.rs` | curves as a picture |
//! | `validate.rs` | comparisons with what was measured, here and elsewhere |

pub mod curve;
pub mod pause;
mod play;
pub mod reads;
pub mod svg;
pub mod validate;

pub use crate::scaling::{Subject, Workload};
pub use curve::{Curve, Point, measure, measure_at};

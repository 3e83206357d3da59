//! Workloads on a machine that is played (`f2fs_sync::manycore`): the production code on up to 128 virtual cores.
//!
//! | File | What it is |
//! |---|---|
//! | `workload.rs` | the workloads, and what one of their operations takes on one thread of this project's machine |
//! | `volume.rs` | those on files, as FxMark has them |
//! | `nids.rs` | those on the table of nodes alone |
//! | `reads.rs` | reads of one file through one tree of locked ranges, on a device of 440,000 requests a second |
//! | `curve.rs` | a workload on several numbers of cores |
//! | `validate.rs` | comparisons with what was measured elsewhere |

pub mod curve;
pub mod nids;
pub mod reads;
pub mod validate;
pub mod volume;
pub mod workload;

pub use curve::{Curve, Point, measure};
pub use workload::{Subject, Workload};

//! What a volume must survive: a crash at every point, a fault at every request.
//!
//! | Module | What it does |
//! |---|---|
//! | [`tree`], [`op`] | the model: what a file system holds, and what operations do to it |
//! | [`base`], [`workload`] | where workloads begin, and what they do: enumerated, by chance, in several threads |
//! | [`record`](mod@record) | runs a workload and writes down what was promised when |
//! | [`explore`] | the states that a crash may leave, each opened, judged, used, and crashed again |
//! | [`judge`] | what may be on a volume after a crash, and what must be |
//! | [`campaign`] | many workloads, on all processors |
//! | [`faults`] | a fault at every request of a workload, and what it comes to |
//! | [`mutants`] | faults in the sources that the explorer must find |
//!
//! `cargo xtask crash` runs it.
//!
//! # Locking model
//!
//! Workloads are explored independently of each other; the results meet behind one mutex, which is held for adding numbers.
#![forbid(unsafe_code)]

pub mod base;
pub mod campaign;
pub mod explore;
pub mod faults;
pub mod judge;
pub mod mutants;
pub mod op;
pub mod random;
pub mod record;
pub mod tree;
pub mod workload;

/// Runs `work` with a rayon pool of one thread of its own: what it checks is checked on that thread, and nothing else is.
pub(crate) fn alone(work: impl FnOnce() + Send) {
    match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool.install(work),
        // The pool that all share does as well, a little slower.
        Err(_) => work(),
    }
}

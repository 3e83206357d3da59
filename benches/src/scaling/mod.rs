//! The workloads whose scaling is asked about: prepared for so many cores, and done operation by operation. The same
//! code is measured on threads of a real machine, and played on virtual cores (`manycore`).
//!
//! | File | What it is |
//! |---|---|
//! | `workload.rs` | the workloads by name, and what one of their operations takes on one thread |
//! | `apart.rs` | the device below the files |
//! | `files.rs` | those on files, as FxMark has them |
//! | `nids.rs` | those on the table of nodes alone |
//! | `locks.rs` | counters and locks whose behaviour is known |
//! | `real.rs` | their measurement on threads |
//! | `hardware.rs` | what the processors of this machine cost |

mod apart;
pub(crate) mod files;
#[cfg(not(f2fs_manycore))]
pub mod hardware;
mod locks;
mod nids;
pub mod real;
pub mod workload;

pub use workload::{Subject, Workload};

/// What a workload works on, and its operation.
pub trait Work: Send + Sync {
    /// A core does one of its operations, which are numbered from 0.
    fn operation(&self, core: usize, lap: u64);
}

/// Prepares a workload for so many cores, each of which will do so many operations. `on_core` runs what a core has to
/// prepare, as that core if it can.
///
/// # Panics
///
/// For a workload that exists on virtual cores only, and if something fails.
#[must_use]
pub fn prepare(subject: &Subject, cores: usize, laps: u64, on_core: &dyn Fn(usize, &mut dyn FnMut())) -> Box<dyn Work> {
    match subject.workload {
        Workload::Nids | Workload::NidsShort => Box::new(nids::Nids::new(subject, cores)),
        Workload::Counter | Workload::Padded | Workload::Spin | Workload::Mutex | Workload::Readers => {
            Box::new(locks::Locks::new(subject.workload))
        }
        Workload::Tree => panic!("the tree is played on virtual cores only"),
        _ => Box::new(files::Files::new(subject, cores, laps, on_core)),
    }
}

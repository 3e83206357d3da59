//! Shared by the fuzz targets: inputs, volumes, and the harness that the property tests of `f2fs-files` use as well.
#![forbid(unsafe_code)]

mod input;
pub mod packed;
pub mod seeds;
mod volumes;

pub use f2fs_test_kit::hostile as harness;
pub use input::Input;
use seeds::Seeds;

/// Steps of a target before its first input: it writes its seeds, and has checks run in the thread that asks for them.
/// Handing their parts to another thread would take longer than most parts do.
///
/// # Panics
/// If the seeds cannot be written, or threads were started before.
pub fn begin(all: &[Seeds]) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
    pool.build_global().expect("nothing was run before");
    seeds::write(all);
}

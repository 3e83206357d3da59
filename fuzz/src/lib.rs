//! What the fuzz targets share: inputs, and the harness that the property tests of `f2fs-files` use as well.
#![forbid(unsafe_code)]

#[allow(dead_code)] // each target uses a part
#[path = "../../crates/files/tests/harness/mod.rs"]
pub mod harness;

pub mod seeds;

use std::sync::OnceLock;

use arbitrary::{Arbitrary, Unstructured};
use harness::{Base, Patch};

/// What a target does before its first input: writes its seeds, and has checks run in the thread that asks for them. Handing
/// their parts to another thread would take longer than most parts do.
///
/// # Panics
/// If the seeds cannot be written, or threads were started before.
pub fn begin(target: &str) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
    pool.build_global().expect("nothing was run before");
    seeds::write(target);
}

/// A damaged volume, and what is done with it.
#[derive(Debug)]
pub struct Input {
    /// Which of the volumes.
    pub base: u8,
    /// The damage.
    pub patches: Vec<Patch>,
    /// The operations.
    pub choices: Vec<u8>,
}

impl Input {
    /// Reads an input from the fuzzer's bytes.
    pub fn decode(data: &[u8]) -> Option<Input> {
        let mut source = Unstructured::new(data);
        let base = u8::arbitrary(&mut source).ok()?;
        let count = source.int_in_range(1..=24).ok()?;
        let mut patches = Vec::new();
        for _ in 0..count {
            let (block, offset) = <(u16, u16)>::arbitrary(&mut source).ok()?;
            let len = source.int_in_range(1..=64).ok()?;
            let bytes = source.bytes(len).ok()?.to_vec();
            patches.push(Patch { block, offset, bytes });
        }
        Some(Input { base, patches, choices: source.take_rest().to_vec() })
    }

    /// The volume, with its damage.
    pub fn device(&self) -> std::sync::Arc<f2fs_device::MemoryDevice> {
        static BASES: OnceLock<Vec<Base>> = OnceLock::new();
        let bases = BASES.get_or_init(|| (0..6).map(Base::new).collect());
        bases[usize::from(self.base) % bases.len()].damaged(&self.patches)
    }

    /// A volume with files that were synced after its checkpoint, with its damage.
    pub fn synced_device(&self) -> std::sync::Arc<f2fs_device::MemoryDevice> {
        static BASES: OnceLock<Vec<Base>> = OnceLock::new();
        let bases = BASES.get_or_init(|| (0..3).map(Base::synced).collect());
        bases[usize::from(self.base) % bases.len()].damaged(&self.patches)
    }
}

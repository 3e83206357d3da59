//! Inputs to begin with: blocks of real volumes for the parsers, patches of single fields for the volumes, and steps of every
//! kind for the extent table and the zones.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use f2fs_device::BlockDevice;

use crate::Input;

/// Blocks that the parsers begin with.
const BLOCKS: usize = 200;

/// Writes the seeds of a target into the directory of inputs that the program was given, if it was given one.
///
/// # Panics
/// If they cannot be written.
pub fn write(target: &str) {
    let given = env::args_os().skip(1).map(PathBuf::from).find(|word| word.is_dir());
    let Some(corpus) = given else { return };
    let written = match target {
        "parsers" => blocks(&corpus),
        "extent" | "zones" => steps(&corpus),
        _ => patches(&corpus),
    };
    written.expect("the corpus can be written to");
}

fn blocks(corpus: &Path) -> io::Result<()> {
    let device = Input { base: 1, patches: Vec::new(), choices: Vec::new() }.device();
    let blocks = (0..device.info().blocks).filter_map(|at| Some((at, device.read(at, 1).ok()?)));
    let used = blocks.filter(|(_, block)| block.as_bytes().iter().any(|byte| *byte != 0));
    for (at, block) in used.take(BLOCKS) {
        for selector in [0, 1, 2, 3, 5, 6, 7] {
            fs::write(corpus.join(format!("block-{at}-{selector}")), [&[selector], block.as_bytes()].concat())?;
        }
    }
    Ok(())
}

fn patches(corpus: &Path) -> io::Result<()> {
    for number in 0..256u32 {
        let mut bytes = vec![number as u8, 0];
        for round in 0..3u32 {
            let mix = (number * 3 + round).wrapping_mul(0x9e37_79b9);
            bytes.extend_from_slice(&mix.to_le_bytes());
            bytes.push(4);
            bytes.extend_from_slice(&[(0xff_u32 >> (mix % 9)) as u8; 4]);
        }
        bytes.extend((0..40).map(|i| (number * 7 + i * 13) as u8));
        fs::write(corpus.join(format!("seed-{number}")), &bytes)?;
    }
    Ok(())
}

fn steps(corpus: &Path) -> io::Result<()> {
    for number in 0..64u32 {
        // The selector, and then choices that reach every kind of step, from few and from many.
        let choices =
            (0..600 + number * 20).map(|i| (i.wrapping_mul(2 * number + 1).wrapping_mul(0x9e37_79b9) >> 24) as u8);
        let bytes: Vec<u8> = std::iter::once(number as u8).chain(choices).collect();
        fs::write(corpus.join(format!("seed-{number}")), bytes)?;
    }
    Ok(())
}

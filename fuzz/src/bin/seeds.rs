//! Writes inputs to begin with into `corpus/TARGET` of the directory given: blocks of real volumes for the parsers, patches of
//! single fields for the other volumes, and steps of every kind for the extent table.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::Path;

use f2fs_device::BlockDevice;
use f2fs_fuzz::Input;

fn main() -> std::io::Result<()> {
    let root = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    let corpus = Path::new(&root).join("corpus");
    for target in ["open_check", "read_all", "use_corrupt", "roll_forward", "repair", "parsers", "extent"] {
        std::fs::create_dir_all(corpus.join(target))?;
    }
    let input = Input { base: 1, patches: Vec::new(), choices: Vec::new() };
    let device = input.device();
    let mut written = 0;
    for block in 0..device.info().blocks {
        let Ok(buffer) = device.read(block, 1) else { continue };
        let bytes = buffer.block(0);
        if written < 200 && bytes.iter().any(|byte| *byte != 0) {
            for selector in [0, 1, 2, 3, 5, 6, 7] {
                let path = corpus.join("parsers").join(format!("block-{block}-{selector}"));
                let mut file = std::fs::File::create(path)?;
                file.write_all(&[selector])?;
                file.write_all(bytes)?;
            }
            written += 1;
        }
    }
    for number in 0..256u32 {
        let mut bytes = vec![number as u8, 0];
        for round in 0..3u32 {
            let mix = (number * 3 + round).wrapping_mul(0x9e37_79b9);
            bytes.extend_from_slice(&mix.to_le_bytes());
            bytes.push(4);
            bytes.extend_from_slice(&[(0xff_u32 >> (mix % 9)) as u8; 4]);
        }
        bytes.extend((0..40).map(|i| (number * 7 + i * 13) as u8));
        for target in ["open_check", "read_all", "use_corrupt", "roll_forward", "repair"] {
            std::fs::write(corpus.join(target).join(format!("seed-{number}")), &bytes)?;
        }
    }
    for number in 0..64u32 {
        // The selector, and then choices that reach every kind of step, from few and from many.
        let choices =
            (0..600 + number * 20).map(|i| (i.wrapping_mul(2 * number + 1).wrapping_mul(0x9e37_79b9) >> 24) as u8);
        let bytes: Vec<u8> = std::iter::once(number as u8).chain(choices).collect();
        std::fs::write(corpus.join("extent").join(format!("seed-{number}")), &bytes)?;
    }
    Ok(())
}

//! Inputs to begin with: blocks of real volumes for the parsers, damage to every field of every kind of structure for
//! the volumes, and steps of every kind for the extent table, the zones and the journal.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use f2fs_device_test::Random;

use crate::harness::{Change, Damage, KINDS, Kind, Patch};
use crate::{Input, packed};

/// Of so many blocks of a packed volume, one is a seed of the parsers.
const EVERY: usize = 4;

/// Writes the seeds of a target into a directory of inputs.
pub type Seeds = fn(&Path) -> io::Result<()>;

/// Writes seeds into the directory of inputs that the program was given, if it was given one.
///
/// # Panics
/// If they cannot be written.
pub fn write(all: &[Seeds]) {
    let given = env::args_os().skip(1).map(PathBuf::from).find(|word| word.is_dir());
    let Some(corpus) = given else { return };
    for seeds in all {
        seeds(&corpus).expect("the corpus can be written to");
    }
}

/// Blocks of volumes that other programs made, as each structure that fills one.
///
/// # Errors
/// If they cannot be written.
pub fn blocks(corpus: &Path) -> io::Result<()> {
    for (volume, packed) in packed::CLOSED.iter().chain(&packed::SYNCED).enumerate() {
        for (at, block) in packed::blocks(packed).step_by(EVERY) {
            for selector in [0, 1, 2, 3, 5, 6, 7] {
                let name = format!("block-{volume}-{at}-{selector}");
                fs::write(corpus.join(name), [&[selector], &block[..]].concat())?;
            }
        }
    }
    Ok(())
}

fn mix(number: u64) -> u64 {
    Random::new(number).next()
}

/// Sound volumes, damaged bytes, and each field of every structure damaged once.
///
/// # Errors
/// If they cannot be written.
pub fn damages(corpus: &Path) -> io::Result<()> {
    let save = |name: String, input: &Input| fs::write(corpus.join(name), input.encode());
    let choices = |seed: u64| (0..40).map(|at| mix(seed * 64 + at) as u8).collect::<Vec<u8>>();
    // Sound volumes, which have to stay so.
    for base in (0..=247).step_by(13) {
        save(format!("sound-{base}"), &Input { base, choices: choices(base.into()), ..Input::default() })?;
    }
    // One of 1 TiB. The largest takes seconds, and comes when the fuzzer makes it.
    save("sound-254".into(), &Input { base: 254, choices: choices(254), ..Input::default() })?;
    for number in 0..64_u64 {
        let patch = |round: u64| {
            let mixed = mix(number * 3 + round);
            let bytes = vec![(0xff_u64 >> (mixed % 9)) as u8; 4];
            Damage::Patch(Patch { block: (mixed >> 8) as u16, offset: (mixed >> 24) as u16, bytes })
        };
        let damage = (0..3).map(patch).collect();
        save(format!("patch-{number}"), &Input { base: number as u8 * 4, damage, choices: choices(number) })?;
    }
    // Each field once.
    for (kind, fields) in KINDS.iter().map(|kind| kind.fields().len()).enumerate() {
        for field in 0..fields {
            let mixed = mix((kind * 64 + field) as u64);
            let damage = vec![Damage::Change(Change {
                kind: kind as u8,
                which: mixed as u16,
                field: field as u8,
                how: (mixed >> 16) as u8 % 9,
                number: (mixed >> 32) as u32,
            })];
            let base = (mixed >> 24) as u8 % 248;
            save(format!("field-{kind}-{field}"), &Input { base, damage, choices: choices(mixed % 1000) })?;
        }
    }
    Ok(())
}

/// Two threads that make, use and remove the same names of a sound volume at once, and wait for each other all the
/// time.
///
/// # Errors
/// If they cannot be written.
pub fn meetings(corpus: &Path) -> io::Result<()> {
    // Files and directories come, get other names, and go. From 128 on a name is a new one.
    const WHAT: [u8; 10] = [0, 20, 128 + 2 + 16, 128 + 2 + 16, 1, 128 + 3 + 16, 7, 128 + 6 + 16, 6, 2];
    for number in 0..96_u64 {
        let byte = |at: u64| mix(number * 128 + at) as u8;
        let schedule = (0..24).map(byte);
        // A few places, which both use.
        let operation = |at| [WHAT[usize::from(byte(at)) % WHAT.len()], byte(64 + at % 2)];
        let choices = schedule.chain((24..48).flat_map(operation)).collect();
        let input = Input { base: (number * 5) as u8, choices, ..Input::default() };
        fs::write(corpus.join(format!("both-{number}")), input.encode())?;
    }
    Ok(())
}

/// Each field of inodes has all numbers at borders, each in another inode; then the inodes are shown.
///
/// # Errors
/// If they cannot be written.
pub fn borders(corpus: &Path) -> io::Result<()> {
    for kind in [Kind::Inode, Kind::Extra] {
        for field in 0..kind.fields().len() {
            // The listing of all, and `stat` in both forms.
            for words in [1, 10, 11] {
                let mixed = mix((kind as usize * 64 + field) as u64);
                let damage = (0..8).map(|number| {
                    let which = (mixed as u16).wrapping_add(number as u16 * 3);
                    Damage::Change(Change { kind: kind as u8, which, field: field as u8, how: 3, number })
                });
                let input = Input { base: (mixed >> 24) as u8 % 120, damage: damage.collect(), choices: vec![words] };
                fs::write(corpus.join(format!("border-{}-{field}-{words}", kind as u8)), input.encode())?;
            }
        }
    }
    Ok(())
}

/// Nodes of the chain with what others have: the numbers of other nodes, of the chain and of the checkpoint, and their
/// blocks.
///
/// # Errors
/// If they cannot be written.
pub fn taken(corpus: &Path) -> io::Result<()> {
    for number in 0..160_u32 {
        let mixed = mix(number.into());
        // The last three fields.
        let field = (Kind::Chain.fields().len() as u8 - 1).saturating_sub(number as u8 % 3);
        let how = if number % 8 == 0 { 4 } else { 5 };
        let change = Change { kind: Kind::Chain as u8, which: mixed as u16, field, how, number: (mixed >> 32) as u32 };
        let base = (mixed >> 24) as u8;
        let input = Input { base, damage: vec![Damage::Change(change)], choices: Vec::new() };
        fs::write(corpus.join(format!("taken-{number}")), input.encode())?;
    }
    Ok(())
}

/// Sound volumes on devices that fail and say so: at each of the first requests of a kind, once and for good.
///
/// # Errors
/// If they cannot be written.
pub fn failures(corpus: &Path) -> io::Result<()> {
    for number in 0..120_u64 {
        // Writes, flushes, and both: an error, a torn or a short transfer.
        let (on, what) = ([1, 3, 4][number as usize % 3], [6, 0, 1][number as usize / 3 % 3]);
        let (after, lasts) = ((number / 2) as u8, (number % 2) as u8 * 0x80);
        let fault = [on, after, what | lasts];
        let choices = fault.into_iter().chain(fault).chain((0..40).map(|at| mix(number * 64 + at) as u8)).collect();
        let input = Input { base: (number * 2) as u8, choices, ..Input::default() };
        fs::write(corpus.join(format!("failure-{number}")), input.encode())?;
    }
    Ok(())
}

/// Steps of every kind, for the targets that play beside a model.
///
/// # Errors
/// If they cannot be written.
pub fn steps(corpus: &Path) -> io::Result<()> {
    for number in 0..64u32 {
        // The selector, and then choices that reach every kind of step, from few and from many.
        let choices =
            (0..600 + number * 20).map(|i| (i.wrapping_mul(2 * number + 1).wrapping_mul(0x9e37_79b9) >> 24) as u8);
        let bytes: Vec<u8> = std::iter::once(number as u8).chain(choices).collect();
        fs::write(corpus.join(format!("seed-{number}")), bytes)?;
    }
    Ok(())
}

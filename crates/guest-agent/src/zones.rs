//! The zones of [`ZonedDevice`] beside those of the kernel's `null_blk`: the same random commands and writes to both,
//! and the same reports afterwards.
//!
//! Left out is what the two choose differently, and the standards leave open: which of several zones gives its place
//! up, and whether one does for a closed zone when no more may become active.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use f2fs_device::{
    AlignedBuf, BlockDevice, DeviceErrorKind, MemoryDevice, Zone, ZoneChange, ZoneError, ZoneLayout, ZoneState,
    ZonedDevice,
};
use f2fs_uring::UringDevice;
use rustix::fs::OFlags;

use f2fs_device_test::Random;

/// Sectors of 512 bytes in a block.
const SECTORS: u64 = 8;

/// Blocks of a request that the kernel does not cut.
const LONGEST: u64 = 31;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The kernel's device.
    device: PathBuf,
    /// The program blkzone, and what goes before its arguments.
    #[arg(long, value_delimiter = ' ', required = true)]
    blkzone: Vec<String>,
    /// Blocks of the device.
    #[arg(long)]
    blocks: u64,
    /// Blocks of a zone.
    #[arg(long)]
    zone_blocks: u64,
    /// Blocks of a zone that can be written.
    #[arg(long)]
    capacity: u64,
    /// Zones without a write pointer.
    #[arg(long, default_value_t = 0)]
    conventional: u32,
    /// Zones that may be open; 0 is no limit.
    #[arg(long, default_value_t = 0)]
    max_open: u32,
    /// Zones that may be active; 0 is no limit.
    #[arg(long, default_value_t = 0)]
    max_active: u32,
    /// A zone that the kernel's device has worn out, and one that is dead.
    #[arg(long, num_args = 2)]
    retired: Option<Vec<u32>>,
    /// How many commands and writes.
    #[arg(long, default_value_t = 100)]
    steps: u32,
    /// After how many of them blkzone reports, too; the library's own report is compared after each.
    #[arg(long, default_value_t = 1)]
    blkzone_every: u32,
    /// Which ones.
    #[arg(long)]
    seed: u64,
}

struct Pair<'a> {
    args: &'a Args,
    ours: ZonedDevice<MemoryDevice>,
    /// The kernel's device, for writes, and as this project sees it.
    kernel: File,
    seen: Arc<UringDevice>,
}

/// Counts of operations, by their ends.
#[derive(Debug, Default)]
struct Tally {
    succeeded: u32,
    refused: u32,
    left_out: u32,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let layout = ZoneLayout::new(args.zone_blocks).with_capacity(args.capacity).with_conventional(args.conventional);
    let ours = ZonedDevice::new(MemoryDevice::new(args.blocks), layout.with_limits(args.max_open, args.max_active))?;
    let direct = OFlags::DIRECT.bits().cast_signed();
    let kernel = OpenOptions::new().write(true).custom_flags(direct).open(&args.device)?;
    let seen = UringDevice::open(&args.device, f2fs_uring::OpenOptions::new())?;
    ensure!(seen.info().zones == ours.info().zones, "limits: {:?}, {:?}", seen.info().zones, ours.info().zones);
    let pair = Pair { args, ours, kernel, seen };
    if let Some(&[worn_out, dead]) = args.retired.as_deref() {
        pair.ours.wear_out(worn_out)?;
        pair.ours.take_offline(dead)?;
    }
    pair.compare_with_blkzone().context("at first")?;
    let (mut random, mut tally) = (Random::new(args.seed), Tally::default());
    for step in 0..args.steps {
        pair.step(&mut random, &mut tally).with_context(|| format!("step {step}"))?;
        if step % args.blkzone_every.max(1) == 0 {
            pair.compare_with_blkzone().with_context(|| format!("after step {step}"))?;
        }
    }
    pair.compare_with_blkzone().context("at last")?;
    println!("{}: {tally:?}", args.device.display());
    ensure!(tally.succeeded > args.steps / 4 && tally.refused > args.steps / 20, "not much was tried: {tally:?}");
    Ok(())
}

impl Pair<'_> {
    fn step(&self, random: &mut Random, tally: &mut Tally) -> anyhow::Result<()> {
        let zone = self.ours.zone(random.below_u64(u64::from(self.ours.zones())) as u32)?;
        let what = random.below_u64(12);
        let opens = matches!(zone.state, ZoneState::Empty | ZoneState::Closed) && what != 9 && what != 10;
        if opens && self.is_a_matter_of_choice(zone) {
            tally.left_out += 1;
            return Ok(());
        }
        let (name, ours, kernel) = match what {
            0..=4 => self.write(zone, random)?,
            5 => self.write_elsewhere(zone)?,
            6 | 7 => self.change("open", zone, ZoneChange::Open)?,
            8 => self.change("finish", zone, ZoneChange::Finish)?,
            9 => self.change("close", zone, ZoneChange::Close)?,
            _ => self.change("reset", zone, ZoneChange::Reset)?,
        };
        *if ours.is_ok() { &mut tally.succeeded } else { &mut tally.refused } += 1;
        if ours.is_ok() != kernel.is_none() {
            bail!("{name} of {zone:?}: here {ours:?}, in the kernel {kernel:?}");
        }
        self.compare().with_context(|| format!("{name} of {zone:?}: {ours:?}"))
    }

    /// Whether a zone that opens now makes one of several give up its place, or does so at the limit of active ones.
    fn is_a_matter_of_choice(&self, zone: Zone) -> bool {
        let count = |which: fn(ZoneState) -> bool| self.ours.report().filter(|zone| which(zone.state)).count() as u32;
        let implicit = count(|state| state == ZoneState::ImplicitlyOpen);
        let at_most_active = self.args.max_active > 0 && count(ZoneState::is_active) == self.args.max_active;
        self.args.max_open > 0
            && count(ZoneState::is_open) == self.args.max_open
            && (implicit > 1 || (implicit == 1 && at_most_active && zone.state == ZoneState::Closed))
    }

    /// A write at the write pointer; anywhere in a conventional zone.
    fn write(&self, zone: Zone, random: &mut Random) -> anyhow::Result<Outcome> {
        let left = zone.capacity - zone.written.unwrap_or(0);
        let at = zone.write_pointer().unwrap_or(zone.start);
        let blocks = if random.below_u64(3) == 0 { left } else { 1 + random.below_u64(zone.capacity / 2) };
        // One block too many, and never across the end of the zone: the kernel cuts what is long or crosses that, and
        // the first part would be written.
        let most = if left < LONGEST { (left + 1).min(zone.start + zone.blocks - at) } else { left };
        self.write_both("write", at, blocks.min(most).max(1))
    }

    fn write_elsewhere(&self, zone: Zone) -> anyhow::Result<Outcome> {
        let at = zone.write_pointer().unwrap_or(zone.start) + 1;
        if at >= zone.start + zone.blocks {
            return self.write_both("write", zone.start, 1);
        }
        self.write_both("write behind the pointer", at, 1)
    }

    fn write_both(&self, name: &'static str, at: u64, blocks: u64) -> anyhow::Result<Outcome> {
        let mut buf = AlignedBuf::new(blocks as usize);
        buf.as_bytes_mut().fill(7);
        let written = self.kernel.write_at(buf.as_bytes(), at * SECTORS * 512);
        let kernel = match written {
            Ok(bytes) if bytes as u64 == blocks * SECTORS * 512 => None,
            Ok(bytes) => Some(format!("{bytes} bytes written")),
            Err(error) => Some(error.to_string()),
        };
        let ours = match self.ours.write(at, buf).map_err(|error| error.kind) {
            Err(DeviceErrorKind::Zone(error)) => Err(error),
            result => {
                result.map_err(|kind| anyhow::anyhow!("{name} of {blocks} blocks at {at}: {kind}"))?;
                Ok(())
            }
        };
        Ok((name, ours, kernel))
    }

    /// Gives a command to both, to the kernel through the library.
    fn change(&self, name: &'static str, zone: Zone, change: ZoneChange) -> anyhow::Result<Outcome> {
        let kernel = self.seen.change_zone(zone.start, change).err();
        Ok((name, self.ours.change(zone.number, change), kernel.map(|error| error.to_string())))
    }

    fn program(&self, command: &str) -> Command {
        let mut program = Command::new(&self.args.blkzone[0]);
        program.args(&self.args.blkzone[1..]).arg(command);
        program
    }

    /// The library's report of the kernel's device is that of the device here.
    fn compare(&self) -> anyhow::Result<()> {
        let seen = self.seen.report_zones(0, usize::MAX)?;
        ensure!(seen.len() == self.ours.zones() as usize, "{} zones are seen", seen.len());
        for (zone, seen) in self.ours.report().zip(seen) {
            let expected = Zone::new(zone.number, zone.start, zone.blocks, zone.capacity, zone.state, pointer(zone));
            ensure!(seen == expected, "here {zone:?}, in the kernel, seen by the library, {seen:?}");
        }
        Ok(())
    }

    /// So is blkzone's.
    fn compare_with_blkzone(&self) -> anyhow::Result<()> {
        self.compare()?;
        let report = self.program("report").arg(&self.args.device).output()?;
        ensure!(report.status.success(), "blkzone report: {}", String::from_utf8_lossy(&report.stderr));
        let report = String::from_utf8_lossy(&report.stdout);
        ensure!(report.lines().count() == self.ours.zones() as usize, "the kernel has other zones:\n{report}");
        for (line, zone) in report.lines().zip(self.ours.report()) {
            let kernel = parse(line).with_context(|| format!("cannot read {line:?}"))?;
            let same = kernel.start == zone.start
                && kernel.blocks == zone.blocks
                && kernel.capacity == zone.capacity
                && kernel.state == letters(zone.state)
                && pointer(zone).is_none_or(|written| written == kernel.written);
            ensure!(same, "here {zone:?}, in the kernel {line}");
        }
        Ok(())
    }
}

/// How much of a zone is written. Of a worn-out one the kernel does not say.
fn pointer(zone: Zone) -> Option<u64> {
    if zone.state == ZoneState::ReadOnly { None } else { zone.written }
}

/// An operation, the library's result, and the kernel's error if it failed.
type Outcome = (&'static str, Result<(), ZoneError>, Option<String>);

/// A line of blkzone's report, in blocks.
struct Line<'a> {
    start: u64,
    blocks: u64,
    capacity: u64,
    written: u64,
    state: &'a str,
}

/// Reads `start: 0x000000000, len 0x000800, cap 0x000800, wptr 0x000010 reset:0 non-seq:0, zcond: 2(oi) [type: ...`.
fn parse(line: &str) -> Option<Line<'_>> {
    let after = |mark: &str| line.split_once(mark).map(|(_, rest)| rest.trim_start());
    let number = |mark: &str| {
        let digits = after(mark)?.strip_prefix("0x")?;
        let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
        Some(u64::from_str_radix(&digits[..end], 16).ok()? / SECTORS)
    };
    let state = after("zcond:")?.split_once('(')?.1.split_once(')')?.0;
    Some(Line {
        start: number("start:")?,
        blocks: number("len")?,
        capacity: number("cap")?,
        written: number("wptr")?,
        state,
    })
}

/// blkzone's letters for a state.
fn letters(state: ZoneState) -> &'static str {
    match state {
        ZoneState::Conventional => "nw",
        ZoneState::Empty => "em",
        ZoneState::ImplicitlyOpen => "oi",
        ZoneState::ExplicitlyOpen => "oe",
        ZoneState::Closed => "cl",
        ZoneState::Full => "fu",
        ZoneState::ReadOnly => "ro",
        ZoneState::Offline => "of",
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_line_of_a_report() {
        let line = "  start: 0x000000800, len 0x000800, cap 0x000400, wptr 0x000010 reset:0 non-seq:0, zcond: 2(oi) [type: 2(SEQ_WRITE_REQUIRED)]";
        let zone = parse(line).expect("it is one");
        assert_eq!((zone.start, zone.blocks, zone.capacity, zone.written, zone.state), (256, 256, 128, 2, "oi"));
        assert!(parse("no zones").is_none());
    }
}

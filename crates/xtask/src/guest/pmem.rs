//! Persistent memory in the guest: as a block device through `io_uring`, as a file on ext4 mounted with dax, and as a
//! character device, and as the journal of a volume. The library is killed on each while it syncs files, and opens it
//! again; the kernel mounts each afterwards. Memory that the kernel knows to be bad is refused. Transfers on the
//! mapping are measured beside bare copies on it, and beside the block device.
//!
//! Emulated time is no hardware's: a system call costs far more there than a copy. So the ratios are printed, and
//! judged coarsely, by the long form alone: in the short one, another machine takes the processors now and then.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::judge;
use super::programs::{LOADER, dynamic};
use super::rounds::median;
use super::{Bench, Outcome};
use crate::Result;

const LIMIT: Duration = Duration::from_secs(1200);

/// The size of the memory (MiB).
const SIZE: u32 = 256;

const SCRIPT: &str = include_str!("pmem.sh");

/// The least ratio of the device's rate to that of a copy with the same instructions, at 2 MiB. The goal is 0.9 on a
/// quiet machine; a busy one, emulating another, spreads far.
const LEAST: f64 = 0.5;

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let (rounds, time) = if bench.quick { (3, 50) } else { (5, 300) };
    let scale = bench.scale("small");
    let mut boot = bench.guest.boot("pmem").processors(2).persistent_memory(SIZE);
    for file in dynamic(&["mkfs.ext4"])? {
        boot = boot.program(&file);
    }
    let script = format!("SCALE={scale} ROUNDS={rounds} TIME={time} LOADER={LOADER}\n{SCRIPT}");
    let output = boot.run(&script, LIMIT)?;
    judge::succeeded(&output)?;
    let mut paths = 0;
    for name in ["block", "file", "journal", "character"] {
        let made = fs_err::read_to_string(output.share.join(format!("{name}.made")))?;
        let mounted = fs_err::read_to_string(output.share.join(format!("{name}.mounted")))?;
        judge::same(name, ("the library", &made), ("the kernel", &mounted))?;
        paths += made.lines().count();
    }
    for carried in ["MAP_SYNC, clwb, /tmp/dax/volume", "MAP_SYNC, clwb, /dev/dax0.0", "io_uring, O_DIRECT, /dev/pmem0"]
    {
        ensure!(output.log.contains(carried), "no device says `{carried}`:\n{}", output.log.trim());
    }
    let read = |name: &str| fs::read_to_string(output.share.join(name));
    let rows = rows(&(read("file.csv")? + &read("block.csv")?))?;
    print!("{}", table(&rows)?);
    for ((operation, bytes), ways) in &rows {
        if *bytes == 2 << 20 && !bench.quick {
            let ratio = ratio(ways, "mapped", "copy")?;
            ensure!(ratio >= LEAST, "{operation} of 2 MiB: the device has {ratio:.2} of a bare copy's rate");
        }
    }
    Ok(Outcome {
        wall: output.wall,
        remark: format!(
            "{paths} paths on a block device, a DAX file, beside a journal and on a character device, the same in the kernel and here"
        ),
    })
}

/// The rates of each way, round by round, of an operation on so many bytes.
type Rows = BTreeMap<(String, usize), BTreeMap<String, Vec<f64>>>;

fn rows(csv: &str) -> Result<Rows> {
    let mut rows = Rows::new();
    for line in csv.lines().filter(|line| !line.starts_with("operation")) {
        let fields: Vec<&str> = line.split(',').collect();
        let [operation, bytes, _, way, rate] = fields[..] else { bail!("not a measurement: {line}") };
        let row = rows.entry((operation.to_owned(), bytes.parse()?)).or_default();
        row.entry(way.to_owned()).or_default().push(rate.parse()?);
    }
    Ok(rows)
}

/// The median of the ratios of the rounds.
fn ratio(ways: &BTreeMap<String, Vec<f64>>, one: &str, other: &str) -> Result<f64> {
    let rates = |way: &str| ways.get(way).with_context(|| format!("{way} was not measured"));
    median(rates(one)?.iter().zip(rates(other)?).map(|(one, other)| one / other).collect())
}

fn table(rows: &Rows) -> Result<String> {
    let mut table =
        "  transfers a second: copy and device on a DAX file, io_uring on the same memory as a block device\n"
            .to_owned();
    for ((operation, bytes), ways) in rows {
        let rate = |way: &str| median(ways.get(way).cloned().unwrap_or_default());
        table += &format!(
            "  {operation:5} {bytes:>8}: copy {:>8.0}, device {:>8.0}, io_uring {:>8.0}; device by copy {:.2}, by io_uring {:.2}\n",
            rate("copy")?,
            rate("mapped")?,
            rate("other")?,
            ratio(ways, "mapped", "copy")?,
            ratio(ways, "mapped", "other")?
        );
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_rounds() {
        let csv = "operation,bytes,round,way,per_second\nread,4096,0,copy,10\nread,4096,0,mapped,9\nread,4096,1,copy,1\n\
                   read,4096,1,mapped,2\nread,4096,2,copy,4\nread,4096,2,mapped,4\nread,4096,0,other,1\n";
        let rows = rows(csv).unwrap();
        let ways = &rows[&("read".to_owned(), 4096)];
        assert_eq!(ratio(ways, "mapped", "copy").unwrap(), 1.0);
        assert!(ratio(ways, "mapped", "nothing").is_err());
        assert!(table(&rows).unwrap().contains("device by copy 1.00, by io_uring 9.00"));
        assert!(super::rows("read,1").is_err());
    }
}

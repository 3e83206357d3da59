//! One request after the other, in one boot and in alternating rounds: blocks at random places are read, written and
//! synced by system calls on the device, by the library's device and files, and by the kernel's F2FS, on persistent
//! memory and NVMe.
//!
//! Emulated time is no hardware's, so only what stands in one line is comparable. The verdict is coarse: one request of
//! the library must not take a multiple of the system call's time, as it does when it waits for another thread or a
//! timer.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail};

use super::judge;
use super::machine::Bus;
use super::{Bench, Outcome};
use crate::{Result, files};

const LIMIT: Duration = Duration::from_secs(900);

/// The size of each device (MiB).
const SIZE: u32 = 256;

/// The ways in the order of the table's columns.
const WAYS: [&str; 5] = ["calls", "device", "batch", "kernel", "file"];

/// Ways that are compared with each other.
const PAIRS: [(&str, &str); 2] = [("device", "calls"), ("file", "kernel")];

/// The median of what is judged may be so many times that of its baseline.
const TOLERANCE: f64 = 1.6;
/// The same in the short form, where another machine runs beside this one, and takes a processor away now and then. A
/// wait for a timer takes ten times as long and more.
const TOLERANCE_BESIDE_OTHERS: f64 = 3.0;

/// The times of one way, in one round or as the medians of all: operations a second, median and 99th percentile in
/// microseconds.
type Times = [f64; 3];

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let image = bench.image("depth-one");
    files::make_sparse(&image, u64::from(SIZE) << 20)?;
    let (rounds, time) = if bench.quick { (3, 50) } else { (5, 300) };
    let script = format!(
        "set -e\n\
         f2fs format --force /dev/pmem0\n\
         guest-agent depth-one /dev/pmem0 --rounds {rounds} --milliseconds {time} --csv /share/pmem\n\
         guest-agent depth-one $(device target) --rounds {rounds} --milliseconds {time} --csv /share/nvme\n"
    );
    // With one processor, QEMU's NVMe now and then loses an interrupt, and its kernel waits for 30 s.
    let boot = bench.guest.boot("depth-one").processors(2).persistent_memory(SIZE).disk(&image, Bus::Nvme, "target");
    let output = boot.run(&script, LIMIT)?;
    judge::succeeded(&output)?;
    for carried in ["preadv/pwritev (persistent memory), O_DIRECT, /dev/pmem0", "io_uring, O_DIRECT, /dev/nvme"] {
        if !output.log.contains(carried) {
            bail!("no device says `{carried}`:\n{}", output.log.trim());
        }
    }
    let tolerance = if bench.quick { TOLERANCE_BESIDE_OTHERS } else { TOLERANCE };
    let mut slow = Vec::new();
    for device in ["pmem", "nvme"] {
        let csv = fs_err::read_to_string(output.share.join(device))?;
        let rows = medians(&csv)?;
        print!("{}", table(device, &rows));
        slow.extend(judge(device, &rows, tolerance));
    }
    if !slow.is_empty() {
        bail!("one request takes too long: {}", slow.join("; "));
    }
    Ok(Outcome { wall: output.wall, remark: format!("medians of {rounds} rounds are above") })
}

/// An operation by so many threads.
type Row = (String, usize);

/// The medians over the rounds.
fn medians(csv: &str) -> Result<BTreeMap<Row, BTreeMap<String, Times>>> {
    let mut all: BTreeMap<Row, BTreeMap<String, Vec<Times>>> = BTreeMap::new();
    for line in csv.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [operation, threads, _, way, rate, median, p99] = fields[..] else { bail!("not a measurement: {line}") };
        let row = all.entry((operation.to_owned(), threads.parse()?)).or_default();
        row.entry(way.to_owned()).or_default().push([rate.parse()?, median.parse()?, p99.parse()?]);
    }
    let middle = |rounds: &Vec<Times>, field: usize| {
        let mut values: Vec<f64> = rounds.iter().map(|times| times[field]).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().context("no round")
    };
    let mut result = BTreeMap::new();
    for (row, ways) in all {
        let times = ways
            .iter()
            .map(|(way, rounds)| Ok((way.clone(), [middle(rounds, 0)?, middle(rounds, 1)?, middle(rounds, 2)?])));
        result.insert(row, times.collect::<Result<_>>()?);
    }
    Ok(result)
}

/// A line for each row. Of two ways that are compared it has the speed by operations a second, and by the median, which
/// is the same when the machine below has other work; above 1 the library is the faster one.
fn table(device: &str, rows: &BTreeMap<Row, BTreeMap<String, Times>>) -> String {
    let mut table = format!(
        "  {device}: operations a second, median / 99th percentile (us); device by calls, file by kernel (medians)\n"
    );
    table += &format!("  {:14}", "");
    WAYS.iter().for_each(|way| table += &format!(" {way:>22}"));
    table += &format!(" {:>11} {:>11}\n", "dev/call", "file/kern");
    for ((operation, threads), ways) in rows {
        table += &format!("  {operation:6} {threads:2} thr.");
        for way in WAYS {
            let cell =
                ways.get(way).map_or_else(String::new, |[rate, median, p99]| format!("{rate:.0} {median:.0}/{p99:.0}"));
            table += &format!(" {cell:>22}");
        }
        for (ours, baseline) in PAIRS {
            table += &match (ways.get(ours), ways.get(baseline)) {
                (Some(ours), Some(baseline)) => {
                    format!(" {:>4.2} ({:>4.2})", ours[0] / baseline[0], baseline[1] / ours[1])
                }
                _ => format!(" {:>11}", ""),
            };
        }
        table.push('\n');
    }
    table
}

/// The operations that take too long. One thread is judged, since more of them measure the machine below. Writes to
/// files are shown and not judged: the kernel overwrites in place, the library writes elsewhere and, with a sync, the
/// node too.
fn judge(device: &str, rows: &BTreeMap<Row, BTreeMap<String, Times>>, tolerance: f64) -> Vec<String> {
    let mut slow = Vec::new();
    for ((operation, threads), ways) in rows.iter().filter(|((_, threads), _)| *threads == 1) {
        let pairs: &[_] = if operation == "read" { &PAIRS } else { &PAIRS[..1] };
        for &(ours, baseline) in pairs {
            if let (Some(ours_times), Some(baseline_times)) = (ways.get(ours), ways.get(baseline))
                && ours_times[1] > tolerance * baseline_times[1]
            {
                slow.push(format!(
                    "{device}, {operation}, {threads} thread: {ours} {:.0} us, {baseline} {:.0} us",
                    ours_times[1], baseline_times[1]
                ));
            }
        }
    }
    slow
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "operation,threads,round,way,per_second,median_us,p99_us\n";

    #[test]
    fn medians_of_rounds_are_judged() {
        let csv = |device: f64| {
            let mut csv = HEAD.to_owned();
            for (round, calls) in [9.0, 10.0, 500.0].into_iter().enumerate() {
                csv += &format!("read,1,{round},calls,90000,{calls},20\nread,1,{round},device,80000,{device},30\n");
                csv += &format!("write,1,{round},kernel,90000,10,20\nwrite,1,{round},file,80000,900,30\n");
                csv += &format!("read,4,{round},calls,90000,{calls},20\nread,4,{round},device,80000,900,30\n");
            }
            medians(&csv).unwrap()
        };
        assert_eq!(csv(12.0)[&("read".to_owned(), 1)]["calls"], [90000.0, 10.0, 20.0]);
        assert!(judge("pmem", &csv(12.0), TOLERANCE).is_empty());
        assert_eq!(
            judge("pmem", &csv(115.0), TOLERANCE_BESIDE_OTHERS),
            ["pmem, read, 1 thread: device 115 us, calls 10 us"]
        );
        assert!(medians(&(HEAD.to_owned() + "read,1,0,calls")).is_err());
    }
}

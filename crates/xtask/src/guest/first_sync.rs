//! The first `fsync` after a checkpoint in Linux's F2FS, and those that follow it.
//!
//! `fsync` writes the nodes of a file, waits for them, and lets the device flush its cache. Linux numbers the nodes
//! that it waits for, from 0 after each checkpoint, and takes the number 0 for "none" (`f2fs_add_fsync_node_entry`,
//! `f2fs_reset_fsync_node_info` and `f2fs_wait_on_node_pages_writeback` in `fs/f2fs/node.c`). So the first node after a
//! checkpoint is not waited for: the flush may begin before the node has reached the device, and `fsync` returns
//! without it.
//!
//! Three witnesses, none of which is of this project: the kernel's trace of its block layer, the time that the calls
//! take on a device whose requests take 200 ms, and the log of the device mapper's target `log-writes`. The test fails
//! when the kernel waits: then it is mended.

use std::fs;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::programs::{LOADER, dynamic};
use super::{Bench, Outcome, judge};
use crate::Result;

const LIMIT: Duration = Duration::from_secs(1200);
const SCRIPT: &str = include_str!("first-sync.sh");

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let mut boot = bench.guest.boot("first-sync").processors(2);
    for file in &dynamic(&["mkfs.f2fs", "dmsetup"])? {
        boot = boot.program(file);
    }
    let output = boot.run(&format!("LOADER='/bin/{LOADER} --library-path /bin'\n{SCRIPT}"), LIMIT)?;
    judge::succeeded(&output)?;
    for line in output.log.lines().filter(|line| line.starts_with("late:")) {
        println!("    {line}");
    }
    let mut early = 0;
    for mode in ["posix", "strict"] {
        for round in [1, 2] {
            for which in ["first", "second", "third"] {
                let name = format!("{mode}-{round}-{which}");
                let took = output.log.lines().find_map(|line| line.strip_prefix(&format!("took {name} ")));
                let took = took.with_context(|| format!("{name} did not happen"))?;
                let trace = fs_err::read_to_string(output.share.join(format!("{name}.trace")))?;
                let order = order(&trace).with_context(|| format!("{name}: no fsync in its trace"))?;
                let waits = order.waits();
                println!(
                    "    {name}: {took}0 ms, {}: {}",
                    if waits { "waits" } else { "DOES NOT WAIT" },
                    order.0.join(", ")
                );
                early += usize::from(!waits);
                ensure!(waits || mode == "strict" || which == "first", "{name} does not wait for its node");
                ensure!(!waits || mode == "strict" || which != "first", "{name} waits: this kernel is mended");
            }
        }
    }
    let marks = recorded(&fs::read(output.share.join("writes"))?)?;
    for (mark, entries) in &marks {
        println!("    log-writes, {mark}: {}", entries.join(", "));
    }
    let [(_, first), (_, second), ..] = &marks[..] else { bail!("marks are missing in the log: {marks:?}") };
    // A write stands in front of the flush that covers it: this target logs what was complete when a flush came.
    let durable =
        |entries: &[String]| matches!(entries, [.., write, flush] if write == "write of 1" && flush == "flush");
    ensure!(!durable(first) && durable(second), "the log of log-writes: {marks:?}");
    Ok(Outcome { wall: output.wall, remark: format!("{early} of 12 fsyncs do not wait for their node") })
}

/// What happened during an `fsync`, in order: `write begins`, `flush ends`, `fsync returns` and so on.
struct Order(Vec<String>);

impl Order {
    /// Whether `fsync` returned after the write was over and after a flush that began after that, or after a write that
    /// was durable by itself.
    fn waits(&self) -> bool {
        let at = |what: &str| self.0.iter().position(|event| event == what);
        let returned = at("fsync returns").unwrap_or(self.0.len());
        if let Some(durable) = at("durable write ends") {
            return durable < returned;
        }
        let (Some(written), Some(flush)) = (at("write ends"), at("flush begins")) else { return false };
        written < flush && at("flush ends").is_some_and(|ended| flush < ended && ended < returned)
    }
}

/// Reads a trace of tracefs. Requests of one fsync are few: its node, and a flush.
fn order(trace: &str) -> Option<Order> {
    let mut events = Vec::new();
    let mut inside = false;
    for line in trace.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(at) = words.iter().position(|word| word.starts_with("block_rq_") || word.starts_with("f2fs_sync_"))
        else {
            continue;
        };
        let flags = words.get(at + 2).copied().unwrap_or_default();
        match words[at] {
            "f2fs_sync_file_enter:" => {
                inside = true;
                events.push("fsync begins".to_owned());
            }
            "f2fs_sync_file_exit:" => events.push("fsync returns".to_owned()),
            // The second end of a flush that a file system asked for.
            "block_rq_complete:" if flags.starts_with('W') && line.contains(" 0 + 0 ") => {}
            request if inside => {
                let what = match flags {
                    flags if flags.starts_with("FF") || flags == "F" => "flush",
                    flags if flags.starts_with("WF") || flags.starts_with("FWF") => "durable write",
                    flags if flags.starts_with('W') => "write",
                    flags if flags.starts_with("FW") => "write",
                    _ => continue,
                };
                events.push(format!("{what} {}", if request == "block_rq_issue:" { "begins" } else { "ends" }));
            }
            _ => {}
        }
    }
    inside.then_some(Order(events))
}

/// The entries of a log of `log-writes` before each mark, back to the mark before or the last checkpoint's end.
fn recorded(log: &[u8]) -> Result<Vec<(String, Vec<String>)>> {
    let number = |at: usize| -> Result<u64> {
        let bytes = log.get(at..at + 8).context("the log ends in the middle")?;
        Ok(u64::from_le_bytes(bytes.try_into()?))
    };
    let (entries, sector) = (number(16)?, number(24)? & 0xffff_ffff);
    let mut at = sector as usize;
    let (mut marks, mut since) = (Vec::new(), Vec::new());
    for _ in 0..entries {
        // Sectors of 512 bytes, whatever the sector of the log.
        let (sectors, flags, length) = (number(at + 8)?, number(at + 16)?, number(at + 24)? as usize);
        let head = at;
        at += sector as usize;
        if flags & 8 != 0 {
            let text = log.get(head + 32..head + 32 + length).context("a mark without its text")?;
            marks.push((String::from_utf8_lossy(text).into_owned(), std::mem::take(&mut since)));
            continue;
        }
        if flags & 1 != 0 {
            since.push("flush".to_owned());
        }
        if sectors > 0 {
            let blocks = sectors * sector / 4096;
            since.push(format!("{} of {blocks}", if flags & 2 != 0 { "durable write" } else { "write" }));
            if flags & 2 != 0 {
                since.clear();
            }
            if flags & 4 == 0 {
                at += (sectors * sector) as usize;
            }
        }
    }
    Ok(marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLY: &str = "
              dd-211     [000] .....    69.802: f2fs_sync_file_enter: dev = (253,0), ino = 4
              dd-211     [000] .....    69.804: block_rq_issue: 253,0 WS 4096 () 36872 + 8 be,0,4 [dd]
    kworker/0:1H-51      [000] .....    69.833: block_rq_issue: 253,0 FF 0 () 0 + 0 none,0,0 [kworker/0:1H]
          <idle>-0       [000] d.h1.    70.033: block_rq_complete: 253,0 WS () 36872 + 8 be,0,4 [0]
          <idle>-0       [000] d.h1.    70.034: block_rq_complete: 253,0 FF () 18446744073709551615 + 0 none,0,0 [0]
          <idle>-0       [000] d.h2.    70.035: block_rq_complete: 253,0 WS () 0 + 0 be,0,4 [0]
              dd-211     [000] .....    70.036: f2fs_sync_file_exit: dev = (253,0), ino = 4";

    #[test]
    fn traces_say_who_waits() {
        let mut lines: Vec<&str> = EARLY.lines().collect();
        assert!(order(EARLY).is_some_and(|order| !order.waits()));
        // The write ends before the flush begins.
        lines.swap(3, 4);
        assert!(order(&lines.join("\n")).is_some_and(|order| order.waits()));
        let returned = lines.remove(7);
        lines.insert(5, returned);
        assert!(order(&lines.join("\n")).is_some_and(|order| !order.waits()), "it returns before the flush has ended");
        assert!(order("no trace").is_none());
    }

    #[test]
    fn logs_are_read_up_to_their_marks() {
        let mut log = vec![0; 512];
        log[16..24].copy_from_slice(&3_u64.to_le_bytes());
        log[24..28].copy_from_slice(&512_u32.to_le_bytes());
        let mut add = |sectors: u64, flags: u64, text: &[u8], data: usize| {
            log.extend([0, sectors, flags, text.len() as u64].iter().flat_map(|number| number.to_le_bytes()));
            log.extend(text);
            log.resize(log.len().next_multiple_of(512) + data, 0);
        };
        add(8, 0, b"", 4096);
        add(0, 1, b"", 0);
        add(0, 8, b"first", 0);
        let marks = recorded(&log).unwrap();
        assert_eq!(marks, [("first".to_owned(), vec!["write of 1".to_owned(), "flush".to_owned()])]);
        assert!(recorded(&log[..1000]).is_err());
    }
}

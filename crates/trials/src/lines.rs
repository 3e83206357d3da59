//! The states that a crash leaves on persistent memory, where not whole sectors are lost but words of 8 bytes.
//!
//! The requests of a workload to a recording device are done again to a [`PmemDevice`] on simulated lines. Between any
//! two stores, write-backs and fences the power may go; of each such moment some states are looked at, as the module
//! `state` does with others. The promises at that point are those that the workload had when its device had done so
//! many requests.
//!
//! A discard does nothing on persistent memory, so that here the blocks keep what they held.

use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_device_test::Event;
use f2fs_device_test::pmem::{SimulatedRegion, WAYS};
use f2fs_pmem::PmemDevice;

use crate::base::Base;
use crate::judge::Expectation;
use crate::record::Recording;
use crate::state::{look, look_and_use};
use crate::workload::Workload;
use f2fs_device_test::Random;

/// How states are chosen.
#[derive(Clone, Copy, Debug)]
pub struct LinePlan {
    /// States at each moment at which lines are uncertain.
    pub draws: u64,
    /// One in so many moments is looked at; those behind a fence always are.
    pub every: usize,
    /// One in so many states is used, closed, and looked at again.
    pub used: usize,
}

/// Counts of the states that were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineTally {
    /// Moments at which the power was cut.
    pub moments: u64,
    /// States that were looked at.
    pub states: u64,
    /// Of them: in which some uncertain words were on the media, and others not.
    pub torn: u64,
    /// Of them: used, closed and looked at again.
    pub used: u64,
}

/// A state that is not as it must be.
#[derive(Debug, thiserror::Error)]
#[error("cut after {line_event} events of lines, {requests} requests of the device, state {state:?}: {what}")]
pub struct LineViolation {
    /// Stores, write-backs and fences before the cut.
    pub line_event: usize,
    /// Requests of the device that were over.
    pub requests: usize,
    /// The seed that draws the state; `None`: nothing uncertain is on the media.
    pub state: Option<u64>,
    /// The fault.
    pub what: String,
    /// The state.
    pub image: MemoryDevice,
}

/// Does what a recording holds to a device on simulated lines; gives it, and the line events that had happened after
/// each request.
fn repeat(recording: &Recording) -> Result<(PmemDevice<SimulatedRegion>, Vec<usize>), f2fs_device::DeviceError> {
    let device = PmemDevice::new(SimulatedRegion::on(&recording.log.image_at(0, |_, _| false)));
    let mut after = vec![0];
    for event in recording.log.events() {
        match event {
            Event::Write { start, data, durable: true, .. } => device.write_fua(*start, (**data).clone())?,
            Event::Write { start, data, .. } => device.write(*start, (**data).clone())?,
            event if event.is_flush() => device.flush()?,
            _ => {}
        }
        after.push(device.region().position());
    }
    Ok((device, after))
}

/// Looks at states that crashes of a recorded workload leave on persistent memory.
///
/// # Errors
/// The first state that is not as it must be.
pub fn explore_lines(
    recording: &Recording,
    plan: LinePlan,
    random: &mut Random,
) -> Result<LineTally, Box<LineViolation>> {
    let nothing = MemoryDevice::new(0);
    let failed = |error: f2fs_device::DeviceError| {
        let what = error.to_string();
        Box::new(LineViolation { line_event: 0, requests: 0, state: None, what, image: nothing.snapshot() })
    };
    let (device, after) = repeat(recording).map_err(failed)?;
    let log = device.region().log();
    let mut replay = log.replay();
    let mut tally = LineTally::default();
    loop {
        let line_event = replay.position();
        let requests = after.partition_point(|end| *end <= line_event) - 1;
        let over = after[requests] == line_event;
        if over || line_event.is_multiple_of(plan.every.max(1)) {
            let cut = replay.cut();
            let certain = cut.states() == 1;
            let expectation = Expectation { recording, start: requests, end: requests + usize::from(!over) };
            tally.moments += 1;
            let draws = if certain { 0 } else { plan.draws };
            for state in
                std::iter::once(None).chain((0..draws).map(|way| Some(random.next() / WAYS * WAYS + way % WAYS)))
            {
                let image = state.map_or_else(|| cut.lost(), |seed| cut.draw(seed)).into_media();
                tally.states += 1;
                tally.torn += u64::from(!certain);
                let used = tally.states.is_multiple_of(plan.used.max(1) as u64);
                tally.used += u64::from(used);
                let judged =
                    if used { look_and_use(&image, &expectation, 0).map(drop) } else { look(&image, &expectation) };
                judged.map_err(|what| Box::new(LineViolation { line_event, requests, state, what, image }))?;
            }
        }
        if replay.advance().is_none() {
            return Ok(tally);
        }
    }
}

/// Workloads whose states are looked at line by line. In their order: the nodes of a sync, written and found again;
/// data in the inode; direct nodes; a checkpoint with its summaries, NAT and SIT; orphans; a durable write.
pub const WORKLOADS: [&str; 4] = [
    "plain: write /A/foo 0 5000; sync /A/foo; write /A/bar 0 300; sync /A/bar; write /B/baz 0 100; sync /B/baz",
    "plain: create /A/new; write /A/new 0 60; sync /A/new; write /A/new 0 90; sync /A/new; rename /A/bar /B/moved; sync /B/moved",
    "plain: create /A/new; orphan /A/bar; unlink /A/foo; checkpoint; mkdir /C; checkpoint",
    "checksums: write /A/foo 0 9000; sync /A/foo; durable /A/foo 4096 4096; checkpoint; write /A/foo 0 10; sync /A/foo",
];

/// Runs a workload on the device in memory, and explores what it did by lines.
///
/// # Errors
/// The fault of a state, or of the workload.
pub fn explore_workload(text: &str, plan: LinePlan) -> Result<LineTally, String> {
    let workload: Workload = text.parse().map_err(|error| format!("{text}: {error}"))?;
    let base = Base::new(workload.base()).map_err(|error| error.to_string())?;
    let recording = workload.run(&base).map_err(|error| error.to_string())?;
    explore_lines(&recording, plan, &mut Random::new(7)).map_err(|violation| format!("{text}: {violation}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::BaseKind;

    #[test]
    fn what_is_promised_is_there_whichever_words_are_lost() {
        for text in WORKLOADS {
            let tally = explore_workload(text, LinePlan { draws: 24, every: 1, used: 20 }).unwrap();
            assert!(tally.torn > 50 && tally.used > 5, "{text}: {tally:?}");
            println!("{text}: {tally:?}");
        }
    }

    /// Why the order within a block matters: a node of a sync that carries its footer, and not all of the rest, is
    /// taken for a whole one by recovery, and so would be seen here.
    #[test]
    fn a_torn_node_with_its_footer_is_seen() {
        let base = Base::new(BaseKind::Plain).unwrap();
        let workload = "plain: create /A/new; write /A/new 0 60; sync /A/new".parse::<Workload>().unwrap();
        let recording = workload.run(&base).unwrap();
        let events = recording.log.events();
        let node = events.iter().rposition(|event| matches!(event, Event::Write { .. })).unwrap();
        let Event::Write { start, data, .. } = &events[node] else { unreachable!() };
        let image = recording.log.image_at(node, |_, _| true);
        let expectation = Expectation { recording: &recording, start: node, end: node + 1 };
        let torn_at = |at: usize| {
            let image = image.snapshot();
            let mut torn = (**data).clone();
            let old = image.read(*start, torn.blocks()).unwrap();
            torn.as_bytes_mut()[at..at + 64].copy_from_slice(&old.as_bytes()[at..at + 64]);
            image.write(*start, torn).unwrap();
            look(&image, &expectation)
        };
        let seen = (0..4096 - 64).step_by(64).filter(|at| torn_at(*at).is_err()).count();
        assert!(seen > 0, "no tear of a node is seen");
        image.write(*start, (**data).clone()).unwrap();
        look(&image, &expectation).unwrap();
    }
}

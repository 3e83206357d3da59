//! Workloads in which a violation was found once.

use f2fs_device::{AlignedBuf, BlockDevice, KeptZones, Zone, ZoneState};
use f2fs_device_test::{Event, RecordedPart, RecordingDevice};
use f2fs_sync::Arc;

use super::*;
use crate::base::{Base, BaseKind};
use crate::workload::Workload;

/// Looks at states of workloads on a base, uses all of them, and crashes one in `again` of them again.
fn explored(kind: BaseKind, again: usize, quota: usize, workloads: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    let base = Base::new(kind)?;
    let contents = Contents::default();
    for text in workloads {
        let workload: Workload = text.parse()?;
        let recording = workload.run(&base)?;
        let cuts = CutPlan::default();
        let plan = Plan { cuts, quota, used: 1, again, again_quota: 40, fsck: 0, whole: true, endured: 0 };
        let mut explorer = Explorer::new(plan, Random::new(7), base.print(), &contents);
        let result =
            explorer.explore(&recording).map_err(|violation| format!("{:?}: {}", violation.cuts, violation.what));
        assert_eq!(result, Ok(()), "{text}");
        assert!(explorer.tally.states > 1, "{text}: {:?}", explorer.tally);
    }
    Ok(())
}

#[test]
fn what_was_reserved_behind_the_end_is_not_the_size() -> Result<(), Box<dyn std::error::Error>> {
    explored(BaseKind::Plain, 1000, 60, &["plain: reserve /A/foo 16384 9000; truncate /A/foo 20000; sync /A/foo"])
}

#[test]
fn no_chain_leads_to_nodes_of_an_earlier_crash() -> Result<(), Box<dyn std::error::Error>> {
    explored(
        BaseKind::Plain,
        1,
        60,
        &[
            "plain: checkpoint; setxattr /A/foo user.long 3000; sync /A/foo",
            "plain: truncate /B/baz 1; checkpoint; setxattr /A/foo user.long 3000; sync /A/foo",
        ],
    )
}

#[test]
fn what_the_cleaner_moved_is_not_lost_by_a_torn_sync() -> Result<(), Box<dyn std::error::Error>> {
    explored(
        BaseKind::Full,
        1000,
        150,
        &["full: checkpoint; clean; clean; write /A/foo 0 100; sync /A/foo; clean; truncate /B/baz 100; sync /B/baz"],
    )
}

#[test]
fn zones_that_end_within_a_segment_are_filled_to_their_capacity_and_begun_again()
-> Result<(), Box<dyn std::error::Error>> {
    let base = Base::new(BaseKind::ZonedInPart)?;
    // Each file takes most of a zone.
    let text = "zoned-in-part: unlink /large-0; unlink /large-1; checkpoint; write /A/foo 0 2000000; sync /A/foo; \
                write /B/baz 0 2000000; checkpoint; clean; write /A/bar 0 2000000; sync /A/bar";
    let recording = text.parse::<Workload>()?.run(&base)?;
    let zones = KeptZones::open(base.device.snapshot())?;
    let short = |zone: &&Zone| zone.capacity == 700 && zone.blocks == 1024;
    let before: Vec<Zone> = zones.report_zones(0, usize::MAX)?.iter().filter(short).copied().collect();
    let (short, full) = (before.len(), before.iter().filter(|zone| zone.state == ZoneState::Full).count());
    assert!(short > 40 && full >= 4, "{short} zones of 700 blocks, {full} of them full");
    assert!(recording.log.events().len() > 50);
    explored(BaseKind::ZonedInPart, 4, 120, &[text])
}

#[test]
fn devices_lose_what_they_did_not_flush_each_by_itself() -> Result<(), Box<dyn std::error::Error>> {
    let base = Base::new(BaseKind::Several)?;
    let text = "several: create /A/new; write /A/new 0 40000; sync /A/new; write /B/baz 0 70000; checkpoint";
    let recording = text.parse::<Workload>()?.run(&base)?;
    let events = recording.log.events();
    // Every flush reaches each of the devices, and the work is spread.
    let flushes = |at: u64| {
        let of = |event: &&Event| matches!(event, Event::FlushPart { start, .. } if *start == at);
        events.iter().filter(of).count()
    };
    let starts = [0, crate::base::DEVICES[0] << 8, (crate::base::DEVICES[0] + crate::base::DEVICES[1]) << 8];
    let [first, second, third] = starts.map(flushes);
    assert!(first > 1 && first == second && second == third, "{first}, {second}, {third}");
    let on =
        |range: std::ops::Range<u64>| events.iter().any(|event| range.contains(&event.range().0) && !event.is_flush());
    assert!(on(0..starts[1]) && (on(starts[1]..starts[2]) || on(starts[2]..u64::MAX)));
    explored(BaseKind::Several, 4, 120, &[text])?;
    // It is a judge: without the flush of one device something is lost that was promised.
    let last = events.iter().rposition(|event| matches!(event, Event::FlushPart { start, .. } if *start == 0));
    let without = replayed(text.parse::<Workload>()?.run(&base)?, last.ok_or("no flush")?, true)?;
    let contents = Contents::default();
    let cuts = CutPlan { tears: 0, ..CutPlan::default() };
    let plan =
        Plan { cuts, quota: usize::MAX, used: 1000, again: 1000, again_quota: 1, fsck: 0, whole: true, endured: 0 };
    let mut explorer = Explorer::new(plan, Random::new(7), base.print(), &contents);
    assert!(explorer.explore(&without).is_err());
    // fsck.f2fs finds the devices of a state.
    judged_by_fsck(&recording.log.image_at(0, |_, _| true), false)?;
    Ok(())
}

/// The same state of a workload must be fine now. `step`: an operation of it, with the events that it sent.
fn repeated(
    kind: BaseKind,
    workload: &str,
    step: (&str, (usize, usize)),
    cut: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    let base = Base::new(kind)?;
    let recording = workload.parse::<Workload>()?.run(&base)?;
    let is_there = recording.lanes[0].steps.iter().any(|at| (at.op.to_string().as_str(), at.events) == step);
    assert!(is_there, "the workload is another:\n{recording}");
    let contents = Contents::default();
    let plan = Plan {
        cuts: CutPlan::default(),
        quota: 1,
        used: 1,
        again: 1,
        again_quota: 1,
        fsck: 0,
        whole: true,
        endured: 0,
    };
    let mut explorer = Explorer::new(plan, Random::new(7), base.print(), &contents);
    let result = explorer.repeat(&recording, &[cut.parse()?]);
    assert_eq!(result.map_err(|violation| violation.what), Ok(()), "{workload}");
    Ok(())
}

#[test]
fn a_durable_write_that_made_room_with_a_checkpoint_may_be_torn() -> Result<(), Box<dyn std::error::Error>> {
    let step = ("durable /A/foo 60000 1048576", (5, 21));
    repeated(BaseKind::Full, "random full 2487944479", step, "14-20:14,15,17,18,19/16s475")
}

#[test]
fn a_block_may_be_torn_though_its_bytes_were_to_stay_the_same() -> Result<(), Box<dyn std::error::Error>> {
    let step = ("durable /A/foo 1 4096", (0, 3));
    repeated(BaseKind::Checksums, "random checksums 2039408029", step, "0-2:1/0s1")
}

#[test]
fn inline_data_that_moves_to_a_block_is_not_lost_by_a_torn_sync() -> Result<(), Box<dyn std::error::Error>> {
    explored(
        BaseKind::Plain,
        1000,
        60,
        &[
            "plain: rename /A/bar /A/foo; checkpoint; reserve /A/foo 16384 9000; sync /A/foo",
            "plain: rename /A/bar /A/foo; sync /A/foo; reserve /A/foo 16384 9000; sync /A/foo",
        ],
    )
}

/// The change to the log of a workload that breaks a promise.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Break {
    Nothing,
    /// The last flush is not there.
    Flush,
    /// Durable writes are plain ones.
    Durable,
}

/// The same workload, as a device would have seen it from a library that breaks its promises.
fn broken(recording: Recording, how: Break) -> Result<Recording, f2fs_device::DeviceError> {
    let flush = recording.log.events().iter().rposition(Event::is_flush);
    let gone = flush.filter(|_| how == Break::Flush).unwrap_or(usize::MAX);
    replayed(recording, gone, how != Break::Durable)
}

/// The same workload without one event; `durable`: its durable writes are such.
fn replayed(mut recording: Recording, gone: usize, durable: bool) -> Result<Recording, f2fs_device::DeviceError> {
    let device = Arc::new(RecordingDevice::new(recording.log.image_at(0, |_, _| false)));
    for (_, event) in recording.log.events().iter().enumerate().filter(|(at, _)| *at != gone) {
        match event {
            Event::Write { start, data, durable: true, .. } if durable => {
                device.write_fua(*start, AlignedBuf::from_bytes(data.as_bytes()))?;
            }
            Event::Write { start, data, .. } => device.write(*start, AlignedBuf::from_bytes(data.as_bytes()))?,
            Event::Discard { start, blocks, .. } => device.discard(*start, *blocks)?,
            Event::FlushPart { start, blocks } => RecordedPart::new(device.clone(), *start..start + blocks).flush()?,
            _ => device.flush()?,
        }
    }
    recording.log = device.log();
    let moved = |at: &mut usize| *at -= usize::from(*at != usize::MAX && *at > gone);
    for step in recording.lanes.iter_mut().flat_map(|lane| &mut lane.steps) {
        moved(&mut step.events.0);
        moved(&mut step.events.1);
    }
    recording.marks.iter_mut().for_each(|mark| moved(&mut mark.done));
    Ok(recording)
}

#[test]
fn broken_promises_are_seen_where_they_fall_due() -> Result<(), Box<dyn std::error::Error>> {
    let base = Base::new(BaseKind::Plain)?;
    let sync = "plain: write /A/foo 0 5000; sync /A/foo";
    // Behind the sync somebody writes: the flush that is missing was not the last event.
    let in_the_middle = "plain: write /A/foo 0 5000; sync /A/foo; write /B/baz 0 5000";
    let checkpoint = "plain: create /A/new; checkpoint";
    let cases = [
        (sync, Break::Flush),
        (in_the_middle, Break::Flush),
        (checkpoint, Break::Durable),
        (sync, Break::Nothing),
        (checkpoint, Break::Nothing),
    ];
    for (text, how) in cases {
        let recording = broken(text.parse::<Workload>()?.run(&base)?, how)?;
        let contents = Contents::default();
        // No tears, which make contents that were not seen before the promise.
        let cuts = CutPlan { tears: 0, ..CutPlan::default() };
        let plan =
            Plan { cuts, quota: usize::MAX, used: 1000, again: 1000, again_quota: 1, fsck: 0, whole: true, endured: 0 };
        let mut explorer = Explorer::new(plan, Random::new(7), base.print(), &contents);
        assert_eq!(explorer.explore(&recording).is_err(), how != Break::Nothing, "{text}, {how:?}");
    }
    Ok(())
}

#[test]
fn a_refused_operation_may_have_written_a_checkpoint() -> Result<(), Box<dyn std::error::Error>> {
    // Such a checkpoint holds the operations before it, and none behind it.
    let base = Base::new(BaseKind::Full)?;
    for text in ["random full 2912452107", "random full 2922087981"] {
        let recording = text.parse::<Workload>()?.run(&base)?;
        assert!(!recording.lanes[0].refused.is_empty(), "{text}");
        for mark in &recording.marks {
            assert!(mark.lanes.iter().all(|(low, high)| low <= high && *high < usize::MAX), "{text}: {mark:?}");
        }
    }
    explored(BaseKind::Full, 1000, 60, &["random full 2912452107", "random full 2922087981"])
}

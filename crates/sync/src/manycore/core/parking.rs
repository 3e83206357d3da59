//! How the virtual cores wait for locks and condition variables, and are woken.

use std::cmp::Reverse;
use std::time::Duration;

use super::{Phase, State, give_way, settle, with};
use crate::Site;
use crate::manycore::PICOSECONDS;

/// Runs `wait`, all of whose time is waiting for a lock that is asked for at this place.
pub(crate) fn waiting<R>(site: Site, wait: impl FnOnce() -> R) -> R {
    let before = with(|run, core| {
        let this = &mut run.cores[core];
        (std::mem::replace(&mut this.waiting, true), this.clock)
    });
    let result = wait();
    with(|run, core| {
        let (was_waiting, since) = before.unwrap_or_default();
        let this = &mut run.cores[core];
        this.waiting = was_waiting;
        let waited = this.clock.saturating_sub(since);
        if run.phase == Phase::Counted {
            let place = run.waits.entry(site).or_default();
            place.0 += 1;
            place.1 += waited;
        }
    });
    result
}

/// Whether somebody is parked at this address.
pub(crate) fn is_waited_for(address: usize) -> bool {
    with(|run, _| run.queues.is_waited_for(address)).unwrap_or(false)
}

/// Whether a writer is parked at this address.
pub(crate) fn writer_waits(address: usize) -> bool {
    with(|run, _| run.queues.writer_waits(address)).unwrap_or(false)
}

/// A reader has the lock at this address.
pub(crate) fn reader_enters(address: usize) {
    with(|run, _| run.queues.reader_enters(address));
}

/// Parks the core at an address until a release wakes it.
pub(crate) fn park(address: usize, exclusive: bool) {
    let parked = with(|run, core| {
        run.enqueue(core, address, exclusive);
        run.pass(core, run.machine.park, |spent| &mut spent.locks);
        run.cores[core].state = State::Parked;
    });
    if parked.is_some() {
        give_way();
    }
}

/// The lock at this address is released.
pub(crate) fn release(address: usize) {
    with(|run, core| {
        let clock = run.cores[core].clock;
        let woken = run.queues.release(address, clock);
        run.wake(core, &woken);
    });
    super::spinning::released(address);
}

/// Whether the lock at this address, if it is free, may be taken: not if it was handed over to another core.
pub(crate) fn may_take(address: usize) -> bool {
    with(|run, core| run.queues.may_take(address, core)).unwrap_or(true)
}

/// Enters the queue of a condition variable.
pub(crate) fn enqueue(address: usize) -> u64 {
    with(|run, core| run.enqueue(core, address, true)).unwrap_or(0)
}

/// Waits on the queue of a condition variable until a notification; whether the time ran out.
pub(crate) fn wait(address: usize, ticket: u64, timeout: Option<Duration>) -> bool {
    let asleep = with(|run, core| {
        run.pass(core, run.machine.park, |spent| &mut spent.locks);
        if !run.queues.holds(address, ticket) {
            // Notified on the way.
            return false;
        }
        let timeout =
            timeout.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).saturating_mul(PICOSECONDS));
        let this = &mut run.cores[core];
        this.state = State::Parked;
        if let Some(end) = timeout.and_then(|time| this.clock.checked_add(time)) {
            run.ready.push(Reverse((end, core, this.turn)));
        }
        true
    });
    if asleep == Some(true) {
        give_way();
        return with(|run, _| run.queues.leave(address, ticket)).unwrap_or(false);
    }
    settle();
    false
}

/// Wakes so many that wait on the queue of a condition variable; how many there were.
pub(crate) fn notify(address: usize, count: usize) -> usize {
    with(|run, core| {
        let woken = run.queues.take(address, count);
        run.wake(core, &woken);
        woken.len()
    })
    .unwrap_or(0)
}

//! How the virtual cores wait for a lock that stands for a kernel's spin lock: in a queue, each on a line of its own
//! (Linux's `qspinlock`; Mellor-Crummey and Scott, "Algorithms for scalable synchronization on shared-memory
//! multiprocessors", 1991).
//!
//! ```text
//! word: held ---- head ---- second ---- third
//!                 spins on  spin on a line of their own each, that the one before them writes
//!                 the word
//! ```
//!
//! The head alone takes the word when it is released. It then writes the line of the second, which is the head from then
//! on. A core that spins on a line which nobody changes moves nothing, so it is not run meanwhile.

use std::cmp::Reverse;

use super::{Access, State, give_way, touch, with};
use crate::Site;

/// The numbers of the lines on which cores spin, beyond all addresses.
const LINES: usize = usize::MAX - 128;

/// From now on the running core spins for locks, or not; which it did before.
pub(crate) fn spins(spins: bool) -> bool {
    with(|run, core| std::mem::replace(&mut run.cores[core].spins, spins)).unwrap_or(false)
}

/// Whether the running core spins for locks.
pub(crate) fn does_spin() -> bool {
    with(|run, core| run.cores[core].spins).unwrap_or(false)
}

/// Whether cores spin for the lock at this address: it goes to the first of them.
pub(crate) fn is_spun_for(address: usize) -> bool {
    with(|run, _| run.spinners.contains_key(&address)).unwrap_or(false)
}

/// Takes the lock whose word is at this address, by way of the queue. `word` accesses the word.
pub(crate) fn spin<G>(address: usize, site: Site, word: impl Fn(Access), mut attempt: impl FnMut() -> Option<G>) -> G {
    // The word names the last of the queue.
    word(Access::Change);
    let entered = with(|run, core| {
        let queue = run.spinners.entry(address).or_default();
        queue.push_back(core);
        (core, queue.iter().rev().nth(1).copied())
    });
    let (me, before) = entered.unwrap_or_default();
    if let Some(before) = before {
        touch(LINES + before, Access::Write, site);
        while !is_head(address) {
            stop();
        }
        touch(LINES + me, Access::Read, site);
    }
    let guard = loop {
        word(Access::Read);
        match attempt() {
            Some(guard) => break guard,
            None => stop(),
        }
    };
    word(Access::Change);
    let next = with(|run, _| {
        let queue = run.spinners.get_mut(&address)?;
        queue.pop_front();
        let next = queue.front().copied();
        if next.is_none() {
            run.spinners.remove(&address);
        }
        next
    });
    if let Some(next) = next.flatten() {
        touch(LINES + next, Access::Write, site);
        go_on(next);
    }
    guard
}

/// The lock at this address is released: the head of its queue sees it.
pub(super) fn released(address: usize) {
    let head = with(|run, _| run.spinners.get(&address)?.front().copied());
    if let Some(head) = head.flatten() {
        go_on(head);
    }
}

fn is_head(address: usize) -> bool {
    with(|run, core| run.spinners.get(&address).and_then(|queue| queue.front()) == Some(&core)).unwrap_or(true)
}

/// The running core sees no change until another one makes it.
fn stop() {
    let stopped = with(|run, core| run.cores[core].state = State::Parked);
    if stopped.is_some() {
        give_way();
    }
}

/// A core sees a change that the running one has just made.
fn go_on(other: usize) {
    with(|run, core| {
        let now = run.cores[core].clock;
        let other_core = &mut run.cores[other];
        if other_core.state == State::Parked {
            other_core.turn += 1;
            run.ready.push(Reverse((now.max(other_core.clock), other, other_core.turn)));
        }
    });
}

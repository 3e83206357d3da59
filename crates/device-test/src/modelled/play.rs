//! Threads in virtual time, whose operations are played one by one and put on the time axis by their charges.
//!
//! An operation is played when it begins: the earliest thread is always the next one. Then each of its
//! [charges](Charge) happens at its time, among those of the other threads.
//!
//! ```text
//!   busy:     ──transfer──┤ (one at a time) ──after──> done
//!   durable:  ├── one flush ──┤├── the next ──┤        who comes while one runs shares the next
//!   flush:    came ─> gathers, by the rule of GroupCommit ─> flush for the whole group ─> done
//! ```
//!
//! An operation that is alone (a checkpoint) is played like others; from then until its end no other one begins, and
//! its flushes wait for nobody.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use f2fs_sync::{Gathering, Gathers};

use super::ledger::{Charge, Ledger, Place};

/// An operation that was played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Played {
    /// No other operation begins before its end.
    pub is_alone: bool,
}

/// Plays so many threads: `play` plays the next operation of a thread (`None`: it has no more), and `ended` is told when
/// each began and ended. Each operation takes `processor` at its beginning. Returns the time of the last end.
///
/// # Errors
/// The first of `play`.
pub fn play<E>(
    ledger: &Ledger,
    threads: usize,
    processor: Duration,
    play: impl FnMut(usize) -> Result<Option<Played>, E>,
    ended: impl FnMut(usize, Duration, Duration),
) -> Result<Duration, E> {
    drop(ledger.take());
    let states = (0..ledger.devices()).map(|_| Device::default()).collect();
    let players = (0..threads).map(|_| Player::default()).collect();
    let (events, kept_out) = (BTreeMap::new(), Vec::new());
    let mut stage = Stage { now: Duration::ZERO, number: 0, events, devices: states, players, alone: None, kept_out };
    (0..threads).for_each(|thread| stage.at(Duration::ZERO, Event::Goes(thread)));
    stage.run(ledger, processor, play, ended)
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The next charge of a thread's operation, or its end.
    Goes(usize),
    /// The patience of the thread that watches for others; how many groups there had been.
    IsOver(Place, u64),
    /// The flush of a group.
    IsDone(Place),
}

#[derive(Debug, Default)]
struct Player {
    begun: Duration,
    charges: VecDeque<Charge>,
    is_playing: bool,
    is_alone: bool,
}

#[derive(Debug, Default)]
struct Device {
    busy_until: Duration,
    /// The flush that began last.
    flush: Option<(Duration, Duration)>,
    gathering: Gathering,
    /// Threads that wait for a group, and how long a flush takes.
    queue: Vec<(usize, Duration)>,
    group: Vec<usize>,
    group_begun: Duration,
    groups: u64,
}

impl Device {
    /// When a flush is over that is asked for at `now`.
    fn flushed(&mut self, now: Duration, time: Duration) -> Duration {
        match self.flush {
            // It begins later than this, or now: it covers what was written before.
            Some((begun, ended)) if now <= begun => ended,
            // The one that runs may have begun before the caller's data came: it waits for the next.
            before => {
                let begun = before.map_or(now, |(_, ended)| ended.max(now));
                self.flush = Some((begun, begun + time));
                begun + time
            }
        }
    }
}

#[derive(Debug)]
struct Stage {
    now: Duration,
    number: u64,
    /// In the order of time, and of their making.
    events: BTreeMap<(Duration, u64), Event>,
    devices: Vec<Device>,
    players: Vec<Player>,
    /// The thread that nobody may be beside.
    alone: Option<usize>,
    kept_out: Vec<usize>,
}

impl Stage {
    fn at(&mut self, time: Duration, event: Event) {
        self.number += 1;
        self.events.insert((time, self.number), event);
    }

    fn run<E>(
        &mut self,
        ledger: &Ledger,
        processor: Duration,
        mut play: impl FnMut(usize) -> Result<Option<Played>, E>,
        mut ended: impl FnMut(usize, Duration, Duration),
    ) -> Result<Duration, E> {
        let mut last = Duration::ZERO;
        while let Some(((time, _), event)) = self.events.pop_first() {
            self.now = time;
            match event {
                Event::Goes(thread) => {
                    if let Some(charge) = self.players[thread].charges.pop_front() {
                        self.charge(thread, charge);
                        continue;
                    }
                    if std::mem::take(&mut self.players[thread].is_playing) {
                        last = time;
                        ended(thread, self.players[thread].begun, time);
                        self.let_in(thread);
                    }
                    if self.alone.is_some() {
                        self.kept_out.push(thread);
                        continue;
                    }
                    let Some(Played { is_alone }) = play(thread)? else { continue };
                    let mut charges = VecDeque::from(ledger.take());
                    charges.push_front(Charge::Alone(processor));
                    self.players[thread] = Player { begun: time, charges, is_playing: true, is_alone };
                    self.alone = is_alone.then_some(thread);
                    self.at(time, Event::Goes(thread));
                }
                Event::IsOver(place, groups) => {
                    // If no group was formed since, the one that watches is still the first.
                    let device = &mut self.devices[place.0];
                    if device.gathering.is_over(device.groups == groups) {
                        self.begin_group(place);
                    }
                }
                Event::IsDone(place) => self.end_group(place),
            }
        }
        Ok(last)
    }

    /// An operation ended: if it was alone, others go on.
    fn let_in(&mut self, thread: usize) {
        if self.alone == Some(thread) {
            self.alone = None;
            let now = self.now;
            for thread in std::mem::take(&mut self.kept_out) {
                self.at(now, Event::Goes(thread));
            }
        }
    }

    fn charge(&mut self, thread: usize, charge: Charge) {
        let now = self.now;
        let then = match charge {
            Charge::Alone(time) => now + time,
            Charge::Busy { at, time, after } => {
                let device = &mut self.devices[at.0];
                device.busy_until = device.busy_until.max(now) + time;
                device.busy_until + after
            }
            Charge::Durable { at, time } => self.devices[at.0].flushed(now, time),
            Charge::Flush { at, time } if self.players[thread].is_alone => self.devices[at.0].flushed(now, time),
            Charge::Flush { at, time } => {
                let device = &mut self.devices[at.0];
                device.queue.push((thread, time));
                let gathers = device.gathering.came(device.queue.len());
                return self.gather(at, gathers);
            }
        };
        self.at(then, Event::Goes(thread));
    }

    fn gather(&mut self, at: Place, gathers: Gathers) {
        match gathers {
            Gathers::Leads => self.begin_group(at),
            Gathers::Watches(patience) => {
                let device = &self.devices[at.0];
                if !device.queue.is_empty() {
                    let event = Event::IsOver(at, device.groups);
                    self.at(self.now + patience, event);
                }
            }
            Gathers::Waits => {}
        }
    }

    fn begin_group(&mut self, at: Place) {
        let now = self.now;
        let device = &mut self.devices[at.0];
        let time = device.queue.first().map_or(Duration::ZERO, |(_, time)| *time);
        device.group = device.queue.drain(..).map(|(thread, _)| thread).collect();
        device.group_begun = now;
        device.groups += 1;
        let ended = device.flushed(now, time);
        self.at(ended, Event::IsDone(at));
    }

    fn end_group(&mut self, at: Place) {
        let now = self.now;
        let device = &mut self.devices[at.0];
        let group = std::mem::take(&mut device.group);
        let took = now - device.group_begun;
        let gathers = device.gathering.is_done(group.len(), device.queue.len(), took);
        self.gather(at, gathers);
        for thread in group {
            self.at(now, Event::Goes(thread));
        }
    }
}

#[cfg(test)]
mod tests;

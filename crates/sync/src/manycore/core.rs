//! The virtual cores, and which of them runs.
//!
//! # Locking rules
//!
//! None: a run is one thread. Its state is in a cell of the thread, borrowed for the length of a call of this file and
//! never while a core gives way to another one.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use generator::{Generator, Gn};
use rustc_hash::FxHashMap;

use super::lines::Lines;
use super::outcome::{Hot, Outcome, Spent};
use super::queues::{Queues, Waiter};
use super::{Machine, PICOSECONDS};
use crate::Site;

mod parking;
mod spinning;

pub(crate) use parking::{
    enqueue, is_waited_for, may_take, notify, park, reader_enters, release, wait, waiting, writer_waits,
};
pub(crate) use spinning::{does_spin, is_spun_for, spin, spins};

/// Machine words of stack for each core.
const STACK: usize = 256 << 10;
/// Places and lines that an outcome names.
const NAMED: usize = 40;
/// Processors of a machine that nobody booted.
const UNBOOTED: usize = 16;

/// How a line is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Read.
    Read,
    /// Written, by a plain store.
    Write,
    /// Read and written at once.
    Change,
}

/// How long the instructions between two accesses take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Picoseconds for each access that writes.
    pub per_write: u64,
}

/// Why a core does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Parked,
    Ended,
}

#[derive(Clone, Copy, Debug)]
struct Core {
    clock: u64,
    state: State,
    /// Changes with every wake-up: an entry of the heap with another number is of the past.
    turn: u64,
    /// Waits for a lock.
    waiting: bool,
    /// Waits for locks by spinning in a queue.
    spins: bool,
}

/// Part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    WarmUp,
    Counted,
    Over,
}

struct Run {
    cores: Vec<Core>,
    running: Option<usize>,
    /// Time, core, turn.
    ready: BinaryHeap<Reverse<(u64, usize, u64)>>,
    lines: Lines,
    queues: Queues,
    /// Cores that spin for a lock, by its address.
    spinners: FxHashMap<usize, VecDeque<usize>>,
    machine: Machine,
    /// Picoseconds for each access that writes.
    per_write: u64,
    /// How far a core may run ahead of all others while it hits its own lines.
    ahead: u64,
    tickets: u64,
    // Measurements.
    /// Operations of all cores.
    laps: u64,
    /// Of these, those before anything is counted.
    warm_up: u64,
    phase: Phase,
    begun: u64,
    spent: Spent,
    places: FxHashMap<Site, (u64, u64)>,
    waits: FxHashMap<Site, (u64, u64)>,
    outcome: Outcome,
    accesses: u64,
}

std::thread_local! {
    static RUN: RefCell<Option<Run>> = const { RefCell::new(None) };
    /// Outside of a run.
    static PREPARING: Cell<usize> = const { Cell::new(0) };
}

static PROCESSORS: AtomicUsize = AtomicUsize::new(UNBOOTED);

/// From now on [`processors`](crate::processors()) are this machine's, in the whole process: to be called before the
/// structures are made that a run is about.
pub fn boot(machine: &Machine) {
    PROCESSORS.store(machine.cores(), Ordering::Relaxed);
}

pub(crate) fn processors() -> usize {
    PROCESSORS.load(Ordering::Relaxed)
}

/// Works on the run, from within a core. `None` outside of one, and while a panic unwinds.
fn with<R>(work: impl FnOnce(&mut Run, usize) -> R) -> Option<R> {
    if std::thread::panicking() {
        return None;
    }
    RUN.try_with(|run| {
        let mut run = run.try_borrow_mut().ok()?;
        let run = run.as_mut()?;
        let core = run.running?;
        Some(work(run, core))
    })
    .ok()?
}

/// Lets other cores run.
fn give_way() {
    // The version with a scope would have to be handed through the code under test.
    #[allow(deprecated)]
    generator::yield_with(());
}

/// Which core runs; `None` outside of a run.
#[must_use]
pub fn running() -> Option<usize> {
    with(|_, core| core)
}

/// Runs what a core has to prepare before a run, as that core and in no time.
pub fn prepare(core: usize, work: impl FnOnce()) {
    let before = PREPARING.replace(core);
    work();
    PREPARING.set(before);
}

/// Does work that takes the core no time and moves no line: what hardware of its own does, such as a device. It must
/// leave no lock taken that other cores take.
pub fn apart<R>(work: impl FnOnce() -> R) -> R {
    let core = with(|run, _| run.running.take()).flatten();
    let result = work();
    if core.is_some() {
        RUN.with(|run| {
            if let Some(run) = run.borrow_mut().as_mut() {
                run.running = core;
            }
        });
    }
    result
}

/// The core that runs; outside of a run, the one that prepares, or the first.
pub(crate) fn processor() -> usize {
    running().unwrap_or_else(|| PREPARING.get())
}

/// The running core's clock, in nanoseconds.
#[must_use]
pub fn now() -> u64 {
    now_if_running().unwrap_or(0) / PICOSECONDS
}

pub(super) fn now_if_running() -> Option<u64> {
    with(|run, core| run.cores[core].clock)
}

/// The running core has done an operation.
pub fn lap() {
    with(Run::lap);
}

/// The running core computes for so many picoseconds.
pub fn work(picoseconds: u64) {
    with(|run, core| run.pass(core, picoseconds, |spent| &mut spent.work));
    settle();
}

/// The core accesses a line.
pub(crate) fn touch(line: usize, access: Access, site: Site) {
    // In the order of time: a transfer when no other core is behind, a hit when none is so far behind that it could
    // have taken the line.
    while with(|run, core| run.must_give_way(core, run.lines.is_hit(line, core, access))).unwrap_or(false) {
        give_way();
    }
    let moved = with(|run, core| run.touch(core, line, access, site));
    if moved == Some(true) {
        settle();
    }
}

/// The line is the running core's alone, changed by it, at no cost.
pub(crate) fn give(line: usize) {
    with(|run, core| run.lines.give(line, core));
}

/// Waits until no other core is behind this one.
fn settle() {
    while with(|run, core| run.must_give_way(core, false)).unwrap_or(false) {
        give_way();
    }
}

/// A fence.
pub(crate) fn fence() {
    with(|run, core| run.pass(core, run.machine.change, |spent| &mut spent.work));
}

/// So many pause instructions.
pub(crate) fn pause(count: u64) {
    with(|run, core| run.pass(core, count * run.machine.pause, |spent| &mut spent.work));
}

/// A system call that gives the processor up.
pub(crate) fn yield_now() {
    with(|run, core| run.pass(core, run.machine.yield_call, |spent| &mut spent.work));
    settle();
}

/// Sleeps.
pub(crate) fn sleep(duration: Duration) {
    wait_for_device(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).saturating_mul(PICOSECONDS));
}

/// Waits for so many picoseconds.
pub(super) fn wait_for_device(picoseconds: u64) {
    with(|run, core| run.pass(core, picoseconds, |spent| &mut spent.device));
    settle();
}

impl Run {
    /// Lets time pass on a core.
    fn pass(&mut self, core: usize, picoseconds: u64, what: impl FnOnce(&mut Spent) -> &mut u64) {
        let this = &mut self.cores[core];
        this.clock = this.clock.saturating_add(picoseconds);
        if self.phase == Phase::Counted {
            *(if this.waiting { &mut self.spent.locks } else { what(&mut self.spent) }) += picoseconds;
        }
    }

    /// Whether another core has to run before this one goes on; it is ready again when its time comes.
    fn must_give_way(&mut self, core: usize, is_hit: bool) -> bool {
        let clock = self.cores[core].clock;
        let limit = if is_hit { clock.saturating_sub(self.ahead) } else { clock };
        match self.earliest() {
            Some(earliest) if earliest < limit => {
                let turn = self.cores[core].turn;
                self.ready.push(Reverse((clock, core, turn)));
                true
            }
            _ => false,
        }
    }

    /// When the next other core could go on.
    fn earliest(&mut self) -> Option<u64> {
        while let Some(Reverse((time, core, turn))) = self.ready.peek().copied() {
            if self.cores[core].turn == turn {
                return Some(time);
            }
            self.ready.pop();
        }
        None
    }

    /// The core that runs next.
    fn next(&mut self) -> Option<usize> {
        self.earliest()?;
        let Reverse((time, core, _)) = self.ready.pop()?;
        let this = &mut self.cores[core];
        this.turn += 1;
        let slept = time.saturating_sub(this.clock);
        this.state = State::Ready;
        if slept > 0 {
            self.cores[core].clock = time;
            if self.phase == Phase::Counted {
                self.spent.locks += slept;
            }
        }
        self.running = Some(core);
        Some(core)
    }

    /// Accesses a line; whether it had to be fetched.
    fn touch(&mut self, core: usize, line: usize, access: Access, site: Site) -> bool {
        self.accesses += 1;
        let cost = self.lines.access(line, core, access, self.cores[core].clock, site);
        if self.phase == Phase::Counted && access != Access::Read && !self.cores[core].waiting {
            self.outcome.writes += 1;
        }
        let instructions = if access == Access::Read || self.cores[core].waiting { 0 } else { self.per_write };
        self.pass(core, cost.total - cost.transfer + instructions, |spent| &mut spent.work);
        if cost.transfer == 0 {
            return false;
        }
        self.pass(core, cost.transfer, |spent| &mut spent.lines);
        if self.phase == Phase::Counted {
            let place = self.places.entry(site).or_default();
            place.0 += 1;
            place.1 += cost.transfer;
        }
        true
    }

    fn enqueue(&mut self, core: usize, address: usize, exclusive: bool) -> u64 {
        self.tickets += 1;
        self.queues.enqueue(address, Waiter { core, exclusive, ticket: self.tickets });
        self.tickets
    }

    /// Wakes these, at the cost of the running core.
    fn wake(&mut self, core: usize, woken: &[Waiter]) {
        for waiter in woken {
            self.pass(core, self.machine.wake, |spent| &mut spent.locks);
            let at = self.cores[core].clock + self.machine.wakeup;
            let other = &mut self.cores[waiter.core];
            if other.state == State::Parked {
                // The timer that would have woken it is of no use any more.
                other.turn += 1;
                self.ready.push(Reverse((at.max(other.clock), waiter.core, other.turn)));
            }
        }
    }

    fn lap(&mut self, core: usize) {
        self.laps += 1;
        match self.phase {
            Phase::WarmUp if self.laps == self.warm_up => {
                self.phase = Phase::Counted;
                self.begun = self.cores[core].clock;
                self.lines.forget_costs();
            }
            Phase::Counted => self.outcome.laps += 1,
            Phase::WarmUp | Phase::Over => {}
        }
    }

    /// A core has done all of its work.
    fn end(&mut self, core: usize) {
        self.cores[core].state = State::Ended;
        if self.phase != Phase::Counted {
            return;
        }
        self.phase = Phase::Over;
        let hot = |cost: u64, transfers: u64, site: Site| Hot { site, transfers, cost };
        let dearest = |places: &FxHashMap<Site, (u64, u64)>| {
            let mut places: Vec<Hot> =
                places.iter().map(|(site, (transfers, cost))| hot(*cost, *transfers, *site)).collect();
            places.sort_by(|a, b| b.cost.cmp(&a.cost).then(a.site.cmp(&b.site)));
            places.truncate(NAMED);
            places
        };
        self.outcome.places = dearest(&self.places);
        self.outcome.waits = dearest(&self.waits);
        let lines = self.lines.hottest(NAMED);
        self.outcome.lines = lines.into_iter().map(|(cost, transfers, site)| hot(cost, transfers, site)).collect();
        self.outcome.time = self.cores[core].clock.saturating_sub(self.begun);
        self.outcome.spent = self.spent;
    }
}

/// Takes the run away however it ends, before the coroutines are dropped: what they still hold is released without a
/// model.
struct Begun;

impl Drop for Begun {
    fn drop(&mut self) {
        RUN.with(|run| *run.borrow_mut() = None);
    }
}

/// Runs `body` on each of so many cores of the machine (128 at most), the first ones, with its number. The cores call
/// [`lap`] after each operation; counted is from where they have done `warm_up` of them (1 at least) on average until the
/// first has ended.
///
/// # Panics
///
/// If one of the bodies does; if all wait for each other; if one run is begun inside of another one.
pub fn run<'a>(
    machine: &Machine,
    pace: &Pace,
    cores: usize,
    warm_up: u64,
    body: impl Fn(usize) + Sync + 'a,
) -> Outcome {
    let cores: Vec<usize> = (0..cores.max(1)).collect();
    run_on(machine, pace, &cores, warm_up, body)
}

/// The same on these cores of the machine: those it has, each once.
///
/// # Panics
///
/// As [`run`] does.
pub fn run_on<'a>(
    machine: &Machine,
    pace: &Pace,
    cores: &[usize],
    warm_up: u64,
    body: impl Fn(usize) + Sync + 'a,
) -> Outcome {
    let (most, mut chosen) = (machine.cores().min(128), [false; 128]);
    cores.iter().filter(|core| **core < most).for_each(|core| chosen[*core] = true);
    let count = chosen.iter().filter(|chosen| **chosen).count();
    let numbers = || (0..most).filter(|core| chosen[*core]);
    let idle = Core { clock: 0, state: State::Ended, turn: 0, waiting: false, spins: false };
    let state = |core: usize| if chosen[core] { State::Ready } else { State::Ended };
    let begun = Run {
        cores: (0..most).map(|core| Core { state: state(core), ..idle }).collect(),
        running: None,
        // A little apart, so that they do not go in step.
        ready: numbers().map(|core| Reverse((core as u64 * 7919 % 100_003, core, 0))).collect(),
        lines: Lines::new(machine),
        queues: Queues::default(),
        spinners: FxHashMap::default(),
        machine: machine.clone(),
        per_write: pace.per_write * machine.slower / 100,
        ahead: machine.levels.first().map_or(0, |level| level.transfer),
        tickets: 0,
        laps: 0,
        warm_up: warm_up.max(1) * count as u64,
        phase: Phase::WarmUp,
        begun: 0,
        spent: Spent::default(),
        places: FxHashMap::default(),
        waits: FxHashMap::default(),
        outcome: Outcome { cores: count, ..Outcome::default() },
        accesses: 0,
    };
    let body = &body;
    let mut bodies: Vec<Option<Generator<'_, (), ()>>> =
        (0..most).map(|core| chosen[core].then(|| Gn::new_opt(STACK, move || body(core)))).collect();
    RUN.with(|run| {
        let mut run = run.borrow_mut();
        assert!(run.is_none(), "a run inside of a run");
        *run = Some(begun);
    });
    // Dropped before the bodies.
    let over = Begun;
    let next = || RUN.with(|run| run.borrow_mut().as_mut().and_then(Run::next));
    while let Some(core) = next() {
        let Some(body) = &mut bodies[core] else { continue };
        body.resume();
        RUN.with(|run| {
            if let Some(run) = run.borrow_mut().as_mut() {
                run.running = None;
                if body.is_done() {
                    run.end(core);
                }
            }
        });
    }
    let ended = RUN.with(|run| run.borrow_mut().take());
    drop(over);
    let Some(ended) = ended else { return Outcome::default() };
    let stuck: Vec<usize> = numbers().filter(|core| ended.cores[*core].state != State::Ended).collect();
    assert!(stuck.is_empty(), "cores that wait for each other: {stuck:?}");
    Outcome { accesses: ended.accesses, ..ended.outcome }
}

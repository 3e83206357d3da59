//! Calls of the wrappers to the virtual core that runs. Outside of a simulation they are those of production.

use std::any::type_name;
use std::cell::Cell;
use std::panic::Location;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Kind, Site};
use crate::manycore::core::{self, Access};

/// Bytes of a cache line.
const LINE: usize = 64;
/// The most lines of a value behind a lock that are touched: of a larger value, one operation touches a part only.
const VALUE_LINES: usize = 4;
/// Rounds that `parking_lot` spins before it parks a thread.
const SPINS: u32 = 10;

fn touch(address: usize, access: Access, what: &'static str, at: &Location<'static>) {
    core::touch(address / LINE, access, Site { file: at.file(), line: at.line(), what });
}

fn address_of<T: ?Sized>(object: &T) -> usize {
    std::ptr::from_ref(object).cast::<u8>().addr()
}

/// The core that runs; outside of a simulation, the one that prepares.
pub(crate) fn processor() -> usize {
    core::processor()
}

/// Processors of the machine.
pub(crate) fn processors() -> usize {
    core::processors()
}

/// An atomic or a cell is read.
#[track_caller]
pub(crate) fn read<T: ?Sized>(object: &T, what: &'static str) {
    touch(address_of(object), Access::Read, what, Location::caller());
}

/// The word at an address is read.
#[track_caller]
pub(crate) fn read_at(address: usize, what: &'static str) {
    touch(address, Access::Read, what, Location::caller());
}

/// A word is written.
#[track_caller]
pub(crate) fn written<T: ?Sized>(object: &T, what: &'static str) {
    touch(address_of(object), Access::Change, what, Location::caller());
}

/// The word at an address is written.
#[track_caller]
pub(crate) fn written_at(address: usize, what: &'static str) {
    touch(address, Access::Change, what, Location::caller());
}

/// The value behind a lock is read or written: its own bytes, not the memory that it points to.
#[track_caller]
pub(crate) fn value<T: ?Sized>(value: &T, written: bool, what: &'static str) {
    let at = Location::caller();
    let access = if written { Access::Write } else { Access::Read };
    lines(value).take(VALUE_LINES).for_each(|line| touch(line * LINE, access, what, at));
}

/// The memory of an object is accessed, all lines of it.
#[track_caller]
pub(crate) fn memory<T: ?Sized>(object: &T, access: Access) {
    let at = Location::caller();
    lines(object).for_each(|line| touch(line * LINE, access, type_name::<T>(), at));
}

/// The memory of an object is the running core's alone.
pub(crate) fn made<T: ?Sized>(object: &T) {
    lines(object).for_each(core::give);
}

/// The lines of an object; none outside of a simulation.
fn lines<T: ?Sized>(object: &T) -> impl Iterator<Item = usize> {
    let (first, bytes) = (address_of(object), size_of_val(object));
    let behind = if bytes == 0 || core::running().is_none() { first } else { (first + bytes).next_multiple_of(LINE) };
    first / LINE..behind / LINE
}

/// Whether a lock that is free goes to whoever asks: not if cores spin for it in a queue.
pub(crate) fn is_open<T: ?Sized>(lock: &T) -> bool {
    !core::is_spun_for(address_of(lock))
}

/// A memory fence.
pub fn fence(order: Ordering) {
    core::fence();
    std::sync::atomic::fence(order);
}

/// One round of a spin.
pub fn spin_loop() {
    if core::running().is_some() { core::pause(1) } else { std::hint::spin_loop() }
}

/// Gives the processor up: a system call.
pub fn yield_now() {
    if core::running().is_some() { core::yield_now() } else { std::thread::yield_now() }
}

/// Sleeps; in a simulation, the core's clock goes on by so much.
pub fn sleep(duration: Duration) {
    if core::running().is_some() { core::sleep(duration) } else { std::thread::sleep(duration) }
}

/// The word of a lock: written when it is made, and when it is dropped, which releases the lock.
#[derive(Debug)]
pub(crate) struct Word {
    address: usize,
    what: &'static str,
    at: &'static Location<'static>,
}

impl Word {
    /// Writes the word at the beginning of `object`.
    #[track_caller]
    pub(crate) fn written<T: ?Sized>(object: &T, what: &'static str) -> Word {
        let word = Word { address: address_of(object), what, at: Location::caller() };
        word.touch(Access::Change);
        word
    }

    fn site(&self) -> Site {
        Site { file: self.at.file(), line: self.at.line(), what: self.what }
    }

    fn touch(&self, access: Access) {
        touch(self.address, access, self.what, self.at);
    }

    /// Takes the lock as `parking_lot` does: at once; else after ten rounds of spinning (three with pauses, then with
    /// yields), which are left out if another core is parked; and then by parking until a release wakes the core. A lock
    /// that is waited for by [`spinning`](crate::spinning) is a mutex, and all of its users wait for it in that way.
    pub(crate) fn acquire<G>(&self, kind: Kind, mut attempt: impl FnMut() -> Option<G>, wait: impl FnOnce() -> G) -> G {
        if core::running().is_none() {
            return wait();
        }
        // A parked writer keeps new readers out, but not those that were woken before it.
        let address = self.address;
        if kind == Kind::Exclusive && core::does_spin() {
            let free = (!core::is_spun_for(address)).then(&mut attempt).flatten();
            return free.unwrap_or_else(|| {
                core::waiting(self.site(), || core::spin(address, self.site(), |access| self.touch(access), attempt))
            });
        }
        let woken = Cell::new(false);
        let mut attempt = || {
            let kept = kind == Kind::Shared && !woken.get() && core::writer_waits(address) || !core::may_take(address);
            if kept { None } else { attempt() }
        };
        let guard = attempt().unwrap_or_else(|| {
            core::waiting(self.site(), || {
                let mut round = 0;
                loop {
                    while round < SPINS && !core::is_waited_for(address) {
                        if round < 3 {
                            core::pause(2 << round);
                        } else {
                            core::yield_now();
                        }
                        round += 1;
                        self.touch(Access::Read);
                        if attempt().is_some() {
                            self.touch(Access::Change);
                            if let Some(guard) = attempt() {
                                return guard;
                            }
                        }
                    }
                    self.touch(Access::Change);
                    if let Some(guard) = attempt() {
                        return guard;
                    }
                    core::park(address, kind == Kind::Exclusive);
                    woken.set(true);
                    self.touch(Access::Change);
                    if let Some(guard) = attempt() {
                        return guard;
                    }
                    round = 0;
                }
            })
        });
        self.acquired(kind);
        guard
    }

    /// The lock was free.
    pub(crate) fn acquired(&self, kind: Kind) {
        if kind == Kind::Shared {
            core::reader_enters(self.address);
        }
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        self.touch(Access::Change);
        core::release(self.address);
    }
}

//! Puts writes in order: a device above a zoned one, which holds a write back until all writes in front of it in its
//! zone are there.
//!
//! A writer takes blocks of a zone from its start to its end, each once. It submits the writes in any order, from any
//! thread. The zones take them in one order only, and the system below keeps no order between requests in flight. So
//! each zone has one request with the device at a time. Writes that come meanwhile wait, and those that follow each
//! other go together as the next request. At the device's limit of active zones, the first write of a zone waits until
//! another zone is full.
//!
//! ```text
//!   threads:  [8..12)   [0..4)   [4..8)          the zone's queue                the device
//!                 │        │        └──────────► 0..4 is next, and is sent ────► 0..4
//!                 │        └───────────────────► 4..8, 8..12 wait
//!                 └────────────────────────────► when 0..4 is over, they go as one: 4..12
//! ```
//!
//! A failed write closes its zone, since the position of the zone's pointer is not known any more. Writes to the zone
//! fail with the same error until it is reset or finished.
//!
//! # Locking rules
//!
//! Each zone's queue has a lock, and under it the slots of completions and the list of active zones are locked for a
//! look. No lock is held while the device works. **There is no thread of its own.** A thread that waits for a write
//! waits for the request that the write's zone has with the device, and sends the next one. If its write waits for
//! another zone to be full, it waits for requests of the active zones. If there is nothing to wait for, it sleeps; a
//! thread that submits a request to the device, or completes one, wakes all sleepers. A thread that is about to sleep
//! announces it, and then looks into the queues once more. A thread that changes a queue then looks for sleepers. The
//! queue's lock puts the two in an order, so one of them sees the other (`tests/loom_ordered.rs`).

mod queue;
mod waiter;

use f2fs_sync::atomic::{AtomicUsize, Ordering};
use f2fs_sync::{Arc, CachePadded, Condvar, Mutex, PlainArc, protocol_step};

use self::queue::{Flying, Part, Slot, ZoneQueue};
use self::waiter::{Piece, Waiter};
use super::{Zone, ZoneChange, ZoneState};
use crate::{BlockDevice, Claims, Completion, DeviceError, DeviceErrorKind, DeviceInfo, Op, Request, Ticket};

/// A zoned device to which writes may be submitted in any order.
///
/// Everything but a write into a zone that is written in its order passes unchanged.
///
/// ```
/// use f2fs_device::{AlignedBuf, BlockDevice, MemoryDevice, OrderedZones, Request, ZoneLayout, ZonedDevice};
/// use f2fs_sync::PlainArc;
///
/// let zoned = PlainArc::new(ZonedDevice::new(MemoryDevice::new(1024), ZoneLayout::new(256))?);
/// let device = OrderedZones::new(zoned)?;
/// let second = device.submit(vec![Request::write(4, AlignedBuf::new(4))]);
/// assert_eq!(device.write_pointer(0), Some(0), "it waits");
/// device.write(0, AlignedBuf::new(4))?;
/// assert!(second.wait()[0].result.is_ok());
/// assert_eq!(device.write_pointer(0), Some(8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OrderedZones {
    shared: Arc<Shared>,
}

/// The state that waiting threads need.
#[derive(Debug)]
struct Shared {
    inner: PlainArc<dyn BlockDevice>,
    /// The zones that are written in their order, by their first block.
    zones: Box<[CachePadded<Mutex<ZoneQueue>>]>,
    /// The bounds of each.
    places: Box<[(u64, u64)]>,
    active: Mutex<Active>,
    sleepers: Sleepers,
}

/// The zones that count against the device's limit.
#[derive(Debug)]
struct Active {
    /// At most so many.
    limit: usize,
    zones: Vec<usize>,
    /// Zones in which a write failed, and that nobody has finished or reset since: whether the device counts them is
    /// not known.
    failed: Vec<usize>,
    /// Zones with a first write that waits, in their order.
    waiting: std::collections::VecDeque<usize>,
}

/// Threads without a request that they could wait for.
#[derive(Debug, Default)]
struct Sleepers {
    count: AtomicUsize,
    /// Grows with each change of a queue that somebody may sleep for.
    changes: Mutex<u64>,
    changed: Condvar,
}

impl Sleepers {
    /// Wakes all, after a change of a queue.
    fn wake(&self) {
        if self.count.load(Ordering::Relaxed) != 0 {
            *self.changes.lock() += 1;
            protocol_step!("ordered_zone_wakes", self.changed.notify_all());
        }
    }

    /// Sleeps until the next change, unless `found` finds that there is something to do.
    fn sleep(&self, found: impl FnOnce() -> bool) {
        let seen = *self.changes.lock();
        self.count.fetch_add(1, Ordering::Relaxed);
        if !found() {
            let mut changes = self.changes.lock();
            while *changes == seen {
                self.changed.wait(&mut changes);
            }
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl OrderedZones {
    /// In front of `inner`, whose zones are as they are now. Nobody else may write to them from here on.
    ///
    /// # Errors
    /// Those of a report.
    pub fn new(inner: PlainArc<dyn BlockDevice>) -> Result<OrderedZones, DeviceError> {
        let zones = inner.report_zones(0, usize::MAX)?;
        let sequential = || zones.iter().filter(|zone| zone.state != ZoneState::Conventional);
        let limit = inner.info().zones.and_then(|limits| limits.at_once()).map_or(usize::MAX, |limit| limit as usize);
        let active = sequential().enumerate().filter(|(_, zone)| zone.state.is_active()).map(|(at, _)| at).collect();
        let shared = Shared {
            zones: sequential().map(|zone| CachePadded::new(Mutex::new(ZoneQueue::new(zone)))).collect(),
            places: sequential().map(|zone| (zone.start, zone.start + zone.blocks)).collect(),
            active: Mutex::new(Active { limit, zones: active, failed: Vec::new(), waiting: Default::default() }),
            sleepers: Sleepers::default(),
            inner,
        };
        Ok(OrderedZones { shared: Arc::new(shared) })
    }

    /// The device below.
    #[must_use]
    pub fn inner(&self) -> &PlainArc<dyn BlockDevice> {
        &self.shared.inner
    }

    /// Whether a block lies in a zone that is written in its order.
    #[must_use]
    pub fn is_sequential(&self, block: u64) -> bool {
        self.shared.zone_of(block).is_some()
    }

    /// The block at which the next write to the zone of `block` has to begin, as far as writes were sent. `None`: it
    /// takes none (it is full, worn out, offline, or a write failed), or it is written anywhere.
    #[must_use]
    pub fn write_pointer(&self, block: u64) -> Option<u64> {
        self.shared.zones[self.shared.zone_of(block)?].lock().write_pointer()
    }

    /// Whether a write to the zone of `block` failed, so that it takes no more until it is reset or finished.
    #[must_use]
    pub fn has_failed(&self, block: u64) -> bool {
        self.shared.zone_of(block).is_some_and(|zone| self.shared.zones[zone].lock().is_closed())
    }

    /// Zones that may be written to at a time; `None` if there is no limit.
    #[must_use]
    pub fn limit(&self) -> Option<u32> {
        u32::try_from(self.shared.active.lock().limit).ok()
    }

    /// The first blocks of the zones that are written in part: zones that count against the limit, and zones in which a
    /// write failed.
    #[must_use]
    pub fn active(&self) -> Vec<u64> {
        let active = self.shared.active.lock();
        active.zones.iter().chain(&active.failed).map(|zone| self.shared.places[*zone].0).collect()
    }

    /// Writes that never came will not come: those that wait behind them fail, and so do all from here on. For an owner
    /// that cannot go on.
    pub fn give_up(&self) {
        for zone in &self.shared.zones {
            zone.lock().give_up();
        }
        protocol_step!("ordered_zone_wakes_when_given_up", self.shared.sleepers.wake());
    }
}

impl Shared {
    /// The zone that a block lies in, if it is one that is written in its order.
    fn zone_of(&self, block: u64) -> Option<usize> {
        let behind = self.places.partition_point(|(start, _)| *start <= block);
        behind.checked_sub(1).filter(|zone| block < self.places[*zone].1)
    }

    /// The zone of a request that has to wait for others.
    fn zone_of_write(&self, request: &Request) -> Option<usize> {
        let writes = matches!(request.op, Op::Write | Op::WriteFua) && !request.bufs.is_empty();
        if writes { self.zone_of(request.start) } else { None }
    }

    /// Takes in a write.
    fn enter(&self, zone: usize, request: Request) -> Result<Arc<Slot>, Box<Completion>> {
        if let Err(error) = self.inner.info().check(&request) {
            return Err(Box::new(Completion { request, result: Err(error) }));
        }
        self.zones[zone].lock().enter(request)
    }

    /// Sends the next request of a zone, and of zones that waited for this one to be full.
    fn drive(&self, zone: usize) {
        let mut next = Some(zone);
        while let Some(zone) = next.take() {
            next = self.drive_one(zone);
        }
        self.sleepers.wake();
    }

    /// Gives the next zone to drive.
    fn drive_one(&self, zone: usize) -> Option<usize> {
        loop {
            let (request, parts) = {
                let mut queue = self.zones[zone].lock();
                if !queue.is_ready() || !self.may_send(zone, &mut queue) {
                    return None;
                }
                queue.take_next()?
            };
            let way = OnTheWay { shared: self, zone, parts: Some(parts) };
            let mut ticket = self.inner.submit(vec![request]);
            match ticket.try_any() {
                None if ticket.remaining() != 0 => {
                    let parts = way.leave();
                    self.zones[zone].lock().flying = Flying::Left(ticket, parts);
                    return None;
                }
                completion => {
                    if let Some(waiting) = way.over(completion.map(|(_, completion)| completion)) {
                        // This zone has nothing more to send: it is full, or closed.
                        return Some(waiting);
                    }
                }
            }
        }
    }

    /// Whether the limit of active zones lets this one be written; if not, it gets the next place.
    fn may_send(&self, zone: usize, queue: &mut ZoneQueue) -> bool {
        if !queue.begins() {
            return true;
        }
        let mut active = self.active.lock();
        queue.counted = active.zones.len() < active.limit;
        if queue.counted {
            active.zones.push(zone);
        } else if !std::mem::replace(&mut queue.waits, true) {
            active.waiting.push_back(zone);
        }
        queue.counted
    }

    /// A zone counts no more, since it is full or empty, or a write failed. Gives the zone that waited for that.
    fn leave_active(&self, zone: usize, failed: bool) -> Option<usize> {
        let mut active = self.active.lock();
        active.zones.retain(|other| *other != zone);
        active.failed.retain(|other| *other != zone);
        if failed {
            active.failed.push(zone);
        }
        protocol_step!("ordered_zone_lets_the_next_one_in", return active.waiting.pop_front());
        None
    }

    /// The zone of a request that a thread can wait for, so that its own writes go on: one of these zones, or an active
    /// one that has to be full before one of these may begin.
    fn somewhere_to_wait(&self, pieces: &[Piece]) -> Option<usize> {
        let is_left = |zone: usize| matches!(self.zones[zone].lock().flying, Flying::Left(..));
        let own = pieces.iter().map(|piece| piece.zone);
        own.clone().find(|zone| is_left(*zone)).or_else(|| {
            let waits = own.into_iter().any(|zone| self.zones[zone].lock().waits);
            let active = if waits { self.active.lock().zones.clone() } else { Vec::new() };
            active.into_iter().find(|zone| is_left(*zone))
        })
    }

    /// Waits for the request that a zone has with the device, or looks whether it is over.
    fn reap(&self, zone: usize, block: bool) {
        let (mut ticket, parts) = {
            let mut queue = self.zones[zone].lock();
            match std::mem::replace(&mut queue.flying, Flying::Busy) {
                Flying::Left(ticket, parts) => (ticket, parts),
                other => {
                    queue.flying = other;
                    return;
                }
            }
        };
        let way = OnTheWay { shared: self, zone, parts: Some(parts) };
        let completion = if block { ticket.wait_any() } else { ticket.try_any() };
        if completion.is_none() && !block && ticket.remaining() != 0 {
            let parts = way.leave();
            self.zones[zone].lock().flying = Flying::Left(ticket, parts);
            self.sleepers.wake();
            return;
        }
        let waiting = way.over(completion.map(|(_, completion)| completion));
        self.drive(zone);
        if let Some(waiting) = waiting {
            self.drive(waiting);
        }
    }

    /// Whether there is something to do for a thread that waits for these.
    fn has_work(&self, pieces: &[Piece]) -> bool {
        pieces.iter().any(|piece| piece.slot.lock().is_some()) || self.somewhere_to_wait(pieces).is_some()
    }
}

/// A request that this thread hands to the device, or waits for. If a panic of the device unwinds it, the zone is
/// closed.
struct OnTheWay<'a> {
    shared: &'a Shared,
    zone: usize,
    /// `None` once the request is somebody else's, or over.
    parts: Option<Vec<Part>>,
}

impl OnTheWay<'_> {
    /// The request stays with the device, and is not this thread's any more.
    fn leave(mut self) -> Vec<Part> {
        self.parts.take().unwrap_or_default()
    }

    /// The request is over. Gives a zone that may begin now.
    fn over(self, completion: Option<Completion>) -> Option<usize> {
        let (shared, zone) = (self.shared, self.zone);
        let parts = self.leave();
        let (freed, failed) = {
            let mut queue = shared.zones[zone].lock();
            (queue.land(parts, completion), queue.is_closed())
        };
        if !freed {
            return None;
        }
        shared.leave_active(zone, failed).inspect(|next| shared.zones[*next].lock().waits = false)
    }
}

impl Drop for OnTheWay<'_> {
    fn drop(&mut self) {
        let Some(parts) = self.parts.take() else { return };
        let freed = self.shared.zones[self.zone].lock().land(parts, None);
        if freed && let Some(next) = self.shared.leave_active(self.zone, true) {
            self.shared.zones[next].lock().waits = false;
        }
        self.shared.sleepers.wake();
    }
}

impl BlockDevice for OrderedZones {
    fn info(&self) -> &DeviceInfo {
        self.shared.inner.info()
    }

    fn claims(&self) -> &Claims {
        self.shared.inner.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        let shared = &self.shared;
        if requests.iter().all(|request| shared.zone_of_write(request).is_none()) {
            return shared.inner.submit(requests);
        }
        let total = requests.len();
        let (mut over, mut pieces, mut direct, mut places) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (index, request) in requests.into_iter().enumerate() {
            match shared.zone_of_write(&request) {
                None => {
                    direct.push(request);
                    places.push(index);
                }
                Some(zone) => match shared.enter(zone, request) {
                    Ok(slot) => pieces.push(Piece { index, zone, slot }),
                    Err(completion) => over.push((index, *completion)),
                },
            }
        }
        let direct = (!direct.is_empty()).then(|| shared.inner.submit(direct));
        let mut driven = None;
        for piece in &pieces {
            if driven.replace(piece.zone) != Some(piece.zone) {
                shared.drive(piece.zone);
            }
        }
        Ticket::pending(total, over, Box::new(Waiter { shared: shared.clone(), pieces, direct, places }))
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.shared.inner.flush()
    }

    fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        self.shared.inner.report_zones(start, count)
    }

    /// No write to the zone may be on its way. A zone that cannot be finished or reset takes no more writes.
    fn change_zone(&self, start: u64, change: ZoneChange) -> Result<(), DeviceError> {
        let changed = self.shared.inner.change_zone(start, change);
        if let (Some(zone), ZoneChange::Reset | ZoneChange::Finish) = (self.shared.zone_of(start), change) {
            {
                let mut queue = self.shared.zones[zone].lock();
                match &changed {
                    Ok(()) => queue.change(change == ZoneChange::Finish),
                    Err(error) => queue.close(&error.kind),
                }
            }
            if let Some(next) = self.shared.leave_active(zone, false) {
                self.shared.zones[next].lock().waits = false;
                self.shared.drive(next);
            }
        }
        changed
    }

    fn execute(&self, request: Request) -> Completion {
        if self.shared.zone_of_write(&request).is_none() {
            return self.shared.inner.execute(request);
        }
        let lost = request.error(DeviceErrorKind::Lost);
        let (op, start) = (request.op, request.start);
        let nothing = || Completion { request: Request::vectored(op, start, Vec::new()), result: Err(lost) };
        self.submit(vec![request]).wait().pop().unwrap_or_else(nothing)
    }

    fn read_into(&self, start: u64, buf: &mut crate::AlignedBuf) -> Result<(), DeviceError> {
        self.shared.inner.read_into(start, buf)
    }
}

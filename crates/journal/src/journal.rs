//! A journal that takes records.
//!
//! Locking rules: `header` is held while space is taken back, over the write of the header; under it lanes are locked
//! one by one, when the header is durable. An append locks lanes only (`lane.rs`), and reads the rest, which does not
//! change; `failed` is written when the medium fails.

use f2fs_device::Claim;
use f2fs_sync::atomic::{AtomicBool, Ordering};
use f2fs_sync::{CachePadded, Mutex, PerCore, protocol_never};

use crate::checksum;
use crate::geometry::Geometry;
use crate::header::{AREA, Head, Header, check_free, clear_way, erase};
use crate::lane::{Closed, Lane, LaneState, Terms};
use crate::mark::{Mark, Usage};
use crate::owner::Uuid;
use crate::recovered::Recovered;
use crate::scan::{LaneEnd, LaneReport};
use crate::{Appended, Entry, Error, Medium};

/// How to make a journal.
#[derive(Clone, Debug, Default)]
pub struct Create {
    owner: Uuid,
    lanes: Option<usize>,
    force: bool,
    area: Vec<u8>,
    id: Option<[u8; 16]>,
}

impl Create {
    /// A journal of `owner`, with a lane for each processor; more than two only where each has 1 MiB.
    #[must_use]
    pub fn new(owner: Uuid) -> Self {
        Create { owner, ..Create::default() }
    }

    /// So many lanes: the next power of two, from 1 to 128.
    #[must_use]
    pub fn lanes(self, lanes: usize) -> Self {
        Create { lanes: Some(lanes), ..self }
    }

    /// Whether what is on the medium is written over.
    #[must_use]
    pub fn force(self, force: bool) -> Self {
        Create { force, ..self }
    }

    /// The first contents of the owner's area.
    #[must_use]
    pub fn area(self, area: &[u8]) -> Self {
        Create { area: area.to_vec(), ..self }
    }

    /// The journal's own identity, in place of a random number: for tests that are to do the same each time. Two
    /// journals that ever lie on the same medium must not have the same.
    #[must_use]
    pub fn id(self, id: [u8; 16]) -> Self {
        Create { id: Some(id), ..self }
    }
}

/// A redo journal. Its promises are in the crate's documentation.
///
/// Any number of threads append at the same time.
#[derive(Debug)]
pub struct Journal<M> {
    medium: M,
    _claim: Claim,
    geometry: Geometry,
    id: [u8; 16],
    epoch: u32,
    lanes: PerCore<Lane>,
    header: CachePadded<Mutex<Header>>,
    failed: CachePadded<AtomicBool>,
}

impl<M: Medium> Journal<M> {
    /// Makes a journal that fills `medium`, and opens it.
    ///
    /// # Errors
    /// The medium is in use in this process, is too small, is for reading only, fails, or, without [`force`](Create::force), there is something on
    /// it.
    pub fn create(medium: M, options: &Create) -> Result<Self, Error> {
        let claim = medium.claims().exclusive("journal")?;
        let geometry = Geometry::fill(&medium, options.lanes)?;
        check_area(&options.area)?;
        if medium.read_only() {
            return Err(Error::ReadOnly);
        }
        if options.force {
            erase(&medium)?;
        } else {
            check_free(&medium)?;
        }
        let id = match options.id {
            Some(id) => id,
            None => by_chance()?,
        };
        let heads = vec![Head::At(0); geometry.lanes as usize];
        let (owner, area) = (options.owner, options.area.clone());
        let header = Header { owner, id, geometry, turn: 0, epoch: 0, stamp: 0, area, heads, starts: Vec::new() };
        Journal::begin(medium, claim, header, &[])
    }

    /// Finds the journal on `medium`; `owner` is the owner that it must have; `None`: any. Nothing is written before
    /// [`Recovered::start`].
    ///
    /// # Errors
    /// There is no journal; its header is damaged, impossible, or cannot be read; the journal has another owner, or
    /// somebody in this process appends to it.
    /// What is wrong with a lane is no error: see [`Recovered::lanes`].
    pub fn open(medium: M, owner: Option<Uuid>) -> Result<Recovered<M>, Error> {
        Recovered::open(medium, owner)
    }

    /// Begins an epoch, in which records may be appended behind those of `reports`.
    pub(crate) fn begin(medium: M, claim: Claim, header: Header, reports: &[LaneReport]) -> Result<Self, Error> {
        if medium.read_only() {
            return Err(Error::ReadOnly);
        }
        let epoch = header.epoch.checked_add(1);
        let epoch = epoch.ok_or(Error::Exhausted { what: "epochs", value: header.epoch.into() })?;
        let ends = |number: usize| reports.get(number).map_or(0, |report| report.end);
        let starts = (0..header.heads.len()).map(ends).collect();
        let header = Header { epoch, starts, ..header }.next_turn()?;
        clear_way(&medium, header.turn)?;
        header.write(&medium)?;
        let (geometry, id) = (header.geometry, header.id);
        let clock = reports.iter().map(|report| report.stamp).fold(header.stamp, u64::max);
        let lane = |number: usize| {
            let (ring, seed) = (geometry.ring(number), checksum::seed(&id, number));
            let report = reports.get(number);
            let closed = report.and_then(|report| match report.how {
                LaneEnd::Clean | LaneEnd::Torn => None,
                LaneEnd::Damaged { .. } => Some(Closed::Damaged { resume: report.resume }),
                LaneEnd::Unreadable(_) | LaneEnd::Retired => Some(Closed::Unreadable),
            });
            let (head, tail) = report.map_or((0, 0), |report| (report.head, report.end));
            Lane { number, ring, seed, state: Mutex::new(LaneState { head, tail, clock, closed }) }
        };
        Ok(Journal {
            lanes: PerCore::with_slots(geometry.lanes as usize, lane),
            header: CachePadded::new(Mutex::new(header)),
            failed: CachePadded::new(AtomicBool::new(false)),
            medium,
            _claim: claim,
            geometry,
            id,
            epoch,
        })
    }

    /// Appends a record of these parts, one behind the other. It is durable on return.
    ///
    /// Its stamp is higher than `after`: the stamp of the record that it must follow in a replay, which is the last one
    /// for the same object; 0 if there is none.
    ///
    /// # Errors
    /// As for [`append_batch`](Self::append_batch).
    pub fn append(&self, after: u64, parts: &[&[u8]]) -> Result<Appended, Error> {
        self.append_batch(after, &[Entry::new(parts)])
    }

    /// Appends several records, one behind the other in one lane. All are durable on return. A power cut before that
    /// leaves any number of the first of them.
    ///
    /// # Errors
    /// [`Error::Full`] if no lane has room, [`Error::TooLarge`] if no lane could have: nothing was written. After
    /// [`Error::Medium`] it is not known whether the records will be replayed; the lane takes no more, or, if
    /// something could not be made durable, none of the lanes does ([`Error::Closed`]).
    pub fn append_batch(&self, after: u64, entries: &[Entry<'_>]) -> Result<Appended, Error> {
        let most = self.geometry.lane_bytes;
        let ring = self.geometry.ring(0);
        let wanted = entries.iter().try_fold(0_u64, |sum, entry| sum.checked_add(ring.footprint(entry.bytes)?));
        let bytes = wanted.filter(|bytes| *bytes <= most);
        let bytes = bytes.ok_or(Error::TooLarge { bytes: wanted.unwrap_or(u64::MAX), most })?;
        if bytes == 0 {
            return Err(Error::Nothing);
        }
        if self.failed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        let terms = Terms { medium: &self.medium, epoch: self.epoch, failed: &self.failed };
        let (own, lanes) = (self.lanes.slot_index(), self.lanes.slots());
        let (mut most_free, mut open, mut busy) = (0, false, false);
        // First whichever lane nobody holds, beginning with the processor's own; then each of them, one at a time.
        for wait in [false, true] {
            if wait && !busy {
                break;
            }
            for lane in (own..own + lanes).filter_map(|number| self.lanes.get(number % lanes)) {
                let state = if wait { Some(lane.state.lock()) } else { lane.state.try_lock() };
                let Some(state) = state else {
                    busy = true;
                    continue;
                };
                let free = state.free(lane.ring);
                open |= state.closed.is_none();
                most_free = free.max(most_free);
                if bytes <= free {
                    return lane.append(state, &terms, after, entries, bytes);
                }
            }
        }
        if open { Err(Error::Full { wanted: bytes, free: most_free }) } else { Err(Error::Closed) }
    }

    /// The end of each lane at this moment, for which all lanes are held for a moment. Each append that returned before
    /// this call lies before it; all that come behind it have higher stamps than those before it.
    #[must_use]
    pub fn mark(&self) -> Mark {
        protocol_never!("journal_mark_lane_by_lane", {
            let ends: Vec<u64> = self.lanes.iter().map(|lane| lane.state.lock().tail).collect();
            return Mark { journal: self.id, epoch: self.epoch, ends, stamp: 0 };
        });
        let mut held: Vec<_> = self.lanes.iter().map(|lane| lane.state.lock()).collect();
        let stamp = held.iter().map(|state| state.clock).max().unwrap_or(0);
        held.iter_mut().for_each(|state| state.clock = stamp);
        let ends = held.iter().map(|state| state.tail).collect();
        Mark { journal: self.id, epoch: self.epoch, ends, stamp }
    }

    /// Takes the space of all records before `mark` back: they will not be replayed any more. All lanes change at once,
    /// and what this says is durable before any of the space is used again.
    ///
    /// # Errors
    /// [`Error::ForeignMark`], and the medium's. After one of those it is not known whether the records will be
    /// replayed, and nothing more is appended before the journal is opened again ([`Error::Closed`]).
    pub fn truncate_to(&self, mark: &Mark) -> Result<(), Error> {
        self.change(Some(mark), None)
    }

    /// As [`truncate_to`](Self::truncate_to), and changes the owner's area in the same moment.
    ///
    /// # Errors
    /// As for [`truncate_to`](Self::truncate_to), and [`Error::AreaTooLarge`].
    pub fn truncate_with(&self, mark: &Mark, area: &[u8]) -> Result<(), Error> {
        self.change(Some(mark), Some(area))
    }

    /// Changes the owner's area. It is durable on return, and changes as a whole.
    ///
    /// # Errors
    /// [`Error::AreaTooLarge`], and the medium's: it is not known then which area there will be.
    pub fn set_area(&self, area: &[u8]) -> Result<(), Error> {
        self.change(None, Some(area))
    }

    fn change(&self, mark: Option<&Mark>, area: Option<&[u8]>) -> Result<(), Error> {
        let ours = |mark: &Mark| mark.journal == self.id && mark.epoch == self.epoch;
        if mark.is_some_and(|mark| !ours(mark)) {
            return Err(Error::ForeignMark);
        }
        area.map_or(Ok(()), check_area)?;
        if self.failed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        let mut held = self.header.lock();
        let mut header = held.clone().next_turn()?;
        if let Some(area) = area {
            header.area = area.to_vec();
        }
        if let Some(mark) = mark {
            header.stamp = header.stamp.max(mark.stamp);
            for (lane, (head, end)) in self.lanes.iter().zip(header.heads.iter_mut().zip(&mark.ends)) {
                *head = head_at(*head, *end, lane.state.lock().closed);
            }
        }
        protocol_never!("journal_space_reused_early", self.use_space_before(&header));
        // Other writes may not have become durable either.
        header.write(&self.medium).inspect_err(|_| self.failed.store(true, Ordering::Release))?;
        self.use_space_before(&header);
        *held = header;
        Ok(())
    }

    /// Lets records be written where the header says that none is any more.
    fn use_space_before(&self, header: &Header) {
        for (lane, head) in self.lanes.iter().zip(&header.heads) {
            let mut state = lane.state.lock();
            state.head = head.position();
            // A lane that was damaged begins again.
            if state.head > state.tail {
                state.tail = state.head;
                state.closed = None;
            }
        }
    }

    /// How much is used. Each lane is locked for a moment.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for lane in self.lanes.iter() {
            let state = lane.state.lock();
            let used = lane.ring.bytes - state.free(lane.ring);
            usage.bytes += lane.ring.bytes;
            usage.used += used;
            usage.fullest = usage.fullest.max(used);
        }
        usage
    }

    /// How many lanes there are.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.lanes.slots()
    }

    /// Bytes of each lane: the most that a batch takes, with the records' headers.
    #[must_use]
    pub fn lane_bytes(&self) -> u64 {
        self.geometry.lane_bytes
    }

    /// Whose journal it is.
    #[must_use]
    pub fn owner(&self) -> Uuid {
        self.header.lock().owner
    }

    /// The owner's area in the header.
    #[must_use]
    pub fn area(&self) -> Vec<u8> {
        self.header.lock().area.clone()
    }

    /// The medium.
    #[must_use]
    pub fn medium(&self) -> &M {
        &self.medium
    }

    /// The medium, back again. Nothing has to be written for that.
    #[must_use]
    pub fn into_medium(self) -> M {
        self.medium
    }
}

/// Where a lane's records begin when those before `end` are taken back.
fn head_at(head: Head, end: u64, closed: Option<Closed>) -> Head {
    match (head, closed) {
        (Head::Retired(position), _) => Head::Retired(position),
        (Head::At(_), Some(Closed::Unreadable)) => Head::Retired(end),
        (Head::At(position), Some(Closed::Damaged { resume })) => Head::At(position.max(resume)),
        (Head::At(position), None | Some(Closed::Append)) => Head::At(position.max(end)),
    }
}

impl Header {
    fn next_turn(self) -> Result<Header, Error> {
        let turn = self.turn.checked_add(1).ok_or(Error::Exhausted { what: "turns", value: self.turn })?;
        Ok(Header { turn, ..self })
    }
}

fn check_area(area: &[u8]) -> Result<(), Error> {
    if area.len() > AREA { Err(Error::AreaTooLarge { bytes: area.len(), most: AREA }) } else { Ok(()) }
}

fn by_chance() -> Result<[u8; 16], Error> {
    let mut id = [0; 16];
    let filled = getrandom::fill(&mut id);
    filled.map_err(|error| Error::Medium(crate::MediumError::Other(error.to_string().into())))?;
    Ok(id)
}

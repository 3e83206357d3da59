//! A journal that was found: its content, before anything is written.

use f2fs_device::Claim;
use f2fs_sync::PlainArc;

use crate::checksum;
use crate::geometry::HEADER;
use crate::header::{Head, Header};
use crate::journal::Journal;
use crate::owner::Uuid;
use crate::replay::Replay;
use crate::scan::{Bounds, LaneEnd, LaneReport, scan};
use crate::window::Window;
use crate::{Error, Medium, Record};

/// A journal that was found on a medium. Nothing is written before [`start`](Self::start): a replay may stop, or be
/// stopped, and do it again.
#[derive(Debug)]
pub struct Recovered<M> {
    medium: M,
    claim: Claim,
    header: Header,
    lanes: Vec<LaneReport>,
}

impl<M: Medium> Recovered<M> {
    /// Reads all of a journal. `owner` is the owner that it must have; `None`: any.
    ///
    /// # Errors
    /// There is no journal; its header is damaged, impossible, or cannot be read; the journal has another owner, or
    /// somebody in this process appends to it.
    /// What is wrong with a lane is no error: see [`lanes`](Self::lanes).
    pub(crate) fn open(medium: M, owner: Option<Uuid>) -> Result<Self, Error> {
        let claim = medium.claims().shared("reader of its journal")?;
        let header = Header::read(&medium)?;
        if let Some(expected) = owner.filter(|owner| *owner != header.owner) {
            return Err(Error::Foreign { expected, found: header.owner });
        }
        let lane = |(number, head): (usize, &Head)| {
            let ring = header.geometry.ring(number);
            match *head {
                Head::At(position) => scan(&medium, ring, position, header.bounds(number)),
                Head::Retired(position) => LaneReport {
                    head: position,
                    end: position,
                    end_offset: ring.offset(position),
                    records: 0,
                    stamp: header.stamp,
                    how: LaneEnd::Retired,
                    behind: 0,
                    behind_at: Vec::new(),
                    resume: position,
                    epoch: 0,
                },
            }
        };
        let lanes = header.heads.iter().enumerate().map(lane).collect();
        Ok(Recovered { medium, claim, header, lanes })
    }

    /// Whose journal it is.
    #[must_use]
    pub fn owner(&self) -> Uuid {
        self.header.owner
    }

    /// The journal's own identity, new with each journal.
    #[must_use]
    pub fn id(&self) -> [u8; 16] {
        self.header.id
    }

    /// The owner's area in the header.
    #[must_use]
    pub fn area(&self) -> &[u8] {
        &self.header.area
    }

    /// How often the journal was opened to append.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.header.epoch
    }

    /// Bytes of each lane, and of a grain.
    #[must_use]
    pub fn sizes(&self) -> (u64, usize) {
        (self.header.geometry.lane_bytes, self.header.geometry.grain as usize)
    }

    /// The finds in each lane.
    #[must_use]
    pub fn lanes(&self) -> &[LaneReport] {
        &self.lanes
    }

    /// How many records there are.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.records).sum()
    }

    /// Whether all records are there that were acknowledged.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.lanes.iter().all(LaneReport::is_whole)
    }

    /// If records are lost: the highest stamp up to which none is. Replaying [`up_to`](Replay::up_to) it keeps the
    /// order: no record that is replayed follows one that is lost.
    #[must_use]
    pub fn whole_up_to(&self) -> Option<u64> {
        self.lanes.iter().filter(|lane| !lane.is_whole()).map(|lane| lane.stamp).min()
    }

    /// The records in their order. It may be asked for any number of times, and left at any point.
    #[must_use]
    pub fn replay(&self) -> Replay<'_, M> {
        Replay::new(&self.medium, &self.header, &self.lanes)
    }

    /// Hands all records to `apply`, in their order.
    ///
    /// # Errors
    /// The first of `apply`, or of the medium.
    pub fn for_each<E: From<Error>>(&self, mut apply: impl FnMut(Record<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut replay = self.replay();
        while let Some(record) = replay.advance()? {
            apply(record)?;
        }
        Ok(())
    }

    /// Hands the whole records behind the damage of lanes to `apply`, lane by lane. Records that they follow may be lost:
    /// they tell what is given up, and are not to be replayed.
    ///
    /// # Errors
    /// The first of `apply`, or of the medium.
    pub fn for_each_behind<E: From<Error>>(&self, mut apply: impl FnMut(Record<'_>) -> Result<(), E>) -> Result<(), E> {
        for (lane, report) in self.lanes.iter().enumerate() {
            let mut window = Window::new(&self.medium, self.header.geometry.ring(lane), report.head);
            for position in report.behind_at.iter().copied() {
                let changed = || Error::Changed { lane, position };
                let header = window.header(position).map_err(Error::from)?.ok_or_else(changed)?;
                let mut payload = vec![0; header.length.get() as usize];
                let mut filled = 0;
                while filled < payload.len() {
                    let at = position + (HEADER + filled) as u64;
                    let piece = window.slice(at, payload.len() - filled).map_err(Error::from)?;
                    if piece.is_empty() {
                        return Err(changed().into());
                    }
                    payload[filled..filled + piece.len()].copy_from_slice(piece);
                    filled += piece.len();
                }
                apply(Record { stamp: header.stamp.get(), lane, position, payload: &payload })?;
            }
        }
        Ok(())
    }

    /// Opens the journal to append. Its records stay until they are taken back; records that follow have higher stamps
    /// than all of it.
    ///
    /// # Errors
    /// The medium is for reading only, or fails, or a counter has come to its end; or somebody else in this process reads
    /// it, or came first.
    pub fn start(self) -> Result<Journal<M>, Error> {
        drop(self.claim);
        let claim = self.medium.claims().exclusive("journal")?;
        Journal::begin(self.medium, claim, self.header, &self.lanes)
    }

    /// The medium, back again.
    #[must_use]
    pub fn into_medium(self) -> M {
        self.medium
    }
}

impl Header {
    pub(crate) fn bounds(&self, lane: usize) -> Bounds {
        Bounds {
            seed: checksum::seed(&self.id, lane),
            epoch: self.epoch,
            stamp: self.stamp,
            start: self.starts.get(lane).copied().unwrap_or(0),
        }
    }
}

/// A medium behind a reference that is counted.
pub type SharedMedium = PlainArc<dyn Medium>;

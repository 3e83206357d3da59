//! The journal's header: its owner, the sizes of its lanes, and the part of each lane that counts.
//!
//! ```text
//!  0       8         12    16      32   48     56      60      64           72      76     80       88         96       256
//!  +-------+---------+-----+-------+----+------+-------+-------+------------+-------+------+--------+----------+--------+---------+
//!  | magic | version | CRC | owner | id | turn | epoch | lanes | lane bytes | grain | area | stamp  | reserved | area,  | lanes,  |
//!  |       |         |     |       |    |      |       |       |            |       | used |        |          | 160    | 16 each |
//!  +-------+---------+-----+-------+----+------+-------+-------+------------+-------+------+--------+----------+--------+---------+
//! ```
//! All numbers are little-endian. Of each lane there are its head (where its records begin) and its start (where it
//! ended when the epoch began). There are two copies, at 0 and at 4096. A change writes the copy with the even or the
//! odd number of its *turn*. So the other one keeps the state before the change; the sound copy with the higher turn
//! counts. So all heads and the owner's area change at once, or not at all.

use f2fs_sync::{protocol_never, protocol_value};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::geometry::{COPY, Geometry, MOST_LANES, MOST_POSITION};
use crate::medium::SMALLEST_GRAIN;
use crate::owner::Uuid;
use crate::{Error, Gather, Medium, MediumError, checksum};

/// How a journal begins, in both copies of its header.
pub const MAGIC: [u8; 8] = *b"f2fsjrnl";
/// The version of the layout.
pub(crate) const VERSION: u32 = 2;
/// Bytes of the owner's area.
pub const AREA: usize = 160;
/// Where the checksum lies.
const CRC_AT: usize = 12;
/// Bytes in front of the lanes' entries, and bytes of each entry.
const FIXED: usize = 256;
const LANE: usize = size_of::<RawLane>();
/// In a head: nothing in this lane is read or appended any more, since it could not be read.
const RETIRED: u64 = 1 << 63;

/// A copy of the header, as it lies on the medium.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Raw {
    magic: [u8; 8],
    version: U32,
    crc: U32,
    owner: [u8; 16],
    id: [u8; 16],
    turn: U64,
    epoch: U32,
    lanes: U32,
    lane_bytes: U64,
    grain: U32,
    area_bytes: U32,
    stamp: U64,
    reserved: U64,
    area: [u8; AREA],
    lanes_at: [RawLane; MOST_LANES],
}

/// A copy's entry for a lane.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawLane {
    head: U64,
    start: U64,
}

const _: () = assert!(size_of::<Raw>() == FIXED + LANE * MOST_LANES && size_of::<Raw>() <= COPY as usize);

/// The contents of a copy of the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) owner: Uuid,
    /// A random number, which no other journal has.
    pub(crate) id: [u8; 16],
    pub(crate) geometry: Geometry,
    /// How often the header was written.
    pub(crate) turn: u64,
    /// How often the journal was opened to append.
    pub(crate) epoch: u32,
    /// No record that was taken back has a higher stamp, and all that are left have.
    pub(crate) stamp: u64,
    pub(crate) area: Vec<u8>,
    pub(crate) heads: Vec<Head>,
    /// Where each lane ended when the epoch began: records behind that are of this epoch, and those before it of
    /// earlier ones. So bytes that a power cut left behind the end of a lane are not a record, even if words of a new
    /// record complete them.
    pub(crate) starts: Vec<u64>,
}

/// Where the records of a lane begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// At this position.
    At(u64),
    /// Nowhere any more: the lane could not be read at this position, and is not used.
    Retired(u64),
}

impl Head {
    fn encode(self) -> u64 {
        match self {
            Head::At(position) => position,
            Head::Retired(position) => position | RETIRED,
        }
    }

    pub(crate) fn position(self) -> u64 {
        match self {
            Head::At(position) | Head::Retired(position) => position,
        }
    }
}

/// The state of a copy.
enum Copy {
    Sound(Box<Raw>),
    /// The magic is there, and the checksum is wrong.
    Damaged,
    Version(u32),
    /// Something else.
    None,
    Unreadable(MediumError),
}

impl Header {
    /// Bytes of a copy that are used.
    fn used(&self) -> usize {
        FIXED + LANE * self.heads.len()
    }

    /// Writes the copy whose turn it is. It is durable on return.
    pub(crate) fn write(&self, medium: &impl Medium) -> Result<(), MediumError> {
        let mut raw = Raw {
            magic: MAGIC,
            version: VERSION.into(),
            owner: self.owner.0,
            id: self.id,
            turn: self.turn.into(),
            epoch: self.epoch.into(),
            lanes: self.geometry.lanes.into(),
            lane_bytes: self.geometry.lane_bytes.into(),
            grain: self.geometry.grain.into(),
            area_bytes: (self.area.len() as u32).into(),
            stamp: self.stamp.into(),
            ..Raw::new_zeroed()
        };
        raw.area[..self.area.len()].copy_from_slice(&self.area);
        for (raw, (head, start)) in raw.lanes_at.iter_mut().zip(self.heads.iter().zip(&self.starts)) {
            *raw = RawLane { head: head.encode().into(), start: (*start).into() };
        }
        raw.crc = checksum::around(0, &raw.as_bytes()[..self.used()], CRC_AT).into();
        medium.write_durably(place(self.turn) * COPY, Gather::from(&raw.as_bytes()[..self.used()]))
    }

    /// The copy that counts.
    ///
    /// # Errors
    /// [`Error::NotAJournal`], [`Error::DamagedHeader`], [`Error::Version`], the medium's if it cannot read either
    /// copy, and what [`Geometry::check`] says.
    pub(crate) fn read(medium: &impl Medium) -> Result<Header, Error> {
        let (mut best, mut damaged, mut version, mut unreadable) = (None::<Box<Raw>>, false, None, None);
        for at in [0, 1] {
            match read_copy(medium, at) {
                Copy::Sound(raw) if best.as_ref().is_none_or(|best| best.turn.get() < raw.turn.get()) => {
                    best = Some(raw);
                }
                Copy::Sound(_) | Copy::None => {}
                Copy::Damaged => damaged = true,
                Copy::Version(found) => version = Some(found),
                Copy::Unreadable(error) => unreadable = Some(error),
            }
        }
        match (best, version, unreadable) {
            (Some(raw), ..) => Header::decode(&raw, medium),
            (None, Some(found), _) => Err(Error::Version { found, known: VERSION }),
            (None, None, Some(error)) => Err(error.into()),
            (None, None, None) if damaged => Err(Error::DamagedHeader),
            (None, None, None) => Err(Error::NotAJournal),
        }
    }

    fn decode(raw: &Raw, medium: &impl Medium) -> Result<Header, Error> {
        let geometry = Geometry { grain: raw.grain.get(), lanes: raw.lanes.get(), lane_bytes: raw.lane_bytes.get() };
        geometry.check(medium)?;
        let area = raw.area.get(..raw.area_bytes.get() as usize).ok_or(Error::DamagedHeader)?.to_vec();
        let grain = u64::from(geometry.grain);
        let lanes = || raw.lanes_at.iter().take(geometry.lanes as usize);
        let possible = |position: u64| {
            let possible = position < MOST_POSITION && position.is_multiple_of(grain);
            possible.then_some(position).ok_or(Error::DamagedHeader)
        };
        let heads = lanes().map(|lane| {
            let position = possible(lane.head.get() & !RETIRED)?;
            Ok(if lane.head.get() & RETIRED == 0 { Head::At(position) } else { Head::Retired(position) })
        });
        let starts = lanes().map(|lane| possible(lane.start.get()));
        Ok(Header {
            owner: Uuid(raw.owner),
            id: raw.id,
            geometry,
            turn: raw.turn.get(),
            epoch: raw.epoch.get(),
            stamp: raw.stamp.get(),
            area,
            heads: heads.collect::<Result<_, Error>>()?,
            starts: starts.collect::<Result<_, _>>()?,
        })
    }
}

/// Which copy is written in this turn.
fn place(turn: u64) -> u64 {
    protocol_value!("journal_header_in_one_place", turn % 2, 0)
}

fn read_copy(medium: &impl Medium, which: u64) -> Copy {
    let mut raw = Raw::new_zeroed();
    let at = which * COPY;
    let bytes = medium.bytes().saturating_sub(at).min(size_of::<Raw>() as u64) as usize;
    if bytes < FIXED {
        return Copy::None;
    }
    if let Err(error) = medium.read(at, &mut raw.as_mut_bytes()[..bytes]) {
        return Copy::Unreadable(error);
    }
    if raw.magic != MAGIC {
        return Copy::None;
    }
    let used = FIXED + LANE * (raw.lanes.get() as usize).min(MOST_LANES);
    if raw.crc.get() != checksum::around(0, &raw.as_bytes()[..used], CRC_AT) || place(raw.turn.get()) != which {
        return Copy::Damaged;
    }
    match raw.version.get() {
        VERSION => Copy::Sound(Box::new(raw)),
        other => Copy::Version(other),
    }
}

/// Refuses to go on if there is anything where the header is to be.
///
/// # Errors
/// [`Error::Occupied`], [`Error::OccupiedByJournal`], what the medium says.
pub(crate) fn check_free(medium: &impl Medium) -> Result<(), Error> {
    if let Ok(header) = Header::read(medium) {
        return Err(Error::OccupiedByJournal { owner: header.owner });
    }
    for which in [0, 1] {
        let mut copy = vec![0; COPY as usize];
        medium.read(which * COPY, &mut copy)?;
        if let Some(at) = copy.iter().position(|byte| *byte != 0) {
            return Err(Error::Occupied { offset: which * COPY + at as u64 });
        }
    }
    Ok(())
}

/// Makes the copy that is written next invalid. A power cut may have left a part of a header there, and words of the
/// next one might complete it: it would come true after it had been found not to be. The first grain holds nothing but
/// words that no header has as zero, or that all headers of a journal have in common.
///
/// # Errors
/// Those of the medium.
pub(crate) fn clear_way(medium: &impl Medium, turn: u64) -> Result<(), MediumError> {
    protocol_never!("journal_starts_over_torn_header", return Ok(()));
    medium.write_durably(place(turn) * COPY, Gather::from(&[0; SMALLEST_GRAIN][..]))
}

/// Removes both copies, the older one first: at any moment there is the journal as it was, or none.
///
/// # Errors
/// Those of the medium.
pub(crate) fn erase(medium: &impl Medium) -> Result<(), MediumError> {
    let newer = Header::read(medium).map_or(0, |header| header.turn % 2);
    for which in [1 - newer, newer] {
        medium.write_durably(which * COPY, Gather::from(&[0; COPY as usize][..]))?;
    }
    Ok(())
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use f2fs_pmem::MemoryRegion;

    use super::*;
    use crate::RegionMedium;

    #[test]
    fn every_damaged_bit_leaves_the_copy_before() {
        let medium = RegionMedium::new(MemoryRegion::new(1 << 16).unwrap());
        let geometry = Geometry::fill(&medium, Some(4)).unwrap();
        let heads = vec![Head::At(64), Head::At(0), Head::Retired(128), Head::At(1 << 40)];
        let owner = Uuid([3; 16]);
        let mut header = Header {
            owner,
            id: [5; 16],
            geometry,
            turn: 1,
            epoch: 2,
            stamp: 9,
            area: b"first".to_vec(),
            heads,
            starts: vec![64, 0, 0, 64],
        };
        header.write(&medium).unwrap();
        assert_eq!(Header::read(&medium).unwrap(), header);
        let before = header.clone();
        header.turn = 2;
        header.area = b"second".to_vec();
        header.write(&medium).unwrap();
        assert_eq!(Header::read(&medium).unwrap(), header);
        let mut line = [0; 64];
        for bit in 0..header.used() * 8 {
            let (at, byte) = (bit as u64 / 512 * 64, bit / 8 % 64);
            medium.read(at, &mut line).unwrap();
            line[byte] ^= 1 << (bit % 8);
            medium.write(at, Gather::from(&line[..])).unwrap();
            assert_eq!(Header::read(&medium).unwrap(), before, "bit {bit}");
            line[byte] ^= 1 << (bit % 8);
            medium.write(at, Gather::from(&line[..])).unwrap();
        }
        assert_eq!(Header::read(&medium).unwrap(), header);
    }

    #[test]
    fn impossible_headers_are_errors() {
        let medium = RegionMedium::new(MemoryRegion::new(1 << 16).unwrap());
        let geometry = Geometry::fill(&medium, Some(2)).unwrap();
        let header = |geometry: Geometry, head: u64| Header {
            owner: Uuid::default(),
            id: [0; 16],
            geometry,
            turn: 1,
            epoch: 0,
            stamp: 0,
            area: Vec::new(),
            heads: vec![Head::At(head); (geometry.lanes as usize).min(MOST_LANES)],
            starts: vec![0; (geometry.lanes as usize).min(MOST_LANES)],
        };
        let read = |header: Header| {
            header.write(&medium).unwrap();
            Header::read(&medium)
        };
        read(header(geometry, 64)).unwrap();
        for bad in [
            Geometry { lanes: 0, ..geometry },
            Geometry { lanes: 3, ..geometry },
            Geometry { lanes: 256, ..geometry },
            Geometry { lanes: u32::MAX, ..geometry },
            Geometry { lane_bytes: 0, ..geometry },
            Geometry { lane_bytes: geometry.lane_bytes + 1, ..geometry },
            Geometry { lane_bytes: u64::MAX / 64 * 64, ..geometry },
            Geometry { lane_bytes: geometry.lane_bytes + 64, ..geometry },
            Geometry { grain: 128, ..geometry },
            Geometry { grain: 0, ..geometry },
        ] {
            read(header(bad, 0)).unwrap_err();
        }
        for head in [1, 32, MOST_POSITION, u64::MAX >> 1 & !63] {
            assert!(matches!(read(header(geometry, head)), Err(Error::DamagedHeader)), "head {head}");
        }
    }
}

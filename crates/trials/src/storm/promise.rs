//! What a thread knows of a file: what a reader may find, and what a crash may leave.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use f2fs_files::{File, FsError};
use f2fs_format::Nid;

use super::common::Stripes;
use super::together::{Moment, Together};

/// Bytes that are written and judged as one.
pub(super) const UNIT: u64 = 512;
pub(super) const UNITS_PER_BLOCK: u64 = f2fs_device::BLOCK_SIZE as u64 / UNIT;
/// Operations that a file remembers, for who looks for what went wrong.
const STORY: usize = 40;

/// Who wrote a unit; `None` if several did.
pub(super) fn stamp(unit: &[u8]) -> Option<u64> {
    let (words, _) = unit.as_chunks::<8>();
    let first = words.first()?;
    words.iter().all(|word| word == first).then(|| u64::from_le_bytes(*first))
}

/// A value that is one of several: to a reader, and after a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Promise<T> {
    now: BTreeSet<T>,
    left: BTreeSet<T>,
}

impl<T: Ord + Clone> Promise<T> {
    pub(super) fn new(value: T) -> Promise<T> {
        Promise { now: BTreeSet::from([value.clone()]), left: BTreeSet::from([value]) }
    }

    /// Somebody asks for this value: from here on a crash may leave it.
    pub(super) fn asked(&mut self, value: T) {
        self.left.insert(value);
    }

    /// It was made so, or is seen to be.
    pub(super) fn made(&mut self, value: T) {
        self.left.insert(value.clone());
        self.now = BTreeSet::from([value]);
    }

    /// An error was told to who asked: it is as it was, or as it was to be.
    pub(super) fn failed(&mut self, value: T) {
        self.left.insert(value.clone());
        self.now.insert(value);
    }

    /// A crash leaves it as it is.
    pub(super) fn synced(&mut self) {
        self.left = self.now.clone();
    }

    pub(super) fn is(&self, value: &T) -> bool {
        self.now.contains(value)
    }

    pub(super) fn may_be_left(&self, value: &T) -> bool {
        self.left.contains(value)
    }

    /// The value, if it is known.
    pub(super) fn known(&self) -> Option<&T> {
        self.now.first().filter(|_| self.now.len() == 1)
    }

    /// Whether a crash may leave one of several.
    pub(super) fn is_open(&self) -> bool {
        self.left.len() > 1
    }

    /// The smallest that a crash may leave.
    pub(super) fn least_left(&self) -> Option<&T> {
        self.left.first()
    }
}

/// What makes a file that all threads write another than a thread's own.
#[derive(Debug)]
struct Share {
    together: Arc<Together>,
    /// How it was when the thread's last sync that succeeded began.
    synced: Moment,
    /// When the thread's last change ended.
    changed: u64,
    /// Up to when it has [taken in](Known::take_in_cuts) what others cut.
    cut: u64,
    /// The stripes, and whose this knowledge is; `None`: the thread knows what it has written.
    stripes: Option<(Stripes, u64)>,
}

/// A file that one thread has made, or its share of one that all threads write.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) ino: Nid,
    pub(super) handle: Option<File>,
    pub(super) name: Promise<Option<String>>,
    /// Bytes.
    pub(super) size: Promise<u64>,
    /// What each [unit](UNIT) holds: the stamp of who wrote it, or 0.
    units: BTreeMap<u64, Promise<u64>>,
    /// Whether it is there after a crash.
    pub(super) durable: bool,
    /// Whether its last name was taken away, or that was tried.
    pub(super) removed: bool,
    /// Whether a sync began since the last that succeeded. In the mode `posix` it writes in any order, so that it may
    /// leave anything of what has changed.
    pub(super) sync_began: bool,
    /// Of a file that all threads write: what is known of it besides.
    share: Option<Share>,
    story: VecDeque<String>,
}

impl Known {
    pub(super) fn new(file: File, name: String) -> Known {
        let mut known = Known {
            ino: file.ino(),
            handle: Some(file),
            name: Promise::new(None),
            size: Promise::new(0),
            units: BTreeMap::new(),
            durable: false,
            removed: false,
            sync_began: false,
            share: None,
            story: VecDeque::new(),
        };
        known.tell(format!("create {name}"));
        known.name.made(Some(name));
        known
    }

    /// A thread's knowledge of a durable file that all threads write.
    pub(super) fn shared(file: File, name: &str, together: Arc<Together>, stripes: Option<(Stripes, u64)>) -> Known {
        let mut known = Known::new(file, name.to_owned());
        let synced = together.beginning();
        known.synced(None);
        known.share = Some(Share { together, synced, changed: 0, cut: 0, stripes });
        known
    }

    pub(super) fn tell(&mut self, what: String) {
        if self.story.len() == STORY {
            self.story.pop_front();
        }
        self.story.push_back(what);
    }

    pub(super) fn story(&self) -> String {
        let words: Vec<&str> = self.story.iter().map(String::as_str).collect();
        words.join("; ")
    }

    pub(super) fn path(&self) -> Option<String> {
        self.name.known().cloned().flatten()
    }

    /// The size that the handle tells.
    pub(super) fn bytes(&self) -> u64 {
        self.handle.as_ref().map_or(0, File::size)
    }

    pub(super) fn unit(&self, number: u64) -> Promise<u64> {
        self.units.get(&number).cloned().unwrap_or_else(|| Promise::new(0))
    }

    pub(super) fn unit_mut(&mut self, number: u64) -> &mut Promise<u64> {
        self.units.entry(number).or_insert_with(|| Promise::new(0))
    }

    /// Whether the thread knows what a unit holds.
    pub(super) fn knows(&self, unit: u64) -> bool {
        match &self.share {
            None => true,
            Some(Share { stripes: Some((stripes, thread)), .. }) => stripes.owner(unit) == *thread,
            Some(Share { stripes: None, .. }) => self.units.contains_key(&unit),
        }
    }

    /// Whether a crash may leave it so long.
    pub(super) fn may_be_left_with(&self, bytes: u64) -> bool {
        match &self.share {
            None => self.size.may_be_left(&bytes),
            Some(share) => (share.synced.bytes..=share.together.most()).contains(&bytes),
        }
    }

    /// The sizes that a crash may leave, for people.
    pub(super) fn sizes(&self) -> String {
        match &self.share {
            None => format!("{:?}", self.size),
            Some(share) => format!("{} to {}", share.synced.bytes, share.together.most()),
        }
    }

    /// Those that may hold something, from this one on.
    pub(super) fn units_from(&self, first: u64) -> Vec<u64> {
        self.units.range(first..).map(|(number, _)| *number).collect()
    }

    /// Whether a crash in the mode `posix` may leave anything in the block of a unit: a sync, of whichever thread, may
    /// have been writing it.
    pub(super) fn is_open_around(&self, unit: u64) -> bool {
        if let Some(share) = &self.share {
            return !share.together.rests_since(unit, share.synced);
        }
        let first = unit - unit % UNITS_PER_BLOCK;
        self.sync_began && (first..first + UNITS_PER_BLOCK).any(|unit| self.unit(unit).is_open())
    }

    /// The thread has changed these units of a shared file, or tried to.
    pub(super) fn changed(&mut self, units: Range<u64>) {
        if let Some(share) = &mut self.share {
            share.changed = share.together.changed(units);
        }
    }

    /// Takes in what became of a shared file by the cuts that have ended: what they took is zeros, if they came behind
    /// the thread's last change, and else may be.
    pub(super) fn take_in_cuts(&mut self) {
        let Some(share) = &mut self.share else { return };
        let (cuts, now) = share.together.cuts_since(share.cut);
        share.cut = now;
        for cut in cuts {
            share.synced.bytes = share.synced.bytes.min(cut.bytes);
            let behind = cut.sure && cut.began > share.changed;
            for (_, unit) in self.units.range_mut(cut.first_unit()..) {
                if behind { unit.made(0) } else { unit.failed(0) }
            }
        }
    }

    /// The smallest size that it may have had since cuts were [taken in](Self::take_in_cuts), if there were more.
    pub(super) fn least_if_cut(&self) -> u64 {
        self.share.as_ref().map_or(u64::MAX, |share| share.together.least_since(share.cut))
    }

    /// A sync begins.
    pub(super) fn begin_sync(&mut self) -> Option<Moment> {
        self.take_in_cuts();
        self.sync_began = true;
        self.share.as_ref().map(|share| share.together.now())
    }

    /// Makes it durable; whether that was tried.
    pub(super) fn sync(&mut self) -> Result<bool, FsError> {
        let begun = self.begin_sync();
        let Some(handle) = &self.handle else { return Ok(false) };
        let result = handle.sync_all();
        self.tell(format!("sync: {:?}", result.as_ref().err().map(ToString::to_string)));
        result?;
        self.synced(begun);
        Ok(true)
    }

    /// The first of these units, which a reader found, that is not as it must be: in words.
    pub(super) fn contradiction(&self, first: u64, bytes: &[u8]) -> Option<String> {
        let mut units = (first..).zip(bytes.chunks_exact(UNIT as usize).map(stamp));
        // What a cut took that met the reader may be zeros.
        let cut = self.least_if_cut();
        let may_be = |unit: u64, stamp| self.unit(unit).is(&stamp) || stamp == 0 && unit * UNIT >= cut;
        let is_right = |unit, found: Option<u64>| found.is_some_and(|stamp| may_be(unit, stamp));
        let (unit, found) = units.find(|&(unit, found)| !is_right(unit, found))?;
        let wanted = self.unit(unit);
        Some(format!("a reader of {} finds {found:x?} in unit {unit}, not {wanted:x?}: {}", self.ino, self.story()))
    }

    /// Everything of it is durable that was there when the sync [began](Self::begin_sync).
    pub(super) fn synced(&mut self, begun: Option<Moment>) {
        if let (Some(share), Some(begun)) = (&mut self.share, begun) {
            share.synced = begun;
        }
        self.name.synced();
        self.size.synced();
        self.units.values_mut().for_each(Promise::synced);
        (self.durable, self.sync_began) = (true, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_may_be_either_and_what_is_synced_stays() {
        let mut size = Promise::new(0);
        size.asked(10);
        assert!(size.is(&0) && !size.is(&10) && size.may_be_left(&10) && size.may_be_left(&0));
        size.made(10);
        assert_eq!(size.known(), Some(&10));
        assert!(size.is_open() && size.least_left() == Some(&0));
        size.synced();
        assert!(!size.may_be_left(&0) && !size.is_open());
        size.failed(20);
        assert!(size.is(&10) && size.is(&20) && size.known().is_none());
        size.made(20);
        assert!(size.may_be_left(&10) && size.may_be_left(&20) && !size.is(&10));
    }
}

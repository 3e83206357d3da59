//! Varmail in virtual time.
//!
//! One thread plays all ([`play`]): always the one whose time is the earliest, for one operation. The threads wait for
//! each other's requests, and gather for a flush by the rule of the library's `GroupCommit`. When an operation wrote a
//! checkpoint, no other one begins before its end, as the gate of a volume has it.
//!
//! The model leaves out: a thread's own work costs the same for each operation ([`Model::processor`]); an operation
//! that is played holds locks at no time that others could see; and in the log without a journal each thread writes its
//! own nodes before it gathers, where the library's leader writes those of all.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use f2fs::device::{BlockDevice, MemoryDevice};
use f2fs::journal::{DeviceMedium, RegionMedium, SharedMedium};
use f2fs::pmem::MemoryRegion;
use f2fs::volume::format::{FormatOptions, format};
use f2fs::{JournalMode, JournalOptions, create_journal};
use f2fs_device_test::{Ledger, ModelledRegion, ModelledSsd, NvdimmModel, Played, SsdModel, play};
use f2fs_files::{FileSystem, FsError, Options, Time};

use super::{Mails, Measured, Work, Worker, prepare};
use crate::one_processor::OneProcessor;

/// Bytes of the volume. Only blocks that are written take memory.
const VOLUME: u64 = 4 << 30;
/// Bytes of a journal.
const JOURNAL: usize = 128 << 20;

/// Where the journal lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// There is none: syncs go to the volume's log.
    None,
    /// On an SSD of its own.
    Ssd,
    /// In persistent memory.
    Nvdimm,
}

impl Place {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Place::None => "none",
            Place::Ssd => "ssd",
            Place::Nvdimm => "nvdimm",
        }
    }
}

/// The devices, and how much is done.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// The SSD of the volume, and the one of the journal.
    pub ssd: SsdModel,
    /// Persistent memory.
    pub nvdimm: NvdimmModel,
    /// Processor time of each operation.
    pub processor: Duration,
    /// Threads that are played.
    pub threads: usize,
    /// Rounds of each.
    pub rounds: u64,
    /// Bytes of the volume's page cache; 0: none.
    pub page_cache: u64,
}

impl Default for Model {
    /// A SATA SSD with a volatile cache, DRAM that a battery keeps, 16 threads. `docs/JOURNAL.md` says where the
    /// numbers are from.
    fn default() -> Model {
        Model {
            ssd: SsdModel {
                write_latency: Duration::from_micros(20),
                read_latency: Duration::from_micros(90),
                block: Duration::from_nanos(7_900),
                flush: Duration::from_millis(2),
                reads_are_cached: false,
            },
            nvdimm: NvdimmModel {
                line: Duration::from_nanos(10),
                write_back: Duration::from_nanos(40),
                fence: Duration::from_nanos(100),
            },
            processor: Duration::from_micros(5),
            threads: 16,
            rounds: 200,
            page_cache: 0,
        }
    }
}

/// Runs Varmail with a journal at this place.
///
/// # Errors
/// Those of the file system.
pub fn model(model: &Model, place: Place, mode: JournalMode) -> Result<Measured, FsError> {
    let _stays = OneProcessor::begin();
    let ledger = Ledger::default();
    let ssd = |bytes: u64| Arc::new(ModelledSsd::new(MemoryDevice::new(bytes / 4096), model.ssd, ledger.clone()));
    let volume = ssd(VOLUME);
    format(&*volume, &FormatOptions::default())
        .map_err(|_| FsError::Invalid("a volume in memory could not be formatted"))?;
    let no_memory = |_| FsError::Invalid("there is no memory for the journal");
    let medium: Option<SharedMedium> = match place {
        Place::None => None,
        Place::Ssd => Some(Arc::new(
            DeviceMedium::new(ssd(JOURNAL as u64) as Arc<dyn BlockDevice>)
                .map_err(|_| FsError::Invalid("the journal's device is in use"))?,
        )),
        Place::Nvdimm => {
            let region = MemoryRegion::new(JOURNAL).map_err(no_memory)?;
            Some(Arc::new(RegionMedium::new(ModelledRegion::new(region, model.nvdimm, ledger.clone()))))
        }
    };
    let mut options = Options::new().page_cache(model.page_cache);
    // How long the model takes here is of no concern to what waits to be written.
    options = options.clock(|| Time { seconds: 1_700_000_000, nanoseconds: 0 });
    if let Some(medium) = medium {
        create_journal(volume.clone(), medium.clone(), true)?;
        options = options.journal(JournalOptions::new(medium, mode));
    }
    let fs = FileSystem::open(volume, options)?;
    let names = prepare(&fs, 1)?;
    let before = Mails::checkpoints(&fs);
    let threads = model.threads.max(1);
    let mut workers: Vec<_> = (0..threads as u64).map(|number| Worker::new(&fs, &names, number)).collect();
    let operations = model.rounds.saturating_mul(super::ROUND.len() as u64);
    // Whether the operation of each thread is a sync.
    let was_sync: Vec<_> = (0..threads).map(|_| Cell::new(false)).collect();
    let mut written = before;
    let step = |number: usize| -> Result<Option<Played>, FsError> {
        let worker = &mut workers[number];
        if worker.work.operations >= operations {
            return Ok(None);
        }
        was_sync[number].set(worker.is_to_sync());
        worker.step()?;
        let earlier = std::mem::replace(&mut written, Mails::checkpoints(&fs));
        Ok(Some(Played { is_alone: written != earlier }))
    };
    let mut syncs = Duration::ZERO;
    let ended = |number: usize, begun, end| syncs += if was_sync[number].get() { end - begun } else { Duration::ZERO };
    let time = play(&ledger, threads, model.processor, step, ended)?;
    let work = workers.iter().fold(Work::default(), |sum, worker| sum.plus(worker.work));
    let sync = syncs / u32::try_from(work.syncs.max(1)).unwrap_or(u32::MAX);
    Ok(Measured { work, time, sync, checkpoints: Mails::checkpoints(&fs) - before })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two runs are the same to the nanosecond, and the places differ as they must.
    #[test]
    fn the_model_depends_on_nothing_else() {
        let small = Model { threads: 4, rounds: 10, ..Model::default() };
        let run = |place, mode| model(&small, place, mode).unwrap();
        let ssd = run(Place::Ssd, JournalMode::Journal);
        let again = run(Place::Ssd, JournalMode::Journal);
        assert_eq!((ssd.work, ssd.time), (again.work, again.time));
        let nvdimm = run(Place::Nvdimm, JournalMode::Journal);
        // The files that are read depend on the faster thread.
        let done = |measured: &Measured| (measured.work.operations, measured.work.syncs);
        assert_eq!(done(&ssd), done(&nvdimm), "as much is done");
        assert!(nvdimm.sync < Duration::from_micros(50), "{:?}", nvdimm.sync);
        assert!(ssd.sync > small.ssd.flush && ssd.sync < 4 * small.ssd.flush, "{:?}", ssd.sync);
        let ordered = run(Place::Nvdimm, JournalMode::Ordered);
        assert!(ordered.time > 2 * nvdimm.time && ordered.time < run(Place::Ssd, JournalMode::Ordered).time);
    }
}

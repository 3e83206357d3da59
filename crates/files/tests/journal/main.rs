//! Syncs that go to a journal beside the volume: what they leave after a crash, what they cost, and volumes and
//! journals that do not belong together.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod attended;
mod behind;
mod changes;
mod costs;
mod held;
mod kept;
mod media;
mod names;
mod refused;
mod rescued;
mod room;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use f2fs_device::{BlockDevice, Claims, MemoryDevice};
use f2fs_device_test::RecordingDevice;
use f2fs_device_test::pmem::CountedRegion;
use f2fs_files::{FileSystem, FsError, JournalMode, JournalOptions, JournalTrouble, Options, SetMode, create_journal};
use f2fs_journal::{Gather, MediumError, RegionMedium, SharedMedium};
use f2fs_pmem::{MemoryRegion, PersistentRegion};
use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_test_kit::synced::{content, read};
use f2fs_test_kit::volumes::{assert_clean, assert_consistent, formatted};
use f2fs_volume::VolumeError;
use f2fs_volume::format::FormatOptions;

const BYTES: usize = 1 << 20;

type Medium = Arc<RegionMedium<MemoryRegion>>;

fn medium() -> Medium {
    Arc::new(RegionMedium::new(MemoryRegion::new(BYTES).unwrap()))
}

/// The journal after a power cut, if all its records are durable.
fn copy(from: &Medium) -> Medium {
    let to = medium();
    let mut bytes = vec![0; BYTES];
    from.region().load(0, &mut bytes).unwrap();
    to.region().store(0, &bytes).unwrap();
    to
}

fn with(journal: &Medium) -> Options {
    with_mode(journal, JournalMode::Ordered)
}

fn with_mode(journal: &Medium, mode: JournalMode) -> Options {
    Options::new().journal(JournalOptions::new(journal.clone() as SharedMedium, mode))
}

/// A volume with its journal, open.
fn start() -> (Arc<RecordingDevice>, Medium, FileSystem) {
    start_in(JournalMode::Ordered)
}

fn start_in(mode: JournalMode) -> (Arc<RecordingDevice>, Medium, FileSystem) {
    let device = Arc::new(RecordingDevice::new(formatted(64, &FormatOptions::default()).snapshot()));
    let journal = medium();
    create_journal(device.clone(), journal.clone(), false).unwrap();
    let fs = FileSystem::open(device.clone(), with_mode(&journal, mode)).unwrap();
    (device, journal, fs)
}

/// The volume after a power cut, if nothing survives that was not flushed.
fn cut(device: &RecordingDevice) -> Arc<MemoryDevice> {
    Arc::new(device.log().image_at(device.position(), |_, _| false))
}

/// What a medium is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Read,
    Write,
    Persist,
}

/// A medium that calls a function first, which may wait, or fail in its place.
struct Hooked<F> {
    medium: Medium,
    first: F,
}

impl<F: Fn(Call) -> Result<(), MediumError> + Send + Sync + 'static> Hooked<F> {
    #[allow(clippy::new_ret_no_self)] // nobody needs more
    fn new(medium: &Medium, first: F) -> SharedMedium {
        Arc::new(Hooked { medium: medium.clone(), first })
    }
}

impl<F> fmt::Debug for Hooked<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.medium.fmt(f)
    }
}

impl<F: Fn(Call) -> Result<(), MediumError> + Send + Sync + 'static> f2fs_journal::Medium for Hooked<F> {
    fn grain(&self) -> usize {
        self.medium.grain()
    }

    fn bytes(&self) -> u64 {
        self.medium.bytes()
    }

    fn claims(&self) -> &Claims {
        self.medium.claims()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        (self.first)(Call::Read)?;
        self.medium.read(offset, into)
    }

    fn write(&self, offset: u64, bytes: Gather<'_>) -> Result<(), MediumError> {
        (self.first)(Call::Write)?;
        self.medium.write(offset, bytes)
    }

    fn persist(&self) -> Result<(), MediumError> {
        (self.first)(Call::Persist)?;
        self.medium.persist()
    }
}

/// `cargo test -p f2fs-files --features mutants --test journal` runs this.
#[cfg(feature = "mutants")]
#[test]
fn mutants_are_found() {
    let test = "held::a_sync_waits_for_a_record_of_names_on_its_way";
    f2fs_sync::assert_found(test, &["journal_syncs_pass_names"], "panicked");
    let test = "room::a_file_that_was_synced_before_is_synced_with_more_than_there_is_room_for";
    f2fs_sync::assert_found(test, &["journal_asks_for_room_once"], "no room for both");
    let test = "changes::changes_by_chance_are_as_they_were_synced";
    f2fs_sync::assert_found(test, &["journal_base_kept_behind_names"], "panicked");
    let test = "kept::files_that_are_written_back_together_come_back_with_their_data";
    f2fs_sync::assert_found(test, &["journal_flight_of_several_files"], "panicked");
    let test = "behind::what_a_checkpoint_holds_is_written_though_it_is_displaced_meanwhile";
    let mutants = ["journal_freeze_seals_data", "write_behind_forgets_sealed", "write_behind_sends_before_flush"];
    f2fs_sync::assert_found(test, &mutants, "panicked");
    f2fs_sync::assert_found(
        "behind::what_is_on_its_way_is_read_from_memory",
        &["write_behind_gone_before_sent"],
        "panicked",
    );
}

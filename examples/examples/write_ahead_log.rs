//! A map that survives crashes: its changes go to a journal first, and the journal is taken back when the map was
//! saved.
//!
//! ```text
//! cargo run --release --example write_ahead_log              memory
//! cargo run --release --example write_ahead_log -- FILE      a new file: in persistent memory if it is mounted with dax
//! ```
//!
//! The map itself stands for any engine: a tree, a table, a file system. It is saved as a whole (`Saved`), together
//! with a number; the journal's owner's area says on which number it builds, so that a crash between the two does no
//! harm.
//!
//! Exit codes: those of [`f2fs_examples::program`].

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Parser;
use f2fs::journal::{Create, Journal, Medium, Recovered, RegionMedium, SharedMedium, Uuid};
use f2fs::pmem::{MappedRegion, MemoryRegion};
use f2fs_examples::program;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const OWNER: Uuid = Uuid(*b"a map of strings");

/// The state that the engine keeps elsewhere, written as a whole: how often it was saved, and the content.
#[derive(Clone, Debug, Default)]
struct Saved {
    number: u64,
    content: BTreeMap<String, String>,
}

/// The map: of each key the value, and the stamp of its last change.
struct Map {
    content: Mutex<BTreeMap<String, (String, u64)>>,
    journal: Journal<SharedMedium>,
}

impl Map {
    /// Sets a value. It survives a crash once this has returned.
    fn set(&self, key: &str, value: &str) -> Result<()> {
        // The key's own lock would do in a real engine; changes of other keys need no order with this one.
        let mut content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        let after = content.get(key).map_or(0, |(_, stamp)| *stamp);
        let length = u32::try_from(key.len())?.to_le_bytes();
        let appended = self.journal.append(after, &[&length, key.as_bytes(), value.as_bytes()])?;
        content.insert(key.to_owned(), (value.to_owned(), appended.stamp));
        Ok(())
    }

    /// Saves the map, and takes the journal's space back.
    fn save(&self, saved: &mut Saved) -> Result<()> {
        let content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        let mark = self.journal.mark();
        let number = saved.number + 1;
        *saved =
            Saved { number, content: content.iter().map(|(key, (value, _))| (key.clone(), value.clone())).collect() };
        // A crash here: the journal builds on the number before, and is replayed over the new one, which changes
        // nothing.
        self.journal.truncate_with(&mark, &number.to_le_bytes())?;
        Ok(())
    }

    /// The map after a crash: as it was saved, and what the journal says since.
    fn recover(saved: &Saved, found: Recovered<SharedMedium>) -> Result<Map> {
        let builds_on = u64::from_le_bytes(found.area().try_into()?);
        if builds_on > saved.number {
            return Err(format!("the journal builds on {builds_on}, and the map is {}", saved.number).into());
        }
        if !found.is_whole() {
            return Err(format!("records are lost: {:?}", found.lanes()).into());
        }
        let start = saved.content.iter().map(|(key, value)| (key.clone(), (value.clone(), 0)));
        let mut content: BTreeMap<_, _> = start.collect();
        let mut replay = found.replay();
        while let Some(record) = replay.advance()? {
            let (key, value) = decode(record.payload).ok_or("a record that is none of the map's")?;
            content.insert(key, (value, record.stamp));
        }
        Ok(Map { content: Mutex::new(content), journal: found.start()? })
    }

    fn get(&self, key: &str) -> Option<String> {
        let content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        content.get(key).map(|(value, _)| value.clone())
    }
}

fn decode(payload: &[u8]) -> Option<(String, String)> {
    let (length, rest) = payload.split_first_chunk::<4>()?;
    let (key, value) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some((String::from_utf8(key.to_vec()).ok()?, String::from_utf8(value.to_vec()).ok()?))
}

fn run(medium: &SharedMedium, out: &mut dyn Write) -> Result<()> {
    let mut saved = Saved::default();
    let options = Create::new(OWNER).area(&0_u64.to_le_bytes());
    let journal = Journal::create(Arc::clone(medium), &options)?;
    writeln!(out, "{} lanes of {} KiB", journal.lanes(), journal.lane_bytes() >> 10)?;
    let map = Map { content: Mutex::default(), journal };
    map.set("colour", "red")?;
    map.set("shape", "round")?;
    map.save(&mut saved)?;
    std::thread::scope(|scope| {
        let threads = (0..4).map(|thread| {
            let map = &map;
            let work = move || (0..100).try_for_each(|n| map.set(&format!("{thread}/{n}"), "there"));
            scope.spawn(move || work().map_err(|error| error.to_string()))
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })?;
    map.set("colour", "blue")?;
    drop(map); // a crash: nothing is saved, and nothing is closed

    let found = Journal::open(Arc::clone(medium), Some(OWNER))?;
    writeln!(out, "after the crash: saved {} times, {} records in the journal", saved.number, found.records())?;
    let map = Map::recover(&saved, found)?;
    assert_eq!(map.get("colour").as_deref(), Some("blue"));
    assert_eq!(map.get("shape").as_deref(), Some("round"));
    assert_eq!(map.get("3/99").as_deref(), Some("there"));
    map.save(&mut saved)?;
    drop(map);
    let found = Journal::open(Arc::clone(medium), Some(OWNER))?;
    writeln!(out, "after it was saved: {} records in the journal", found.records())?;
    assert_eq!(found.records(), 0);
    Ok(())
}

/// A map that survives crashes, by a journal of its changes.
#[derive(Debug, Parser)]
#[command(name = "write_ahead_log", after_help = program::EXIT_CODES)]
struct Arguments {
    /// A new file for the journal: in persistent memory if it is mounted with dax. Without it, memory.
    file: Option<PathBuf>,
}

fn main() -> ExitCode {
    program::run(life)
}

fn life(arguments: &Arguments, out: &mut dyn Write) -> Result<()> {
    let medium: SharedMedium = match &arguments.file {
        None => Arc::new(RegionMedium::new(MemoryRegion::new(1 << 20)?)),
        Some(path) => {
            let made = fs::File::create_new(path).and_then(|file| file.set_len(1 << 20));
            made.map_err(|error| format!("{}: {error}", path.display()))?;
            Arc::new(RegionMedium::new(MappedRegion::open(path, f2fs::pmem::OpenOptions::new())?))
        }
    };
    writeln!(out, "a journal on {} KiB", medium.bytes() >> 10)?;
    run(&medium, out)
}

#[test]
fn the_map_survives() {
    life(&Arguments { file: None }, &mut Vec::new()).unwrap();
}

#[test]
fn what_cannot_be_is_told_in_words() {
    let arguments = Arguments { file: Some("/nonexist/x".into()) };
    let error = life(&arguments, &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("/nonexist/x") && error.contains("No such file"), "{error}");
    let full = &mut fs::File::options().write(true).open("/dev/full").unwrap();
    assert!(life(&Arguments { file: None }, full).is_err());
    for wrong in [["write_ahead_log", "a", "b"], ["write_ahead_log", "--none", "b"]] {
        assert!(Arguments::try_parse_from(wrong).is_err());
    }
}

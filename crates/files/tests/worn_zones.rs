//! A zone wears out, or dies, at any change of any zone: errors are typed, and what was synced stays, as far as the
//! medium still has it.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::BTreeMap;
use std::sync::Arc;

use f2fs_check::{CheckOptions, check};
use f2fs_device::{DeviceErrorKind, KeptZones, MemoryDevice, ZoneError, ZoneLayout, ZoneState};
use f2fs_device_test::{WearingZones, bytes};
use f2fs_files::{FileSystem, FsError, Options};
use f2fs_format::feature::Features;
use f2fs_volume::format::{FormatOptions, format};
use f2fs_volume::{VolumeError, VolumeOptions};

/// Blocks in a zone: one segment, so that many zones come into use.
const ZONE: u64 = 512;

type Memory = Arc<MemoryDevice>;

/// A new volume, all of whose main area lies in zones that are written in their order.
fn fresh() -> Memory {
    let options = FormatOptions::default().with_features(Features::BLKZONED);
    let made = |conventional| {
        let layout = ZoneLayout::new(ZONE).with_conventional(conventional).with_limits(8, 8);
        let memory = Arc::new(MemoryDevice::new(KeptZones::<Memory>::blocks_needed(&layout, 64).unwrap()));
        let zones = KeptZones::create(memory.clone(), layout).unwrap();
        format(&zones, &options).map(|_| memory)
    };
    (1..64).find_map(|conventional| made(conventional).ok()).unwrap()
}

/// Whether an error says that a zone is worn out or dead.
fn is_of_the_zone(error: &FsError) -> bool {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = source {
        if let Some(DeviceErrorKind::Zone(ZoneError::State { .. })) = error.downcast_ref() {
            return true;
        }
        source = error.source();
    }
    error.to_string().contains("is read-only") || error.to_string().contains("is offline")
}

fn is_expected(error: &FsError) -> bool {
    is_of_the_zone(error) || matches!(error, FsError::Volume(VolumeError::Stopped { .. })) || error.is_no_space()
}

/// Files that were synced, with their contents.
type Synced = BTreeMap<String, Vec<u8>>;

/// Writes, overwrites, syncs, removes and checkpoints, until the end or until the volume has stopped. What fails has to
/// say so.
fn work(fs: &FileSystem, synced: &mut Synced) -> Result<(), FsError> {
    for number in 0..24_u64 {
        let path = format!("/{}", number % 10);
        let data = bytes(40_000 + number as usize * 9000, number);
        // What is there is unknown from the first change on until it is synced.
        synced.remove(&path);
        let written = fs.open_file(&path).or_else(|_| fs.create_file(&path, 0o644)).and_then(|file| {
            file.set_len(0)?;
            // A write that met the zone goes elsewhere the next time.
            let mut result = file.write_at(&data, 0);
            if result.as_ref().is_err_and(is_of_the_zone) {
                result = file.write_at(&data, 0);
            }
            result?;
            file.sync_all()
        });
        match written {
            Ok(()) => drop(synced.insert(path, data)),
            Err(error) if is_expected(&error) => {}
            Err(error) => return Err(error),
        }
        if number % 7 == 6 {
            synced.remove("/1");
            let removed = fs.remove_file("/1").and_then(|()| fs.checkpoint().map(|_| ()));
            removed.or_else(|error| {
                if is_expected(&error) || error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
            })?;
        }
    }
    Ok(())
}

fn one(fresh: &Memory, after: u64, state: ZoneState) -> (bool, usize, usize) {
    let memory = Arc::new(fresh.snapshot());
    let device = Arc::new(WearingZones::new(KeptZones::open(memory.clone()).unwrap(), after, state));
    let options = || Options::new().volume(VolumeOptions::new().lanes(1));
    let mut synced = Synced::new();
    match FileSystem::open(device.clone(), options()) {
        Ok(fs) => {
            work(&fs, &mut synced).unwrap_or_else(|error| panic!("after {after}, {state}: {error}"));
            if let Err(error) = fs.close() {
                assert!(is_expected(&error), "after {after}, {state}: {error}");
            }
        }
        Err(error) => assert!(is_expected(&error), "after {after}, {state}: {error}"),
    }
    let worn = device.worn();
    drop(device);
    let again = Arc::new(KeptZones::open(memory).unwrap());
    if state == ZoneState::ReadOnly {
        let report = check(&*again, &CheckOptions::default()).unwrap();
        assert!(report.is_consistent() && report.complete, "after {after}, {state}: {report}");
    }
    let fs = match FileSystem::open(again, options()) {
        Ok(fs) => fs,
        // A dead zone may have held what the volume begins with.
        Err(error) => {
            assert!(state == ZoneState::Offline && is_of_the_zone(&error), "after {after}, {state}: {error}");
            return (worn.is_some(), 0, synced.len());
        }
    };
    let (mut whole, mut lost) = (0, 0);
    for (path, wanted) in &synced {
        let mut read = vec![0; wanted.len() + 1];
        let found = fs.open_file(path).and_then(|file| file.read_at(&mut read, 0));
        match found {
            Ok(len) if read[..len] == wanted[..] => whole += 1,
            Err(error) if state == ZoneState::Offline && is_of_the_zone(&error) => lost += 1,
            other => panic!("after {after}, {state}: {path}: {other:?}, {} bytes wanted", wanted.len()),
        }
    }
    (worn.is_some(), whole, lost)
}

#[test]
fn nothing_that_the_medium_still_has_is_lost() {
    let fresh = fresh();
    for state in [ZoneState::ReadOnly, ZoneState::Offline] {
        let (mut runs, mut whole, mut lost) = (0, 0, 0);
        for after in 0.. {
            let (worn, found, gone) = one(&fresh, after, state);
            (runs, whole, lost) = (runs + 1, whole + found, lost + gone);
            if !worn {
                break;
            }
        }
        println!("{state}: {runs} runs, {whole} synced files whole, {lost} lost with their zone");
        assert!(runs > 50 && whole > 3 * runs, "{runs} runs, {whole} files");
        assert!(state == ZoneState::Offline || lost == 0);
    }
}

//! The ways to mend a volume: roll-forward and repair.

use std::sync::Arc;

use f2fs_check::repair::{plan, plan_without_synced, undo};
use f2fs_check::{CheckOptions, CheckReport, FindingKind, Severity, check};
use f2fs_device::BlockDevice;
use f2fs_files::{FileSystem, FsError, Options, Time};
use f2fs_volume::VolumeError;

use super::readers::{each_path, open_and_check, walk};
use f2fs_device_test::SparseDevice;

/// Rolls forward in memory and for good: a reader sees the same tree as a writer. `whole` says that the chain has no
/// damage: then it is rolled forward, `stat` shows the same of each file as for the reader, and the volume is sound
/// afterwards.
pub fn roll_forward(device: &Arc<SparseDevice>, whole: bool) {
    // Of each directory its names, if it can be read.
    let names = |fs: &FileSystem| {
        ["/", "/hashed", "/inline", "/dir", "/big"].map(|path| {
            let entries = fs.read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>).ok()?;
            Some(entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>())
        })
    };
    let options = || Options::new().volume(f2fs_volume::VolumeOptions::new().recovery(false)).read_only(true);
    let without = FileSystem::open(device.clone(), options()).is_ok();
    if whole {
        return roll_forward_whole(device);
    }
    let reader = FileSystem::open(device.clone(), Options::new().read_only(true));
    let shown = match &reader {
        Ok(fs) => {
            assert!(without, "what recovers opens without recovery");
            walk(fs);
            Some(names(fs))
        }
        Err(_) => None,
    };
    drop(reader);
    let before = device.snapshot();
    let Ok(fs) = FileSystem::open(device.clone(), Options::new()) else { return };
    for (shown, found) in shown.into_iter().flatten().zip(names(&fs)) {
        // Where two own a block, what the writer's checkpoint wrote or freed may cover up an error, or be one for the
        // other.
        if let (Some(shown), Some(found)) = (&shown, &found) {
            assert!(found == shown, "a reader sees {} names, a writer {}", shown.len(), found.len());
        } else if shown != found {
            assert!(!is_sound(&before), "a reader sees {shown:?}, a writer {found:?}");
        }
    }
    walk(&fs);
    let recovered = fs.recovered().files > 0;
    let closed = fs.close();
    drop(fs);
    let report = open_and_check(device);
    if recovered && closed.is_ok() && only_of_kinds(&before, &[FindingKind::RecoveryChain]) {
        assert_tables(&report.expect("a closed volume is checked"));
    }
}

/// Whether nothing is wrong with a volume but findings of these kinds.
fn only_of_kinds(device: &SparseDevice, kinds: &[FindingKind]) -> bool {
    let report = check(device, &CheckOptions::new().threads(0));
    report.is_ok_and(|report| report.complete && report.findings.iter().all(|finding| kinds.contains(&finding.kind)))
}

/// What a chain may say, roll-forward takes over or refuses; but the tables are its own work. So if the checkpoint was
/// sound, then whatever the damage to the chain: what was taken into use is counted once, and nothing that was there is
/// lost.
fn assert_tables(report: &CheckReport) {
    const TABLES: [FindingKind; 9] = [
        FindingKind::NatEntry,
        FindingKind::SitEntry,
        FindingKind::NotValid,
        FindingKind::Unreached,
        FindingKind::UnreachableNid,
        FindingKind::DuplicateBlock,
        FindingKind::DuplicateName,
        FindingKind::Parent,
        FindingKind::Counts,
    ];
    let wrong = report.findings.iter().find(|finding| TABLES.contains(&finding.kind));
    assert!(wrong.is_none(), "a damaged chain on a sound checkpoint made this:\n{report}");
}

/// The same without damage.
fn roll_forward_whole(device: &Arc<SparseDevice>) {
    // Directories that get names back are changed now, for both.
    let options = || Options::new().clock(|| Time { seconds: 1_700_000_000, nanoseconds: 0 });
    let reader = FileSystem::open(device.clone(), options().read_only(true)).expect("a whole chain is read");
    let stats = |fs: &FileSystem| {
        let mut all = Vec::new();
        each_path(fs, |path, stat| all.push((path.to_path_buf(), *stat, fs.xattrs(path).expect("they are read"))));
        all
    };
    assert!(reader.recovered().files > 0, "something was synced");
    let shown = stats(&reader);
    drop(reader);
    let fs = FileSystem::open(device.clone(), options()).expect("a whole chain is rolled forward");
    for (shown, found) in shown.iter().zip(stats(&fs)) {
        assert_eq!(*shown, found, "a reader sees one, a writer the other");
    }
    fs.close().expect("a sound volume is closed");
    drop(fs);
    let report = check(&**device, &CheckOptions::new().threads(0)).expect("a sound volume is checked");
    assert!(report.is_consistent() && report.complete, "a whole chain made this:\n{report}");
}

/// Whether nothing is wrong with a volume.
pub(super) fn is_sound(device: &dyn BlockDevice) -> bool {
    let options = CheckOptions::new().threads(0);
    check(device, &options).is_ok_and(|report| report.is_consistent() && report.complete)
}

/// Plans a repair, applies it, checks the result, and undoes it if that is not sound. No more may be found afterwards
/// than before.
pub fn repair(device: &Arc<SparseDevice>) {
    let options = CheckOptions::new().threads(0);
    let image: Arc<dyn BlockDevice> = Arc::new(device.snapshot().read_only());
    let Ok(mut repair) = plan(&image, &options) else { return };
    // What a chain says may be refused, beside tables that are sound.
    if repair.keeps_synced() && FileSystem::open(repair.preview(&image), Options::new().read_only(true)).is_err() {
        drop(repair);
        repair = match plan_without_synced(&image, &options) {
            Ok(repair) => repair,
            Err(_) => return,
        };
    }
    let damage = |report: &CheckReport| {
        let found = report.findings.iter().filter(|finding| finding.severity() == Severity::Damage).count();
        found as u64 + report.suppressed
    };
    // Parts that could not be looked at before may show more damage now.
    if repair.before.complete {
        let (before, after) = (damage(&repair.before), damage(&repair.after));
        assert!(after <= before, "worse: {before} findings, then {after}:\n{}\n{}", repair.before, repair.after);
        assert!(repair.after.complete);
    }
    let mut backup = Vec::new();
    repair.write_backup(&**device, &mut backup).expect("memory takes it");
    repair.apply(&**device).expect("memory takes it");
    let found = check(&**device, &options).expect("what was judged in memory can be judged here");
    assert_eq!(found.findings, repair.after.findings);
    if found.is_consistent() && found.complete {
        let fs = match FileSystem::open(device.clone(), Options::new()) {
            // A volume with quotas, one of zones on a device without any, or one whose checkpoints are switched off,
            // can be checked and read, and not be changed.
            Err(FsError::Volume(
                VolumeError::OnlyForReading { .. } | VolumeError::NoZones | VolumeError::CheckpointDisabled,
            )) => {
                return walk(
                    &FileSystem::open(device.clone(), Options::new().read_only(true)).expect("it can be read"),
                );
            }
            opened => opened.expect("a sound volume opens"),
        };
        walk(&fs);
        fs.create_file("/after the repair", 0o600)
            .and_then(|file| file.write_at(&[1; 5000], 0))
            .map(drop)
            .or_else(enough)
            .expect("a sound volume is written to");
        fs.close().expect("a sound volume is closed");
        drop(fs);
        let found = check(&**device, &options).expect("a sound volume is checked");
        assert!(found.is_consistent(), "after the repair and a change:\n{found}");
        return;
    }
    undo(&**device, &backup[..]).expect("nothing was changed meanwhile");
    let as_before = |block: &u64| device.block(*block) == *image.read(*block, 1).expect("a block").block(0);
    assert!(repair.blocks().all(|block| as_before(&block)));
}

/// A volume may be full, or have a file of that name.
fn enough(error: FsError) -> Result<(), FsError> {
    match error {
        error if error.is_no_space() => Ok(()),
        FsError::Exists => Ok(()),
        error => Err(error),
    }
}

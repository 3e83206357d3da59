//! FxMark on small volumes: every workload under every policy leaves what it should, and fsck.f2fs accepts it.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use f2fs::device::MemoryDevice;
use f2fs::nat::Policy;
use f2fs::{DirectoryLock, FileSystem, Options};
use f2fs_workload::fxmark::{FxmarkError, Measured, Setting, Workload, run, run_in_directory};

const MIB: u64 = 256;

fn device() -> Arc<MemoryDevice> {
    Arc::new(MemoryDevice::new(MIB * 256))
}

fn measure(setting: &Setting) -> Measured {
    run(device(), setting, &()).unwrap_or_else(|error| panic!("{setting:?}: {error}"))
}

/// Names in the shared directory, and in all private ones.
fn names(fs: &FileSystem, threads: usize) -> (usize, usize) {
    let shared = fs.read_dir("/fxmark").unwrap().count() - threads;
    let private = (0..threads).map(|worker| fs.read_dir(format!("/fxmark/{worker}")).unwrap().count()).sum();
    (shared, private)
}

#[test]
fn every_workload_leaves_a_sound_volume() {
    let policies = [Policy::KernelScan, Policy::CLUE, Policy::Sharded];
    let locks = [DirectoryLock::Bucket, DirectoryLock::Whole];
    let dir = tempfile::tempdir().unwrap();
    for (index, workload) in Workload::ALL.into_iter().enumerate() {
        let policy = policies[index % 3];
        let setting = Setting {
            policy,
            directory_lock: locks[index % 2],
            threads: 3,
            files: 400,
            verify: true,
            ..Setting::new(workload)
        };
        let device = device();
        let measured = run(device.clone(), &setting, &()).unwrap();
        assert_eq!((measured.operations, measured.latencies.len()), (400, 400), "{workload}");
        assert!(measured.elapsed.as_nanos() > 0 && measured.slowest_share > 0.0 && measured.slowest_share <= 1.0);

        let fs = FileSystem::open(device.clone(), Options::new().read_only(true)).unwrap();
        let expected = match workload {
            Workload::Mwul | Workload::Mwum => (0, 0),
            Workload::Mwcl => (0, 400),
            Workload::Mwcm | Workload::Mwrm => (400, 0),
            Workload::Mwrl | Workload::Drbl | Workload::Dwol => (0, 3),
            _ => (1, 0),
        };
        assert_eq!(names(&fs, 3), expected, "{workload}");
        if workload == Workload::Dwom {
            // Each worker wrote the beginning of its part, and nothing else.
            let file = fs.open_file("/fxmark/n_mtime_upt.dat").unwrap();
            let mut block = [0; 4096];
            for (offset, byte) in [(0, 0xa5), (4096, 0x5a), (16 << 20, 0xa5), ((16 << 20) - 4096, 0x5a)] {
                assert_eq!(file.read_at(&mut block, offset).unwrap(), 4096);
                assert_eq!(block, [byte; 4096], "at {offset}");
            }
        }
        let image = dir.path().join(workload.name());
        device.save(&image).unwrap();
        f2fs_oracle::assert_clean(&image);
    }
}

#[test]
fn every_workload_runs_in_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    for workload in Workload::ALL {
        let setting = Setting { threads: 3, files: 40, ..Setting::new(workload) };
        let measured = run_in_directory(dir.path(), &setting, &()).unwrap();
        assert_eq!((measured.operations, measured.latencies.len()), (40, 40), "{workload}");
        assert!(measured.in_directory && measured.csv().starts_with(&format!("{workload},directory,3,40,")));
        assert_eq!(dir.path().read_dir().unwrap().count(), 0, "{workload} leaves nothing");
    }
    // What is there already is not touched.
    let kept = dir.path().join("fxmark");
    std::fs::write(&kept, "kept").unwrap();
    let error = run_in_directory(dir.path(), &Setting::new(Workload::Mwcl), &()).unwrap_err();
    assert!(matches!(error, FxmarkError::Operation { what: "mkdir", .. }), "{error}");
    assert_eq!(std::fs::read(&kept).unwrap(), b"kept");
}

/// As `f2fs_balance_fs` of fs/f2fs/segment.c: with 100,000 entries of the node address table in memory, every create
/// and unlink builds free NIDs; the build scans as long as the list holds fewer than 455.
#[test]
fn the_baseline_scans_when_the_kernel_does() {
    let unlink =
        |policy, free_nids| measure(&Setting { policy, free_nids, files: 300, ..Setting::new(Workload::Mwul) });
    let full = unlink(Policy::KernelScan, None);
    assert_eq!((full.fill.free_nids, full.nid_scans, full.checkpoints), (0, 300, 0));
    assert!(full.fill.cached_nat_entries >= 100_000 && full.nid_scan_share > 0.0);
    assert_eq!(unlink(Policy::KernelScan, Some(454)).nid_scans, 300);
    // A list that is long enough is not scanned for; and there is none to look at before 100,000 entries are in memory.
    assert_eq!(unlink(Policy::KernelScan, Some(455)).nid_scans, 0);
    let roomy = unlink(Policy::KernelScan, Some(u64::MAX));
    assert!(roomy.fill.cached_nat_entries < 100_000, "{:?}", roomy.fill);
    assert_eq!((roomy.nid_scans, roomy.nid_scan_share), (0, 0.0));

    // One thread meets no scan that it could pass by, so optimism saves nothing here.
    assert_eq!(unlink(Policy::CLUE, None).nid_scans, 300);
    let sharded = unlink(Policy::Sharded, None);
    assert_eq!((sharded.nid_scans, sharded.nid_scan_share), (0, 0.0));
}

#[test]
fn more_threads_than_files_and_bad_settings() {
    let measured = measure(&Setting { threads: 7, files: 3, ..Setting::new(Workload::Mwum) });
    assert_eq!(measured.operations, 3);
    let error = |setting: &Setting| run(device(), setting, &()).unwrap_err();
    assert!(matches!(error(&Setting { threads: 0, ..Setting::new(Workload::Mwcl) }), FxmarkError::Setting(_)));
    assert!(matches!(error(&Setting { files: 0, ..Setting::new(Workload::Mwcl) }), FxmarkError::Setting(_)));
    // A volume that is too small: the first worker that notices says where, and nobody waits for it.
    for workload in [Workload::Mwul, Workload::Mwcl] {
        let error = error(&Setting { threads: 2, files: 200_000, ..Setting::new(workload) });
        assert!(matches!(error, FxmarkError::Operation { what: "create", .. }), "{error}");
    }
}

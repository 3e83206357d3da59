//! The quickstart, small: on a file and in memory, judged by fsck.f2fs; and that it finds what is wrong.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_files::{FileSystem, Options};
use f2fs_workload::quickstart::{Config, Observer, Phase, PhaseReport, Plan, QuickstartError, run};

const SMALL: Config = Config { files: 2000, directories: 5, threads: 4, large_files: 2, large_bytes: 5 << 20 };

#[derive(Default)]
struct Steps {
    expected: AtomicU64,
    done: AtomicU64,
    phases: AtomicU32,
}

impl Observer for Steps {
    fn begin(&self, _: Phase, total: u64) {
        self.expected.store(total, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
    }

    fn advance(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }

    fn end(&self, report: &PhaseReport) {
        self.phases.fetch_add(1, Ordering::Relaxed);
        if report.operations > 1 {
            assert_eq!(self.done.load(Ordering::Relaxed), self.expected.load(Ordering::Relaxed), "{:?}", report.phase);
        }
    }
}

#[test]
fn a_volume_in_a_file_lives_and_fsck_accepts_it() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    drop(f2fs::uring::UringDevice::create(&image, SMALL.volume_bytes(), f2fs::uring::OpenOptions::new()).unwrap());
    let steps = Steps::default();
    let open = || Ok(f2fs::uring::UringDevice::open(&image, f2fs::uring::OpenOptions::new())? as Arc<dyn BlockDevice>);
    let report = run(&open, &SMALL, &steps).unwrap();
    assert_eq!(report.phases.iter().map(|phase| phase.phase).collect::<Vec<_>>(), Phase::ALL);
    assert_eq!(steps.phases.load(Ordering::Relaxed) as usize, Phase::ALL.len());
    assert_eq!(report.phase(Phase::Create).unwrap().operations, 2000);
    assert_eq!(report.phase(Phase::Unlink).unwrap().operations, 1000);
    // The files that are left, the root, the directories, the large files.
    assert_eq!(report.phase(Phase::Check).unwrap().operations, 1000 + 1 + 5 + 2);
    let written = report.phase(Phase::Write).unwrap().bytes;
    assert_eq!(written, report.phase(Phase::Read).unwrap().bytes);
    assert_eq!(report.phase(Phase::WriteLarge).unwrap().bytes, 10 << 20);
    let verified = report.phase(Phase::Verify).unwrap().bytes - (10 << 20);
    assert!(verified > 0 && verified < written, "{verified} of {written}");
    f2fs_oracle::assert_clean(&image);
}

/// Changes the volume behind its back, when it is opened for the second time.
fn sabotage(change: impl Fn(&FileSystem, &Plan)) -> QuickstartError {
    let config = Config { files: 300, large_files: 0, ..SMALL };
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(config.volume_bytes() / 4096));
    let opened = AtomicU32::new(0);
    let open = || {
        if opened.fetch_add(1, Ordering::Relaxed) == 1 {
            let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
            change(&fs, &Plan::new(config));
            fs.close().unwrap();
        }
        Ok(device.clone())
    };
    run(&open, &config, &()).unwrap_err()
}

#[test]
fn a_changed_byte_a_lost_file_and_an_undead_one_are_found() {
    let error = sabotage(|fs, plan| {
        let spec = plan.file(42);
        let file = fs.open_file(&spec.path).unwrap();
        let mut byte = [0];
        file.read_at(&mut byte, spec.size - 1).unwrap();
        file.write_at(&[!byte[0]], spec.size - 1).unwrap();
    });
    let path = Plan::new(SMALL).file(42).path;
    assert!(
        matches!(&error, QuickstartError::Content { path: at, offset, expected, found }
            if *at == path && *offset == Plan::new(SMALL).file(42).size - 1 && *expected == !*found),
        "{error}"
    );
    assert!(error.is_damage());

    let error = sabotage(|fs, plan| fs.remove_file(plan.file(42).path).unwrap());
    assert!(matches!(&error, QuickstartError::Names { expected, found, .. } if *found == expected - 1), "{error}");

    // As many names as before, and yet the wrong ones: file 6 is looked for in vain, or its new name found first.
    let error = sabotage(|fs, plan| {
        fs.rename(plan.file(6).path, plan.file(7).path, f2fs_files::RenameMode::NoReplace).unwrap();
    });
    match &error {
        QuickstartError::Undead { path } => assert_eq!(*path, Plan::new(SMALL).file(7).path),
        QuickstartError::File { path, .. } => assert_eq!(*path, Plan::new(SMALL).file(6).path),
        other => panic!("{other}"),
    }
}

#[test]
fn a_full_volume_is_an_error_not_damage() {
    let config = Config { files: 100_000, directories: 2, threads: 2, large_files: 0, large_bytes: 0 };
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 20 >> 12));
    let error = run(&|| Ok(device.clone()), &config, &()).unwrap_err();
    assert!(!error.is_damage(), "{error}");
    assert!(matches!(&error, QuickstartError::File { source, .. } if source.is_no_space()), "{error}");
}

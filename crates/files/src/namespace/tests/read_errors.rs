//! Renames of names that cannot be read.

use f2fs_device::Operation;
use f2fs_device_test::{FaultDevice, FaultRule};

use super::*;

/// Names that take blocks of their own.
const NAMES: usize = 40;

fn fill(fs: &FileSystem, directory: &str) {
    fs.create_dir(directory, 0o755).unwrap();
    (0..NAMES).for_each(|number| fs.link("/f", format!("{directory}/{number:0>200}")).unwrap());
}

/// What a rename changes is read before anything is changed: a device that fails once leaves the tree as it was, and the
/// volume running.
#[test]
fn a_rename_that_cannot_read_changes_nothing() {
    let memory = MemoryDevice::new(32 * 1024);
    format(&memory, &FormatOptions::default()).unwrap();
    let memory = PlainArc::new(memory);
    let fs = FileSystem::open(memory.clone(), Options::new()).unwrap();
    fs.create_file("/f", 0o644).unwrap();
    ["/a", "/b", "/a/from", "/b/full"].into_iter().for_each(|directory| fill(&fs, directory));
    fs.create_dir("/b/empty", 0o755).unwrap();
    fs.close().unwrap();
    drop(fs);
    let renames =
        [("/b/new", RenameMode::Replace), ("/b/empty", RenameMode::Replace), ("/b/full", RenameMode::Exchange)];
    for (to, mode) in renames {
        let mut errors = 0;
        loop {
            let device = PlainArc::new(FaultDevice::new(PlainArc::new(memory.snapshot())));
            let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
            device.arm(FaultRule::on([Operation::Read]).after(errors));
            let result = fs.rename("/a/from", to, mode);
            let failed = device.faults() > 0;
            device.disarm();
            assert_eq!(fs.core.volume.stopped(), None, "{to}: read {errors} failed");
            if !failed {
                result.unwrap();
                break;
            }
            errors += 1;
            if let Err(error) = result {
                assert!(error.device().is_some(), "{to}: {error}");
                assert_eq!(fs.read_dir("/a/from").unwrap().count(), NAMES);
                assert_eq!(fs.exists(to).unwrap(), to != "/b/new");
                fs.rename("/a/from", to, mode).unwrap();
            }
            assert_eq!(fs.read_dir(to).unwrap().count(), NAMES);
            assert_eq!(fs.exists("/a/from").unwrap(), mode == RenameMode::Exchange);
            fs.close().unwrap();
        }
        assert!(errors > 3, "{to}: {errors} reads");
    }
}

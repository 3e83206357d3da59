//! Writers: one, two at once, and on a device that fails.

use std::path::PathBuf;
use std::sync::{Arc, Barrier};
use std::thread;

use f2fs_check::{CheckError, CheckOptions, CheckReport, check};
use f2fs_device::Operation;
use f2fs_device_test::{FaultDevice, FaultRule};
use f2fs_files::{AllocateFlags, FileSystem, FsError, Options, Pace, RenameMode, SetMode, SetTimes};

use super::readers::{open_and_check, walk};
use f2fs_device_test::SparseDevice;

/// Operations of a thread at most.
const OPERATIONS: usize = 40;
/// Names of new files that two threads share, in each directory.
const SHARED: usize = 2;

/// A fault of the device: which operation, and how.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Reads, writes, all, or changes.
    pub on: u8,
    /// So many of them pass.
    pub after: u8,
    /// The fault of the device; the highest bit makes it last.
    pub what: u8,
}

impl Fault {
    fn rule(self) -> FaultRule {
        let rule = match self.on % 5 {
            0 => FaultRule::on([Operation::Read]),
            1 => FaultRule::on([Operation::Write]),
            2 => FaultRule::on_all(),
            3 => FaultRule::on([Operation::Flush]),
            _ => FaultRule::on_changes(),
        };
        let what = match self.what % 8 {
            0 => f2fs_device_test::Fault::Torn(self.after.into()),
            1 => f2fs_device_test::Fault::Short(self.after.into()),
            2 => f2fs_device_test::Fault::Error(28),
            3 => f2fs_device_test::Fault::Flipped(u64::from(self.after) * 997 + u64::from(self.what)),
            4 => f2fs_device_test::Fault::Lost,
            5 => f2fs_device_test::Fault::Misdirected(i64::from(self.after) - 100),
            _ => f2fs_device_test::Fault::Error(5),
        };
        let rule = rule.after(u64::from(self.after) / (1 + u64::from(self.what >> 5 & 3))).fault(what);
        if self.what & 0x80 == 0 { rule } else { rule.for_good() }
    }

    /// Whether the device says so when it fails.
    fn is_told(self) -> bool {
        !matches!(self.what % 8, 3..=5)
    }
}

/// One operation, on paths that `choices` name.
fn operate(fs: &FileSystem, names: &[PathBuf], new: &New, index: usize, choices: &[u8]) -> Result<(), FsError> {
    let (what, which) = (choices[0], choices.get(1).copied().unwrap_or(0));
    let one = &names[usize::from(which) % names.len()];
    let two = &names[usize::from(which / 16) % names.len()];
    let number = new.number(index);
    let (below, beside) = (two.join(format!("new-{number}")), two.with_file_name(format!("beside-{number}")));
    let (is_shared, new) = (matches!(new, New::Shared), if which & 8 == 0 { below } else { beside });
    // What one thread makes, the other one uses.
    let one = if is_shared && what >= 128 { &new } else { one };
    match what % 24 {
        0 => fs.create_file(&new, 0o644).and_then(|file| file.write_at(&[1; 5000], 0).map(|_| ())),
        1 => fs.create_dir(&new, 0o755).map(|_| ()),
        2 => fs.remove_file(one),
        3 => fs.remove_dir(one),
        4 => fs.rename(one, &new, RenameMode::Replace),
        5 => fs.rename(one, two, RenameMode::Exchange),
        6 => fs.rename(one, two, RenameMode::Replace),
        7 => fs.link(one, &new),
        8 => fs.open_file(one).and_then(|file| file.write_at(&[2; 9000], u64::from(which) * 40_000).map(|_| ())),
        9 => fs.open_file(one).and_then(|file| file.set_len(u64::from(which) * 100)),
        10 => fs.open_file(one).and_then(|file| file.allocate(4_000_000, 100_000, AllocateFlags::KEEP_SIZE)),
        11 => fs.set_xattr(one, "user.new", &vec![3; usize::from(which) * 10], SetMode::Any),
        12 => fs.remove_xattr(one, "user.long"),
        13 => fs.remove_all(one),
        14 => fs.checkpoint().map(|_| ()),
        15 => fs.set_permissions(one, u16::from(which)),
        16 => fs.clean_step(Pace::Urgent).map(|_| ()),
        17 => fs.open_file(one).and_then(|file| file.sync_all()),
        18 => fs.open_file(one).and_then(|file| file.append(&[6; 3000]).map(|_| ())),
        19 => fs.set_times(one, SetTimes::default()),
        20 => fs.create_file(&new, 0o600).and_then(|file| file.write_at(b"short", 0).and_then(|_| file.sync_all())),
        21 => fs.open_file(one).and_then(|file| file.read_at(&mut [0; 9000], u64::from(which) * 3000).map(|_| ())),
        22 => fs.read_dir(one).and_then(Iterator::collect::<Result<Vec<_>, _>>).map(|_| ()),
        _ => fs.open_file(one).and_then(|file| file.write_durable(&[7; 100], u64::from(which) * 4096).map(|_| ())),
    }
}

/// The names of new files.
enum New {
    /// One for each operation.
    Own,
    /// A few, which two threads make, use and remove.
    Shared,
}

impl New {
    fn number(&self, index: usize) -> usize {
        match self {
            New::Own => index,
            New::Shared => index % SHARED,
        }
    }
}

/// Damage makes many of them fail. On a volume that has none, and a device that works, no operation finds a
/// contradiction.
fn operate_all(fs: &FileSystem, names: &[PathBuf], new: &New, choices: &[u8], is_sound: bool) {
    for (index, choices) in choices.chunks(2).take(OPERATIONS).enumerate() {
        if let Err(error) = operate(fs, names, new, index, choices) {
            assert!(!(is_sound && error.is_corruption()), "a sound volume: {error}");
        }
    }
}

/// A volume that was sound is sound afterwards.
fn assert_sound(report: Result<CheckReport, CheckError>) {
    let report = report.expect("a sound volume is checked");
    assert!(report.is_consistent() && report.complete, "a sound volume became:\n{report}");
}

/// Opens for writing, changes this and that as `choices` say, writes checkpoints, closes, and opens again. `is_sound`
/// says that the volume has no damage: then it has none afterwards.
pub fn change(device: &Arc<SparseDevice>, names: &[PathBuf], choices: &[u8], is_sound: bool) {
    let fs = match FileSystem::open(device.clone(), Options::new()) {
        Ok(fs) => fs,
        Err(error) => return assert!(!is_sound, "{error}"),
    };
    operate_all(&fs, names, &New::Own, choices, is_sound);
    walk(&fs);
    let closed = fs.close();
    drop(fs);
    let report = open_and_check(device);
    if is_sound {
        closed.expect("a sound volume is closed");
        assert_sound(report);
    }
}

/// Operations of a thread.
pub type Operations<'a> = &'a mut (dyn FnMut() + Send);

/// Runs both at once, in the caller's thread and in another one.
pub fn at_once(first: Operations<'_>, second: Operations<'_>) {
    // To start a thread takes longer than most operations.
    let both = Barrier::new(2);
    let run = |operations: Operations<'_>| {
        both.wait();
        operations();
    };
    thread::scope(|scope| {
        scope.spawn(|| run(second));
        run(first);
    });
}

/// The same by two threads, each with half of the choices, on the same paths; what one makes, the other one uses.
/// `together` runs both: [`at_once`], or as a fuzz target has them meet.
pub fn change_by_two(
    device: &Arc<SparseDevice>,
    names: &[PathBuf],
    choices: &[u8],
    is_sound: bool,
    together: impl FnOnce(Operations<'_>, Operations<'_>),
) {
    let Ok(fs) = FileSystem::open(device.clone(), Options::new()) else { return assert!(!is_sound) };
    let (one, two) = choices.split_at(choices.len() / 4 * 2);
    let operate = |choices: &[u8]| operate_all(&fs, names, &New::Shared, choices, is_sound);
    together(&mut || operate(one), &mut || operate(two));
    walk(&fs);
    let closed = fs.close();
    drop(fs);
    let report = open_and_check(device);
    if is_sound {
        closed.expect("a sound volume is closed");
        assert_sound(report);
    }
}

/// The same on a device that fails meanwhile, and says so, or not. A sound volume stays sound if its device only fails,
/// and keeps what it wrote.
pub fn change_on_failing(
    device: &Arc<SparseDevice>,
    names: &[PathBuf],
    choices: &[u8],
    faults: &[Fault],
    is_sound: bool,
) {
    let failing = Arc::new(FaultDevice::new(device.clone()));
    faults.iter().for_each(|fault| failing.arm(fault.rule()));
    if let Ok(fs) = FileSystem::open(failing.clone(), Options::new()) {
        operate_all(&fs, names, &New::Own, choices, false);
        walk(&fs);
        let _ = fs.close();
    }
    drop(failing);
    if is_sound && faults.iter().all(|fault| fault.is_told()) {
        assert_sound(check(&**device, &CheckOptions::new().threads(0)));
        let fs = FileSystem::open(device.clone(), Options::new()).expect("the device works again");
        fs.close().expect("the device works again");
        drop(fs);
        return assert_sound(open_and_check(device));
    }
    let _ = open_and_check(device);
}

/// Reads and checks on a device that fails meanwhile.
pub fn read_from_failing(device: &Arc<SparseDevice>, faults: &[Fault]) {
    let failing = Arc::new(FaultDevice::new(device.clone()));
    faults.iter().for_each(|fault| failing.arm(fault.rule()));
    let _ = open_and_check(&failing);
}

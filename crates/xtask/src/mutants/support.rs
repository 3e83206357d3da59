//! The crate that woven sources ask whether a fault is to be committed. It is in the copy of the tree only.

/// Its name, and where it is.
pub(super) const DIRECTORY: &str = "crates/mutation";

pub(super) const MANIFEST: &str = "[package]
name = \"f2fs-mutation\"
version = \"0.1.0\"
edition = \"2024\"
";

/// The variable that names the number of the fault.
pub(super) const FAULT: &str = "F2FS_FAULT";
/// The variable that names a file: each fault's number is put behind it, in four bytes, when its place is reached.
pub(super) const REACHED: &str = "F2FS_REACHED";

/// The crate, for so many faults.
pub(super) fn source(faults: usize) -> String {
    SOURCE.replace("FAULTS_IN_ALL", &(faults + 1).to_string())
}

const SOURCE: &str = r#"
use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

const UNKNOWN: u32 = u32::MAX;
const RECORDS: u32 = u32::MAX - 1;
static CHOSEN: AtomicU32 = AtomicU32::new(UNKNOWN);
static SEEN: [AtomicBool; FAULTS_IN_ALL] = [const { AtomicBool::new(false) }; FAULTS_IN_ALL];
static LIST: OnceLock<Option<File>> = OnceLock::new();

#[inline]
pub fn on(fault: u32) -> bool {
    let chosen = CHOSEN.load(Relaxed);
    if chosen < RECORDS { chosen == fault } else { look(fault, chosen) }
}

#[cold]
#[inline(never)]
fn look(fault: u32, mut chosen: u32) -> bool {
    if chosen == UNKNOWN {
        chosen = match std::env::var("F2FS_FAULT").ok().and_then(|text| text.parse().ok()) {
            Some(number) => number,
            None if std::env::var_os("F2FS_REACHED").is_some() => RECORDS,
            None => 0,
        };
        CHOSEN.store(chosen, Relaxed);
    }
    if chosen == RECORDS && !SEEN[fault as usize].swap(true, Relaxed) {
        let open = || File::options().append(true).create(true).open(std::env::var_os("F2FS_REACHED")?).ok();
        if let Some(mut list) = LIST.get_or_init(open).as_ref() {
            let _ = list.write_all(&fault.to_le_bytes());
        }
    }
    chosen == fault
}
"#;

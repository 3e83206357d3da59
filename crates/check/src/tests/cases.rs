//! Runs tables of mutants: each must be found here as the right kind, and what fsck.f2fs says of it is on record.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use f2fs_device::BlockDevice;
use f2fs_format::Nid;
use f2fs_format::dentry::DentryView;
use f2fs_format::inode::inline;
use f2fs_sync::{Arc, PlainArc};

use super::image::Image;
use crate::{CheckOptions, FindingKind, Severity, repair};

/// The verdict of `fsck.f2fs --dry-run` on a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fsck {
    /// It finds it, or dies of it.
    Finds,
    /// It accepts the volume.
    Blind,
}

/// One thing that is wrong with a volume.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// One of these kinds must be found.
    pub(super) kind: FindingKind,
    pub(super) fsck: Fsck,
    pub(super) change: fn(&Image),
}

/// Short form of a [`Case`].
pub(super) fn case(name: &'static str, kind: FindingKind, fsck: Fsck, change: fn(&Image)) -> Case {
    Case { name, kind, fsck, change }
}

/// Runs all cases on copies of `image`, and fails with a table of those that went otherwise.
pub(super) fn run(image: &Image, cases: &[Case]) {
    let next = Mutex::new(cases.iter());
    let wrong = Mutex::new(String::new());
    let whole = manifest(image);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = { next.lock().unwrap().next() } {
                    let result = run_one(image, case).and_then(|()| repair_one(image, &whole, case));
                    if let Err(text) = result {
                        writeln!(wrong.lock().unwrap(), "== {}\n{text}", case.name).unwrap();
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{wrong}");
}

fn run_one(image: &Image, case: &Case) -> Result<(), String> {
    let mutant = image.copy();
    (case.change)(&mutant);
    let report = mutant.check();
    let fsck = mutant.fsck();
    let verdict = if fsck.is_accepted() { Fsck::Blind } else { Fsck::Finds };
    let harmless = case.kind.severity() == Severity::Torn;
    if report.has(case.kind) && verdict == case.fsck && report.is_consistent() == harmless {
        return Ok(());
    }
    Err(format!("expected {:?} and {:?}, fsck.f2fs {verdict:?}\n{report}fsck.f2fs: {fsck}", case.kind, case.fsck))
}

/// Paths whose content a repair may change: what the damage itself hit, a second name of it, and the directory above.
const CHANGED_PATHS: usize = 3;

/// Every path that the inodes' own addresses lead to, with a sum of what is behind it. Lenient: what cannot be read is
/// left out.
fn manifest(image: &Image) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    let mut pending = vec![(String::new(), Nid::ROOT)];
    let features = image.geometry.features;
    while let Some((path, ino)) = pending.pop() {
        if all.len() > 5000 || path.len() > 3000 || !image.geometry.in_main(image.addr(ino)) {
            continue;
        }
        let node = image.node(ino);
        let inode = node.inode();
        let is_dir = inode.file_type() == f2fs_format::inode::mode::DIRECTORY;
        let mut sum = DefaultHasher::new();
        (inode.i_mode.get(), if is_dir { 0 } else { inode.i_size.get() }).hash(&mut sum);
        let mut blocks = Vec::new();
        if inode.i_inline & (inline::DATA | inline::DENTRY) != 0 {
            blocks.push(inode.inline_data(features).to_vec());
        } else {
            let real = node.addresses(features).filter(|addr| image.geometry.in_main(*addr));
            blocks.extend(real.map(|addr| image.block(addr).to_vec()));
        }
        for block in &blocks {
            if !is_dir {
                block.hash(&mut sum);
                continue;
            }
            let view = match block.first_chunk() {
                Some(bytes) if inode.i_inline & inline::DENTRY == 0 => DentryView::block(bytes),
                _ => DentryView::inline(block),
            };
            for entry in view.entries().flatten().filter(|entry| !entry.is_dot()) {
                pending.push((format!("{path}/{}", String::from_utf8_lossy(entry.name)), entry.ino));
            }
        }
        all.insert(path, sum.finish());
    }
    all
}

/// Repairs the mutant: both judges find nothing afterwards, what was not hit is as it was, and the backup leads back.
fn repair_one(image: &Image, whole: &BTreeMap<String, u64>, case: &Case) -> Result<(), String> {
    let mutant = image.copy();
    (case.change)(&mutant);
    // Planning writes nothing.
    let untouched: PlainArc<dyn BlockDevice> = Arc::new(mutant.device.snapshot().read_only());
    let device = Arc::new(mutant.device.snapshot());
    let options = CheckOptions { threads: Some(2), progress: None };
    let repair = repair::plan(&untouched, &options).map_err(|error| format!("repair: {error}"))?;
    let actions = repair.actions.join("\n  ");
    if !repair.after.is_clean() || !repair.after.complete {
        return Err(format!("after the repair:\n{}\n  {actions}", repair.after));
    }
    let mut backup = Vec::new();
    repair.write_backup(&*device, &mut backup).map_err(|error| error.to_string())?;
    repair.apply(&*device).map_err(|error| error.to_string())?;
    let repaired = Image { device: device.snapshot(), geometry: image.geometry.clone() };
    let fsck = repaired.fsck();
    if !fsck.is_clean() {
        return Err(format!("after the repair, fsck.f2fs: {fsck}\n  {actions}"));
    }
    let found = manifest(&repaired);
    let changed: Vec<&String> =
        whole.iter().filter(|(path, sum)| found.get(*path) != Some(sum)).map(|(path, _)| path).collect();
    println!(
        "| {} | {} | yes | {} | yes | {} | {} |",
        case.name,
        case.kind,
        if case.fsck == Fsck::Finds { "yes" } else { "no" },
        repair.blocks().count(),
        changed.len(),
    );
    if changed.len() > CHANGED_PATHS {
        return Err(format!("the repair changes {} paths: {:?}\n  {actions}", changed.len(), &changed[..6]));
    }
    let undone = repair::undo(&*device, &backup[..]).map_err(|error| error.to_string())?;
    let as_before = |block: u64| {
        let [now, then] = [&*device, &mutant.device].map(|device| device.read(block, 1).unwrap());
        now.as_bytes() == then.as_bytes()
    };
    if !repair.blocks().all(as_before) || undone.restored != repair.blocks().count() as u64 {
        return Err(format!("the backup does not lead back: {undone:?}"));
    }
    Ok(())
}

//! Random sequences of operations against a naive model; after each sequence the volume must be what the model is, and
//! clean to fsck.f2fs.
//!
//! `F2FS_CASES=5000` runs more sequences than the usual 160.
#![allow(clippy::unwrap_used)] // what fails here is a failed test

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use f2fs_device::{BlockDevice, KeptZones, MemoryDevice, ZoneLayout};
use f2fs_files::{
    AllocateFlags, DirectoryLock, File, FileKind, FileSystem, FsError, NewFile, Options, RenameMode, SetMode,
    path_from_bytes,
};
use f2fs_format::feature::Features;
use f2fs_volume::format::{FormatOptions, format};
use f2fs_volume::{Allocation, OpenOptions};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use f2fs_test_kit::model::{Content, Id, Model, Outcome, assert_equal, outcome};

/// Places are drawn as numbers and reduced to what is there when the operation runs.
type Pick = u16;

#[derive(Clone, Debug)]
enum Action {
    Create { dir: Pick, name: Pick },
    Many { dir: Pick, prefix: u8, count: u8, long: bool },
    RemoveMany { dir: Pick, prefix: u8 },
    Mkdir { dir: Pick, name: Pick },
    Symlink { dir: Pick, name: Pick, len: u16 },
    Special { dir: Pick, name: Pick, kind: u8 },
    Link { from: Pick, dir: Pick, name: Pick },
    Unlink { path: Pick },
    Rmdir { path: Pick },
    Rename { from: Pick, dir: Pick, name: Pick, mode: u8 },
    Exchange { from: Pick, to: Pick },
    Write { path: Pick, offset: u32, len: u32, seed: u8 },
    Append { path: Pick, len: u32, seed: u8 },
    Truncate { path: Pick, size: u32 },
    Allocate { path: Pick, offset: u32, len: u32, keep_size: bool },
    Punch { path: Pick, offset: u32, len: u32 },
    Zero { path: Pick, offset: u32, len: u32, keep_size: bool },
    CopyRange { from: Pick, to: Pick, offset: u32, to_offset: u32, len: u32 },
    Chmod { path: Pick, permissions: u16 },
    SetXattr { path: Pick, name: u8, len: u16, seed: u8 },
    RemoveXattr { path: Pick, name: u8 },
    Hold { path: Pick },
    Release,
    Checkpoint,
    Reopen,
    Crash,
}

fn place() -> impl Strategy<Value = Pick> {
    any::<Pick>()
}

fn action() -> impl Strategy<Value = Action> {
    // Offsets and sizes that meet the borders: inline, one block, the inode's addresses, direct and indirect nodes.
    let offset = prop_oneof![
        4 => 0u32..4000,
        3 => 0u32..40_000,
        1 => 3_400u32..4_200,
        2 => 3_560_000u32..3_600_000,
        1 => 7_700_000u32..7_800_000,
        1 => 11_900_000u32..12_000_000,
    ];
    let len = prop_oneof![4 => 1u32..300, 3 => 1u32..20_000, 1 => 1u32..400_000];
    prop_oneof![
        8 => (place(), place()).prop_map(|(dir, name)| Action::Create { dir, name }),
        2 => (place(), 0u8..4, 1u8..120, any::<bool>())
            .prop_map(|(dir, prefix, count, long)| Action::Many { dir, prefix, count, long }),
        1 => (place(), 0u8..4).prop_map(|(dir, prefix)| Action::RemoveMany { dir, prefix }),
        5 => (place(), place()).prop_map(|(dir, name)| Action::Mkdir { dir, name }),
        2 => (place(), place(), prop_oneof![1u16..100, 3000u16..4096])
            .prop_map(|(dir, name, len)| Action::Symlink { dir, name, len }),
        1 => (place(), place(), 0u8..4).prop_map(|(dir, name, kind)| Action::Special { dir, name, kind }),
        3 => (place(), place(), place()).prop_map(|(from, dir, name)| Action::Link { from, dir, name }),
        5 => place().prop_map(|path| Action::Unlink { path }),
        3 => place().prop_map(|path| Action::Rmdir { path }),
        6 => (place(), place(), place(), 0u8..2)
            .prop_map(|(from, dir, name, mode)| Action::Rename { from, dir, name, mode }),
        2 => (place(), place()).prop_map(|(from, to)| Action::Exchange { from, to }),
        10 => (place(), offset.clone(), len.clone(), any::<u8>())
            .prop_map(|(path, offset, len, seed)| Action::Write { path, offset, len, seed }),
        3 => (place(), len.clone(), any::<u8>()).prop_map(|(path, len, seed)| Action::Append { path, len, seed }),
        5 => (place(), offset.clone()).prop_map(|(path, size)| Action::Truncate { path, size }),
        2 => (place(), offset.clone(), len.clone(), any::<bool>())
            .prop_map(|(path, offset, len, keep_size)| Action::Allocate { path, offset, len, keep_size }),
        4 => (place(), offset.clone(), len.clone()).prop_map(|(path, offset, len)| Action::Punch { path, offset, len }),
        3 => (place(), offset.clone(), len.clone(), any::<bool>())
            .prop_map(|(path, offset, len, keep_size)| Action::Zero { path, offset, len, keep_size }),
        2 => (place(), place(), offset.clone(), offset, len)
            .prop_map(|(from, to, offset, to_offset, len)| Action::CopyRange { from, to, offset, to_offset, len }),
        2 => (place(), 0u16..0o10000).prop_map(|(path, permissions)| Action::Chmod { path, permissions }),
        4 => (place(), 0u8..6, prop_oneof![0u16..60, 0u16..3000], any::<u8>())
            .prop_map(|(path, name, len, seed)| Action::SetXattr { path, name, len, seed }),
        2 => (place(), 0u8..6).prop_map(|(path, name)| Action::RemoveXattr { path, name }),
        3 => place().prop_map(|path| Action::Hold { path }),
        1 => Just(Action::Release),
        2 => Just(Action::Checkpoint),
        1 => Just(Action::Reopen),
        1 => Just(Action::Crash),
    ]
}

/// Few enough names that they collide; long ones, and bytes that are no UTF-8, among them.
fn name(pick: Pick) -> Vec<u8> {
    match pick % 14 {
        10 => vec![b'L'; 255],
        11 => b"\xff\xfe \t\\\n".to_vec(),
        12 => b"ninechars".to_vec(),
        13 => "größe".as_bytes().to_vec(),
        n => vec![b'a' + n as u8],
    }
}

fn bytes(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| seed ^ (i as u8).wrapping_mul(31) ^ (i >> 8) as u8).collect()
}

struct World {
    device: Arc<MemoryDevice>,
    zoned: bool,
    fs: FileSystem,
    options: Options,
    model: Model,
    /// The state of the last checkpoint.
    durable: Model,
    /// Open files, with their content when they have no name any more.
    held: Vec<(File, Id)>,
    gone: HashMap<Id, Vec<u8>>,
}

impl World {
    fn dirs(&self) -> Vec<(Vec<u8>, Id)> {
        self.model.paths().into_iter().filter(|(_, id)| self.model.dir(*id).is_some()).collect()
    }

    fn pick_dir(&self, pick: Pick) -> (Vec<u8>, Id) {
        let dirs = self.dirs();
        dirs[usize::from(pick) % dirs.len()].clone()
    }

    /// Any path but the root, with the directory it is in.
    fn pick_path(&self, pick: Pick) -> Option<(Vec<u8>, Id)> {
        let paths = self.model.paths();
        (paths.len() > 1).then(|| paths[1 + usize::from(pick) % (paths.len() - 1)].clone())
    }

    fn pick_file(&self, pick: Pick) -> Option<(Vec<u8>, Id)> {
        let files: Vec<_> = self
            .model
            .paths()
            .into_iter()
            .filter(|(_, id)| matches!(self.model.nodes[id].content, Content::File(_)))
            .collect();
        (!files.is_empty()).then(|| files[usize::from(pick) % files.len()].clone())
    }

    fn parent(&self, path: &[u8]) -> (Id, Vec<u8>) {
        let slash = path.iter().rposition(|byte| *byte == b'/').unwrap();
        let parent = if slash == 0 { &b"/"[..] } else { &path[..slash] };
        let id = self.model.paths().into_iter().find(|(path, _)| path == parent).unwrap().1;
        (id, path[slash + 1..].to_vec())
    }

    fn keep_content_of_held(&mut self, before: &Model) {
        for (_, id) in &self.held {
            if !self.model.nodes.contains_key(id)
                && let Some(node) = before.nodes.get(id)
                && let Content::File(bytes) = &node.content
            {
                self.gone.insert(*id, bytes.clone());
            }
        }
    }

    fn compare(&self, action: &Action, real: Outcome, wanted: Outcome) {
        assert_eq!(real, wanted, "{action:?}");
    }

    fn apply(&mut self, action: &Action) {
        let before = if self.held.is_empty() { None } else { Some(self.model.clone()) };
        self.step(action);
        if let Some(before) = before {
            self.keep_content_of_held(&before);
        }
    }

    fn step(&mut self, action: &Action) {
        let fs = self.fs.clone();
        match *action {
            Action::Create { dir, name: pick } => {
                let (path, id) = self.pick_dir(dir);
                let full = join(&path, &name(pick));
                let real = outcome(&fs.create_file(at(&full), 0o644));
                let wanted = self.model.create(id, &name(pick), Content::File(Vec::new()), 0o644);
                self.compare(action, real, wanted);
            }
            Action::Many { dir, prefix, count, long } => {
                let (path, id) = self.pick_dir(dir);
                for i in 0..count {
                    let name = many_name(prefix, i, long);
                    let real = outcome(&fs.create_file(at(&join(&path, &name)), 0o600));
                    let wanted = self.model.create(id, &name, Content::File(Vec::new()), 0o600);
                    self.compare(action, real, wanted);
                }
            }
            Action::RemoveMany { dir, prefix } => {
                let (path, id) = self.pick_dir(dir);
                for (i, long) in (0..120).flat_map(|i| [(i, false), (i, true)]) {
                    let name = many_name(prefix, i, long);
                    let real = outcome(&fs.remove_file(at(&join(&path, &name))));
                    let wanted = self.model.unlink(id, &name);
                    self.compare(action, real, wanted);
                }
            }
            Action::Mkdir { dir, name: pick } => {
                let (path, id) = self.pick_dir(dir);
                let real = outcome(&fs.create_dir(at(&join(&path, &name(pick))), 0o755));
                let wanted = self.model.create(id, &name(pick), Content::Dir(Default::default()), 0o755);
                self.compare(action, real, wanted);
            }
            Action::Symlink { dir, name: pick, len } => {
                let (path, id) = self.pick_dir(dir);
                let target = vec![b't'; usize::from(len)];
                let new = NewFile::new(FileKind::Symlink, 0o777);
                let real = outcome(&fs.symlink(&target, at(&join(&path, &name(pick))), &new));
                let wanted = self.model.create(id, &name(pick), Content::Symlink(target), 0o777);
                self.compare(action, real, wanted);
            }
            Action::Special { dir, name: pick, kind } => {
                let (path, id) = self.pick_dir(dir);
                let kind = [FileKind::Fifo, FileKind::Socket, FileKind::CharDevice, FileKind::BlockDevice]
                    [usize::from(kind % 4)];
                let new = NewFile::new(kind, 0o600).device(300, 70_000);
                let real = outcome(&fs.create(at(&join(&path, &name(pick))), &new));
                let wanted = self.model.create(id, &name(pick), Content::Special(kind), 0o600);
                self.compare(action, real, wanted);
            }
            Action::Link { from, dir, name: pick } => {
                let Some((source, id)) = self.pick_path(from) else { return };
                let (path, parent) = self.pick_dir(dir);
                let real = outcome(&fs.link(at(&source), at(&join(&path, &name(pick)))));
                let wanted = self.model.link(id, parent, &name(pick));
                self.compare(action, real, wanted);
            }
            Action::Unlink { path } => {
                let Some((path, _)) = self.pick_path(path) else { return };
                let (parent, name) = self.parent(&path);
                let real = outcome(&fs.remove_file(at(&path)));
                let wanted = self.model.unlink(parent, &name);
                self.compare(action, real, wanted);
            }
            Action::Rmdir { path } => {
                let Some((path, _)) = self.pick_path(path) else { return };
                let (parent, name) = self.parent(&path);
                let real = outcome(&fs.remove_dir(at(&path)));
                let wanted = self.model.rmdir(parent, &name);
                self.compare(action, real, wanted);
            }
            Action::Rename { from, dir, name: pick, mode } => {
                let Some((source, _)) = self.pick_path(from) else { return };
                let (path, parent) = self.pick_dir(dir);
                let (old, old_name) = self.parent(&source);
                let mode = [RenameMode::Replace, RenameMode::NoReplace][usize::from(mode)];
                let real = outcome(&fs.rename(at(&source), at(&join(&path, &name(pick))), mode));
                let wanted = self.model.rename((old, &old_name), (parent, &name(pick)), mode);
                self.compare(action, real, wanted);
            }
            Action::Exchange { from, to } => {
                let (Some((source, _)), Some((target, _))) = (self.pick_path(from), self.pick_path(to)) else { return };
                let (old, old_name) = self.parent(&source);
                let (new, new_name) = self.parent(&target);
                let real = outcome(&fs.rename(at(&source), at(&target), RenameMode::Exchange));
                let wanted = self.model.rename((old, &old_name), (new, &new_name), RenameMode::Exchange);
                self.compare(action, real, wanted);
            }
            Action::Write { path, offset, len, seed } => {
                let Some((path, id)) = self.pick_file(path) else { return };
                let data = bytes(len as usize, seed);
                let written = fs.open_file(at(&path)).unwrap().write_at(&data, offset.into());
                assert_eq!(written.unwrap(), data.len());
                self.model.write(id, offset as usize, &data);
            }
            Action::Append { path, len, seed } => {
                let Some((path, id)) = self.pick_file(path) else { return };
                let data = bytes(len as usize, seed);
                let offset = fs.open_file(at(&path)).unwrap().append(&data).unwrap();
                self.model.write(id, offset as usize, &data);
            }
            Action::Truncate { path, size } => {
                let Some((path, id)) = self.pick_file(path) else { return };
                fs.open_file(at(&path)).unwrap().set_len(size.into()).unwrap();
                self.model.truncate(id, size as usize);
            }
            Action::Allocate { path, offset, len, keep_size } => {
                let Some((path, id)) = self.pick_file(path) else { return };
                fs.open_file(at(&path))
                    .unwrap()
                    .allocate(offset.into(), len.into(), AllocateFlags::NONE.keep_size(keep_size))
                    .unwrap();
                let Content::File(bytes) = &self.model.nodes[&id].content else { return };
                let end = (offset + len) as usize;
                if !keep_size && bytes.len() < end {
                    self.model.truncate(id, end);
                }
            }
            Action::Punch { path, offset, len } => {
                let Some((path, id)) = self.pick_file(path) else { return };
                fs.open_file(at(&path)).unwrap().punch_hole(offset.into(), len.into()).unwrap();
                self.model.zero(id, offset as usize, len as usize, true);
            }
            Action::Zero { path, offset, len, keep_size } => {
                let Some((path, id)) = self.pick_file(path) else { return };
                let flags = AllocateFlags::ZERO_RANGE.keep_size(keep_size);
                fs.open_file(at(&path)).unwrap().allocate(offset.into(), len.into(), flags).unwrap();
                self.model.zero(id, offset as usize, len as usize, keep_size);
            }
            Action::CopyRange { from, to, offset, to_offset, len } => {
                let (Some((from, source)), Some((to, target))) = (self.pick_file(from), self.pick_file(to)) else {
                    return;
                };
                let Content::File(bytes) = &self.model.nodes[&source].content else { return };
                let data = bytes[bytes.len().min(offset as usize)..bytes.len().min((offset + len) as usize)].to_vec();
                let (files, count) = ([&from, &to].map(|path| fs.open_file(at(path)).unwrap()), data.len() as u64);
                let real = files[0].copy_range(offset.into(), &files[1], to_offset.into(), len.into());
                let onto_itself = u64::from(offset.abs_diff(to_offset)) < count;
                if source == target && onto_itself {
                    assert!(matches!(real, Err(FsError::Invalid(_))), "{action:?}: {real:?}");
                } else {
                    assert_eq!(real.unwrap(), count, "{action:?}");
                    self.model.write(target, to_offset as usize, &data);
                }
            }
            Action::Chmod { path, permissions } => {
                let Some((path, id)) = self.pick_path(path) else { return };
                if matches!(self.model.nodes[&id].content, Content::Symlink(_)) {
                    return;
                }
                fs.set_permissions(at(&path), permissions).unwrap();
                self.model.nodes.get_mut(&id).unwrap().permissions = permissions;
            }
            Action::SetXattr { path, name, len, seed } => {
                let Some((path, id)) = self.pick_path(path) else { return };
                let name = xattr_name(name);
                let value = bytes(len.into(), seed);
                let result = fs.set_xattr(at(&path), &name, &value, SetMode::Any);
                let node = self.model.nodes.get_mut(&id).unwrap();
                match outcome(&result) {
                    Outcome::Done => {
                        node.xattrs.insert(name, value);
                    }
                    Outcome::WrongKind => {
                        assert!(!matches!(node.content, Content::File(_) | Content::Dir(_)));
                    }
                    // Inline area and node together hold 4272 bytes at most.
                    Outcome::Other => {
                        let rest = node.xattrs.iter().filter(|(other, _)| **other != name);
                        let used: usize = rest.map(|(name, value)| name.len() + value.len() + 8).sum();
                        assert!(used + value.len() > 3900, "{result:?} with {used} bytes used");
                    }
                    other => panic!("{other:?}"),
                }
            }
            Action::RemoveXattr { path, name } => {
                let Some((path, id)) = self.pick_path(path) else { return };
                let name = xattr_name(name);
                let real = outcome(&fs.remove_xattr(at(&path), &name));
                let node = self.model.nodes.get_mut(&id).unwrap();
                let wanted = if node.xattrs.remove(&name).is_some() { Outcome::Done } else { Outcome::NoAttribute };
                self.compare(action, real, wanted);
            }
            Action::Hold { path } => {
                let Some((path, id)) = self.pick_file(path) else { return };
                self.held.push((fs.open_file(at(&path)).unwrap(), id));
            }
            Action::Release => self.release(),
            Action::Checkpoint => {
                fs.checkpoint().unwrap();
                self.durable = self.model.clone();
            }
            Action::Reopen => {
                self.release();
                fs.close().unwrap();
                self.durable = self.model.clone();
                drop(fs);
                self.reopen();
            }
            Action::Crash => {
                self.held.clear();
                self.gone.clear();
                drop(fs);
                self.model = self.durable.clone();
                self.reopen();
                assert_equal(&self.fs, &self.model);
            }
        }
    }

    /// Files without a name are still what they were.
    fn release(&mut self) {
        for (file, id) in self.held.drain(..) {
            if let Some(bytes) = self.gone.get(&id) {
                let mut read = vec![0; bytes.len() + 1];
                assert_eq!(file.read_at(&mut read, 0).unwrap(), bytes.len());
                assert!(read[..bytes.len()] == bytes[..], "a file without a name changed");
            }
        }
        self.gone.clear();
    }

    fn reopen(&mut self) {
        // The last one has its device until it is replaced.
        self.device = Arc::new(self.device.snapshot());
        self.fs = FileSystem::open(on(&self.device, self.zoned), self.options.clone()).unwrap();
    }
}

fn at(path: &[u8]) -> &Path {
    path_from_bytes(path)
}

fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = dir.to_vec();
    if path.last() != Some(&b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

fn many_name(prefix: u8, index: u8, long: bool) -> Vec<u8> {
    let tail = if long { "-a-name-that-takes-several-slots-of-a-dentry-block" } else { "" };
    format!("m{prefix}-{index}{tail}").into_bytes()
}

fn xattr_name(name: u8) -> Vec<u8> {
    match name {
        5 => b"trusted.t".to_vec(),
        4 => b"security.selinux".to_vec(),
        n => format!("user.attribute-{n}").into_bytes(),
    }
}

/// The device as it is, or with the zones that it keeps.
fn on(device: &Arc<MemoryDevice>, zoned: bool) -> Arc<dyn BlockDevice> {
    if zoned { Arc::new(KeptZones::open(device.clone()).unwrap()) } else { device.clone() }
}

/// Volumes of different features take turns.
fn format_options(case: u32) -> FormatOptions {
    let family = Features::EXTRA_ATTR
        .union(Features::INODE_CHECKSUM)
        .union(Features::INODE_CRTIME)
        .union(Features::FLEXIBLE_INLINE_XATTR)
        .union(Features::SB_CHECKSUM);
    match case % 3 {
        0 => FormatOptions::default(),
        1 => FormatOptions::default().with_features(family),
        _ => FormatOptions::default()
            .with_features(Features::EXTRA_ATTR.union(Features::PROJECT_QUOTA))
            .with_sections(2, 1),
    }
}

fn run(case: u32, actions: &[Action]) {
    let device = Arc::new(MemoryDevice::new((128 << 20) >> 12));
    // Every fifth volume lies on zones, which the device keeps across openings; of what was not flushed nothing is there afterwards.
    let zoned = case % 5 == 4;
    if zoned {
        let layout = ZoneLayout::new(512).with_conventional(9 + case % 3).with_limits(case / 5 % 2 * 9, 0);
        drop(KeptZones::create(device.clone(), layout).unwrap());
    }
    let features = if zoned { Features::BLKZONED } else { Features(0) };
    let mut how = format_options(case);
    how.features = how.features.union(features);
    format(&*on(&device, zoned), &how).unwrap();
    let lock = if case.is_multiple_of(2) { DirectoryLock::Bucket } else { DirectoryLock::Whole };
    let names = ["ssr", "partial", "selective-greedy", "selective-optimal"];
    let allocation: Allocation = names[case as usize / 4 % 4].parse().unwrap();
    let volume = OpenOptions::new().allocation(allocation).lanes(1 + case as usize / 16 % 3);
    // Without a cache, with one that is always full, and with one that takes all.
    let cache = [0, 256 << 10, 64 << 20][case as usize / 48 % 3];
    let options = Options::new().directory_lock(lock).volume(volume).page_cache(cache);
    let fs = FileSystem::open(on(&device, zoned), options.clone()).unwrap();
    let model = Model::new();
    let mut world =
        World { device, zoned, fs, options, durable: model.clone(), model, held: Vec::new(), gone: HashMap::new() };
    for action in actions {
        world.apply(action);
    }
    assert_equal(&world.fs, &world.model);
    world.release();
    world.fs.close().unwrap();

    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    world.device.save(&image).unwrap();
    f2fs_oracle::assert_clean(&image);
    let again = FileSystem::open(on(&world.device, zoned), Options::new().read_only(true)).unwrap();
    assert_equal(&again, &world.model);
}

/// Half of the sequences; the other half runs beside it.
fn sequences(half: u32) {
    let cases: u32 = std::env::var("F2FS_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(160);
    let cases = cases.div_ceil(2);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 400, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let result = runner.run(&(any::<u32>(), prop::collection::vec(action(), 100..160)), |(case, actions)| {
        run(case.wrapping_add(half), &actions);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    println!("{cases} sequences of 100 to 160 operations");
}

#[test]
fn the_volume_is_what_the_model_is() {
    sequences(0);
}

#[test]
fn the_volume_is_what_the_model_is_other_half() {
    sequences(1);
}

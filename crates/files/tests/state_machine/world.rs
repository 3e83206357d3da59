//! A volume and its model, to which the same is done.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use f2fs_device::{BlockDevice, KeptZones, MemoryDevice};
use f2fs_files::{
    AllocateFlags, File, FileKind, FileSystem, FsError, NewFile, Options, RenameMode, SetMode, path_from_bytes,
};
use f2fs_test_kit::model::{Content, Id, Model, Outcome, assert_equal, outcome};

use crate::action::{Action, Pick};

pub(crate) struct World {
    pub(crate) device: Arc<MemoryDevice>,
    pub(crate) zoned: bool,
    pub(crate) fs: FileSystem,
    pub(crate) options: Options,
    pub(crate) model: Model,
    /// The state of the last checkpoint.
    pub(crate) durable: Model,
    /// Open files, with their content when they have no name any more.
    pub(crate) held: Vec<(File, Id)>,
    pub(crate) gone: HashMap<Id, Vec<u8>>,
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

    pub(crate) fn apply(&mut self, action: &Action) {
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
    pub(crate) fn release(&mut self) {
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
pub(crate) fn on(device: &Arc<MemoryDevice>, zoned: bool) -> Arc<dyn BlockDevice> {
    if zoned { Arc::new(KeptZones::open(device.clone()).unwrap()) } else { device.clone() }
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

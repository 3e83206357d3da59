//! Random operations on names of one's own, with an exact model of them.

use f2fs_device_test::{Random, bytes};
use f2fs_files::{FileKind, FileSystem, NewFile, RenameMode, SetMode};

use crate::model::{Content, Id, Model, Outcome, ROOT, outcome, show};
use crate::volumes::at;

/// Directories that all workers use.
pub const SHARED: [&[u8]; 3] = [b"one", b"two", b"three"];

/// A thread with its own names and the model of them.
pub struct Worker {
    pub number: usize,
    pub random: Random,
    pub model: Model,
    made: usize,
}

impl Worker {
    pub fn new(number: usize, seed: u64) -> Worker {
        let mut model = Model::new();
        for name in SHARED {
            model.create(ROOT, name, Content::Dir(Default::default()), 0o755);
        }
        model.create(ROOT, b"arena", Content::Dir(Default::default()), 0o755);
        Worker { number, random: Random::new(seed ^ (number as u64) << 32), model, made: 0 }
    }

    /// A directory that this thread may put names into: its own ones, and the shared ones.
    fn dir(&mut self) -> (Vec<u8>, Id) {
        let dirs: Vec<_> = self
            .model
            .paths()
            .into_iter()
            .filter(|(path, id)| self.model.dir(*id).is_some() && path != b"/arena" && path != b"/")
            .collect();
        self.random.one_of(&dirs).clone()
    }

    /// Something that this thread made, with its directory.
    fn owned(&mut self, files: bool) -> Option<(Vec<u8>, Id)> {
        let all: Vec<_> = self
            .model
            .paths()
            .into_iter()
            .filter(|(path, id)| {
                let made = path.rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.starts_with(b"t"));
                made && path != b"/two" && path != b"/three" && (!files || self.model.dir(*id).is_none())
            })
            .collect();
        (!all.is_empty()).then(|| self.random.one_of(&all).clone())
    }

    fn parent(&self, path: &[u8]) -> (Id, Vec<u8>) {
        let slash = path.iter().rposition(|byte| *byte == b'/').unwrap();
        let id = self.model.paths().into_iter().find(|(parent, _)| parent == &path[..slash]).unwrap().1;
        (id, path[slash + 1..].to_vec())
    }

    fn name(&mut self) -> Vec<u8> {
        self.made += 1;
        let tail = if self.random.chance(4) { "-with-a-name-that-takes-several-slots" } else { "" };
        // A few names come again, so that creation and renaming meet them.
        format!("t{}-{}{tail}", self.number, self.made % 37).into_bytes()
    }

    #[track_caller]
    fn same(&self, what: &str, path: &[u8], real: Outcome, wanted: Outcome) {
        assert_eq!(real, wanted, "thread {}: {what} {}", self.number, show(path));
    }

    /// One operation, in the file system and in the model.
    pub fn step(&mut self, fs: &FileSystem) {
        match self.random.below(20) {
            0..=4 => {
                let ((dir, id), name) = (self.dir(), self.name());
                let path = [&dir[..], b"/", &name].concat();
                let real = outcome(&fs.create_file(at(&path), 0o644));
                let wanted = self.model.create(id, &name, Content::File(Vec::new()), 0o644);
                self.same("create", &path, real, wanted);
            }
            5 => {
                let ((dir, id), name) = (self.dir(), self.name());
                if dir.len() > 200 {
                    return;
                }
                let path = [&dir[..], b"/", &name].concat();
                let real = outcome(&fs.create_dir(at(&path), 0o750));
                let wanted = self.model.create(id, &name, Content::Dir(Default::default()), 0o750);
                self.same("mkdir", &path, real, wanted);
            }
            6 => {
                let ((dir, id), name) = (self.dir(), self.name());
                let path = [&dir[..], b"/", &name].concat();
                let target = vec![b'x'; self.random.below(4000) + 1];
                let real = outcome(&fs.symlink(&target, at(&path), &NewFile::new(FileKind::Symlink, 0o777)));
                let wanted = self.model.create(id, &name, Content::Symlink(target), 0o777);
                self.same("symlink", &path, real, wanted);
            }
            7..=9 => self.write(fs),
            10 => {
                let Some((path, id)) = self.owned(true) else { return };
                if let Content::File(_) = self.model.nodes[&id].content {
                    let size = self.random.below(30_000);
                    fs.open_file(at(&path)).unwrap().set_len(size as u64).unwrap();
                    self.model.truncate(id, size);
                }
            }
            11 => {
                let Some((source, id)) = self.owned(true) else { return };
                let ((dir, parent), name) = (self.dir(), self.name());
                let path = [&dir[..], b"/", &name].concat();
                let real = outcome(&fs.link(at(&source), at(&path)));
                let wanted = self.model.link(id, parent, &name);
                self.same("link", &path, real, wanted);
            }
            12..=13 => {
                let Some((path, _)) = self.owned(true) else { return };
                let (parent, name) = self.parent(&path);
                let real = outcome(&fs.remove_file(at(&path)));
                let wanted = self.model.unlink(parent, &name);
                self.same("unlink", &path, real, wanted);
            }
            14 => {
                let Some((path, _)) = self.owned(false) else { return };
                let (parent, name) = self.parent(&path);
                let real = outcome(&fs.remove_dir(at(&path)));
                let wanted = self.model.rmdir(parent, &name);
                self.same("rmdir", &path, real, wanted);
            }
            15..=16 => {
                let Some((source, _)) = self.owned(false) else { return };
                let ((dir, parent), name) = (self.dir(), self.name());
                let path = [&dir[..], b"/", &name].concat();
                let (old, old_name) = self.parent(&source);
                let mode = *self.random.one_of(&[RenameMode::Replace, RenameMode::NoReplace]);
                let real = outcome(&fs.rename(at(&source), at(&path), mode));
                let wanted = self.model.rename((old, &old_name), (parent, &name), mode);
                self.same("rename", &source, real, wanted);
            }
            17 => {
                let (Some((one, _)), Some((two, _))) = (self.owned(false), self.owned(false)) else { return };
                let ((old, old_name), (new, new_name)) = (self.parent(&one), self.parent(&two));
                let real = outcome(&fs.rename(at(&one), at(&two), RenameMode::Exchange));
                let wanted = self.model.rename((old, &old_name), (new, &new_name), RenameMode::Exchange);
                self.same("exchange", &one, real, wanted);
            }
            18 => {
                let Some((path, id)) = self.owned(false) else { return };
                if matches!(self.model.nodes[&id].content, Content::Symlink(_)) {
                    return;
                }
                let name = format!("user.{}", self.random.below(3)).into_bytes();
                let value = bytes(self.random.below(900), self.random.next());
                fs.set_xattr(at(&path), &name, &value, SetMode::Any).unwrap();
                self.model.nodes.get_mut(&id).unwrap().xattrs.insert(name, value);
            }
            _ => {
                let Some((path, id)) = self.owned(false) else { return };
                let name = format!("user.{}", self.random.below(3)).into_bytes();
                let real = outcome(&fs.remove_xattr(at(&path), &name));
                let node = self.model.nodes.get_mut(&id).unwrap();
                let wanted = if node.xattrs.remove(&name).is_some() { Outcome::Done } else { Outcome::NoAttribute };
                self.same("remove an attribute of", &path, real, wanted);
            }
        }
    }

    fn write(&mut self, fs: &FileSystem) {
        let Some((path, id)) = self.owned(true) else { return };
        let Content::File(before) = &self.model.nodes[&id].content else { return };
        let file = fs.open_file(at(&path)).unwrap();
        let mut read = vec![1; before.len() + 1];
        assert_eq!(file.read_at(&mut read, 0).unwrap(), before.len(), "{}", show(&path));
        assert!(read[..before.len()] == before[..], "thread {}: {} changed", self.number, show(&path));
        let offset = match self.random.below(6) {
            0 => 4_000_000,
            1 => self.random.below(60_000),
            _ => self.random.below(5000),
        };
        let longest = if self.random.chance(8) { 100_000 } else { 3000 };
        let data = bytes(self.random.below(longest) + 1, self.random.next());
        // A file of some megabytes a thread is enough.
        let offset = if before.len() > 4_000_000 || self.made.is_multiple_of(5) { offset } else { offset % 60_000 };
        assert_eq!(file.write_at(&data, offset as u64).unwrap(), data.len());
        self.model.write(id, offset, &data);
    }
}

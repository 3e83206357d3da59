//! A naive file system in memory: the real one must be equal to it.

use std::collections::{BTreeMap, HashMap};

use f2fs_files::{FileKind, FileSystem, FsError, RenameMode, path_from_bytes};

pub type Id = u64;
pub const ROOT: Id = 0;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    File(Vec<u8>),
    Dir(BTreeMap<Vec<u8>, Id>),
    Symlink(Vec<u8>),
    Special(FileKind),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub content: Content,
    pub links: u32,
    pub permissions: u16,
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// The right outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    NotFound,
    Exists,
    NotDirectory,
    IsDirectory,
    DirectoryLink,
    NotEmpty,
    IntoItself,
    NoAttribute,
    WrongKind,
    NoSpace,
    Other,
}

pub fn outcome<T>(result: &Result<T, FsError>) -> Outcome {
    match result {
        Ok(_) => Outcome::Done,
        Err(error) if error.is_no_space() => Outcome::NoSpace,
        Err(FsError::NotFound) => Outcome::NotFound,
        Err(FsError::Exists) => Outcome::Exists,
        Err(FsError::NotDirectory) => Outcome::NotDirectory,
        Err(FsError::IsDirectory) => Outcome::IsDirectory,
        Err(FsError::DirectoryLink) => Outcome::DirectoryLink,
        Err(FsError::NotEmpty) => Outcome::NotEmpty,
        Err(FsError::IntoItself) => Outcome::IntoItself,
        Err(FsError::NoAttribute) => Outcome::NoAttribute,
        Err(FsError::WrongKind { .. }) => Outcome::WrongKind,
        Err(_) => Outcome::Other,
    }
}

/// The naive file system.
#[derive(Clone, Debug)]
pub struct Model {
    pub nodes: HashMap<Id, Node>,
    next: Id,
}

impl Model {
    pub fn new() -> Model {
        let mut model = Model { nodes: HashMap::new(), next: 1 };
        model.nodes.insert(ROOT, node(Content::Dir(BTreeMap::new()), 0o755));
        model.nodes.get_mut(&ROOT).unwrap().links = 2;
        model
    }

    pub fn dir(&self, id: Id) -> Option<&BTreeMap<Vec<u8>, Id>> {
        match &self.nodes.get(&id)?.content {
            Content::Dir(entries) => Some(entries),
            _ => None,
        }
    }

    fn dir_mut(&mut self, id: Id) -> &mut BTreeMap<Vec<u8>, Id> {
        match &mut self.nodes.get_mut(&id).unwrap().content {
            Content::Dir(entries) => entries,
            _ => unreachable!("only directories are passed"),
        }
    }

    /// All paths with their nodes, the root as "/", sorted.
    pub fn paths(&self) -> Vec<(Vec<u8>, Id)> {
        let mut all = vec![(b"/".to_vec(), ROOT)];
        let mut at = 0;
        while at < all.len() {
            let (path, id) = all[at].clone();
            if let Some(entries) = self.dir(id) {
                for (name, child) in entries {
                    let mut below = path.clone();
                    if below.last() != Some(&b'/') {
                        below.push(b'/');
                    }
                    below.extend_from_slice(name);
                    all.push((below, *child));
                }
            }
            at += 1;
        }
        all.sort();
        all
    }

    pub fn create(&mut self, dir: Id, name: &[u8], content: Content, permissions: u16) -> Outcome {
        if self.dir(dir).unwrap().contains_key(name) {
            return Outcome::Exists;
        }
        let id = self.next;
        self.next += 1;
        let is_dir = matches!(content, Content::Dir(_));
        let mut made = node(content, permissions);
        if is_dir {
            made.links = 2;
            self.nodes.get_mut(&dir).unwrap().links += 1;
        }
        self.nodes.insert(id, made);
        self.dir_mut(dir).insert(name.to_vec(), id);
        Outcome::Done
    }

    pub fn link(&mut self, id: Id, dir: Id, name: &[u8]) -> Outcome {
        if self.dir(id).is_some() {
            return Outcome::DirectoryLink;
        }
        if self.dir(dir).unwrap().contains_key(name) {
            return Outcome::Exists;
        }
        self.dir_mut(dir).insert(name.to_vec(), id);
        self.nodes.get_mut(&id).unwrap().links += 1;
        Outcome::Done
    }

    pub fn unlink(&mut self, dir: Id, name: &[u8]) -> Outcome {
        let Some(id) = self.dir(dir).unwrap().get(name).copied() else { return Outcome::NotFound };
        if self.dir(id).is_some() {
            return Outcome::IsDirectory;
        }
        self.dir_mut(dir).remove(name);
        self.drop_link(id);
        Outcome::Done
    }

    fn drop_link(&mut self, id: Id) {
        let node = self.nodes.get_mut(&id).unwrap();
        node.links -= 1;
        if node.links == 0 {
            self.nodes.remove(&id);
        }
    }

    pub fn rmdir(&mut self, dir: Id, name: &[u8]) -> Outcome {
        let Some(id) = self.dir(dir).unwrap().get(name).copied() else { return Outcome::NotFound };
        match self.dir(id) {
            None => Outcome::NotDirectory,
            Some(entries) if !entries.is_empty() => Outcome::NotEmpty,
            Some(_) => {
                self.dir_mut(dir).remove(name);
                self.nodes.remove(&id);
                self.nodes.get_mut(&dir).unwrap().links -= 1;
                Outcome::Done
            }
        }
    }

    fn is_below(&self, id: Id, above: Id) -> bool {
        id == above || self.dir(above).is_some_and(|entries| entries.values().any(|child| self.is_below(id, *child)))
    }

    pub fn rename(&mut self, from: (Id, &[u8]), to: (Id, &[u8]), mode: RenameMode) -> Outcome {
        let Some(source) = self.dir(from.0).unwrap().get(from.1).copied() else { return Outcome::NotFound };
        let target = self.dir(to.0).unwrap().get(to.1).copied();
        match (mode, target) {
            (RenameMode::NoReplace, Some(_)) => return Outcome::Exists,
            (RenameMode::Exchange, None) => return Outcome::NotFound,
            _ => {}
        }
        if from.0 != to.0 && self.dir(source).is_some() && self.is_below(to.0, source) {
            return Outcome::IntoItself;
        }
        if let Some(target) = target
            && from.0 != to.0
            && self.dir(target).is_some()
            && self.is_below(from.0, target)
        {
            return if mode == RenameMode::Exchange { Outcome::IntoItself } else { Outcome::NotEmpty };
        }
        match (mode, target) {
            (_, Some(target)) if target == source => return Outcome::Done,
            (RenameMode::Exchange, Some(target)) => {
                self.dir_mut(from.0).insert(from.1.to_vec(), target);
                self.dir_mut(to.0).insert(to.1.to_vec(), source);
                for (id, old, new) in [(source, from.0, to.0), (target, to.0, from.0)] {
                    if self.dir(id).is_some() {
                        self.nodes.get_mut(&old).unwrap().links -= 1;
                        self.nodes.get_mut(&new).unwrap().links += 1;
                    }
                }
                return Outcome::Done;
            }
            (_, Some(target)) => match (self.dir(source).is_some(), self.dir(target)) {
                (true, None) => return Outcome::NotDirectory,
                (false, Some(_)) => return Outcome::IsDirectory,
                (true, Some(entries)) if !entries.is_empty() => return Outcome::NotEmpty,
                (true, Some(_)) => {
                    self.nodes.remove(&target);
                    self.nodes.get_mut(&to.0).unwrap().links -= 1;
                }
                (false, None) => self.drop_link(target),
            },
            (_, None) => {}
        }
        self.dir_mut(from.0).remove(from.1);
        self.dir_mut(to.0).insert(to.1.to_vec(), source);
        if self.dir(source).is_some() {
            self.nodes.get_mut(&from.0).unwrap().links -= 1;
            self.nodes.get_mut(&to.0).unwrap().links += 1;
        }
        Outcome::Done
    }

    pub fn write(&mut self, id: Id, offset: usize, data: &[u8]) {
        if let Content::File(bytes) = &mut self.nodes.get_mut(&id).unwrap().content
            && !data.is_empty()
        {
            if bytes.len() < offset + data.len() {
                bytes.resize(offset + data.len(), 0);
            }
            bytes[offset..offset + data.len()].copy_from_slice(data);
        }
    }

    /// Makes zeros of a range, which the file grows to, or does not.
    pub fn zero(&mut self, id: Id, offset: usize, len: usize, keep_size: bool) {
        if let Content::File(bytes) = &mut self.nodes.get_mut(&id).unwrap().content {
            let end = offset + len;
            if bytes.len() < end && !keep_size {
                bytes.resize(end, 0);
            }
            let (from, to) = (offset.min(bytes.len()), end.min(bytes.len()));
            bytes[from..to].fill(0);
        }
    }

    /// Takes over another file system: directories of the same name become one, every other name must be new.
    pub fn absorb(&mut self, other: &Model) {
        let mut known = HashMap::from([(ROOT, ROOT)]);
        self.absorb_dir(ROOT, other, ROOT, &mut known);
    }

    fn absorb_dir(&mut self, into: Id, other: &Model, from: Id, known: &mut HashMap<Id, Id>) {
        for (name, child) in other.dir(from).unwrap() {
            if let Some(id) = self.dir(into).unwrap().get(name).copied() {
                assert!(self.dir(id).is_some() && other.dir(*child).is_some(), "{} is there twice", show(name));
                self.absorb_dir(id, other, *child, known);
                continue;
            }
            let is_dir = other.dir(*child).is_some();
            if let Some(id) = known.get(child).copied() {
                self.link(id, into, name);
                continue;
            }
            let node = &other.nodes[child];
            let content = if is_dir { Content::Dir(BTreeMap::new()) } else { node.content.clone() };
            assert_eq!(self.create(into, name, content, node.permissions), Outcome::Done);
            let id = self.dir(into).unwrap()[name];
            self.nodes.get_mut(&id).unwrap().xattrs = node.xattrs.clone();
            known.insert(*child, id);
            if is_dir {
                self.absorb_dir(id, other, *child, known);
            }
        }
    }

    pub fn truncate(&mut self, id: Id, size: usize) {
        if let Content::File(bytes) = &mut self.nodes.get_mut(&id).unwrap().content {
            bytes.resize(size, 0);
        }
    }
}

fn node(content: Content, permissions: u16) -> Node {
    Node { content, links: 1, permissions, xattrs: BTreeMap::new() }
}

/// Compares everything that can be seen. `lost_found`: whether the volume has that directory.
pub fn assert_equal(fs: &FileSystem, model: &Model) {
    let mut seen = vec![(b"/".to_vec(), fs.metadata("/").unwrap())];
    let mut at = 0;
    while at < seen.len() {
        let (path, stat) = seen[at].clone();
        if stat.kind == FileKind::Directory {
            for entry in fs.read_dir(path_from_bytes(&path)).unwrap().map(Result::unwrap) {
                let mut below = path.clone();
                if below.last() != Some(&b'/') {
                    below.push(b'/');
                }
                below.extend_from_slice(&entry.name);
                let stat = fs.symlink_metadata(path_from_bytes(&below)).unwrap();
                assert_eq!(entry.kind, Some(stat.kind), "kind in the directory of {}", show(&below));
                assert_eq!(entry.ino, stat.ino);
                seen.push((below, stat));
            }
        }
        at += 1;
    }
    seen.sort_by(|a, b| a.0.cmp(&b.0));
    let paths: Vec<String> = seen.iter().map(|(path, _)| show(path)).collect();
    let expected = model.paths();
    let wanted: Vec<String> = expected.iter().map(|(path, _)| show(path)).collect();
    assert_eq!(paths, wanted, "paths");
    for ((path, stat), (_, id)) in seen.iter().zip(&expected) {
        let node = &model.nodes[id];
        let at = path_from_bytes(path);
        let name = show(path);
        assert_eq!(stat.links, node.links, "links of {name}");
        assert_eq!(stat.permissions, node.permissions, "permissions of {name}");
        let xattrs: BTreeMap<_, _> = fs.xattrs(at).unwrap().into_iter().collect();
        assert_eq!(xattrs, node.xattrs, "xattrs of {name}");
        match &node.content {
            Content::File(bytes) => {
                assert_eq!(stat.kind, FileKind::Regular, "{name}");
                assert_eq!(stat.size, bytes.len() as u64, "size of {name}");
                let mut read = vec![0xaa; bytes.len() + 10];
                let len = fs.open_file(at).unwrap().read_at(&mut read, 0).unwrap();
                assert_eq!(len, bytes.len(), "bytes read of {name}");
                if let Some(at) = (0..len).find(|i| read[*i] != bytes[*i]) {
                    panic!("{name}: byte {at} is {:#x}, should be {:#x}", read[at], bytes[at]);
                }
            }
            Content::Dir(_) => assert_eq!(stat.kind, FileKind::Directory, "{name}"),
            Content::Symlink(target) => assert_eq!(&fs.read_link(at).unwrap(), target, "{name}"),
            Content::Special(kind) => assert_eq!(stat.kind, *kind, "{name}"),
        }
    }
}

pub fn show(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    if text.len() > 60 {
        format!("{}...({} bytes)", &text.chars().take(40).collect::<String>(), path.len())
    } else {
        text.into_owned()
    }
}

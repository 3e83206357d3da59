//! The contents of a file system, as a value: names, and the inodes that they name. It is the model of a workload, and
//! the result of a walk.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use f2fs_files::{File, FileKind, FileSystem, FsError, Metadata};
use f2fs_sync::Arc;

use crate::base::NOW;

/// Names in a tree at most: a walk of a corrupt volume ends.
const MAX_NAMES: usize = 20_000;
/// Bytes of a file that a walk reads at most.
const MAX_FILE: u64 = 64 << 20;
/// Bytes that are compared with what is known at a time: they are in the processor's cache yet.
const PART: usize = 256 << 10;

/// The contents of an inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The bytes of a regular file.
    File(Vec<u8>),
    /// A directory; its names stand in the tree.
    Dir,
    /// The target of a symbolic link.
    Symlink(Vec<u8>),
}

/// Owner, permissions and times of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Permission bits.
    pub permissions: u16,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Last read, in seconds since 1970.
    pub accessed: i64,
    /// Last change of the content, in seconds since 1970.
    pub modified: i64,
}

impl Attributes {
    /// Of an inode that is made.
    #[must_use]
    pub fn new(permissions: u16) -> Attributes {
        Attributes { permissions, uid: 0, gid: 0, accessed: NOW, modified: NOW }
    }

    fn of(stat: &Metadata) -> Attributes {
        Attributes {
            permissions: stat.permissions,
            uid: stat.uid,
            gid: stat.gid,
            accessed: stat.accessed.seconds,
            modified: stat.modified.seconds,
        }
    }
}

/// One inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its contents.
    pub content: Content,
    /// Mode, owner and times.
    pub attributes: Attributes,
    /// Names; for a directory 2 and one for each subdirectory.
    pub links: u32,
    /// Extended attributes.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// All names with their inodes. Inode numbers are those of the file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Absolute paths.
    pub names: BTreeMap<String, u32>,
    /// Inodes by number.
    pub nodes: BTreeMap<u32, Arc<Node>>,
}

/// Inodes that a walk may find again: nothing is allocated or compared for those a second time.
#[derive(Debug, Default)]
pub struct Known {
    nodes: BTreeMap<u32, Vec<Arc<Node>>>,
    /// Whether all times that are found are taken for [`NOW`].
    timeless: bool,
}

impl Known {
    /// Those of some trees.
    #[must_use]
    pub fn of<'a>(trees: impl IntoIterator<Item = &'a Tree>) -> Known {
        let mut known: BTreeMap<u32, Vec<Arc<Node>>> = BTreeMap::new();
        for (ino, node) in trees.into_iter().flat_map(|tree| &tree.nodes) {
            let nodes = known.entry(*ino).or_default();
            if !nodes.iter().any(|other| Arc::ptr_eq(other, node)) {
                nodes.push(Arc::clone(node));
            }
        }
        Known { nodes: known, timeless: false }
    }

    /// The same; with `timeless`, times that a walk finds are taken for [`NOW`].
    #[must_use]
    pub fn timeless(self, timeless: bool) -> Known {
        Known { timeless, ..self }
    }

    fn attributes(&self, stat: &Metadata) -> Attributes {
        let found = Attributes::of(stat);
        if self.timeless { Attributes { accessed: NOW, modified: NOW, ..found } } else { found }
    }

    /// The file that is the same. `part`: for its bytes.
    fn file(
        &self,
        file: &File,
        stat: &Metadata,
        xattrs: &BTreeMap<Vec<u8>, Vec<u8>>,
        part: &mut [u8],
    ) -> Result<Option<Arc<Node>>, FsError> {
        let bytes = |node: &'_ Node| match &node.content {
            Content::File(bytes)
                if node.links == stat.links && node.xattrs == *xattrs && node.attributes == self.attributes(stat) =>
            {
                Some(bytes.len() as u64)
            }
            _ => None,
        };
        let known = self.nodes.get(&stat.ino.0).into_iter().flatten();
        let mut same: Vec<&Arc<Node>> = known.filter(|node| bytes(node) == Some(stat.size)).collect();
        let mut at = 0;
        while at < stat.size && !same.is_empty() {
            let read = file.read_at(part, at)?;
            let end = at as usize + read;
            same.retain(|node| {
                matches!(&node.content, Content::File(bytes) if bytes.get(at as usize..end) == Some(&part[..read]))
            });
            if read == 0 {
                return Ok(None);
            }
            at = end as u64;
        }
        Ok(same.first().map(|node| Arc::clone(node)))
    }
}

/// The directory of a path.
pub(crate) fn parent(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(at) => &path[..at],
    }
}

/// Whether `path` is `dir` or below it.
pub(crate) fn is_within(path: &str, dir: &str) -> bool {
    dir == "/" || path == dir || path.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
}

impl Tree {
    /// Everything that can be reached in `fs`.
    ///
    /// # Errors
    /// Whatever a look-up or a read gives; too many names or too long a file count as invalid.
    pub fn walk(fs: &FileSystem) -> Result<Tree, FsError> {
        Tree::walk_among(fs, &Known::default())
    }

    /// [`walk`](Self::walk), where most inodes are as they are known to be: those share the memory of the known ones.
    ///
    /// # Errors
    /// As there.
    pub fn walk_among(fs: &FileSystem, known: &Known) -> Result<Tree, FsError> {
        let mut tree = Tree::default();
        let mut part = vec![0; PART];
        let mut pending = vec!["/".to_owned()];
        while let Some(path) = pending.pop() {
            if tree.names.len() >= MAX_NAMES {
                return Err(FsError::Invalid("more names than the workload can have made"));
            }
            let stat = fs.symlink_metadata(&path)?;
            tree.names.insert(path.clone(), stat.ino.0);
            if stat.kind == FileKind::Directory {
                for entry in fs.read_dir(&path)? {
                    let slash = if path == "/" { "" } else { "/" };
                    pending.push(format!("{path}{slash}{}", String::from_utf8_lossy(&entry?.name)));
                }
            }
            if tree.nodes.contains_key(&stat.ino.0) {
                continue;
            }
            let xattrs = fs.xattrs(&path)?.into_iter().collect();
            let content = match stat.kind {
                FileKind::Directory => Content::Dir,
                FileKind::Symlink => Content::Symlink(fs.read_link(&path)?),
                _ if stat.size > MAX_FILE => return Err(FsError::Invalid("a file longer than the workload made any")),
                _ => {
                    let file = fs.open_file(&path)?;
                    if let Some(node) = known.file(&file, &stat, &xattrs, &mut part)? {
                        tree.nodes.insert(stat.ino.0, node);
                        continue;
                    }
                    let mut bytes = vec![0; stat.size as usize];
                    let read = file.read_at(&mut bytes, 0)?;
                    bytes.truncate(read);
                    Content::File(bytes)
                }
            };
            let attributes = known.attributes(&stat);
            tree.nodes.insert(stat.ino.0, Arc::new(Node { content, attributes, links: stat.links, xattrs }));
        }
        Ok(tree)
    }

    /// The inode behind a path.
    #[must_use]
    pub fn node(&self, path: &str) -> Option<&Node> {
        Some(self.nodes.get(self.names.get(path)?)?)
    }

    /// Whether a path names a directory.
    #[must_use]
    pub fn is_dir(&self, path: &str) -> bool {
        self.node(path).is_some_and(|node| node.content == Content::Dir)
    }

    /// The names of an inode.
    #[must_use]
    pub fn names_of(&self, ino: u32) -> BTreeSet<&str> {
        self.names.iter().filter(|(_, named)| **named == ino).map(|(path, _)| path.as_str()).collect()
    }

    /// The entries that name an inode: the directory (0: not in this part of the tree) and the name in it. A file keeps
    /// them when a directory above it moves.
    #[must_use]
    pub fn entries_of(&self, ino: u32) -> BTreeSet<(u32, &str)> {
        let entry = |path: &'_ String| self.names.get(parent(path)).copied().unwrap_or(0);
        let named = self.names.iter().filter(|(_, named)| **named == ino);
        named.map(|(path, _)| (entry(path), path.rsplit('/').next().unwrap_or_default())).collect()
    }

    /// Bytes of a file.
    #[must_use]
    pub(crate) fn size_of(&self, ino: u32) -> Option<u64> {
        match &self.nodes.get(&ino)?.content {
            Content::File(bytes) => Some(bytes.len() as u64),
            _ => None,
        }
    }

    /// The part of the tree at and below a directory.
    #[must_use]
    pub fn below(&self, dir: &str) -> Tree {
        let names: BTreeMap<String, u32> = self
            .names
            .iter()
            .filter(|(path, _)| is_within(path, dir))
            .map(|(path, ino)| (path.clone(), *ino))
            .collect();
        let wanted: BTreeSet<u32> = names.values().copied().collect();
        let nodes = self.nodes.iter().filter(|(ino, _)| wanted.contains(*ino));
        Tree { nodes: nodes.map(|(ino, node)| (*ino, node.clone())).collect(), names }
    }

    pub(crate) fn change(&mut self, ino: u32, change: impl FnOnce(&mut Node)) {
        if let Some(node) = self.nodes.get_mut(&ino) {
            change(Arc::make_mut(node));
        }
    }

    /// How this differs from what was expected, for people; a few lines at most.
    #[must_use]
    pub fn difference(&self, expected: &Tree) -> String {
        let mut text = String::new();
        let paths: BTreeSet<&String> = self.names.keys().chain(expected.names.keys()).collect();
        for path in paths {
            let (found, wanted) = (self.node(path), expected.node(path));
            let inos = (self.names.get(path), expected.names.get(path));
            if found == wanted && inos.0 == inos.1 {
                continue;
            }
            let _ = writeln!(
                text,
                "    {path}: found {}, expected {}",
                describe(found, inos.0.copied()),
                describe(wanted, inos.1.copied())
            );
            if text.len() > 1500 {
                text.push_str("    ...\n");
                break;
            }
        }
        text
    }
}

fn describe(node: Option<&Node>, ino: Option<u32>) -> String {
    let Some(node) = node else { return "nothing".to_owned() };
    let sum = |bytes: &[u8]| bytes.iter().fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()));
    let what = match &node.content {
        Content::File(bytes) => format!("a file of {} bytes (sum {:08x})", bytes.len(), sum(bytes)),
        Content::Dir => "a directory".to_owned(),
        Content::Symlink(target) => format!("a link of {} bytes", target.len()),
    };
    let xattrs: Vec<String> =
        node.xattrs.iter().map(|(name, value)| format!("{}={}", String::from_utf8_lossy(name), value.len())).collect();
    let Attributes { permissions, uid, gid, accessed, modified } = node.attributes;
    format!(
        "{what}, inode {}, {} links, mode {permissions:o}, owner {uid}:{gid}, times {accessed} {modified}, xattrs [{}]",
        ino.unwrap_or(0),
        node.links,
        xattrs.join(" ")
    )
}

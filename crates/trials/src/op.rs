//! Operations of a workload: how each is done, what it does to the model, and how it is written down.

use std::fmt;
use std::str::FromStr;

use f2fs_files::{File, FileKind, FileSystem, FsError, NewFile, RenameMode, SetMode};
use f2fs_sync::Arc;

use crate::random::bytes;
use crate::tree::{Content, Node, Tree, is_within, parent};

/// One operation. Its text is its name and what it is about: `rename /A/foo /B/bar`, `write /A/foo 4096 100`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Make an empty file.
    Create(String),
    /// Make a directory.
    Mkdir(String),
    /// Make a symbolic link with a target of so many bytes.
    Symlink(String, usize),
    /// Give a file another name.
    Link(String, String),
    /// Rename, over what is there.
    Rename(String, String),
    /// Let two names change places.
    Exchange(String, String),
    /// Remove a file.
    Unlink(String),
    /// Remove a file that stays open until the end: an orphan.
    Orphan(String),
    /// Remove an empty directory.
    Rmdir(String),
    /// Write: offset and length.
    Write(String, u64, usize),
    /// Set the size.
    Truncate(String, u64),
    /// Allocate blocks (offset, length), the size kept or not.
    Allocate(String, u64, u64, bool),
    /// Set an extended attribute of so many bytes.
    SetXattr(String, String, usize),
    /// Remove an extended attribute.
    RemoveXattr(String, String),
    /// Make a file durable.
    Sync(String),
    /// Make everything durable.
    Checkpoint,
}

/// Whether a healthy volume may refuse an operation so, whatever the model says: it is full, or an inode's attributes are.
#[must_use]
pub fn is_refusal(error: &FsError) -> bool {
    error.is_no_space() || matches!(error, FsError::Attribute { .. })
}

/// What an operation leaves behind.
#[derive(Debug, Default)]
pub struct Done {
    /// The inode that it made.
    pub ino: u32,
    /// What stays open.
    pub open: Option<File>,
    /// Bytes that were written, if they were fewer than asked for: the volume is full.
    pub written: Option<usize>,
}

impl Op {
    /// Does it. `salt` makes the bytes that it writes.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn perform(&self, fs: &FileSystem, salt: u64) -> Result<Done, FsError> {
        let made = |ino: f2fs_format::Nid| Done { ino: ino.0, ..Done::default() };
        match self {
            Op::Create(path) => fs.create_file(path, 0o644).map(|file| made(file.ino())),
            Op::Mkdir(path) => fs.create_dir(path, 0o755).map(|stat| made(stat.ino)),
            Op::Symlink(path, len) => fs
                .symlink(&target(*len, salt), path, &NewFile::new(FileKind::Symlink, 0o777))
                .map(|stat| made(stat.ino)),
            Op::Link(from, to) => fs.link(from, to).map(|()| Done::default()),
            Op::Rename(from, to) => fs.rename(from, to, RenameMode::Replace).map(|()| Done::default()),
            Op::Exchange(from, to) => fs.rename(from, to, RenameMode::Exchange).map(|()| Done::default()),
            Op::Unlink(path) => fs.unlink(path).map(|()| Done::default()),
            Op::Orphan(path) => {
                let open = fs.open_file(path)?;
                fs.unlink(path).map(|()| Done { open: Some(open), ..Done::default() })
            }
            Op::Rmdir(path) => fs.remove_dir(path).map(|()| Done::default()),
            Op::Write(path, offset, len) => {
                let written = fs.open_file(path)?.write_at(*offset, &bytes(*len, salt))?;
                Ok(Done { written: (written < *len).then_some(written), ..Done::default() })
            }
            Op::Truncate(path, size) => fs.open_file(path)?.truncate(*size).map(|()| Done::default()),
            Op::Allocate(path, offset, len, keep) => {
                fs.open_file(path)?.allocate(*offset, *len, *keep).map(|()| Done::default())
            }
            Op::SetXattr(path, name, len) => {
                fs.set_xattr(path, name, &bytes(*len, salt), SetMode::Any).map(|()| Done::default())
            }
            Op::RemoveXattr(path, name) => fs.remove_xattr(path, name).map(|()| Done::default()),
            Op::Sync(path) => fs.open_file(path)?.sync().map(|()| Done::default()),
            Op::Checkpoint => fs.checkpoint().map(|_| Done::default()),
        }
    }

    /// Whether it can be done on this tree; decides which sequences are worth trying. What it says no to may still succeed.
    #[must_use]
    pub fn fits(&self, tree: &Tree) -> bool {
        let file = |path: &str| tree.node(path).is_some_and(|node| matches!(node.content, Content::File(_)));
        let free = |path: &str| !tree.names.contains_key(path) && tree.is_dir(parent(path));
        match self {
            Op::Create(path) | Op::Mkdir(path) | Op::Symlink(path, _) => free(path),
            Op::Link(from, to) => file(from) && free(to),
            Op::Rename(from, to) => {
                let target = match (tree.is_dir(from), tree.names.contains_key(to)) {
                    (_, false) => tree.is_dir(parent(to)),
                    (true, true) => {
                        tree.is_dir(to) && tree.names.keys().filter(|path| is_within(path, to)).count() == 1
                    }
                    (false, true) => !tree.is_dir(to),
                };
                tree.names.contains_key(from) && from != to && !is_within(to, from) && target
            }
            Op::Exchange(from, to) => {
                let both = tree.names.contains_key(from) && tree.names.contains_key(to);
                both && !is_within(to, from) && !is_within(from, to)
            }
            Op::Unlink(path) => tree.names.contains_key(path) && !tree.is_dir(path),
            Op::Orphan(path) | Op::Write(path, ..) | Op::Truncate(path, _) => file(path),
            Op::Allocate(path, ..) | Op::Sync(path) => file(path),
            Op::Rmdir(path) => {
                tree.is_dir(path) && path != "/" && tree.names.keys().filter(|name| is_within(name, path)).count() == 1
            }
            Op::SetXattr(path, ..) => file(path) || tree.is_dir(path),
            Op::RemoveXattr(path, name) => {
                tree.node(path).is_some_and(|node| node.xattrs.contains_key(name.as_bytes()))
            }
            Op::Checkpoint => true,
        }
    }

    /// The same on the model, after it succeeded. `ino`: the inode that it made.
    pub fn apply(&self, tree: &mut Tree, salt: u64, ino: u32) {
        match self {
            Op::Create(path) => add(tree, path, ino, Content::File(Vec::new())),
            Op::Mkdir(path) => add(tree, path, ino, Content::Dir),
            Op::Symlink(path, len) => add(tree, path, ino, Content::Symlink(target(*len, salt))),
            Op::Link(from, to) => {
                let Some(&ino) = tree.names.get(from) else { return };
                tree.names.insert(to.clone(), ino);
                tree.change(ino, |node| node.links += 1);
            }
            Op::Rename(from, to) => {
                if tree.names.get(from) == tree.names.get(to) {
                    return;
                }
                if tree.is_dir(to) {
                    remove_dir(tree, to);
                } else {
                    unlink(tree, to);
                }
                move_links(tree, from, to);
                move_names(tree, &[(from.as_str(), to.as_str())]);
            }
            Op::Exchange(from, to) => {
                move_links(tree, from, to);
                move_links(tree, to, from);
                move_names(tree, &[(from.as_str(), to.as_str()), (to.as_str(), from.as_str())]);
            }
            Op::Unlink(path) | Op::Orphan(path) => unlink(tree, path),
            Op::Rmdir(path) => remove_dir(tree, path),
            Op::Write(path, offset, len) => edit(tree, path, |data| {
                let (start, end) = (*offset as usize, *offset as usize + len);
                if *len > 0 && data.len() < end {
                    data.resize(end, 0);
                }
                data[start..end].copy_from_slice(&bytes(*len, salt));
            }),
            Op::Truncate(path, size) => edit(tree, path, |data| data.resize(*size as usize, 0)),
            Op::Allocate(path, offset, len, keep) => edit(tree, path, |data| {
                let end = (offset + len) as usize;
                if !keep && data.len() < end {
                    data.resize(end, 0);
                }
            }),
            Op::SetXattr(path, name, len) => {
                let Some(&ino) = tree.names.get(path) else { return };
                tree.change(ino, |node| drop(node.xattrs.insert(name.as_bytes().to_vec(), bytes(*len, salt))));
            }
            Op::RemoveXattr(path, name) => {
                let Some(&ino) = tree.names.get(path) else { return };
                tree.change(ino, |node| drop(node.xattrs.remove(name.as_bytes())));
            }
            Op::Sync(_) | Op::Checkpoint => {}
        }
    }

    /// What was done of it, if that was less.
    #[must_use]
    pub fn done(self, done: &Done) -> Op {
        match (self, done.written) {
            (Op::Write(path, offset, _), Some(written)) => Op::Write(path, offset, written),
            (op, _) => op,
        }
    }

    /// The file that it is about, if there is one afterwards.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        match self {
            Op::Create(path) | Op::Write(path, ..) | Op::Truncate(path, _) | Op::Allocate(path, ..) => Some(path),
            Op::SetXattr(path, ..) | Op::RemoveXattr(path, _) | Op::Sync(path) => Some(path),
            Op::Link(_, to) | Op::Rename(_, to) | Op::Exchange(_, to) => Some(to),
            Op::Mkdir(_) | Op::Symlink(..) | Op::Unlink(_) | Op::Orphan(_) | Op::Rmdir(_) | Op::Checkpoint => None,
        }
    }
}

fn target(len: usize, salt: u64) -> Vec<u8> {
    bytes(len.max(1), salt).into_iter().map(|byte| b'a' + byte % 26).collect()
}

fn edit(tree: &mut Tree, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let Some(&ino) = tree.names.get(path) else { return };
    tree.change(ino, |node| {
        if let Content::File(data) = &mut node.content {
            change(data);
        }
    });
}

fn parent_links(tree: &mut Tree, path: &str, change: impl FnOnce(u32) -> u32) {
    if let Some(&dir) = tree.names.get(parent(path)) {
        tree.change(dir, |node| node.links = change(node.links));
    }
}

fn add(tree: &mut Tree, path: &str, ino: u32, content: Content) {
    let is_dir = content == Content::Dir;
    if is_dir {
        parent_links(tree, path, |links| links + 1);
    }
    tree.names.insert(path.to_owned(), ino);
    let links = if is_dir { 2 } else { 1 };
    tree.nodes.insert(ino, Arc::new(Node { content, links, xattrs: Default::default() }));
}

fn unlink(tree: &mut Tree, path: &str) {
    let Some(ino) = tree.names.remove(path) else { return };
    tree.change(ino, |node| node.links -= 1);
    if tree.nodes.get(&ino).is_some_and(|node| node.links == 0) {
        tree.nodes.remove(&ino);
    }
}

fn remove_dir(tree: &mut Tree, path: &str) {
    if let Some(ino) = tree.names.remove(path) {
        tree.nodes.remove(&ino);
        parent_links(tree, path, |links| links - 1);
    }
}

/// A directory that changes its parent takes a link along.
fn move_links(tree: &mut Tree, from: &str, to: &str) {
    if tree.is_dir(from) && parent(from) != parent(to) {
        parent_links(tree, from, |links| links - 1);
        parent_links(tree, to, |links| links + 1);
    }
}

fn move_names(tree: &mut Tree, moves: &[(&str, &str)]) {
    let old = std::mem::take(&mut tree.names);
    tree.names = old
        .into_iter()
        .map(|(path, ino)| {
            let moved = moves.iter().find(|(from, _)| is_within(&path, from));
            (moved.map_or(path.clone(), |(from, to)| format!("{to}{}", &path[from.len()..])), ino)
        })
        .collect();
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Create(path) => write!(f, "create {path}"),
            Op::Mkdir(path) => write!(f, "mkdir {path}"),
            Op::Symlink(path, len) => write!(f, "symlink {path} {len}"),
            Op::Link(from, to) => write!(f, "link {from} {to}"),
            Op::Rename(from, to) => write!(f, "rename {from} {to}"),
            Op::Exchange(from, to) => write!(f, "exchange {from} {to}"),
            Op::Unlink(path) => write!(f, "unlink {path}"),
            Op::Orphan(path) => write!(f, "orphan {path}"),
            Op::Rmdir(path) => write!(f, "rmdir {path}"),
            Op::Write(path, offset, len) => write!(f, "write {path} {offset} {len}"),
            Op::Truncate(path, size) => write!(f, "truncate {path} {size}"),
            Op::Allocate(path, offset, len, keep) => {
                write!(f, "{} {path} {offset} {len}", if *keep { "reserve" } else { "allocate" })
            }
            Op::SetXattr(path, name, len) => write!(f, "setxattr {path} {name} {len}"),
            Op::RemoveXattr(path, name) => write!(f, "removexattr {path} {name}"),
            Op::Sync(path) => write!(f, "sync {path}"),
            Op::Checkpoint => write!(f, "checkpoint"),
        }
    }
}

/// A text that is no operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no operation")]
pub struct ParseOpError(String);

impl FromStr for Op {
    type Err = ParseOpError;

    fn from_str(text: &str) -> Result<Op, ParseOpError> {
        parse(text).ok_or_else(|| ParseOpError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Op> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (name, rest) = words.split_first()?;
    let path = |at: usize| rest.get(at).map(|word| (*word).to_owned());
    fn number<T: FromStr>(rest: &[&str], at: usize) -> Option<T> {
        rest.get(at)?.parse().ok()
    }
    Some(match *name {
        "create" => Op::Create(path(0)?),
        "mkdir" => Op::Mkdir(path(0)?),
        "symlink" => Op::Symlink(path(0)?, number(rest, 1)?),
        "link" => Op::Link(path(0)?, path(1)?),
        "rename" => Op::Rename(path(0)?, path(1)?),
        "exchange" => Op::Exchange(path(0)?, path(1)?),
        "unlink" => Op::Unlink(path(0)?),
        "orphan" => Op::Orphan(path(0)?),
        "rmdir" => Op::Rmdir(path(0)?),
        "write" => Op::Write(path(0)?, number(rest, 1)?, number(rest, 2)?),
        "truncate" => Op::Truncate(path(0)?, number(rest, 1)?),
        "allocate" => Op::Allocate(path(0)?, number(rest, 1)?, number(rest, 2)?, false),
        "reserve" => Op::Allocate(path(0)?, number(rest, 1)?, number(rest, 2)?, true),
        "setxattr" => Op::SetXattr(path(0)?, path(1)?, number(rest, 2)?),
        "removexattr" => Op::RemoveXattr(path(0)?, path(1)?),
        "sync" => Op::Sync(path(0)?),
        "checkpoint" => Op::Checkpoint,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Workload, alphabet};

    #[test]
    fn texts_lead_back() {
        let all = alphabet();
        assert_eq!(all.len(), 41, "every line of the alphabet is an operation");
        for op in all.iter().chain(&[Op::Checkpoint, Op::Sync("/x".into())]) {
            assert_eq!(op.to_string().parse().as_ref(), Ok(op));
        }
        let text = "plain: create /A/new; sync /A/new";
        assert_eq!(text.parse::<Workload>().map(|workload| workload.to_string()).as_deref(), Ok(text));
        assert!("nowhere: checkpoint".parse::<Workload>().is_err() && "write /a".parse::<Op>().is_err());
    }
}

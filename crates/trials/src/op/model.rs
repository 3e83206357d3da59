//! The effects of operations on the model.

use f2fs_sync::Arc;

use super::{DIR_MODE, FILE_MODE, LINK_MODE, Op, target};
use crate::base::NOW;
use crate::tree::{Attributes, Content, Node, Tree, is_within, parent};
use f2fs_device_test::bytes;

impl Op {
    /// The same on the model, after it succeeded. `ino`: the inode that it made.
    pub fn apply(&self, tree: &mut Tree, salt: u64, ino: u32) {
        match self {
            Op::Create(path) => add(tree, path, ino, Content::File(Vec::new())),
            Op::Mkdir(path) => add(tree, path, ino, Content::Dir),
            Op::Symlink(path, len) => add(tree, path, ino, Content::Symlink(target(*len, salt))),
            Op::Replace(path, len) => {
                unlink(tree, path);
                add(tree, path, ino, Content::File(bytes(*len, salt)));
            }
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
            Op::Write(path, offset, len) | Op::WriteDurable(path, offset, len) => edit(tree, path, |data| {
                let (start, end) = (*offset as usize, *offset as usize + len);
                if *len > 0 && data.len() < end {
                    data.resize(end, 0);
                }
                data[start..end].copy_from_slice(&bytes(*len, salt));
            }),
            Op::Append(path, len) => edit(tree, path, |data| data.extend(bytes(*len, salt))),
            Op::Truncate(path, size) => edit(tree, path, |data| data.resize(*size as usize, 0)),
            Op::Allocate(path, offset, len, keep) => edit(tree, path, |data| {
                let end = (offset + len) as usize;
                if !keep && data.len() < end {
                    data.resize(end, 0);
                }
            }),
            Op::Punch(path, offset, len) => edit(tree, path, |data| zero(data, *offset, *len)),
            Op::Zero(path, offset, len, keep) => edit(tree, path, |data| {
                let end = (offset + len) as usize;
                if !keep && data.len() < end {
                    data.resize(end, 0);
                }
                zero(data, *offset, *len);
            }),
            Op::SetXattr(path, name, len) => {
                let Some(&ino) = tree.names.get(path) else { return };
                tree.change(ino, |node| drop(node.xattrs.insert(name.as_bytes().to_vec(), bytes(*len, salt))));
            }
            Op::RemoveXattr(path, name) => {
                let Some(&ino) = tree.names.get(path) else { return };
                tree.change(ino, |node| drop(node.xattrs.remove(name.as_bytes())));
            }
            Op::SetMode(path, mode) => set(tree, path, |attributes| attributes.permissions = *mode),
            Op::SetOwner(path, uid, gid) => {
                set(tree, path, |attributes| (attributes.uid, attributes.gid) = (*uid, *gid));
            }
            Op::SetTimes(path, seconds) => {
                set(tree, path, |attributes| (attributes.accessed, attributes.modified) = (*seconds, seconds + 1));
            }
            Op::Sync(_) | Op::SyncDir(_) | Op::Checkpoint | Op::Clean => {}
        }
    }
}

fn zero(data: &mut [u8], offset: u64, len: u64) {
    let (from, to) = (data.len().min(offset as usize), data.len().min((offset + len) as usize));
    data[from..to].fill(0);
}

fn edit(tree: &mut Tree, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let Some(&ino) = tree.names.get(path) else { return };
    tree.change(ino, |node| {
        if let Content::File(data) = &mut node.content {
            change(data);
            node.attributes.modified = NOW;
        }
    });
}

fn set(tree: &mut Tree, path: &str, change: impl FnOnce(&mut Attributes)) {
    let Some(&ino) = tree.names.get(path) else { return };
    tree.change(ino, |node| change(&mut node.attributes));
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
    let attributes = Attributes::new(match content {
        Content::File(_) => FILE_MODE,
        Content::Dir => DIR_MODE,
        Content::Symlink(_) => LINK_MODE,
    });
    tree.nodes.insert(ino, Arc::new(Node { content, attributes, links, xattrs: Default::default() }));
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

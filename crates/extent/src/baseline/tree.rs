//! The states of a file in a red-black tree, a node for each, as Btrfs has them (`struct extent_state` in an `rb_root`).
//!
//! The rules are those of Cormen, Leiserson, Rivest, Stein, "Introduction to Algorithms": the root is black, a red node
//! has no red child, and each way down has as many black nodes. A node has a cache line of its own; in Linux it is 80
//! bytes long.
//!
//! Where a machine with many processors is played, nodes are memory behind the lock, of which it is told
//! ([`f2fs_sync::memory`]). A new node counts as made before the lock was taken, as in Linux. What says which nodes are
//! free stands for Linux's slabs, which each processor has for itself, and does not count.

use f2fs_sync::memory;

use crate::range::BlockRange;

/// The number of a node.
pub(super) type Id = u32;

/// No node.
const NONE: Id = Id::MAX;
/// Nodes that memory is taken for at once: they never move.
const CHUNK: usize = 64;

/// A range of blocks and its bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) bits: u32,
}

/// A state in the tree.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Node {
    state: State,
    parent: Id,
    /// With smaller blocks, with larger ones.
    children: [Id; 2],
    red: bool,
}

/// States by their blocks. They do not overlap.
#[derive(Debug)]
pub(super) struct Tree {
    chunks: Vec<Box<[Node; CHUNK]>>,
    free: Vec<Id>,
    root: Id,
}

impl Tree {
    pub(super) const fn new() -> Tree {
        Tree { chunks: Vec::new(), free: Vec::new(), root: NONE }
    }

    /// A state of the tree.
    pub(super) fn state(&self, id: Id) -> State {
        self.node(id).state
    }

    /// Changes a state. It must not come to overlap another one.
    pub(super) fn change(&mut self, id: Id, state: State) {
        self.node_mut(id).state = state;
    }

    /// The first state that ends at the block or behind it.
    pub(super) fn from(&self, block: u64) -> Option<Id> {
        let (mut at, mut found) = (self.root, None);
        while at != NONE {
            let node = self.node(at);
            if node.state.last >= block {
                (at, found) = (node.children[0], Some(at));
            } else {
                at = node.children[1];
            }
        }
        found
    }

    /// The first state in the tree that has blocks of the range.
    pub(super) fn within(&self, range: BlockRange) -> Option<Id> {
        self.from(range.first()).filter(|id| self.state(*id).first <= range.last())
    }

    /// The states next to one: below it (`0`), or above it (`1`).
    pub(super) fn beside(&self, id: Id, side: usize) -> Option<Id> {
        let child = self.node(id).children[side];
        if child != NONE {
            return Some(self.outermost(child, 1 - side));
        }
        let (mut at, mut above) = (id, self.node(id).parent);
        while above != NONE && self.node(above).children[side] == at {
            (at, above) = (above, self.node(above).parent);
        }
        (above != NONE).then_some(above)
    }

    /// Adds a state. It must not overlap another one.
    pub(super) fn insert(&mut self, state: State) -> Id {
        let (mut parent, mut at, mut side) = (NONE, self.root, 0);
        while at != NONE {
            let node = self.node(at);
            side = usize::from(node.state.first < state.first);
            (parent, at) = (at, node.children[side]);
        }
        let new = self.make(Node { state, parent, children: [NONE; 2], red: true });
        if parent == NONE {
            self.root = new;
        } else {
            self.node_mut(parent).children[side] = new;
        }
        self.balance_new(new);
        new
    }

    /// Removes a state.
    pub(super) fn remove(&mut self, id: Id) {
        let Node { parent, children: [below, above], red, .. } = *self.node(id);
        // `lower` comes to stand under `under`, where a node is gone that was red or black.
        let (lower, under, was_red) = if below == NONE || above == NONE {
            let lower = if below == NONE { above } else { below };
            self.replace(id, lower);
            (lower, parent, red)
        } else {
            let next = self.outermost(above, 0);
            let Node { parent: next_parent, children: [_, lower], red: next_red, .. } = *self.node(next);
            let under = if next_parent == id {
                next
            } else {
                self.replace(next, lower);
                self.set_child(next, 1, above);
                next_parent
            };
            self.replace(id, next);
            self.set_child(next, 0, below);
            self.node_mut(next).red = red;
            (lower, under, next_red)
        };
        self.free.push(id);
        if !was_red {
            self.balance_gone(lower, under);
        }
    }

    fn node(&self, id: Id) -> &Node {
        let node = &self.chunks[id as usize / CHUNK][id as usize % CHUNK];
        memory::read(node);
        node
    }

    fn node_mut(&mut self, id: Id) -> &mut Node {
        let node = &mut self.chunks[id as usize / CHUNK][id as usize % CHUNK];
        memory::written(node);
        node
    }

    fn make(&mut self, node: Node) -> Id {
        if self.free.is_empty() {
            let first = self.chunks.len() * CHUNK;
            self.chunks.push(Box::new([node; CHUNK]));
            self.free.extend((first..first + CHUNK).rev().map(|id| id as Id));
        }
        let id = self.free.pop().unwrap_or_default();
        let here = &mut self.chunks[id as usize / CHUNK][id as usize % CHUNK];
        *here = node;
        memory::made(here);
        id
    }

    fn is_red(&self, id: Id) -> bool {
        id != NONE && self.node(id).red
    }

    fn paint(&mut self, id: Id, red: bool) {
        if id != NONE && self.node(id).red != red {
            self.node_mut(id).red = red;
        }
    }

    fn outermost(&self, mut id: Id, side: usize) -> Id {
        while self.node(id).children[side] != NONE {
            id = self.node(id).children[side];
        }
        id
    }

    fn set_child(&mut self, parent: Id, side: usize, child: Id) {
        self.node_mut(parent).children[side] = child;
        if child != NONE {
            self.node_mut(child).parent = parent;
        }
    }

    /// Puts a node, or none, in the place of another one.
    fn replace(&mut self, old: Id, new: Id) {
        let parent = self.node(old).parent;
        if parent == NONE {
            self.root = new;
            if new != NONE {
                self.node_mut(new).parent = NONE;
            }
        } else {
            let side = usize::from(self.node(parent).children[1] == old);
            self.set_child(parent, side, new);
        }
    }

    /// Moves a node down to this side; its child of the other side takes its place.
    fn rotate(&mut self, id: Id, side: usize) {
        let up = self.node(id).children[1 - side];
        let inner = self.node(up).children[side];
        self.replace(id, up);
        self.set_child(id, 1 - side, inner);
        self.set_child(up, side, id);
    }

    /// A red node is new.
    fn balance_new(&mut self, mut id: Id) {
        loop {
            let parent = self.node(id).parent;
            if !self.is_red(parent) {
                break;
            }
            // A red node is not the root.
            let above = self.node(parent).parent;
            let side = usize::from(self.node(above).children[1] == parent);
            let other = self.node(above).children[1 - side];
            if self.is_red(other) {
                self.paint(parent, false);
                self.paint(other, false);
                self.paint(above, true);
                id = above;
                continue;
            }
            let mut top = parent;
            if self.node(parent).children[1 - side] == id {
                self.rotate(parent, side);
                top = id;
            }
            self.paint(top, false);
            self.paint(above, true);
            self.rotate(above, 1 - side);
            break;
        }
        self.paint(self.root, false);
    }

    /// The ways through `id`, a node or none under `under`, have a black node less than others.
    fn balance_gone(&mut self, mut id: Id, mut under: Id) {
        while under != NONE && !self.is_red(id) {
            // The other child is there: it has a black node more.
            let side = usize::from(self.node(under).children[0] != id);
            let mut other = self.node(under).children[1 - side];
            if self.is_red(other) {
                self.paint(other, false);
                self.paint(under, true);
                self.rotate(under, side);
                other = self.node(under).children[1 - side];
            }
            let [near, far] = [side, 1 - side].map(|side| self.node(other).children[side]);
            if !self.is_red(near) && !self.is_red(far) {
                self.paint(other, true);
                (id, under) = (under, self.node(under).parent);
                continue;
            }
            if !self.is_red(far) {
                self.rotate(other, 1 - side);
                self.paint(near, false);
                self.paint(other, true);
                other = near;
            }
            let red = self.is_red(under);
            self.paint(other, red);
            self.paint(under, false);
            let far = self.node(other).children[1 - side];
            self.paint(far, false);
            self.rotate(under, side);
            return;
        }
        self.paint(id, false);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

//! A sorted set of numbered items that knows ranks: a treap whose nodes are the items themselves.

const NONE: u32 = u32::MAX;

/// At most one node an item; keys are (age key, item), so no two are equal. Every operation takes a number of steps
/// logarithmic in the number of items, in expectation over the hashed priorities.
#[derive(Debug)]
pub(crate) struct Treap {
    nodes: Vec<Node>,
    root: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    left: u32,
    right: u32,
    /// Nodes of the subtree; 0: the item is not in the set.
    size: u32,
}

/// A fixed pseudo-random priority for an item (the finaliser of `splitmix64`).
fn priority(item: u32) -> u64 {
    let mut mixed = u64::from(item).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Treap {
    pub(crate) fn new(items: u32) -> Treap {
        let empty = Node { key: 0, left: NONE, right: NONE, size: 0 };
        Treap { nodes: vec![empty; items as usize], root: NONE }
    }

    /// Members.
    pub(crate) fn len(&self) -> u32 {
        self.size(self.root)
    }

    fn size(&self, node: u32) -> u32 {
        if node == NONE { 0 } else { self.nodes[node as usize].size }
    }

    fn repair(&mut self, node: u32) -> u32 {
        let Node { left, right, .. } = self.nodes[node as usize];
        self.nodes[node as usize].size = 1 + self.size(left) + self.size(right);
        node
    }

    fn key(&self, node: u32) -> (u64, u32) {
        (self.nodes[node as usize].key, node)
    }

    /// The key of an item, if it is a member.
    pub(crate) fn get(&self, item: u32) -> Option<u64> {
        let node = &self.nodes[item as usize];
        (node.size != 0).then_some(node.key)
    }

    /// Splits into the nodes below `key` and the others.
    fn split(&mut self, node: u32, key: (u64, u32)) -> (u32, u32) {
        if node == NONE {
            return (NONE, NONE);
        }
        let Node { left, right, .. } = self.nodes[node as usize];
        if self.key(node) < key {
            let (low, high) = self.split(right, key);
            self.nodes[node as usize].right = low;
            (self.repair(node), high)
        } else {
            let (low, high) = self.split(left, key);
            self.nodes[node as usize].left = high;
            (low, self.repair(node))
        }
    }

    fn merge(&mut self, low: u32, high: u32) -> u32 {
        if low == NONE {
            return high;
        }
        if high == NONE {
            return low;
        }
        if priority(low) > priority(high) {
            let right = self.nodes[low as usize].right;
            self.nodes[low as usize].right = self.merge(right, high);
            self.repair(low)
        } else {
            let left = self.nodes[high as usize].left;
            self.nodes[high as usize].left = self.merge(low, left);
            self.repair(high)
        }
    }

    /// Goes down from the root towards `key` as long as `pass` says so of a node, adding `change` to the sizes on the way.
    /// Gives the node where it stopped, and the one above with the side on which it hangs.
    fn descend(&mut self, key: (u64, u32), change: i32, pass: impl Fn(u32) -> bool) -> (u32, Option<(u32, bool)>) {
        let (mut node, mut above) = (self.root, None);
        while node != NONE && pass(node) {
            let right = self.key(node) < key;
            let here = &mut self.nodes[node as usize];
            here.size = here.size.wrapping_add_signed(change);
            above = Some((node, right));
            node = if right { here.right } else { here.left };
        }
        (node, above)
    }

    /// Hangs a subtree below a node, or at the root.
    fn hang(&mut self, above: Option<(u32, bool)>, node: u32) {
        match above {
            None => self.root = node,
            Some((above, true)) => self.nodes[above as usize].right = node,
            Some((above, false)) => self.nodes[above as usize].left = node,
        }
    }

    /// Adds an item with a key, or changes its key.
    pub(crate) fn insert(&mut self, item: u32, key: u64) {
        if self.get(item) == Some(key) {
            return;
        }
        self.remove(item);
        let mine = priority(item);
        let (below, above) = self.descend((key, item), 1, |node| priority(node) > mine);
        let (left, right) = self.split(below, (key, item));
        self.nodes[item as usize] = Node { key, left, right, size: 1 };
        self.repair(item);
        self.hang(above, item);
    }

    /// Removes an item, if it is a member.
    pub(crate) fn remove(&mut self, item: u32) {
        let Some(key) = self.get(item) else { return };
        let (_, above) = self.descend((key, item), -1, |node| node != item);
        let Node { left, right, .. } = self.nodes[item as usize];
        self.nodes[item as usize].size = 0;
        let below = self.merge(left, right);
        self.hang(above, below);
    }

    /// How many members have a key of at most `key`.
    pub(crate) fn count_to(&self, key: u64) -> u32 {
        let (mut node, mut count) = (self.root, 0);
        while node != NONE {
            let Node { key: here, left, right, .. } = self.nodes[node as usize];
            if here <= key {
                count += self.size(left) + 1;
                node = right;
            } else {
                node = left;
            }
        }
        count
    }

    /// The key and item of the member with `rank` others below it.
    pub(crate) fn select(&self, rank: u32) -> Option<(u64, u32)> {
        let (mut node, mut rank) = (self.root, rank);
        while node != NONE {
            let Node { left, right, .. } = self.nodes[node as usize];
            let below = self.size(left);
            match rank.cmp(&below) {
                core::cmp::Ordering::Less => node = left,
                core::cmp::Ordering::Equal => return Some(self.key(node)),
                core::cmp::Ordering::Greater => (node, rank) = (right, rank - below - 1),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Treap;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_a_tree(ops in prop::collection::vec((0u32..60, prop::option::of(0u64..30)), 1..200), probe in 0u64..31) {
            let (mut treap, mut model) = (Treap::new(60), BTreeSet::new());
            for (item, key) in ops {
                model.retain(|&(_, other)| other != item);
                match key {
                    Some(key) => {
                        treap.insert(item, key);
                        model.insert((key, item));
                    }
                    None => treap.remove(item),
                }
                prop_assert_eq!(treap.get(item), key);
            }
            prop_assert_eq!(treap.len() as usize, model.len());
            prop_assert_eq!(treap.count_to(probe) as usize, model.iter().filter(|(key, _)| *key <= probe).count());
            for (rank, member) in model.iter().enumerate() {
                prop_assert_eq!(treap.select(rank as u32), Some(*member));
            }
            prop_assert_eq!(treap.select(treap.len()), None);
        }
    }
}

use std::collections::BTreeMap;

use super::*;

impl Tree {
    /// Black nodes on each way down from here; checks the rules.
    fn blacks(&self, id: Id, parent: Id) -> usize {
        if id == NONE {
            return 0;
        }
        let node = *self.node(id);
        assert_eq!(node.parent, parent);
        let [below, above] = node.children;
        assert!(!node.red || !self.is_red(below) && !self.is_red(above), "a red child of a red node");
        let blacks = self.blacks(below, id);
        assert_eq!(blacks, self.blacks(above, id), "as many black nodes on each way");
        blacks + usize::from(!node.red)
    }

    fn check(&self, expected: &BTreeMap<u64, u32>) {
        assert!(!self.is_red(self.root));
        self.blacks(self.root, NONE);
        let mut at = self.from(0);
        let mut found = Vec::new();
        let mut before = None;
        while let Some(id) = at {
            let State { first, last, bits } = self.state(id);
            assert_eq!(self.beside(id, 0), before);
            found.push((first, bits));
            assert_eq!(last, first + 4);
            (before, at) = (at, self.beside(id, 1));
        }
        assert!(found.iter().copied().eq(expected.iter().map(|(first, bits)| (*first, *bits))), "{found:?}");
    }
}

#[test]
fn it_stays_a_red_black_tree_with_the_states_of_a_map() {
    let mut random = fastrand::Rng::with_seed(9);
    for size in [3, 10, 40, 400] {
        let (mut tree, mut map) = (Tree::new(), BTreeMap::new());
        for round in 0..20 * size {
            let first = random.u64(0..size) * 10;
            // Rather more of them at first, rather fewer in the end.
            let add = random.u64(0..20 * size) >= round / 2 + 4 * size;
            match (tree.from(first).filter(|id| tree.state(*id).first == first), add) {
                (None, true) => {
                    map.insert(first, round as u32);
                    tree.insert(State { first, last: first + 4, bits: round as u32 });
                }
                (Some(id), false) => {
                    map.remove(&first);
                    tree.remove(id);
                }
                (Some(id), true) => {
                    map.insert(first, 7);
                    tree.change(id, State { bits: 7, ..tree.state(id) });
                }
                (None, false) => {}
            }
            if size < 100 || round % 16 == 0 {
                tree.check(&map);
            }
        }
        assert!(tree.chunks.len() * CHUNK <= size as usize + CHUNK, "nodes are used again");
        while let Some(id) = tree.from(0) {
            tree.remove(id);
        }
        tree.check(&BTreeMap::new());
    }
}

#[test]
fn states_are_found_by_their_blocks() {
    let mut tree = Tree::new();
    for first in (0..1000).step_by(10) {
        tree.insert(State { first, last: first + 4, bits: 0 });
    }
    let found = |first, last| {
        let range = BlockRange::new(first, last).expect("a range");
        tree.within(range).map(|id| tree.state(id).first)
    };
    assert_eq!((found(12, 12), found(15, 19), found(15, 20)), (Some(10), None, Some(20)));
    assert_eq!((found(0, u64::MAX), found(995, u64::MAX)), (Some(0), None));
    assert!(tree.blacks(tree.root, NONE) <= 7, "it is balanced");
}

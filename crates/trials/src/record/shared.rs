//! The history of threads that share files and directories, and every tree that this may have led to.
//!
//! Each operation takes effect at some moment between its beginning and its end. So the history is not one sequence of
//! trees: a *frontier* says how many operations of each thread have taken effect, and there is a frontier for each
//! choice that the times allow, with the trees that the orders leading there give. An order counts only if it explains
//! what the operations said: one that made a name found none, one that was told that there is none found none.
//!
//! ```text
//!   thread 0   [ create n ]        [ write f ]          frontiers   (0,0) ─► (1,0) ─► (1,1) ─► (2,1)
//!   thread 1          [ rename n m ]                                  └─ (0,1): no name n yet, but the rename succeeded
//! ```
//!
//! A file is written, synced or truncated through a handle: it may have another name by then, or none.

use std::collections::BTreeMap;
use std::ops::Range;

use f2fs_sync::Arc;

use super::Lane;
use crate::op::Op;
use crate::tree::Tree;

/// Trees of one history at most; with more, threads overlap more than is meant.
const MOST: usize = 200_000;

/// The answer of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// It was done, to an inode that it made or opened (0: neither).
    Done(u32),
    /// There is no such name.
    NotFound,
    /// There is such a name.
    Exists,
}

/// An operation of a thread, and what it said.
#[derive(Clone, Debug)]
pub struct Deed {
    /// The operation.
    pub op: Op,
    /// Its answer.
    pub said: Said,
    /// Makes the bytes that it writes.
    pub salt: u64,
    /// Where an append began: the file ended there.
    pub appended: Option<u64>,
}

/// How many operations of each thread have taken effect.
pub type Frontier = Vec<usize>;

/// All that threads may have done together.
#[derive(Debug)]
pub struct Shared {
    /// The operations of each thread.
    pub deeds: Vec<Vec<Deed>>,
    /// The trees that orders of them give which explain everything.
    pub histories: BTreeMap<Frontier, Vec<Arc<Tree>>>,
}

impl Deed {
    /// The tree after it, if it can have said that on this one.
    fn after(&self, tree: &Arc<Tree>) -> Option<Arc<Tree>> {
        let is_there = |path: &str| tree.names.contains_key(path);
        let (found, is_made) = (self.op.needs().into_iter().all(is_there), self.op.makes().is_some_and(is_there));
        let ino = match self.said {
            Said::NotFound => return (!found).then(|| Arc::clone(tree)),
            Said::Exists => return is_made.then(|| Arc::clone(tree)),
            Said::Done(_) if is_made => return None,
            Said::Done(ino) => ino,
        };
        let op = match (&self.op, self.op.opens()) {
            (Op::Sync(_) | Op::SyncDir(_) | Op::Checkpoint | Op::Clean, _) => return Some(Arc::clone(tree)),
            // By its number: it was opened before.
            (op, Some(_)) => match tree.names_of(ino).first() {
                // A file without a name gets none.
                None if matches!(op, Op::Link(..)) => return None,
                None => return Some(Arc::clone(tree)),
                Some(path) => op.clone().on((*path).to_owned()),
            },
            _ if !found => return None,
            (op, None) => op.clone(),
        };
        if self.appended.is_some_and(|end| self.op.opens().is_some() && tree.size_of(ino) != Some(end)) {
            return None;
        }
        let mut after = Tree::clone(tree);
        op.apply(&mut after, self.salt, ino);
        Some(Arc::new(after))
    }

    /// The inode that it opened.
    pub(super) fn opened(&self) -> Option<u32> {
        match self.said {
            Said::Done(ino) => self.op.opens().map(|_| ino),
            _ => None,
        }
    }

    /// The bytes of an inode that it writes.
    pub(crate) fn writes(&self, ino: u32) -> Option<Range<usize>> {
        let (_, range) = self.op.writes()?;
        (self.said == Said::Done(ino)).then_some(range)
    }
}

/// A tree of a history, and those that follow it.
struct Knot {
    tree: Arc<Tree>,
    next: Vec<(Frontier, usize)>,
    /// Whether everything that was said later is explained as well.
    leads_on: bool,
}

impl Shared {
    /// Of the operations of some lanes (their steps are in the same order), from a tree on. `None`: no order explains
    /// what they said.
    #[must_use]
    pub fn new(first: &Arc<Tree>, lanes: &[Lane], deeds: Vec<Vec<Deed>>) -> Option<Shared> {
        let end: Frontier = deeds.iter().map(Vec::len).collect();
        let begin: Frontier = vec![0; deeds.len()];
        // Frontiers with so many operations in all, one after the other.
        let mut knots: BTreeMap<Frontier, Vec<Knot>> = BTreeMap::new();
        knots.insert(begin.clone(), vec![Knot { tree: Arc::clone(first), next: Vec::new(), leads_on: false }]);
        let mut rounds: Vec<Vec<Frontier>> = vec![vec![begin]];
        let makers = makers(first, &deeds);
        let mut trees = 1;
        for _ in 0..end.iter().sum() {
            let mut round = Vec::new();
            for from in rounds.last().map_or(&[][..], Vec::as_slice) {
                for thread in (0..end.len()).filter(|thread| from[*thread] < end[*thread]) {
                    let clock = lanes[thread].steps[from[thread]].clock;
                    if before(lanes, end.len(), clock.0).iter().zip(from).any(|(ended, here)| ended > here) {
                        continue;
                    }
                    let mut to = from.clone();
                    to[thread] += 1;
                    let deed = &deeds[thread][from[thread]];
                    // It was made before it was opened.
                    let unmade = |(maker, at): &(usize, usize)| from[*maker] <= *at;
                    if deed.opened().and_then(|ino| makers.get(&ino)).is_some_and(unmade) {
                        continue;
                    }
                    let here: Vec<Option<Arc<Tree>>> = knots[from].iter().map(|knot| deed.after(&knot.tree)).collect();
                    for (index, tree) in here.into_iter().enumerate() {
                        let Some(tree) = tree else { continue };
                        let there = knots.entry(to.clone()).or_default();
                        let at = there.iter().position(|knot| knot.tree == tree).unwrap_or_else(|| {
                            there.push(Knot { tree, next: Vec::new(), leads_on: false });
                            trees += 1;
                            there.len() - 1
                        });
                        if let Some(knot) = knots.get_mut(from).and_then(|knots| knots.get_mut(index)) {
                            knot.next.push((to.clone(), at));
                        }
                        if !round.contains(&to) {
                            round.push(to.clone());
                        }
                    }
                    if trees > MOST {
                        return None;
                    }
                }
            }
            rounds.push(round);
        }
        for frontier in rounds.iter().rev().flatten() {
            let lead: Vec<bool> = knots[frontier]
                .iter()
                .map(|knot| *frontier == end || knot.next.iter().any(|(to, at)| knots[to][*at].leads_on))
                .collect();
            for (knot, leads_on) in knots.get_mut(frontier).into_iter().flatten().zip(lead) {
                knot.leads_on = leads_on;
            }
        }
        let histories: BTreeMap<Frontier, Vec<Arc<Tree>>> = knots
            .into_iter()
            .map(|(at, knots)| (at, knots.into_iter().filter(|knot| knot.leads_on).map(|knot| knot.tree).collect()))
            .filter(|(_, trees): &(_, Vec<_>)| !trees.is_empty())
            .collect();
        histories.contains_key(&end).then_some(Shared { deeds, histories })
    }

    /// The trees of frontiers between two.
    pub(crate) fn between(&self, low: Frontier, high: Frontier) -> impl Iterator<Item = (&Frontier, &Arc<Tree>)> {
        self.histories
            .iter()
            .filter(move |(at, _)| is_at_most(&low, at) && is_at_most(at, &high))
            .flat_map(|(at, trees)| trees.iter().map(move |tree| (at, tree)))
    }
}

/// Who made an inode, thread and operation, of the numbers that were given once, and were free before.
fn makers(first: &Tree, deeds: &[Vec<Deed>]) -> BTreeMap<u32, (usize, usize)> {
    let mut makers: BTreeMap<u32, Vec<(usize, usize)>> = BTreeMap::new();
    for (thread, deeds) in deeds.iter().enumerate() {
        for (at, deed) in deeds.iter().enumerate() {
            if let (Op::Create(_) | Op::Replace(..), Said::Done(ino)) = (&deed.op, deed.said) {
                makers.entry(ino).or_default().push((thread, at));
            }
        }
    }
    let once = |(ino, makers): (u32, Vec<(usize, usize)>)| match makers[..] {
        [maker] if !first.nodes.contains_key(&ino) => Some((ino, maker)),
        _ => None,
    };
    makers.into_iter().filter_map(once).collect()
}

/// How many operations of each of so many lanes had ended by a time.
pub(crate) fn before(lanes: &[Lane], threads: usize, time: usize) -> Frontier {
    lanes[..threads].iter().map(|lane| lane.steps.iter().take_while(|step| step.clock.1 < time).count()).collect()
}

/// Whether no thread is further in one than in the other.
pub(crate) fn is_at_most(low: &[usize], high: &[usize]) -> bool {
    low.iter().zip(high).all(|(low, high)| low <= high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Step;
    use crate::tree::{Attributes, Content, Node};

    fn first() -> Arc<Tree> {
        let mut tree = Tree::default();
        tree.names.insert("/".into(), 3);
        let node =
            Node { content: Content::Dir, attributes: Attributes::new(0o755), links: 2, xattrs: Default::default() };
        tree.nodes.insert(3, Arc::new(node));
        Arc::new(tree)
    }

    /// An operation, what it said, and when it began and ended.
    type Timed<'a> = (&'a str, Said, (usize, usize));

    /// The history of threads.
    fn shared(threads: &[&[Timed<'_>]]) -> Option<Shared> {
        let first = first();
        let mut lanes = Vec::new();
        let mut deeds = Vec::new();
        for (thread, ops) in threads.iter().enumerate() {
            let op = |text: &str| text.parse::<Op>().unwrap_or_else(|_| unreachable!("{text}"));
            let steps = ops.iter().map(|(text, _, clock)| {
                let step = Step::without_checkpoint(op(text), None, Tree::default(), (0, 0));
                Step { clock: *clock, ..step }
            });
            lanes.push(Lane { steps: steps.collect(), ..Lane::new("/".into(), Arc::clone(&first)) });
            let salted = ops.iter().enumerate();
            deeds.push(
                salted
                    .map(|(at, (text, said, _))| Deed {
                        op: op(text),
                        said: *said,
                        salt: (thread * 100 + at) as u64,
                        appended: None,
                    })
                    .collect(),
            );
        }
        Shared::new(&first, &lanes, deeds)
    }

    #[test]
    fn of_two_writes_at_the_same_time_either_is_the_last() {
        let create = ("create /f", Said::Done(9), (0, 1));
        let ends = |one: (usize, usize), other: (usize, usize)| {
            let one = ("write /f 0 100", Said::Done(9), one);
            let other = ("write /f 0 100", Said::Done(9), other);
            shared(&[&[create, one], &[other]]).map(|shared| shared.histories[&vec![2, 1]].len())
        };
        assert_eq!(ends((2, 4), (3, 5)), Some(2));
        assert_eq!(ends((2, 3), (4, 5)), Some(1));
        assert_eq!(ends((4, 5), (2, 3)), Some(1));
    }

    #[test]
    fn an_order_explains_what_was_said() {
        use Said::{Done, Exists, NotFound};
        let both = |one: (&'static str, Said), other: (&'static str, Said)| {
            shared(&[&[(one.0, one.1, (0, 2))], &[(other.0, other.1, (1, 3))]]).is_some()
        };
        assert!(both(("create /n", Done(9)), ("create /n", Exists)));
        assert!(!both(("create /n", Done(9)), ("create /n", Done(10))), "one name was made twice");
        assert!(!both(("create /n", Exists), ("create /n", Exists)), "nobody made it");
        assert!(both(("create /n", Done(9)), ("unlink /n", Done(0))));
        assert!(both(("create /n", Done(9)), ("unlink /n", NotFound)));
        assert!(!both(("create /m", Done(9)), ("rename /n /k", Done(0))), "there was no such name");
        // A rename that came in time has moved the file that is written.
        let moved = shared(&[
            &[("create /n", Done(9), (0, 1)), ("write /n 0 10", Done(9), (2, 6))],
            &[("rename /n /m", Done(0), (3, 4))],
        ]);
        let tree = moved.and_then(|moved| moved.histories[&vec![2, 1]].first().cloned());
        let content = tree.as_ref().and_then(|tree| tree.node("/m")).map(|node| &node.content);
        assert!(matches!(content, Some(Content::File(bytes)) if bytes.len() == 10), "{content:?}");
    }

    #[test]
    fn what_does_not_lead_on_is_no_history() {
        use Said::{Done, NotFound};
        // The unlink came too early, or it would have found the name: so the tree without it never was.
        let shared = shared(&[
            &[("create /n", Done(9), (0, 9))],
            &[("unlink /n", NotFound, (1, 2)), ("unlink /n", Done(0), (3, 4))],
        ]);
        let Some(shared) = shared else { unreachable!("there is an order") };
        assert!(!shared.histories.contains_key(&vec![1, 0]) && shared.histories.contains_key(&vec![1, 1]));
    }
}

//! Which cuts are made of an epoch.

use std::collections::BTreeSet;

use super::{Cut, SECTORS_PER_BLOCK, Tear};
use crate::{Event, Replay};

/// Which cuts of an epoch are made.
#[derive(Clone, Copy, Debug)]
pub struct CutPlan {
    /// Up to so many outstanding requests every subset is made: 12 are 4096 cuts. At most 20 count.
    pub exhaustive: usize,
    /// With more of them: every prefix, every single one missing, every single one surviving, and so many subsets by
    /// chance.
    pub sampled: usize,
    /// Places in each request where it is torn, at most (all of them, if it has fewer sectors).
    pub tears: usize,
}

impl Default for CutPlan {
    fn default() -> Self {
        CutPlan { exhaustive: 12, sampled: 256, tears: 8 }
    }
}

impl CutPlan {
    /// The cuts of the epoch from the position of `replay` to `end` (of [`Replay::epoch_end`]). If `end` is that
    /// position itself, the cuts of the requests that are outstanding there. `random` gives the numbers for choices by
    /// chance.
    #[must_use]
    pub fn cuts(&self, replay: &Replay<'_>, end: usize, mut random: impl FnMut() -> u64) -> Vec<Cut> {
        let outstanding = replay.outstanding(end);
        let count = outstanding.len();
        let mut subsets: BTreeSet<Vec<usize>> = BTreeSet::new();
        if count <= self.exhaustive.min(20) {
            for mask in 0..1u32 << count {
                subsets.insert(chosen(&outstanding, |index| mask >> index & 1 == 1));
            }
        } else {
            for at in 0..=count {
                subsets.insert(outstanding[..at].to_vec());
            }
            for at in 0..count {
                subsets.insert(vec![outstanding[at]]);
                subsets.insert(chosen(&outstanding, |index| index != at));
            }
            for _ in 0..self.sampled {
                let odds = random() % 7 + 1;
                subsets.insert(chosen(&outstanding, |_| random() % 8 < odds));
            }
        }
        let cut = |whole, torn| Cut { start: replay.position(), end, whole, torn, late: None };
        let mut cuts: Vec<Cut> = subsets.into_iter().map(|whole| cut(whole, None)).collect();
        for (at, &event) in outstanding.iter().enumerate() {
            let others = [outstanding[..at].to_vec(), chosen(&outstanding, |index| index != at)];
            for tear in self.tears_of(&replay.events[event], &mut random) {
                for whole in &others[..if others[0] == others[1] { 1 } else { 2 }] {
                    cuts.push(cut(whole.clone(), Some((event, tear))));
                }
            }
        }
        for &event in replay.overtaken.iter().filter(|event| **event < end) {
            let late = |cut: Cut| Cut { late: Some(event), ..cut };
            let alone = chosen(&outstanding, |index| outstanding[index] == event);
            if alone.is_empty() || count > 1 {
                cuts.push(late(cut(alone.clone(), None)));
            }
            cuts.push(late(cut(outstanding.clone(), None)));
            if !alone.is_empty() {
                let others = chosen(&outstanding, |index| outstanding[index] != event);
                let tears = self.tears_of(&replay.events[event], &mut random);
                cuts.extend(tears.into_iter().map(|tear| late(cut(others.clone(), Some((event, tear))))));
            }
        }
        cuts
    }

    fn tears_of(&self, event: &Event, random: &mut impl FnMut() -> u64) -> Vec<Tear> {
        let Event::Write { data, .. } = event else { return Vec::new() };
        let sectors = data.blocks() as u32 * SECTORS_PER_BLOCK;
        if sectors == 0 || self.tears == 0 {
            return Vec::new();
        }
        if sectors as usize - 1 <= self.tears {
            return (1..sectors).map(Tear::Sectors).collect();
        }
        let mut tears = BTreeSet::from([1, sectors - 1]);
        // Random numbers may repeat themselves forever.
        for _ in 0..self.tears.saturating_mul(8) {
            if tears.len() >= self.tears {
                break;
            }
            tears.insert(random() as u32 % (sectors - 1) + 1);
        }
        let blocks = (0..data.blocks().min(3).saturating_sub(1)).map(|_| Tear::Blocks(random()));
        tears.into_iter().map(Tear::Sectors).chain(blocks).collect()
    }
}

fn chosen(from: &[usize], mut choose: impl FnMut(usize) -> bool) -> Vec<usize> {
    from.iter().enumerate().filter(|(index, _)| choose(*index)).map(|(_, event)| *event).collect()
}

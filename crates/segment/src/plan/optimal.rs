//! The cheapest combination of choices for a whole request.
//!
//! Between two skipped runs lies one write request, a *span*: all holes and runs from one hole to another. Its length
//! is the same whether its runs are rewritten or moved; a moved run of v blocks costs `v * T(H_cold)` more and takes v
//! new blocks off the rest. So after any number of spans only two things matter: the hole at which the next one begins,
//! and how many blocks have been moved. `best[hole][moved]` is the least cost of getting there; a span is tried for
//! every later hole, with the set of sums that its runs can be moved in. The request ends in a hole or in a moved run,
//! or leaves a rest.
//!
//! Runs of a span that add up to the number of moved blocks are looked up at the end, by a subset sum over the spans of
//! the winner alone.

use super::{Choice, Gap, Layout, Planner, greedy};

/// Blocks of a layout, and states of a search, at most. A larger layout is planned run by run.
const MOST_BLOCKS: u64 = 1 << 20;
const MOST_STATES: u64 = 1 << 20;

/// The cheapest known way to a state.
#[derive(Clone, Copy)]
struct Way {
    seconds: f64,
    /// The span that led here: the hole at which it began, and the blocks moved before.
    from: usize,
    moved_before: u32,
}

const NO_WAY: Way = Way { seconds: f64::INFINITY, from: 0, moved_before: 0 };

/// The end of a request.
#[derive(Clone, Copy)]
struct End {
    way: Way,
    /// Gaps of the last span: from `way.from` up to here.
    last_gap: usize,
    moved: u32,
}

struct Search<'a> {
    planner: &'a Planner,
    layout: &'a Layout,
    request: u32,
    costs: Vec<f64>,
    best: Vec<Vec<Way>>,
    end: Option<End>,
}

impl Search<'_> {
    fn finish(&mut self, seconds: f64, way: Way, last_gap: usize, moved: u32) {
        if self.end.is_none_or(|end| seconds < end.way.seconds) {
            self.end = Some(End { way: Way { seconds, ..way }, last_gap, moved });
        }
    }

    /// Tries all spans that begin at hole `first`; `placed`: the blocks of the holes before it.
    fn spans_from(&mut self, first: usize, mut placed: u32) {
        let mut open = core::mem::take(&mut self.best[first]);
        for (moved, way) in open.iter_mut().enumerate() {
            (way.from, way.moved_before) = (first, moved as u32);
        }
        let mut length = 0;
        for hole in first..self.layout.holes().len() {
            let blocks = self.layout.holes()[hole];
            let gap = self.layout.gaps().get(hole).copied();
            let mut alive = false;
            for (moved, slot) in open.iter_mut().enumerate() {
                let way = *slot;
                if way.seconds == f64::INFINITY {
                    continue;
                }
                let left = self.request - placed - moved as u32;
                if left <= blocks {
                    self.finish(way.seconds + self.costs[(length + left) as usize], way, hole, moved as u32);
                    *slot = NO_WAY;
                    continue;
                }
                alive = true;
                let seconds = way.seconds + self.costs[(length + blocks) as usize];
                match gap {
                    None => {
                        let rest = self.planner.model().seconds((left - blocks).into());
                        self.finish(seconds + rest, way, hole, moved as u32);
                    }
                    Some(_) if seconds < self.best[hole + 1][moved].seconds => {
                        self.best[hole + 1][moved] = Way { seconds, ..way };
                    }
                    Some(_) => {}
                }
            }
            let Some(Gap::Valid(run)) = gap else { break };
            if !alive {
                break;
            }
            length += blocks;
            placed += blocks;
            // Whether the run is rewritten or moved.
            open.iter_mut().for_each(|way| way.seconds += self.planner.wear_of(run));
            if self.planner.may_move() {
                self.move_run(&mut open, run, hole, length, placed);
            }
            length += run;
        }
    }

    /// Adds the ways on which the run behind `hole` is moved.
    fn move_run(&mut self, open: &mut [Way], run: u32, hole: usize, length: u32, placed: u32) {
        let price = f64::from(run) * self.planner.move_cost();
        for moved in (0..open.len()).rev() {
            let way = open[moved];
            if way.seconds == f64::INFINITY {
                continue;
            }
            let seconds = way.seconds + price;
            let left = self.request - placed - moved as u32;
            if left <= run {
                // The request ends in the run's own place.
                let total = seconds + self.costs[(length + left) as usize];
                self.finish(total, way, hole + 1, moved as u32 + run);
            } else if let Some(there) = open.get_mut(moved + run as usize)
                && seconds < there.seconds
            {
                *there = Way { seconds, ..way };
            }
        }
    }
}

/// Runs of `gaps` that add up to `sum`, among them the last one if `with_last`.
fn subset(gaps: &[Gap], sum: u32, with_last: bool) -> Vec<bool> {
    let mut chosen = vec![false; gaps.len()];
    let (gaps, sum) = match gaps.split_last() {
        Some((last, before)) if with_last => {
            chosen[before.len()] = true;
            (before, sum - last.blocks())
        }
        _ => (gaps, sum),
    };
    // reach[n]: the first gap with which n was reached.
    let mut reach = vec![None; sum as usize + 1];
    for (index, gap) in gaps.iter().enumerate() {
        let blocks = gap.blocks() as usize;
        for total in (blocks..=sum as usize).rev() {
            // From the greatest down: what this gap itself reaches is not gone on with.
            if reach[total].is_none() && (total == blocks || reach[total - blocks].is_some()) {
                reach[total] = Some(index);
            }
        }
    }
    let mut left = sum;
    while left != 0 {
        let Some(index) = reach[left as usize] else { break };
        chosen[index] = true;
        left -= gaps[index].blocks();
    }
    chosen
}

/// The choices of the cheapest combination.
pub(super) fn plan(planner: &Planner, layout: &Layout, request: u32) -> Vec<Choice> {
    let gaps = layout.gaps();
    let mut choices = vec![Choice::Ssr; gaps.len()];
    if request == 0 || layout.holes().is_empty() {
        return choices;
    }
    let most = if planner.may_move() {
        gaps.iter().map(|gap| u64::from(gap.blocks())).sum::<u64>().min(u64::from(request) - 1)
    } else {
        0
    };
    if u64::from(layout.blocks()) > MOST_BLOCKS || (most + 1).saturating_mul(layout.holes().len() as u64) > MOST_STATES
    {
        return greedy::marginal(planner, layout, request);
    }
    let mut search = Search {
        planner,
        layout,
        request,
        costs: (0..=layout.blocks()).map(|blocks| planner.model().seconds(blocks.into())).collect(),
        best: vec![vec![NO_WAY; most as usize + 1]; layout.holes().len()],
        end: None,
    };
    search.best[0][0].seconds = 0.0;
    let mut ways = Vec::with_capacity(layout.holes().len());
    let mut placed = 0;
    for first in 0..layout.holes().len() {
        ways.push(search.best[first].clone());
        if placed >= request {
            break;
        }
        search.spans_from(first, placed);
        placed = placed.saturating_add(layout.holes()[first]);
    }

    let Some(end) = search.end else { return choices };
    let (mut way, mut last, mut moved) = (end.way, end.last_gap, end.moved);
    // A request that ends in a moved run says one hole more than it reaches.
    let holes_before: u32 = layout.holes()[..last].iter().sum();
    let mut in_run = holes_before + moved >= request;
    loop {
        let here = subset(&gaps[way.from..last], moved - way.moved_before, in_run);
        for (choice, is_moved) in choices[way.from..last].iter_mut().zip(here) {
            *choice = if is_moved { Choice::Partial } else { Choice::SelfPartial };
        }
        if way.from == 0 {
            return choices;
        }
        // The gap before the span was skipped.
        (last, moved, in_run) = (way.from - 1, way.moved_before, false);
        way = ways[way.from][moved as usize];
    }
}

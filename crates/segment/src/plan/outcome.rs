//! The outcome of a request with given choices.

use super::{Choice, Gap, Layout, Planner};

/// The cost of a request, and the blocks that were written for it.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Outcome {
    /// Seconds, by the planner's model.
    pub seconds: f64,
    /// New blocks, those of the rest among them.
    pub new: u32,
    /// Blocks rewritten in their place.
    pub rewritten: u32,
    /// Blocks moved to the cold log.
    pub moved: u32,
    /// Write requests, not counting those of the moved blocks.
    pub requests: u32,
    /// Write requests for the moved blocks: their number over the mean hole there.
    pub move_requests: f64,
    /// Runs that were skipped, moved, rewritten.
    pub choices: [u32; 3],
    /// New blocks for which the layout had no room: written elsewhere in one request.
    pub rest: u32,
}

impl Outcome {
    /// Walks through the layout. A run that is moved gives all of its blocks to the request, one that is rewritten
    /// none.
    pub(super) fn of(planner: &Planner, layout: &Layout, request: u32, choices: &[Choice]) -> Outcome {
        let mut outcome = Outcome { new: request, ..Outcome::default() };
        let mut left = request;
        let mut open = 0;
        for (index, &hole) in layout.holes().iter().enumerate() {
            let used = hole.min(left);
            (open, left) = (open + used, left - used);
            let Some(&gap) = layout.gaps().get(index) else { break };
            if left == 0 {
                break;
            }
            let choice =
                if gap == Gap::Break { Choice::Ssr } else { choices.get(index).copied().unwrap_or(Choice::Ssr) };
            outcome.choices[choice as usize] += u32::from(gap != Gap::Break);
            match choice {
                Choice::Ssr => outcome.close(planner, &mut open),
                Choice::SelfPartial => {
                    open += gap.blocks();
                    outcome.rewritten += gap.blocks();
                }
                Choice::Partial => {
                    let used = gap.blocks().min(left);
                    (open, left) = (open + used, left - used);
                    outcome.moved += gap.blocks();
                    outcome.seconds += f64::from(gap.blocks()) * planner.move_cost();
                    outcome.move_requests += f64::from(gap.blocks()) / planner.cold_hole();
                }
            }
        }
        outcome.close(planner, &mut open);
        outcome.rest = left;
        outcome.close(planner, &mut left);
        outcome
    }

    fn close(&mut self, planner: &Planner, open: &mut u32) {
        if *open != 0 {
            self.seconds += planner.model().seconds((*open).into());
            self.requests += 1;
            *open = 0;
        }
    }

    /// Blocks written in all.
    #[must_use]
    pub fn written(&self) -> u64 {
        u64::from(self.new) + u64::from(self.rewritten) + u64::from(self.moved)
    }
}

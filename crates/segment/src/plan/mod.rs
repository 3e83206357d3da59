//! Selective partial cleaning: the treatment of valid runs that lie in the way of a write.
//!
//! Under SSR a request is split at every valid run between two holes. Three things can be done about a run:
//!
//! | Choice | what happens | cost beside the new blocks |
//! |---|---|---|
//! | [`Ssr`](Choice::Ssr) | it is skipped, the request ends before it | a further request |
//! | [`SelfPartial`](Choice::SelfPartial) | it is rewritten in its place, with the same bytes, in the same request | its blocks, in a large request |
//! | [`Partial`](Choice::Partial) | it is moved to the cold log, and its place is used | its blocks, in requests as large as the cold log's holes |
//!
//! The model is that of "Partial Garbage Collection Technique for Improving Write Performance of Log-Structured File
//! Systems" (Gwak and Shin): only writes count, a request of n blocks costs `n * T(n)`, a moved block `T(H_cold)`.
//!
//! # Why no crash can lose a block
//!
//! The paper overwrites a run as soon as it has been copied. Until a checkpoint records the move, the durable
//! checkpoint still points to the old place, and a crash would leave other bytes there. Here:
//!
//! - *Self partial* writes bytes that are already there to the place where they already are. Each block holds what it
//!   held, whichever of the bytes reach the device. It is done only if every block of the run was written before the
//!   last durable checkpoint, so that the bytes read back are those on the media. (A device that can destroy a sector
//!   by being interrupted while writing it breaks this as it breaks every in-place update.)
//! - *Partial* is done ahead: the cleaner moves the run
//!   ([`SegmentManager::preclean`](crate::SegmentManager::preclean)), which frees its old place as any other; the place
//!   is *taken* until a checkpoint that knows the move is durable, and no log gets it before. The write that comes
//!   after finds one long hole.
//!
//! So an ordinary allocation chooses between the first two only ([`Planner::in_place`]); the experiments and the
//! cleaner choose between all three.

mod account;
mod greedy;
mod layout;
mod optimal;
mod outcome;

pub use layout::{Gap, Layout};
pub use outcome::Outcome;

use std::borrow::Cow;

use f2fs_sync::Arc;

use self::account::Account;
use crate::cost::CostModel;

/// The choice for a valid run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// Skipped: the request ends before it.
    Ssr,
    /// Moved to the cold log; its place takes new blocks.
    Partial,
    /// Rewritten in its place, within the request.
    SelfPartial,
}

/// How the choices are made. The default is the optimum: on the models of the three cards (`examples/partial_gc.rs`) no
/// other is faster under any curve, and without moves it costs microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strategy {
    /// Always skip: what F2FS does.
    SsrOnly,
    /// Always move; where moving is not allowed, always rewrite.
    PartialAlways,
    /// The paper's: for each run by itself, the cheapest by the three formulas, counted over the new blocks that fit
    /// into the two holes beside it.
    Greedy,
    /// As greedy, but the hole on the left is all of the request that is being built.
    Marginal,
    /// The cheapest of all combinations for the whole request.
    #[default]
    Optimal,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Strategy; 5] =
        [Strategy::SsrOnly, Strategy::PartialAlways, Strategy::Greedy, Strategy::Marginal, Strategy::Optimal];

    /// The name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::SsrOnly => "SSR only",
            Strategy::PartialAlways => "partial always",
            Strategy::Greedy => "greedy",
            Strategy::Marginal => "marginal",
            Strategy::Optimal => "optimal",
        }
    }
}

/// Makes the choices for a request.
#[derive(Clone, Debug)]
pub struct Planner {
    model: Arc<CostModel>,
    strategy: Strategy,
    /// Mean length of the cold log's holes, blocks.
    cold_hole: f64,
    may_move: bool,
    /// Seconds that a rewritten or moved block must save.
    wear: f64,
    /// The budget of blocks that may be rewritten and moved.
    account: Option<Arc<Account>>,
}

impl Planner {
    /// A planner that may skip, move and rewrite. `cold_hole`: the mean length of the holes into which runs would be
    /// moved, in blocks (`H_cold`; see [`SegmentManager::mean_hole`](crate::SegmentManager::mean_hole)).
    #[must_use]
    pub fn new(model: CostModel, strategy: Strategy, cold_hole: f64) -> Planner {
        Planner {
            model: Arc::new(model),
            strategy,
            cold_hole: cold_hole.max(1.0),
            may_move: true,
            wear: 0.0,
            account: None,
        }
    }

    /// Sets the mean length of the holes into which runs would be moved, in blocks: it changes while a volume is in
    /// use.
    #[must_use]
    pub fn with_cold_hole(mut self, blocks: f64) -> Planner {
        self.cold_hole = blocks.max(1.0);
        self
    }

    /// The planner that never moves a run: for a write that is to happen now.
    #[must_use]
    pub fn in_place(mut self) -> Planner {
        self.may_move = false;
        self
    }

    /// Sets what a rewritten or moved block costs beside its time: each must save so many seconds. This bounds how much
    /// more is written than the request; 0 looks at time alone.
    #[must_use]
    pub fn wear(mut self, seconds: f64) -> Planner {
        self.wear = seconds.max(0.0);
        self
    }

    /// Bounds what is rewritten and moved: in the long run at most `share` blocks for each new block that is planned
    /// with [`plan_paid`](Self::plan_paid). Clones of this planner share the account.
    #[must_use]
    pub fn at_most(mut self, share: f64) -> Planner {
        self.account = Some(Arc::new(Account::new(share, self.model.seconds(1.0) / 4.0)));
        self
    }

    /// The planner minimises this: the time of an outcome, and its wear.
    #[must_use]
    pub fn objective(&self, outcome: &Outcome) -> f64 {
        outcome.seconds + self.wear * (f64::from(outcome.rewritten) + f64::from(outcome.moved))
    }

    /// The wear of a run that is rewritten or moved.
    pub(crate) fn wear_of(&self, run: u32) -> f64 {
        self.wear * f64::from(run)
    }

    /// This planner, for a write that is to happen now.
    pub(crate) fn without_moves(&self) -> Cow<'_, Planner> {
        if self.may_move { Cow::Owned(self.clone().in_place()) } else { Cow::Borrowed(self) }
    }

    /// The device model.
    #[must_use]
    pub fn model(&self) -> &CostModel {
        &self.model
    }

    /// Seconds for moving one block.
    pub(crate) fn move_cost(&self) -> f64 {
        self.model.seconds_per_block(self.cold_hole)
    }

    pub(crate) fn cold_hole(&self) -> f64 {
        self.cold_hole
    }

    pub(crate) fn may_move(&self) -> bool {
        self.may_move
    }

    /// A choice for each gap of the layout, for a request of `request` blocks. Gaps that the request does not reach,
    /// and breaks, get [`Choice::Ssr`].
    ///
    /// Linear in the number of gaps, except [`Strategy::Optimal`] up to a million blocks and states: that takes the
    /// square of the gaps between two breaks, times the blocks that may be moved (1 if none may).
    #[must_use]
    pub fn plan(&self, layout: &Layout, request: u32) -> Vec<Choice> {
        match self.strategy {
            Strategy::SsrOnly => vec![Choice::Ssr; layout.gaps().len()],
            Strategy::PartialAlways => {
                let choice = if self.may_move { Choice::Partial } else { Choice::SelfPartial };
                greedy::trim(layout, request, &vec![choice; layout.gaps().len()])
            }
            Strategy::Greedy => greedy::pairwise(self, layout, request),
            Strategy::Marginal => greedy::marginal(self, layout, request),
            Strategy::Optimal => optimal::plan(self, layout, request),
        }
    }

    /// The outcome of a request with these choices.
    #[must_use]
    pub fn outcome(&self, layout: &Layout, request: u32, choices: &[Choice]) -> Outcome {
        Outcome::of(self, layout, request, choices)
    }
}

#[cfg(test)]
mod tests;

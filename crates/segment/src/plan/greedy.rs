//! Choices made run by run.

use super::{Choice, Gap, Layout, Planner};

/// Walks over the runs that the request reaches. `choose` gets the index, the new blocks that are left before the hole
/// in front of the run, the open request in front of that hole, and the run's length.
fn walk(layout: &Layout, request: u32, mut choose: impl FnMut(usize, u32, u32, u32) -> Choice) -> Vec<Choice> {
    let mut choices = vec![Choice::Ssr; layout.gaps().len()];
    let (mut left, mut open) = (request, 0);
    for (index, (&hole, &gap)) in layout.holes().iter().zip(layout.gaps()).enumerate() {
        if left <= hole {
            break;
        }
        if let Gap::Valid(run) = gap {
            choices[index] = choose(index, left, open, run);
        }
        (open, left) = (open + hole, left - hole);
        match choices[index] {
            Choice::Ssr => open = 0,
            Choice::SelfPartial => open += gap.blocks(),
            Choice::Partial => {
                let used = gap.blocks().min(left);
                (open, left) = (open + used, left - used);
            }
        }
    }
    choices
}

/// The choices as they are, up to where the request ends.
pub(super) fn trim(layout: &Layout, request: u32, choices: &[Choice]) -> Vec<Choice> {
    walk(layout, request, |index, _, _, _| choices[index])
}

fn cheapest(skip: f64, rewrite: f64, moved: Option<f64>, wear: f64) -> Choice {
    let (rewrite, moved) = (rewrite + wear, moved.map(|moved| moved + wear));
    match moved {
        Some(moved) if moved < skip && moved < rewrite => Choice::Partial,
        _ if rewrite < skip => Choice::SelfPartial,
        _ => Choice::Ssr,
    }
}

/// The paper's three formulas, for the new blocks that fit into both holes: `N = N_left + N_right`.
///
/// Published, the first counts `N_left + N_right` new blocks and the other two count the whole request, however long;
/// so they are compared for the same work here.
pub(super) fn pairwise(planner: &Planner, layout: &Layout, request: u32) -> Vec<Choice> {
    let cost = |blocks: u32| planner.model().seconds(blocks.into());
    walk(layout, request, |index, left, _, run| {
        let n_left = layout.holes()[index].min(left);
        let n_right = layout.holes()[index + 1].min(left - n_left);
        let both = n_left + n_right;
        let moved = planner.may_move().then(|| cost(both) + f64::from(run) * planner.move_cost());
        cheapest(cost(n_left) + cost(n_right), cost(both + run), moved, planner.wear_of(run))
    })
}

/// The cost of the new blocks of the right hole, in addition to the request that is open in front of it.
pub(super) fn marginal(planner: &Planner, layout: &Layout, request: u32) -> Vec<Choice> {
    let cost = |blocks: u32| planner.model().seconds(blocks.into());
    walk(layout, request, |index, left, open, run| {
        let n_left = layout.holes()[index].min(left);
        let n_right = layout.holes()[index + 1].min(left - n_left);
        let open = open + n_left;
        let moved =
            planner.may_move().then(|| cost(open + n_right) - cost(open) + f64::from(run) * planner.move_cost());
        cheapest(cost(n_right), cost(open + run + n_right) - cost(open), moved, planner.wear_of(run))
    })
}

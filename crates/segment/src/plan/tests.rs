use super::{Choice, Gap, Layout, Planner, Strategy, greedy};
use crate::cost::{Card, CostModel, Interior};
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;

fn layout(holes: &[u32], gaps: &[u32]) -> Layout {
    let mut layout = Layout::new();
    layout.push(Gap::Break, holes[0]);
    for (gap, hole) in gaps.iter().zip(&holes[1..]) {
        layout.push(if *gap == 0 { Gap::Break } else { Gap::Valid(*gap) }, *hole);
    }
    layout
}

/// All combinations.
fn brute_force(planner: &Planner, layout: &Layout, request: u32) -> f64 {
    let options: &[Choice] = if planner.may_move {
        &[Choice::Ssr, Choice::Partial, Choice::SelfPartial]
    } else {
        &[Choice::Ssr, Choice::SelfPartial]
    };
    let mut best = f64::INFINITY;
    let mut choices = vec![0; layout.gaps().len()];
    loop {
        let named: Vec<Choice> = choices.iter().map(|&index| options[index]).collect();
        best = best.min(planner.objective(&planner.outcome(layout, request, &named)));
        let Some(next) = choices.iter().position(|&index| index + 1 < options.len()) else { return best };
        choices[next] += 1;
        choices[..next].fill(0);
    }
}

#[test]
fn the_papers_example() {
    // Figure 1(b): five blocks, holes of 2 and 3, one valid block between them.
    let planner = Planner::new(CostModel::card(Card::A, Interior::Affine), Strategy::Greedy, 5.1);
    let example = layout(&[2, 3], &[1]);
    let t = |n: f64| planner.model().seconds(n);
    let of = |choice| planner.outcome(&example, 5, &[choice]);
    assert_eq!(of(Choice::Ssr).seconds, t(2.0) + t(3.0));
    assert_eq!(of(Choice::Partial).seconds, planner.model().seconds_per_block(5.1) + t(5.0));
    assert_eq!(of(Choice::SelfPartial).seconds, t(6.0));
    assert_eq!(of(Choice::SelfPartial).written(), 6);
    // One block moved, into a hole of 5.1 blocks on average; and two requests if it is skipped.
    let moved = of(Choice::Partial);
    assert_eq!((moved.moved, moved.requests, moved.choices), (1, 1, [0, 1, 0]));
    assert!((moved.move_requests - 1.0 / 5.1).abs() < 1e-9, "{moved:?}");
    assert_eq!((of(Choice::Ssr).requests, of(Choice::Ssr).choices), (2, [1, 0, 0]));
    assert_eq!(planner.plan(&example, 5), [Choice::SelfPartial]);
    // A cold log in one piece, and a longer run: moving wins.
    for strategy in [Strategy::Greedy, Strategy::Optimal] {
        let planner = Planner::new(CostModel::card(Card::A, Interior::LogLog), strategy, 512.0);
        assert_eq!(planner.plan(&layout(&[2, 3], &[4]), 5), [Choice::Partial], "{}", strategy.name());
        assert_eq!(planner.in_place().plan(&layout(&[2, 3], &[40]), 5), [Choice::Ssr], "{}", strategy.name());
    }
}

#[test]
fn a_request_that_fits_into_a_hole_needs_no_choice() {
    for strategy in Strategy::ALL {
        let planner = Planner::new(CostModel::nvme(), strategy, 3.0);
        let layout = layout(&[4, 4, 4], &[1, 1]);
        assert_eq!(planner.plan(&layout, 4), [Choice::Ssr; 2], "{}", strategy.name());
        assert_eq!(planner.plan(&layout, 0), [Choice::Ssr; 2], "{}", strategy.name());
        assert!(planner.plan(&Layout::new(), 7).is_empty());
        assert_eq!(planner.outcome(&Layout::new(), 7, &[]).rest, 7);
    }
}

fn model() -> impl Generator<Value = CostModel> {
    let card =
        (0usize..3, 0usize..5).prop_map(|(card, interior)| CostModel::card(Card::ALL[card], Interior::ALL[interior]));
    // Also tables that no device has: cost need not even rise.
    let any = prop::collection::vec(1u32..1000, 8).prop_map(|seconds| {
        let points: Vec<_> =
            [1, 2, 3, 5, 9, 17, 33, 65].into_iter().zip(seconds).map(|(n, s)| (n, f64::from(s))).collect();
        CostModel::from_points("any", &points).unwrap()
    });
    prop_oneof![card, any]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn no_combination_beats_the_optimum(
        model in model(),
        holes in prop::collection::vec(1u32..12, 1..9),
        gaps in prop::collection::vec(0u32..9, 8),
        request in 1u32..90,
        cold_hole in 1u32..40,
        may_move in any::<bool>(),
        wear in prop_oneof![Just(0.0), 0.0..0.01],
    ) {
        let layout = layout(&holes, &gaps[..holes.len() - 1]);
        let mut planner = Planner::new(model, Strategy::Optimal, cold_hole.into()).wear(wear);
        if !may_move {
            planner = planner.in_place();
        }
        let choices = planner.plan(&layout, request);
        let seconds = planner.objective(&planner.outcome(&layout, request, &choices));
        let least = brute_force(&planner, &layout, request);
        prop_assert!((seconds - least).abs() <= 1e-9 * least, "{seconds} for {choices:?}, but {least} is possible");
        for strategy in Strategy::ALL {
            let other = Planner { strategy, ..planner.clone() };
            let choices = other.plan(&layout, request);
            prop_assert!(may_move || !choices.contains(&Choice::Partial));
            let outcome = other.outcome(&layout, request, &choices);
            prop_assert!(other.objective(&outcome) >= least * (1.0 - 1e-9), "{}", strategy.name());
            prop_assert_eq!(outcome.new, request);
        }
    }
}

proptest! {
    /// Where there is one run, to judge it by itself is to judge the whole.
    #[test]
    fn a_run_by_itself_is_judged_right(
        model in model(),
        holes in [1u32..12, 1u32..12],
        run in 1u32..9,
        part in 0u32..12,
        cold_hole in 1u32..40,
        wear in prop_oneof![Just(0.0), 0.0..0.01],
    ) {
        let layout = layout(&holes, &[run]);
        let request = holes[0] + 1 + part % holes[1];
        for strategy in [Strategy::Greedy, Strategy::Marginal] {
            let planner = Planner::new(model.clone(), strategy, cold_hole.into()).wear(wear);
            let choices = planner.plan(&layout, request);
            let seconds = planner.objective(&planner.outcome(&layout, request, &choices));
            let least = brute_force(&planner, &layout, request);
            prop_assert!((seconds - least).abs() <= 1e-9 * least, "{}: {seconds}, not {least}", strategy.name());
        }
    }
}

/// The whole range, with fewer cases: ten runs are 3^10 combinations.
#[test]
fn ten_runs_against_all_combinations() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut next = |below: u32| random.u32(..below);
    for case in 0..6 {
        let holes: Vec<u32> = (0..11).map(|_| 1 + next(8)).collect();
        let gaps: Vec<u32> = (0..10).map(|_| 1 + next(6)).collect();
        let layout = layout(&holes, &gaps);
        let model = CostModel::card(Card::ALL[case % 3], Interior::ALL[case % 5]);
        let planner = Planner::new(model, Strategy::Optimal, f64::from(1 + next(30)));
        let request = 1 + next(70);
        let choices = planner.plan(&layout, request);
        let seconds = planner.objective(&planner.outcome(&layout, request, &choices));
        let least = brute_force(&planner, &layout, request);
        assert!((seconds - least).abs() <= 1e-9 * least, "case {case}: {seconds} against {least}");
    }
}

#[test]
fn the_hole_of_the_cold_log_is_a_block_at_least() {
    for (blocks, expected) in [(9.0, 9.0), (0.5, 1.0)] {
        assert_eq!(Planner::new(step(), Strategy::Optimal, 4.0).with_cold_hole(blocks).cold_hole(), expected);
        assert_eq!(Planner::new(step(), Strategy::Optimal, blocks).cold_hole(), expected);
    }
}

/// The whole cost of so many blocks rises slowly, but for one step behind eight.
fn step() -> CostModel {
    let whole = [(1, 10.0), (4, 11.0), (8, 12.0), (9, 30.0), (16, 31.0)];
    CostModel::from_points("step", &whole.map(|(blocks, cost)| (blocks, cost / f64::from(blocks)))).unwrap()
}

#[test]
fn runs_behind_the_end_of_the_request_are_left_alone() {
    use Choice::{Partial, SelfPartial, Ssr};
    let three = layout(&[2, 2, 2], &[4, 4]);
    let moving = Planner::new(step(), Strategy::PartialAlways, 16.0);
    // A moved run's place is for the request: it ends in it, in the hole behind, or goes on.
    for (request, expected) in [(2, [Ssr, Ssr]), (3, [Partial, Ssr]), (8, [Partial, Ssr]), (9, [Partial, Partial])] {
        assert_eq!(moving.plan(&three, request), expected, "{request}");
    }
    let in_place = moving.in_place();
    for (request, expected) in
        [(2, [Ssr, Ssr]), (3, [SelfPartial, Ssr]), (4, [SelfPartial, Ssr]), (5, [SelfPartial; 2])]
    {
        assert_eq!(in_place.plan(&three, request), expected, "{request}");
    }
}

/// Marginal: a run that is rewritten or moved adds to the request that the next one goes on with.
#[test]
fn the_open_request_counts_all_that_is_in_it() {
    use Choice::{Partial, SelfPartial, Ssr};
    let in_place = Planner::new(step(), Strategy::Marginal, 16.0).in_place();
    // 2 + 1 + 2 are open, and 2 + 2 more are one too many; without the first run, or its hole, they are not.
    assert_eq!(in_place.plan(&layout(&[2, 2, 2], &[1, 2]), 6), [SelfPartial, Ssr]);
    assert_eq!(in_place.plan(&layout(&[2, 2, 2], &[1, 1]), 6), [SelfPartial, SelfPartial]);
    // Behind a run that is skipped a request begins.
    assert_eq!(in_place.plan(&layout(&[2, 2, 2], &[9, 4]), 6), [Ssr, SelfPartial]);
    // 4 + 4 with the run between them moved; then the step is behind.
    let moving = Planner::new(step(), Strategy::Marginal, 16.0);
    assert_eq!(moving.plan(&layout(&[4, 4, 2], &[1, 1]), 11), [Partial, SelfPartial]);
}

#[test]
fn an_outcome_counts_each_block_where_it_goes() {
    let planner = Planner::new(step(), Strategy::Greedy, 4.0);
    let cost = |blocks: u32| planner.model().seconds(blocks.into());
    // Four blocks more than there is room for.
    let two = layout(&[2, 3], &[1]);
    let outcome = planner.outcome(&two, 9, &[Choice::SelfPartial]);
    assert_eq!((outcome.new, outcome.rewritten, outcome.moved, outcome.rest), (9, 1, 0, 4));
    assert_eq!((outcome.requests, outcome.seconds, outcome.written()), (2, cost(6) + cost(4), 10));
    // A moved run gives its place, as far as the request needs it.
    let outcome = planner.outcome(&layout(&[2, 3], &[4]), 5, &[Choice::Partial]);
    assert_eq!((outcome.moved, outcome.rest, outcome.requests, outcome.written()), (4, 0, 1, 9));
    assert_eq!(outcome.seconds, cost(5) + 4.0 * planner.model().seconds_per_block(4.0));
    assert_eq!(outcome.move_requests, 1.0);
    // Between segments there is nothing to choose.
    let apart = planner.outcome(&layout(&[2, 3], &[0]), 5, &[Choice::SelfPartial]);
    assert_eq!((apart.choices, apart.requests, apart.seconds), ([0; 3], 2, cost(2) + cost(3)));
    // What is not reached is not counted.
    let first = planner.outcome(&layout(&[2, 3, 3], &[1, 1]), 4, &[Choice::SelfPartial; 2]);
    assert_eq!((first.choices, first.rewritten, first.seconds), ([0, 0, 1], 1, cost(5)));
}

/// With costs that fall here and there it matters which of two equally long runs is moved.
#[test]
fn equally_long_runs_are_told_apart() {
    let mut random = fastrand::Rng::with_seed(3);
    for case in 0..2000 {
        let mut next = |below: u32| 1 + random.u32(..below);
        let points: Vec<(u32, f64)> = (1..=12).map(|blocks| (blocks, f64::from(next(100)))).collect();
        let model = CostModel::from_points("any", &points).unwrap();
        let run = next(3);
        let holes: Vec<u32> = (0..1 + next(3)).map(|_| next(3)).collect();
        let layout = layout(&holes, &vec![run; holes.len() - 1]);
        let planner = Planner::new(model, Strategy::Optimal, f64::from(next(12)));
        let request = next(15);
        let choices = planner.plan(&layout, request);
        let seconds = planner.objective(&planner.outcome(&layout, request, &choices));
        let least = brute_force(&planner, &layout, request);
        assert!((seconds - least).abs() <= 1e-9 * least, "case {case}: {seconds} for {choices:?}, not {least}");
        // Nothing is said of what the request does not reach.
        assert_eq!(choices, greedy::trim(&layout, request, &choices), "case {case}: {request} blocks");
    }
}

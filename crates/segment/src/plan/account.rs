//! A bound on what is written beside the new blocks: an account of blocks, and a price.
//!
//! Each new block that is planned pays a share into the account; each block that is rewritten or moved is paid from it.
//! So at any time no more than that share of the new blocks has been written in addition. Spending all of it on the
//! first runs that are worth anything would leave nothing for better ones behind them. So blocks have a price: choices
//! are made as if each cost so many seconds more, and the price follows the account. (Where only long requests are
//! cheap, one request in several is written in one piece and the others as they come: what the price settles at.)
//!
//! ```text
//!            planned > paid in                      planned < paid in
//!   price  ------------------> rises       price  ------------------> falls, down to nothing
//!            planned > balance
//!   plan   ------------------> price rises at once, and the request is planned again, a few times; then all runs of it are
//!                              skipped
//! ```
//!
//! # Locking
//!
//! Balance and price are atomics that a planning thread changes, with a log's lock held; the balance by compare and
//! swap, so that it never falls below nothing. A price that another thread has overwritten is another price, nothing
//! else.

use f2fs_sync::atomic::{AtomicI64, AtomicU64, Ordering};
use f2fs_sync::protocol_never;

use super::{Choice, Layout, Planner, Strategy};

/// The balance is kept in these parts of a block.
const UNIT: f64 = 1024.0;
/// Most blocks that are saved up: a long quiet time is not followed by a flood.
const SAVINGS: f64 = 2048.0;
/// Plans for one request at most.
const TRIES: u32 = 6;

/// The budget of additional writes, for all planners that share it.
#[derive(Debug)]
pub(super) struct Account {
    /// Blocks for each new block.
    share: f64,
    /// Parts of blocks.
    balance: AtomicI64,
    /// Seconds for each rewritten or moved block, as bits.
    price: AtomicU64,
}

impl Account {
    pub(super) fn new(share: f64, price: f64) -> Account {
        Account {
            share: if share.is_finite() { share.max(0.0) } else { 0.0 },
            balance: AtomicI64::new(0),
            price: AtomicU64::new(price.to_bits()),
        }
    }

    /// Pays in for new blocks.
    fn pay_in(&self, new: u32) {
        let more = (self.share * f64::from(new) * UNIT) as i64;
        let most = (SAVINGS * UNIT) as i64;
        let _ = self.balance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |balance| {
            Some(balance.saturating_add(more).min(most.max(balance)))
        });
    }

    /// Pays for blocks; false, and nothing is paid, if there is not enough.
    fn pay(&self, blocks: u32) -> bool {
        let parts = (f64::from(blocks) * UNIT) as i64;
        protocol_never!("account_pays_in_two_steps", {
            let balance = self.balance.load(Ordering::Relaxed);
            if balance >= parts {
                self.balance.store(balance - parts, Ordering::Relaxed);
            }
            return balance >= parts;
        });
        self.balance
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |balance| (balance >= parts).then_some(balance - parts))
            .is_ok()
    }

    fn price(&self) -> f64 {
        f64::from_bits(self.price.load(Ordering::Relaxed))
    }

    fn set_price(&self, price: f64) {
        self.price.store(price.to_bits(), Ordering::Relaxed);
    }
}

impl Planner {
    /// As [`plan`](Self::plan), within the bound of [`at_most`](Self::at_most), if there is one: the request pays in,
    /// and what is rewritten and moved is paid for. To be called once for what is then written.
    #[must_use]
    pub fn plan_paid(&self, layout: &Layout, request: u32) -> Vec<Choice> {
        let Some(account) = &self.account else { return self.plan(layout, request) };
        account.pay_in(request);
        let due = account.share * f64::from(request);
        let least = self.model.seconds(1.0) / 4096.0;
        let mut price = account.price();
        for _ in 0..TRIES {
            let priced = self.clone().wear(self.wear + if price <= least { 0.0 } else { price });
            let choices = priced.plan(layout, request);
            let extra = self.extra(layout, request, &choices);
            // Evenly: as much is spent as comes in.
            let over = (f64::from(extra) - due) / due.max(1.0);
            let next = price * (0.1 * over.clamp(-1.0, 4.0)).exp();
            // A model may have it that many blocks cost less than one.
            let highest = self.model.seconds(f64::from(request.max(1))).max(least);
            account.set_price(next.clamp(least, highest));
            if account.pay(extra) {
                return choices;
            }
            if self.strategy == Strategy::PartialAlways {
                // No price changes its mind.
                return self.leave_out(account, layout, request, choices);
            }
            price = (price * 1.5).max(least * 2.0);
        }
        vec![Choice::Ssr; layout.gaps().len()]
    }

    /// Leaves out runs from the end until the rest can be paid.
    fn leave_out(&self, account: &Account, layout: &Layout, request: u32, mut choices: Vec<Choice>) -> Vec<Choice> {
        while let Some(last) = choices.iter().rposition(|choice| *choice != Choice::Ssr) {
            choices[last] = Choice::Ssr;
            // A block that is left out changes the rest of the plan, so all is counted again.
            if account.pay(self.extra(layout, request, &choices)) {
                break;
            }
        }
        choices
    }

    /// Blocks rewritten and moved.
    fn extra(&self, layout: &Layout, request: u32, choices: &[Choice]) -> u32 {
        let outcome = self.outcome(layout, request, choices);
        outcome.rewritten + outcome.moved
    }

    /// Pays for as many of these runs, given by their lengths, as the bound allows; says how many.
    pub(crate) fn pay_for(&self, runs: &[u32]) -> usize {
        let Some(account) = &self.account else { return runs.len() };
        runs.iter().take_while(|run| account.pay(**run)).count()
    }

    /// The planner with what a block costs at present to keep to the bound.
    pub(crate) fn priced(&self) -> Planner {
        let price = self.account.as_ref().map_or(0.0, |account| account.price());
        self.clone().wear(self.wear + price)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::cost::{Card, CostModel, Interior};
    use crate::plan::{Choice, Gap, Layout, Planner, Strategy};
    use proptest::prelude::{any, prop, prop_assert, proptest};

    fn layouts(lengths: &[(u32, u32)]) -> Layout {
        let mut layout = Layout::new();
        for (run, hole) in lengths {
            layout.push(Gap::Valid(*run), *hole);
        }
        layout
    }

    proptest! {
        #[test]
        fn no_more_is_written_than_the_share(
            requests in prop::collection::vec((prop::collection::vec((1u32..9, 1u32..9), 1..60), 1u32..300), 1..30),
            share in 0.0f64..1.0,
            strategy in prop::sample::select(&Strategy::ALL[..]),
            interior in prop::sample::select(&Interior::ALL[..]),
            in_place in any::<bool>(),
        ) {
            let mut planner = Planner::new(CostModel::card(Card::A, interior), strategy, 5.0).at_most(share);
            if in_place {
                planner = planner.in_place();
            }
            let (mut new, mut extra) = (0.0, 0.0);
            for (lengths, request) in requests {
                let layout = layouts(&lengths);
                let request = request.min(layout.room() as u32);
                let outcome = planner.outcome(&layout, request, &planner.plan_paid(&layout, request));
                new += f64::from(request);
                extra += f64::from(outcome.rewritten + outcome.moved);
                prop_assert!(extra <= share * new + 1e-6, "{} of {}", extra, new);
                let skipping = planner.outcome(&layout, request, &vec![Choice::Ssr; layout.gaps().len()]);
                let may_be_slower = matches!(strategy, Strategy::PartialAlways | Strategy::Greedy | Strategy::Marginal);
                prop_assert!(may_be_slower || outcome.seconds <= skipping.seconds + 1e-9);
            }
        }
    }

    #[test]
    fn the_share_is_used() {
        for interior in Interior::ALL {
            let planner =
                Planner::new(CostModel::card(Card::B, interior), Strategy::Optimal, 5.0).in_place().at_most(0.27);
            let mut random = fastrand::Rng::with_seed(1);
            let mut length = || random.u32(1..=5);
            let (mut new, mut extra, mut seconds, mut skipped) = (0, 0, 0.0, 0.0);
            for round in 0..60 {
                let layout = layouts(&(0..80).map(|_| (length(), length())).collect::<Vec<_>>());
                let request = layout.room() as u32;
                let outcome = planner.outcome(&layout, request, &planner.plan_paid(&layout, request));
                let ssr = planner.outcome(&layout, request, &vec![Choice::Ssr; layout.gaps().len()]);
                if round >= 20 {
                    (new, extra) = (new + request, extra + outcome.rewritten);
                    (seconds, skipped) = (seconds + outcome.seconds, skipped + ssr.seconds);
                }
            }
            let used = f64::from(extra) / f64::from(new);
            assert!((0.2..=0.29).contains(&used), "{}: {used}", interior.name());
            assert!(seconds < 0.9 * skipped, "{}: {seconds} of {skipped}", interior.name());
        }
    }

    #[test]
    fn without_a_bound_nothing_is_counted() {
        let planner = Planner::new(CostModel::nvme(), Strategy::PartialAlways, 5.0).in_place();
        let layout = layouts(&[(1, 3), (3, 3), (3, 3)]);
        assert_eq!(planner.plan_paid(&layout, 9), planner.plan(&layout, 9));
        assert_eq!(planner.pay_for(&[1, 2, 3]), 3);
        let none = planner.at_most(0.0);
        assert_eq!(none.plan_paid(&layout, 9), [Choice::Ssr; 2]);
        assert_eq!(none.pay_for(&[1, 2, 3]), 0);
        assert_eq!(Planner::new(CostModel::nvme(), Strategy::Optimal, 5.0).at_most(f64::NAN).pay_for(&[1]), 0);
    }

    #[test]
    fn all_that_was_paid_in_can_be_spent() {
        let planner = Planner::new(CostModel::nvme(), Strategy::PartialAlways, 5.0).in_place().at_most(1.0);
        let layout = layouts(&[(1, 2), (4, 2)]);
        assert_eq!(planner.plan_paid(&layout, 4), [Choice::SelfPartial]);
        assert_eq!(planner.pay_for(&[1]), 0, "nothing is left");
        // Of two runs the first one can be paid, and what is over stays in the account.
        let layout = layouts(&[(1, 2), (4, 2), (4, 2)]);
        assert_eq!(planner.plan_paid(&layout, 6), [Choice::SelfPartial, Choice::Ssr]);
        assert_eq!(planner.pay_for(&[2, 1, 1]), 1);
    }

    /// What is moved ahead costs what rewriting costs at present.
    #[test]
    fn a_bound_has_its_price() {
        let planner = Planner::new(CostModel::nvme(), Strategy::Optimal, 5.0).wear(1.0);
        assert_eq!(planner.priced().wear, 1.0);
        assert!(planner.at_most(0.5).priced().wear > 1.0);
    }

    #[test]
    fn savings_have_an_end() {
        let planner = Planner::new(CostModel::nvme(), Strategy::SsrOnly, 5.0).at_most(0.5);
        let layout = layouts(&[(1, 512)]);
        for _ in 0..2 {
            let _ = planner.plan_paid(&layout, 512);
        }
        assert_eq!(planner.pay_for(&[512, 1]), 1, "half of it");
        for _ in 0..20 {
            let _ = planner.plan_paid(&layout, 512);
        }
        assert_eq!(planner.pay_for(&[2047, 1, 1]), 2);
    }
}

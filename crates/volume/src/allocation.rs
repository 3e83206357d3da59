//! How data is written when there are few free segments.

use core::fmt;
use core::str::FromStr;

use f2fs_segment::cost::CostModel;
use f2fs_segment::plan::{Planner, Strategy};

/// The treatment of valid blocks in a write's way, once free segments are few and logs write into the holes of dirty
/// ones.
///
/// | Name | Within a request | Ahead of it |
/// |---|---|---|
/// | `ssr` | valid runs are skipped (the kernel's way) | nothing |
/// | `partial` | all are rewritten in their place | all are moved to the cold log |
/// | `selective-greedy` | as is cheapest for each run by itself (the paper's rule) | the same |
/// | `selective-optimal` | as is cheapest for the whole request | the same |
///
/// Nothing is moved within a request, whatever the choice: a place that a durable checkpoint speaks of is not
/// overwritten with other bytes. Runs that are worth moving are moved by
/// [`Cleaning::preclean`](crate::Cleaning::preclean) and their places used after the next checkpoint.
/// `f2fs_segment::plan` says why no crash can lose a block.
///
/// A name may end in a bound, `selective-optimal+27`: at most 27 blocks are rewritten or moved for each hundred new
/// ones that are written into holes ([`at_most`](Allocation::at_most)).
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation {
    strategy: Strategy,
    model: CostModel,
    /// Blocks rewritten or moved for each new one, at most.
    bound: Option<f64>,
}

impl Default for Allocation {
    fn default() -> Allocation {
        Allocation { strategy: Strategy::SsrOnly, model: CostModel::nvme(), bound: None }
    }
}

impl Allocation {
    /// Valid runs are skipped.
    #[must_use]
    pub fn ssr() -> Allocation {
        Allocation::default()
    }

    /// Valid runs are moved ahead of a write, or rewritten within it, at any cost.
    #[must_use]
    pub fn partial(model: CostModel) -> Allocation {
        Allocation { strategy: Strategy::PartialAlways, model, bound: None }
    }

    /// The cheapest for each run by itself, on a device of this model.
    #[must_use]
    pub fn selective_greedy(model: CostModel) -> Allocation {
        Allocation { strategy: Strategy::Greedy, model, bound: None }
    }

    /// The cheapest for the whole request, on a device of this model.
    #[must_use]
    pub fn selective_optimal(model: CostModel) -> Allocation {
        Allocation { strategy: Strategy::Optimal, model, bound: None }
    }

    /// The same choice on a device of another model.
    #[must_use]
    pub fn on(mut self, model: CostModel) -> Allocation {
        self.model = model;
        self
    }

    /// Bounds the wear: at most `share` blocks are rewritten or moved for each new block that is written into holes,
    /// from the time the volume is opened. The best ones are, as far as that goes; see [`Planner::at_most`].
    #[must_use]
    pub fn at_most(mut self, share: f64) -> Allocation {
        self.bound = Some(share);
        self
    }

    /// The bound of [`at_most`](Self::at_most).
    #[must_use]
    pub fn bound(&self) -> Option<f64> {
        self.bound
    }

    /// The choices of this allocation.
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// The name used on command lines and in reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.strategy {
            Strategy::PartialAlways => "partial",
            Strategy::Greedy => "selective-greedy",
            Strategy::Marginal => "selective-marginal",
            Strategy::Optimal => "selective-optimal",
            _ => "ssr",
        }
    }

    /// The planner of writes; `None`: valid runs are skipped, and nothing is planned.
    pub(crate) fn planner(&self, cold_hole: f64) -> Option<Planner> {
        if self.strategy == Strategy::SsrOnly {
            return None;
        }
        let planner = Planner::new(self.model.clone(), self.strategy, cold_hole);
        Some(match self.bound {
            Some(share) => planner.at_most(share),
            None => planner,
        })
    }
}

/// A name that is not one of [`Allocation`]'s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAllocation(String);

impl fmt::Display for UnknownAllocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not one of ssr, partial, selective-greedy, selective-optimal, with or without +PERCENT behind it",
            self.0
        )
    }
}

impl core::error::Error for UnknownAllocation {}

impl FromStr for Allocation {
    type Err = UnknownAllocation;

    fn from_str(name: &str) -> Result<Allocation, UnknownAllocation> {
        let model = CostModel::nvme();
        let unknown = || UnknownAllocation(name.to_owned());
        let (base, percent) = match name.split_once('+') {
            None => (name, None),
            Some((base, percent)) => (base, Some(percent.parse::<u32>().map_err(|_| unknown())?)),
        };
        let allocation = match base {
            "ssr" => Allocation::ssr(),
            "partial" => Allocation::partial(model),
            "selective-greedy" => Allocation::selective_greedy(model),
            "selective-optimal" => Allocation::selective_optimal(model),
            _ => return Err(unknown()),
        };
        Ok(match percent {
            Some(percent) => allocation.at_most(f64::from(percent) / 100.0),
            None => allocation,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for name in ["ssr", "partial", "selective-greedy", "selective-optimal"] {
            assert_eq!(name.parse::<Allocation>().unwrap().name(), name);
        }
        assert!("lfs".parse::<Allocation>().unwrap_err().to_string().contains("\"lfs\""));
        assert!(Allocation::ssr().planner(5.0).is_none());
        let bounded: Allocation = "selective-optimal+27".parse().unwrap();
        assert_eq!((bounded.name(), bounded.bound()), ("selective-optimal", Some(0.27)));
        for wrong in ["selective-optimal+", "selective-optimal+-3", "+27", "ssr+much"] {
            assert!(wrong.parse::<Allocation>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn another_model_and_a_bound_change_nothing_else() {
        let slow = CostModel::from_points("slow", &[(1, 1.0), (512, 2.0)]).unwrap();
        let allocation = Allocation::selective_optimal(CostModel::nvme()).at_most(0.5).on(slow);
        assert_eq!((allocation.name(), allocation.bound()), ("selective-optimal", Some(0.5)));
        assert_eq!(allocation.planner(5.0).unwrap().model().name(), "slow");
        assert_eq!(Allocation::ssr().bound(), None);
    }
}

//! How data is written when there are few free segments.

use core::fmt;
use core::str::FromStr;

use f2fs_segment::cost::CostModel;
use f2fs_segment::plan::{Planner, Strategy};

/// What a write does about valid blocks in its way, once free segments are few and logs write into the holes of dirty ones.
///
/// | Name | Within a request | Ahead of it |
/// |---|---|---|
/// | `ssr` | valid runs are skipped (the kernel's way) | nothing |
/// | `partial` | all are rewritten in their place | all are moved to the cold log |
/// | `selective-greedy` | as is cheapest for each run by itself (the paper's rule) | the same |
/// | `selective-optimal` | as is cheapest for the whole request | the same |
///
/// Nothing is moved within a request, whatever the choice: a place that a durable checkpoint speaks of is not overwritten
/// with other bytes. Runs that are worth moving are moved by [`Volume::preclean_step`](crate::Volume::preclean_step) and
/// their places used after the next checkpoint. `f2fs_segment::plan` says why no crash can lose a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation {
    strategy: Strategy,
    model: CostModel,
}

impl Default for Allocation {
    fn default() -> Allocation {
        Allocation { strategy: Strategy::SsrOnly, model: CostModel::nvme() }
    }
}

impl Allocation {
    /// Valid runs are skipped.
    #[must_use]
    pub fn ssr() -> Allocation {
        Allocation::default()
    }

    /// Valid runs are moved ahead of a write, or rewritten within it, whatever it costs.
    #[must_use]
    pub fn partial(model: CostModel) -> Allocation {
        Allocation { strategy: Strategy::PartialAlways, model }
    }

    /// The cheapest for each run by itself, on a device of this model.
    #[must_use]
    pub fn selective_greedy(model: CostModel) -> Allocation {
        Allocation { strategy: Strategy::Greedy, model }
    }

    /// The cheapest for the whole request, on a device of this model.
    #[must_use]
    pub fn selective_optimal(model: CostModel) -> Allocation {
        Allocation { strategy: Strategy::Optimal, model }
    }

    /// The same choice on a device of another model.
    #[must_use]
    pub fn on(mut self, model: CostModel) -> Allocation {
        self.model = model;
        self
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

    /// What plans the writes; `None`: valid runs are skipped, and nothing is planned.
    pub(crate) fn planner(&self, cold_hole: f64) -> Option<Planner> {
        (self.strategy != Strategy::SsrOnly).then(|| Planner::new(self.model.clone(), self.strategy, cold_hole))
    }
}

/// A name that is none of those of [`Allocation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAllocation(String);

impl fmt::Display for UnknownAllocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is none of ssr, partial, selective-greedy, selective-optimal", self.0)
    }
}

impl core::error::Error for UnknownAllocation {}

impl FromStr for Allocation {
    type Err = UnknownAllocation;

    fn from_str(name: &str) -> Result<Allocation, UnknownAllocation> {
        let model = CostModel::nvme();
        match name {
            "ssr" => Ok(Allocation::ssr()),
            "partial" => Ok(Allocation::partial(model)),
            "selective-greedy" => Ok(Allocation::selective_greedy(model)),
            "selective-optimal" => Ok(Allocation::selective_optimal(model)),
            other => Err(UnknownAllocation(other.to_owned())),
        }
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
    }
}

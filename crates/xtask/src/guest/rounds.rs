//! Measurements that are repeated in rounds.

use anyhow::Context;

use crate::Result;

/// The median of the rounds.
pub(super) fn median(mut values: Vec<f64>) -> Result<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().context("no round")
}

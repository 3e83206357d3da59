//! Measurements that are repeated in rounds.

use anyhow::{Context, bail, ensure};

use crate::Result;

/// The median of the rounds.
pub(super) fn median(mut values: Vec<f64>) -> Result<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().context("no round")
}

/// One side by the other in the same rounds: the median, the least and the greatest ratio, as in `0.80 (0.50 to 0.90)`.
pub(super) fn ratio(of: &[f64], by: &[f64]) -> Result<String> {
    ensure!(of.len() == by.len(), "{} rounds of one side, {} of the other", of.len(), by.len());
    let mut ratios: Vec<f64> = of.iter().zip(by).map(|(of, by)| of / by).collect();
    ratios.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (ratios.first(), ratios.last()) else { bail!("no round") };
    Ok(format!("{:.2} ({least:.2} to {most:.2})", ratios[ratios.len() / 2]))
}

#[cfg(test)]
mod tests {
    use super::ratio;

    #[test]
    fn ratios_are_of_rounds() {
        assert_eq!(ratio(&[30.0, 8.0, 9.0], &[60.0, 10.0, 10.0]).unwrap(), "0.80 (0.50 to 0.90)");
        assert!(ratio(&[], &[]).is_err() && ratio(&[1.0], &[1.0, 2.0]).is_err());
    }
}

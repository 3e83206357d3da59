//! The costs of writes on a device: seconds for `n` consecutive blocks at a random place.
//!
//! The model is a table of points, interpolated in the *whole* cost `n * T(n)` (T: seconds a block), not in bandwidth:
//! cost is close to a straight line between two sizes, bandwidth is not. Beyond the last point T stays as it is there.

mod builtin;

pub use builtin::{Card, Interior};

use std::borrow::Cow;

use thiserror::Error;

/// Characters of a line that an error shows.
const SHOWN: usize = 40;

/// Why a table of points is no model.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum CostError {
    /// The table does not begin with the cost of one block.
    #[error("{}", first(*.found))]
    First {
        /// The size that it is for; `None`: the table is empty.
        found: Option<u32>,
    },
    /// Sizes do not rise.
    #[error("a line for {next} blocks follows one for {previous}: the numbers have to rise")]
    Order {
        /// Blocks of a point.
        previous: u32,
        /// Blocks of the next.
        next: u32,
    },
    /// A cost is not a positive number.
    #[error("{seconds} seconds per block is not a possible time for writes of {blocks} blocks")]
    Seconds {
        /// Blocks of the point.
        blocks: u32,
        /// Its seconds a block.
        seconds: f64,
    },
    /// A line of a stored model cannot be read.
    #[error("line {line}: {text:?} is not a number of blocks, a tab, and seconds per block")]
    Line {
        /// The line, from 1.
        line: usize,
        /// The beginning of the text that was found.
        text: String,
    },
}

fn first(found: Option<u32>) -> Cow<'static, str> {
    match found {
        None => "the model has no lines".into(),
        Some(found) => format!("the first line is for {found} blocks, not for 1").into(),
    }
}

/// A device's cost of writing, by request size.
#[derive(Clone, Debug, PartialEq)]
pub struct CostModel {
    name: Cow<'static, str>,
    /// Blocks, and seconds for all of them. Begins with one block.
    points: Vec<(u32, f64)>,
}

impl CostModel {
    /// A model from measured points: request size in blocks and seconds *a block*, sizes ascending, the first one 1.
    ///
    /// # Errors
    /// [`CostError`] with the point that does not fit.
    pub fn from_points(name: impl Into<Cow<'static, str>>, points: &[(u32, f64)]) -> Result<CostModel, CostError> {
        let first = points.first().map(|(blocks, _)| *blocks);
        if first != Some(1) {
            return Err(CostError::First { found: first });
        }
        if let Some(pair) = points.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(CostError::Order { previous: pair[0].0, next: pair[1].0 });
        }
        if let Some(&(blocks, seconds)) = points.iter().find(|(_, seconds)| !(seconds.is_finite() && *seconds > 0.0)) {
            return Err(CostError::Seconds { blocks, seconds });
        }
        let points = points.iter().map(|&(blocks, seconds)| (blocks, f64::from(blocks) * seconds)).collect();
        Ok(CostModel { name: name.into(), points })
    }

    /// The name, for reports.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The table: request size in blocks and seconds a block.
    pub fn points(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.points.iter().map(|&(blocks, seconds)| (blocks, seconds / f64::from(blocks)))
    }

    /// Seconds for one request of `blocks` blocks, `n * T(n)`. No blocks cost nothing; between 0 and 1 block as much as 1.
    #[must_use]
    pub fn seconds(&self, blocks: f64) -> f64 {
        if blocks <= 0.0 {
            return 0.0;
        }
        let blocks = blocks.max(1.0);
        let above = self.points.partition_point(|&(size, _)| f64::from(size) < blocks);
        match (self.points.get(above.wrapping_sub(1)), self.points.get(above)) {
            (Some(&(low, start)), Some(&(high, end))) => {
                start + (end - start) * (blocks - f64::from(low)) / f64::from(high - low)
            }
            // Exactly the first point.
            (None, Some(&(_, seconds))) => seconds,
            (Some(&(last, seconds)), None) => seconds / f64::from(last) * blocks,
            (None, None) => 0.0,
        }
    }

    /// Seconds a block in requests of `blocks` blocks: the paper's `T_block(n)`.
    #[must_use]
    pub fn seconds_per_block(&self, blocks: f64) -> f64 {
        self.seconds(blocks.max(1.0)) / blocks.max(1.0)
    }

    /// The model as text: a line for each point, blocks, a tab, seconds a block.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.points().map(|(blocks, seconds)| format!("{blocks}\t{seconds:e}\n")).collect()
    }

    /// The model from such a text; empty lines and what follows a `#` are left out.
    ///
    /// # Errors
    /// [`CostError`].
    pub fn from_text(name: impl Into<Cow<'static, str>>, text: &str) -> Result<CostModel, CostError> {
        let mut points = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default().trim();
            if content.is_empty() {
                continue;
            }
            let point = content
                .split_once('\t')
                .and_then(|(blocks, seconds)| Some((blocks.trim().parse().ok()?, seconds.trim().parse().ok()?)));
            points.push(
                point.ok_or_else(|| CostError::Line { line: index + 1, text: line.chars().take(SHOWN).collect() })?,
            );
        }
        CostModel::from_points(name, &points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_interpolated_not_bandwidth() {
        let model = CostModel::from_points("test", &[(1, 4.0), (4, 2.0), (8, 1.5)]).unwrap();
        assert_eq!([0.0, 0.5, 1.0, 4.0, 8.0].map(|n| model.seconds(n)), [0.0, 4.0, 4.0, 8.0, 12.0]);
        assert_eq!(model.seconds(2.0), 4.0 + 4.0 / 3.0);
        assert_eq!(model.seconds(6.0), 10.0);
        assert_eq!(model.seconds(16.0), 24.0);
        assert_eq!(model.seconds_per_block(6.0), 10.0 / 6.0);
        let again = CostModel::from_text("test", &format!("# a comment\n\n{}", model.to_text())).unwrap();
        assert_eq!(again, model);
    }

    #[test]
    fn impossible_tables_are_refused() {
        assert_eq!(CostModel::from_points("x", &[]), Err(CostError::First { found: None }));
        assert_eq!(CostModel::from_points("x", &[(2, 1.0)]), Err(CostError::First { found: Some(2) }));
        assert_eq!(
            CostModel::from_points("x", &[(1, 1.0), (8, 1.0), (8, 1.0)]),
            Err(CostError::Order { previous: 8, next: 8 })
        );
        for seconds in [0.0, -1.0, f64::INFINITY] {
            assert_eq!(CostModel::from_points("x", &[(1, seconds)]), Err(CostError::Seconds { blocks: 1, seconds }));
        }
        assert!(matches!(CostModel::from_text("x", "1\t2\nno"), Err(CostError::Line { line: 2, .. })));
        let long = CostModel::from_text("x", &"\0".repeat(1 << 20)).unwrap_err().to_string();
        assert!(long.len() < 400, "{} bytes", long.len());
    }
}

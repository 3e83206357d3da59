//! Reports of measurements: the machine, percentiles, and pictures.
//!
//! | Item | What it is |
//! |---|---|
//! | [`Machine`] | processor, kernel, governor and commit, as text and as comment lines of a CSV file |
//! | [`Latencies`] | a histogram of times, for percentiles |
//! | [`LineChart`] | rates over thread or block counts, one line a variant, as SVG |
//! | [`BarChart`] | a bar for each variant, with marks to compare with, as SVG |

mod bars;
mod latency;
mod lines;
mod machine;

pub use bars::{Bar, BarChart};
pub use latency::Latencies;
pub use lines::LineChart;
pub use machine::Machine;

/// A chart that could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("the chart {title:?} cannot be drawn: {reason}")]
pub struct ChartError {
    title: String,
    reason: String,
}

impl ChartError {
    fn new(title: &str, reason: impl std::fmt::Display) -> ChartError {
        ChartError { title: title.to_owned(), reason: reason.to_string() }
    }
}

/// Distinct colours, also for those who do not see red and green apart (Okabe and Ito).
const COLOURS: [plotters::style::RGBColor; 8] = [
    plotters::style::RGBColor(0, 114, 178),
    plotters::style::RGBColor(213, 94, 0),
    plotters::style::RGBColor(0, 158, 115),
    plotters::style::RGBColor(204, 121, 167),
    plotters::style::RGBColor(86, 180, 233),
    plotters::style::RGBColor(230, 159, 0),
    plotters::style::RGBColor(0, 0, 0),
    plotters::style::RGBColor(120, 120, 120),
];

//! Rates over thread or block counts.

use plotters::prelude::*;

use super::{COLOURS, ChartError};

/// A line chart with a logarithmic x axis (powers of two), a y axis from 0, and a line for each variant.
///
/// ```
/// use f2fs_workload::report::LineChart;
///
/// let mut chart = LineChart::new("MWUL", "threads", "unlinks/s").processors(2);
/// chart.line("sharded", vec![(1.0, 400e3), (2.0, 790e3), (128.0, 780e3)]);
/// assert!(chart.svg()?.starts_with("<svg"));
/// # Ok::<(), f2fs_workload::report::ChartError>(())
/// ```
#[derive(Clone, Debug)]
pub struct LineChart {
    title: String,
    x: String,
    y: String,
    processors: Option<usize>,
    lines: Vec<(String, Vec<(f64, f64)>)>,
}

impl LineChart {
    /// An empty chart; `x` and `y` name the axes, with units.
    #[must_use]
    pub fn new(title: impl Into<String>, x: impl Into<String>, y: impl Into<String>) -> LineChart {
        LineChart { title: title.into(), x: x.into(), y: y.into(), processors: None, lines: Vec::new() }
    }

    /// Marks this x with a vertical line: beyond it, threads share processors.
    #[must_use]
    pub fn processors(mut self, count: usize) -> LineChart {
        self.processors = Some(count);
        self
    }

    /// Adds a line through these points, which need not be sorted. Points that are not finite, or not beyond x = 0, are
    /// left out.
    pub fn line(&mut self, name: impl Into<String>, mut points: Vec<(f64, f64)>) {
        points.retain(|(x, y)| x.is_finite() && y.is_finite() && *x > 0.0);
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.lines.push((name.into(), points));
    }

    /// Draws it: 900 by 540 pixels.
    ///
    /// # Errors
    /// [`ChartError`] if no line has a point.
    pub fn svg(&self) -> Result<String, ChartError> {
        svg(&[self])
    }

    /// Draws several charts below one another, as one picture.
    ///
    /// # Errors
    /// [`ChartError`] if there is no chart, or one has no point.
    pub fn svg_of(charts: &[LineChart]) -> Result<String, ChartError> {
        svg(&charts.iter().collect::<Vec<_>>())
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, plotters::coord::Shift>) -> Result<(), ChartError> {
        let failed = |error: DrawingAreaErrorKind<B::ErrorType>| ChartError::new(&self.title, error);
        let xs = || self.lines.iter().flat_map(|(_, points)| points).map(|(x, _)| *x);
        let (low, high) = (xs().fold(f64::INFINITY, f64::min), xs().fold(0.0, f64::max));
        if low > high {
            return Err(ChartError::new(&self.title, "it has no points"));
        }
        let top = self.lines.iter().flat_map(|(_, points)| points).map(|(_, y)| *y).fold(0.0, f64::max);
        let top = if top > 0.0 { top * 1.08 } else { 1.0 };
        // A chart of a single x still needs a width.
        let (low, high) = (low / 1.1, high * 1.1);
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(86)
            .build_cartesian_2d((low..high).log_scale().base(2.0), 0.0..top)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .x_desc(&self.x)
            .y_desc(&self.y)
            .x_label_formatter(&|x| short(*x))
            .y_label_formatter(&|y| short(*y))
            .light_line_style(WHITE)
            .draw()
            .map_err(failed)?;
        for (index, (name, points)) in self.lines.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let series = LineSeries::new(points.iter().copied(), colour.stroke_width(2)).point_size(3);
            let label = move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2));
            chart.draw_series(series).map_err(failed)?.label(name).legend(label);
        }
        if let Some(processors) = self.processors {
            let x = processors as f64;
            if (low..=high).contains(&x) {
                let line = PathElement::new(vec![(x, 0.0), (x, top)], BLACK.mix(0.5).stroke_width(1));
                let label = move |(x, y)| PathElement::new(vec![(x + 9, y - 5), (x + 9, y + 5)], BLACK.mix(0.5));
                let name = format!("{processors} processors");
                chart.draw_series([line]).map_err(failed)?.label(name).legend(label);
            }
        }
        let mut labels = chart.configure_series_labels();
        let labels = labels.position(SeriesLabelPosition::UpperRight).background_style(WHITE.mix(0.8));
        labels.border_style(BLACK.mix(0.3)).draw().map_err(failed)
    }
}

fn svg(charts: &[&LineChart]) -> Result<String, ChartError> {
    let title = charts.first().map_or("", |chart| &chart.title);
    let mut out = String::new();
    {
        let rows = charts.len().max(1);
        let root = SVGBackend::with_string(&mut out, (900, 540 * rows as u32)).into_drawing_area();
        root.fill(&WHITE).map_err(|error| ChartError::new(title, error))?;
        if charts.is_empty() {
            return Err(ChartError::new(title, "there is no chart"));
        }
        for (area, chart) in root.split_evenly((rows, 1)).iter().zip(charts) {
            chart.draw(area)?;
        }
        root.present().map_err(|error| ChartError::new(title, error))?;
    }
    Ok(out)
}

/// A number with at most three digits and a factor.
fn short(value: f64) -> String {
    let (value, unit) = match value.abs() {
        big if big >= 1e9 => (value / 1e9, "G"),
        big if big >= 1e6 => (value / 1e6, "M"),
        big if big >= 1e3 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = format!("{value:.2}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> LineChart {
        let mut chart = LineChart::new("unlink <private>", "threads", "unlinks/s").processors(2);
        chart.line("kernel-scan", vec![(1.0, 100.0), (128.0, 90.0), (2.0, 120.0)]);
        chart.line("sharded", vec![(1.0, 1000.0), (2.0, 1900.0), (128.0, f64::NAN), (0.0, 7.0)]);
        chart
    }

    #[test]
    fn every_line_is_drawn_and_named() {
        let svg = chart().svg().unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
        for word in ["kernel-scan", "sharded", "2 processors", "threads", "unlinks/s", "unlink &lt;private&gt;"] {
            assert!(svg.contains(word), "{word} is not in {svg}");
        }
        // 3 points of one line, 2 of the other: those that are no numbers are left out.
        assert_eq!(svg.matches("<circle").count(), 5, "{svg}");
        assert_eq!(LineChart::svg_of(&[chart(), chart()]).unwrap().matches("<circle").count(), 10);
    }

    #[test]
    fn a_chart_without_points_is_an_error() {
        assert!(LineChart::new("t", "x", "y").svg().unwrap_err().to_string().contains("no points"));
        assert!(LineChart::svg_of(&[]).is_err());
        let mut flat = LineChart::new("t", "x", "y");
        flat.line("zero", vec![(8.0, 0.0)]);
        assert!(flat.svg().unwrap().contains("zero"));
    }

    #[test]
    fn numbers_are_short() {
        let numbers = [(0.0, "0"), (128.0, "128"), (1500.0, "1.5k"), (2_000_000.0, "2M"), (3.25e9, "3.25G")];
        for (value, text) in numbers {
            assert_eq!(short(value), text);
        }
    }
}

//! A bar for each variant.

use plotters::prelude::*;

use super::{COLOURS, ChartError};

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// The thing that it stands for.
    pub name: String,
    /// Its length; bars of values below 0 go to the left, in another colour.
    pub value: f64,
    /// A value to compare with, drawn as a line across the bar's row.
    pub mark: Option<f64>,
}

/// Horizontal bars from a common zero, one below the other.
#[derive(Clone, Debug)]
pub struct BarChart {
    title: String,
    x: String,
    bars: Vec<Bar>,
}

impl BarChart {
    /// An empty chart; `x` names the axis, with its unit.
    #[must_use]
    pub fn new(title: impl Into<String>, x: impl Into<String>) -> BarChart {
        BarChart { title: title.into(), x: x.into(), bars: Vec::new() }
    }

    /// Adds a bar below the others.
    pub fn bar(&mut self, bar: Bar) {
        self.bars.push(bar);
    }

    /// Draws it: 900 pixels wide, 14 for each bar and 96 more high.
    ///
    /// # Errors
    /// [`ChartError`] if there is no bar, or a value is not finite.
    pub fn svg(&self) -> Result<String, ChartError> {
        let values = || self.bars.iter().flat_map(|bar| [Some(bar.value), bar.mark]).flatten();
        if self.bars.is_empty() || !values().all(f64::is_finite) {
            return Err(ChartError::new(&self.title, "it has no bars, or one that is no number"));
        }
        let mut out = String::new();
        self.draw(&mut out, values().fold(0.0, f64::min), values().fold(0.0, f64::max))?;
        Ok(out)
    }

    fn draw(&self, out: &mut String, low: f64, high: f64) -> Result<(), ChartError> {
        let failed = |error: DrawingAreaErrorKind<_>| ChartError::new(&self.title, error);
        let count = self.bars.len();
        let root = SVGBackend::with_string(out, (900, 96 + 14 * count as u32)).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let width = (high - low).max(f64::MIN_POSITIVE);
        let mut chart = ChartBuilder::on(&root)
            .caption(&self.title, ("sans-serif", 16))
            .margin(8)
            .x_label_area_size(40)
            .y_label_area_size(400)
            .build_cartesian_2d(low - width * 0.02..high + width * 0.02, 0.0..count as f64)
            .map_err(failed)?;
        chart.configure_mesh().x_desc(&self.x).disable_y_mesh().disable_y_axis().draw().map_err(failed)?;
        for (index, bar) in self.bars.iter().enumerate() {
            let middle = (count - index) as f64 - 0.5;
            let colour = COLOURS[usize::from(bar.value < 0.0)];
            let body = Rectangle::new([(0.0, middle - 0.35), (bar.value, middle + 0.35)], colour.filled());
            chart.draw_series([body]).map_err(failed)?;
            if let Some(mark) = bar.mark {
                let line = PathElement::new(vec![(mark, middle - 0.5), (mark, middle + 0.5)], BLACK.stroke_width(2));
                chart.draw_series([line]).map_err(failed)?;
            }
            let (_, y) = chart.backend_coord(&(0.0, middle));
            let style = ("sans-serif", 11).into_text_style(&root);
            root.draw_text(&bar.name, &style, (10, y - 5)).map_err(failed)?;
        }
        root.present().map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_go_both_ways_and_have_names() {
        let mut chart = BarChart::new("speed", "per cent");
        chart.bar(Bar { name: "card A & B".into(), value: 29.0, mark: Some(27.0) });
        chart.bar(Bar { name: "worse".into(), value: -8.0, mark: None });
        let svg = chart.svg().unwrap();
        for word in ["speed", "per cent", "card A &amp; B", "worse", "#0072B2", "#D55E00"] {
            assert!(svg.contains(word), "{word} is not in {svg}");
        }
        chart.bar(Bar { name: "no number".into(), value: f64::NAN, mark: None });
        assert!(chart.svg().is_err());
        assert!(BarChart::new("t", "x").svg().is_err());
    }
}

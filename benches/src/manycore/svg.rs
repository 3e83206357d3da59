//! Curves as a picture.

use std::fmt::Write;

use super::Curve;

/// Width and height of the picture, and of the margin around the axes.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 480.0;
const MARGIN: f64 = 56.0;
/// Where names of curves stand.
const NAMES: f64 = 110.0;
const COLOURS: [&str; 8] = ["#1b6ca8", "#c1440e", "#2e7d32", "#6a1b9a", "#00838f", "#ad1457", "#5d4037", "#546e7a"];

/// Draws curves: rates relative to one core over the number of cores, both axes logarithmic. The dashed line is what as
/// many cores could give at most.
#[must_use]
pub fn draw(title: &str, curves: &[(String, Curve)]) -> String {
    let points = || curves.iter().flat_map(|(_, curve)| &curve.points);
    let cores = points().map(|point| point.cores as f64).fold(2.0, f64::max);
    let least = points().map(|point| point.ratio).filter(|ratio| *ratio > 0.0).fold(1.0, f64::min);
    let decades = (cores / least).ln();
    let x = |value: f64| MARGIN + (WIDTH - MARGIN - NAMES) * value.ln() / cores.ln();
    let y = |value: f64| HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * (value.max(least) / least).ln() / decades;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{MARGIN}\" y=\"24\" font-size=\"14\">{title}</text>\n"
    );
    // Writing to a string does not fail.
    let mut put = |line: std::fmt::Arguments<'_>| _ = svg.write_fmt(line);
    let (left, right, bottom) = (x(1.0), x(cores), y(least));
    let steps =
        |from: f64| std::iter::successors(Some(from), |step| Some(step * 2.0)).take_while(move |step| *step <= cores);
    for step in steps(1.0) {
        let at = x(step);
        put(format_args!("<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{step}</text>\n", bottom + 18.0));
    }
    for step in steps(2_f64.powf(least.log2().ceil())) {
        let at = y(step);
        put(format_args!(
            "<path d=\"M{left:.1} {at:.1}H{right:.1}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{step}</text>\n",
            left - 6.0,
            at + 4.0
        ));
    }
    put(format_args!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">cores (modelled)</text>\n",
        (left + right) / 2.0,
        bottom + 38.0
    ));
    put(format_args!(
        "<path d=\"M{left:.1} {:.1}L{right:.1} {:.1}\" stroke=\"#999\" stroke-dasharray=\"4 4\"/>\n",
        y(1.0),
        y(cores)
    ));
    for ((name, curve), colour) in curves.iter().zip(COLOURS.iter().cycle()) {
        let line: Vec<String> =
            curve.points.iter().map(|point| format!("{:.1},{:.1}", x(point.cores as f64), y(point.ratio))).collect();
        put(format_args!(
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>\n",
            line.join(" ")
        ));
        if let Some(last) = curve.points.last() {
            let (at, level) = (x(last.cores as f64) + 6.0, y(last.ratio) + 4.0);
            put(format_args!(
                "<text x=\"{at:.1}\" y=\"{level:.1}\" fill=\"{colour}\">{name} {:.1}</text>\n",
                last.ratio
            ));
        }
    }
    svg.push_str("</svg>\n");
    svg
}

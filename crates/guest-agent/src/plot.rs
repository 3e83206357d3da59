//! A picture of a table: a line for each column beside the first.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use f2fs_workload::report::LineChart;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The table: a line of names, then numbers, all separated by commas. The first column is x; a place may be empty.
    table: PathBuf,
    /// The picture, as SVG.
    picture: PathBuf,
    /// What stands above it.
    #[arg(long)]
    title: String,
    /// The name of the first column's axis.
    #[arg(long)]
    x: String,
    /// The name of the other columns' axis.
    #[arg(long)]
    y: String,
}

/// Draws the picture.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let text = fs::read_to_string(&args.table).with_context(|| format!("cannot read {}", args.table.display()))?;
    let mut chart = LineChart::new(&args.title, &args.x, &args.y);
    for (name, points) in lines(&text)? {
        chart.line(name, points);
    }
    fs::write(&args.picture, chart.svg()?).with_context(|| format!("cannot write {}", args.picture.display()))
}

type Line = (String, Vec<(f64, f64)>);

fn lines(text: &str) -> anyhow::Result<Vec<Line>> {
    let mut rows = text.lines();
    let names = rows.next().context("an empty table")?.split(',').skip(1);
    let mut lines: Vec<Line> = names.map(|name| (name.to_owned(), Vec::new())).collect();
    for row in rows {
        let mut fields = row.split(',');
        let number = |field: &str| field.parse().with_context(|| format!("no number: {row}"));
        let x: f64 = number(fields.next().unwrap_or_default())?;
        for ((_, points), field) in lines.iter_mut().zip(fields).filter(|(_, field)| !field.is_empty()) {
            points.push((x, number(field)?));
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn a_place_may_be_empty() {
        let found = lines("zone,a,b\n16,1.5,2\n32,,3\n").unwrap();
        let points = |at: usize| found[at].1.clone();
        assert_eq!(found[0].0, "a");
        assert_eq!((points(0), points(1)), (vec![(16.0, 1.5)], vec![(16.0, 2.0), (32.0, 3.0)]));
        assert!(lines("zone,a\nwide,1\n").is_err());
    }
}

//! The experiment on a whole volume: `f2fs_workload::partial_gc`.

use std::fmt::Write as _;

use f2fs::segment::cost::{Card, CostModel, Interior};
use f2fs::volume::Allocation;
use f2fs_workload::partial_gc::{Aged, ExperimentError, REQUEST, Written};

use super::{BOUND, PAPER};

/// One way on one device, against SSR on the same.
pub(crate) struct Row {
    pub(crate) device: String,
    pub(crate) card: Option<Card>,
    pub(crate) name: String,
    pub(crate) written: Written,
    pub(crate) ssr: Written,
    /// Least and greatest speed against SSR over several rounds, per cent.
    pub(crate) spread: Option<(f64, f64)>,
}

pub(crate) fn percent(new: f64, old: f64) -> f64 {
    (new / old - 1.0) * 100.0
}

impl Row {
    /// Write speed against SSR, per cent.
    pub(crate) fn speed(&self) -> f64 {
        percent(self.ssr.time.as_secs_f64(), self.written.time.as_secs_f64())
    }

    /// Data blocks written against SSR, per cent.
    pub(crate) fn blocks(&self) -> f64 {
        percent(self.written.data_blocks() as f64, self.ssr.data_blocks() as f64)
    }

    /// Requests of data against SSR, per cent.
    pub(crate) fn requests(&self) -> f64 {
        percent(self.written.data_requests() as f64, self.ssr.data_requests() as f64)
    }

    /// Blocks of checkpoints and tables for each hundred new blocks.
    fn overhead(&self) -> f64 {
        let by = &self.written.by_cause;
        (by.node_blocks + by.synced_node_blocks + by.table_blocks + by.pack_blocks) as f64
            / by.user_blocks.max(1) as f64
            * 100.0
    }
}

/// The ways with their names, the kernel's first.
pub(crate) fn ways(model: &CostModel) -> Vec<(String, Allocation)> {
    let bounded = |way: &Allocation| way.clone().at_most(BOUND - 1.0);
    let [greedy, optimal] = [Allocation::selective_greedy(model.clone()), Allocation::selective_optimal(model.clone())];
    let partial = Allocation::partial(model.clone());
    [Allocation::ssr(), bounded(&partial), partial, bounded(&greedy), greedy, bounded(&optimal), optimal]
        .into_iter()
        .map(|way| {
            let bound = way.bound().map_or(String::new(), |share| format!("+{:.0}", share * 100.0));
            (format!("{}{bound}", way.name()), way)
        })
        .collect()
}

fn rows(
    device: &str,
    card: Option<Card>,
    model: &CostModel,
    mut measure: impl FnMut(Allocation) -> Result<Written, ExperimentError>,
) -> Result<Vec<Row>, ExperimentError> {
    let mut rows: Vec<Row> = Vec::new();
    for (name, allocation) in ways(model) {
        let written = measure(allocation)?;
        let ssr = rows.first().map_or(written, |row| row.written);
        rows.push(Row { device: device.to_owned(), card, name, written, ssr, spread: None });
    }
    Ok(rows)
}

/// All ways on all models: the cards under each curve, and two drives.
pub(crate) fn experiment(aged: &Aged, measured: Option<&CostModel>) -> Result<Vec<Row>, ExperimentError> {
    let mut models: Vec<(Option<Card>, CostModel)> = Card::ALL
        .into_iter()
        .flat_map(|card| Interior::ALL.map(|interior| (Some(card), CostModel::card(card, interior))))
        .collect();
    if let Some(measured) = measured {
        models.extend(Card::ALL.map(|card| (Some(card), CostModel::card_shaped(card, measured))));
    }
    models.extend([(None, CostModel::sata_ssd()), (None, CostModel::nvme())]);
    let mut all = Vec::new();
    for (card, model) in models {
        all.extend(rows(model.name(), card, &model, |way| Ok(aged.measure(way, model.clone())?.0))?);
    }
    Ok(all)
}

pub(crate) fn header(aged: &Aged) -> String {
    format!(
        "{} blocks written in requests of {REQUEST} into a volume that is {:.0} % full; mean hole {:.1}, mean run {:.1} in warm \
         segments (the paper: 3.0, 2.5 and 3.0), mean hole {:.1} in cold ones (5.1); with +{:.0} % blocks, no way could save \
         more than {:.0} % of the requests\n",
        aged.blocks,
        aged.utilisation * 100.0,
        aged.warm.hole,
        aged.warm.run,
        aged.cold.hole,
        (BOUND - 1.0) * 100.0,
        aged.warm.most_saved(BOUND - 1.0) * 100.0,
    )
}

pub(crate) fn table(rows: &[Row]) -> String {
    let mut out = format!(
        "{:<24} {:<20} {:>9} {:>7} {:>8} {:>7} {:>9} {:>7} {:>7} {:>7} {:>7}\n",
        "device", "way", "seconds", "speed", "blocks", "", "requests", "rewr.", "moved", "H_cold", "meta"
    );
    let mut last = None;
    for row in rows {
        if last != Some(row.card)
            && let Some((card, [speed, blocks, requests])) = PAPER.iter().find(|(card, _)| Some(*card) == row.card)
        {
            let name = format!("card {}", card.name());
            let _ = writeln!(
                out,
                "{name:<24} {:<20} {:>9} {speed:>+6.0}% {:>8} {blocks:>+6.0}% {requests:>+8.0}%",
                "the paper", "", ""
            );
        }
        last = Some(row.card);
        let written = &row.written;
        let spread = row.spread.map_or(String::new(), |(least, most)| format!("   {least:+.1} to {most:+.1}%"));
        let _ = writeln!(
            out,
            "{:<24} {:<20} {:>9.3} {:>+6.1}% {:>8} {:>+6.1}% {:>+8.1}% {:>7} {:>7} {:>7.1} {:>6.1}%{spread}",
            row.device,
            row.name,
            written.time.as_secs_f64(),
            row.speed(),
            written.data_blocks(),
            row.blocks(),
            row.requests(),
            written.by_cause.rewritten_blocks,
            written.by_cause.precleaned_blocks,
            written.cold_hole,
            row.overhead(),
        );
    }
    out
}

pub(crate) fn csv(rows: &[Row]) -> String {
    let mut out =
        "device,way,seconds,speed_percent,data_blocks,blocks_percent,data_requests,requests_percent,new_blocks,\
                   rewritten_blocks,moved_blocks,node_blocks,table_blocks,pack_blocks,cold_hole,least_speed,greatest_speed\n"
            .to_owned();
    for row in rows {
        let by = &row.written.by_cause;
        let _ = writeln!(
            out,
            "\"{}\",{},{:.6},{:.2},{},{:.2},{},{:.2},{},{},{},{},{},{},{:.2},{:.2},{:.2}",
            row.device,
            row.name,
            row.written.time.as_secs_f64(),
            row.speed(),
            row.written.data_blocks(),
            row.blocks(),
            row.written.data_requests(),
            row.requests(),
            by.user_blocks,
            by.rewritten_blocks,
            by.precleaned_blocks,
            by.node_blocks,
            by.table_blocks,
            by.pack_blocks,
            row.written.cold_hole,
            row.spread.map_or(row.speed(), |(least, _)| least),
            row.spread.map_or(row.speed(), |(_, most)| most),
        );
    }
    out
}

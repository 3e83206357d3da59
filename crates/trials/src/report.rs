//! The results of campaigns and matrices, for people and for programs.

use serde_json::{Value, json};

use crate::campaign::{Fault, Outcome};
use crate::explore::Tally;
use crate::faults::{Matrix, Way};

/// The command that shows a violation again.
fn again(fault: &Fault) -> String {
    let cuts: String = fault.cuts.iter().map(|cut| format!(" --cut {cut}")).collect();
    format!("cargo xtask crash -- --workload '{}'{cuts}", fault.workload)
}

/// Prints a campaign.
pub(crate) fn campaign(outcome: &Outcome, seed: u64) {
    println!("class   workloads   epochs      cuts   states distinct     used    again     torn   fsck");
    let row = |name: &str, tally: &Tally| {
        let Tally { workloads, epochs, cuts, states, distinct, used, again, torn, fsck, .. } = tally;
        println!(
            "{name:<8}{workloads:>9} {epochs:>8} {cuts:>9} {states:>8} {distinct:>8} {used:>8} {again:>8} {torn:>8} {fsck:>6}"
        );
    };
    for (class, tally) in &outcome.tallies {
        row(class.name(), tally);
    }
    let (total, seconds) = (outcome.total(), outcome.took.as_secs_f64());
    row("all", &total);
    println!(
        "{} distinct states, {} violations, {seconds:.1} s on {} processors ({:.2} ms a state each), seed {seed}{}",
        total.distinct,
        outcome.faults.len(),
        outcome.threads,
        seconds * 1000.0 * outcome.threads as f64 / total.states.max(1) as f64,
        if outcome.cut_short { ", stopped at its limit of time" } else { "" }
    );
    for fault in &outcome.faults {
        println!("\nVIOLATION in `{}`\n  {}", fault.workload, fault.what);
        if let Some(image) = &fault.image {
            println!("  the state: {}", image.display());
        }
        println!("  again: {}", again(fault));
    }
}

/// A campaign for programs.
pub(crate) fn campaign_json(outcome: &Outcome, seed: u64) -> Value {
    let faults = outcome.faults.iter().map(|fault| {
        json!({
            "workload": fault.workload, "cuts": fault.cuts, "what": fault.what, "image": fault.image, "again": again(fault),
        })
    });
    json!({
        "seed": seed, "seconds": outcome.took.as_secs_f64(), "cut_short": outcome.cut_short,
        "total": outcome.total(), "classes": outcome.tallies, "violations": faults.collect::<Vec<_>>(),
    })
}

/// Broken promises that are printed of each way to fail.
const SHOWN: usize = 5;

/// Prints a matrix.
pub(crate) fn matrix(matrix: &Matrix) {
    print!("{matrix}");
    for way in Way::ALL {
        let all = matrix.broken.iter().filter(|broken| broken.way == way);
        if all.clone().count() > 0 {
            println!("\n{}: {} broken promises", way.name(), all.clone().count());
        }
        for broken in all.take(SHOWN) {
            println!("BROKEN: {} at request {}:{}: {}", way.name(), broken.episode, broken.index, broken.what);
        }
    }
}

/// A matrix for programs.
pub(crate) fn matrix_json(matrix: &Matrix) -> Value {
    let rows = matrix.rows.iter().map(|(way, row)| {
        json!({
            "fault": way.name(), "runs": row.runs, "surfaced": row.surfaced, "absorbed": row.absorbed,
            "stopped": row.stopped, "kept": row.kept, "damaged": row.damaged, "refused": row.refused,
            "silent": row.silent,
        })
    });
    let broken = matrix.broken.iter().map(|broken| {
        json!({ "fault": broken.way.name(), "episode": broken.episode, "index": broken.index, "what": broken.what })
    });
    json!({
        "episodes": matrix.episodes, "requests": matrix.requests.all, "reads": matrix.requests.reads,
        "writes": matrix.requests.writes, "flushes": matrix.requests.flushes, "rows": rows.collect::<Vec<_>>(),
        "broken": broken.collect::<Vec<_>>(), "seconds": matrix.took.as_secs_f64(),
    })
}

//! What is told at the end: the rate of each crate, and the survivors.

use std::time::Instant;

use anyhow::bail;

use super::CRATES;
use super::accepted::{self, Accepted};
use super::fault::Fault;
use super::results::{Outcome, Results};
use crate::Result;

/// Prints the results of faults.
///
/// # Errors
///
/// If one survived that nobody has accepted.
pub(super) fn print(asked: &[&Fault], results: &Results, accepted: &Accepted, start: Instant) -> Result<()> {
    println!(
        "\n{:<10} {:>7} {:>8} {:>8} {:>9} {:>7} {:>7} {:>9} {:>6}",
        "crate", "tried", "noticed", "by time", "unreached", "missed", "alive", "accepted", "rate"
    );
    let mut open = Vec::new();
    for name in CRATES {
        let known: Vec<(&Fault, Outcome)> = asked
            .iter()
            .filter(|fault| fault.package() == name)
            .filter_map(|fault| Some((*fault, results.get(fault)?)))
            // A change that does not compile is no fault.
            .filter(|(_, outcome)| *outcome != Outcome::Unviable)
            .collect();
        if known.is_empty() {
            continue;
        }
        let count = |of: Outcome| known.iter().filter(|(_, outcome)| *outcome == of).count();
        let survivors: Vec<_> = known.iter().filter(|(_, outcome)| outcome.survived()).collect();
        let looked_at = survivors.iter().filter(|(fault, _)| accepted.reason(fault).is_some()).count();
        let noticed = known.len() - survivors.len();
        // The rate is that of the faults that are some.
        let rate = 100.0 * noticed as f64 / (known.len() - looked_at).max(1) as f64;
        println!(
            "{name:<10} {:>7} {noticed:>8} {:>8} {:>9} {:>7} {:>7} {looked_at:>9} {rate:>5.1}%",
            known.len(),
            // Of those that were noticed: a hang, unless the machine was far busier than when it ran without a fault.
            count(Outcome::Timeout),
            count(Outcome::Unreached),
            count(Outcome::Missed),
            count(Outcome::Alive),
        );
        open.extend(survivors.into_iter().filter(|(fault, _)| accepted.reason(fault).is_none()).copied());
    }
    open.sort_by_key(|(fault, outcome)| (*outcome, fault.name()));
    for (fault, outcome) in &open {
        println!("{outcome}: {}", fault.name());
    }
    println!("mutants: {:.0} s", start.elapsed().as_secs_f64());
    if !open.is_empty() {
        bail!("{} faults survived: let a test notice them, or accept them in {}", open.len(), accepted::FILE);
    }
    Ok(())
}

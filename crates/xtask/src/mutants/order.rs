//! Which tests a fault meets first.
//!
//! New ones, which the fault has not met; then the quickest, and those that noticed other faults of the same file: a test
//! that looks at what a file does mostly sees the next fault there as well, and is worth several quick ones that only
//! come by.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::fault::Fault;
use super::judges::Judge;

/// The tests that reach each fault, and what they noticed so far.
#[derive(Debug)]
pub(super) struct Order<'j> {
    judges: &'j [Judge],
    /// The judges of each fault, by its number: places in the list of all.
    of_each: Vec<Vec<usize>>,
    files: BTreeMap<String, usize>,
    /// How many faults of each file each judge noticed: the judges of a file lie together.
    noticed: Vec<AtomicU32>,
}

impl<'j> Order<'j> {
    pub(super) fn new(judges: &'j [Judge], faults: &[Fault]) -> Order<'j> {
        let mut of_each = vec![Vec::new(); faults.len() + 1];
        for (index, judge) in judges.iter().enumerate() {
            for &fault in &judge.reaches {
                if let Some(of_fault) = of_each.get_mut(fault as usize) {
                    of_fault.push(index);
                }
            }
        }
        let mut files = BTreeMap::new();
        for fault in faults {
            let next = files.len();
            files.entry(fault.file().to_owned()).or_insert(next);
        }
        let noticed = (0..files.len() * judges.len()).map(|_| AtomicU32::new(0)).collect();
        Order { judges, of_each, files, noticed }
    }

    /// The judges of the fault of this number, the best ones first: their places in the list of all.
    pub(super) fn of(&self, number: usize, fault: &Fault) -> Vec<usize> {
        let mut judges = self.of_each[number].clone();
        // Starting a program takes a few milliseconds, whatever it does.
        let cost = |judge: usize| {
            let took = self.judges[judge].took + Duration::from_millis(5);
            let noticed = self.noticed(fault, judge).map_or(0, |count| count.load(Ordering::Relaxed).min(8));
            (!self.judges[judge].is_new, took / (1 + 8 * noticed))
        };
        judges.sort_by_cached_key(|&judge| cost(judge));
        judges
    }

    /// Notes that a judge noticed a fault.
    pub(super) fn note(&self, fault: &Fault, judge: usize) {
        if let Some(count) = self.noticed(fault, judge) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn noticed(&self, fault: &Fault, judge: usize) -> Option<&AtomicU32> {
        self.noticed.get(self.files.get(fault.file())? * self.judges.len() + judge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::build::Program;
    use crate::mutants::find::find;

    #[test]
    fn who_noticed_a_fault_of_the_file_comes_first() {
        let sites = find("fn f() -> T { !a } fn g() -> T { !b }").unwrap().sites;
        let faults = Fault::of_file("crates/a/src/b.rs", &sites);
        let program = Program { name: "a/tests".into(), path: "a".into(), home: "a".into() };
        let judge = |test: &str, millis, reaches: &[u32]| Judge {
            program: program.clone(),
            test: test.to_owned(),
            is_new: test == "new",
            took: Duration::from_millis(millis),
            reaches: reaches.to_vec(),
        };
        let judges = [judge("slow", 100, &[1, 2]), judge("quick", 20, &[1, 2]), judge("elsewhere", 1, &[2])];
        let order = Order::new(&judges, &faults);
        assert_eq!(order.of(1, &faults[0]), [1, 0]);
        assert_eq!(order.of(2, &faults[1]), [2, 1, 0]);
        order.note(&faults[0], 0);
        assert_eq!(order.of(2, &faults[1]), [2, 0, 1]);
        let judges = [judge("quick", 1, &[1]), judge("new", 100, &[1])];
        assert_eq!(Order::new(&judges, &faults).of(1, &faults[0]), [1, 0]);
    }
}

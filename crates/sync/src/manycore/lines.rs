//! The cores that have each line, and the cost of an access to it.

use rustc_hash::FxHashMap;

use super::Machine;
use super::core::Access;
use crate::Site;

/// Cores that have a line, a bit for each.
type Cores = u128;

/// A line.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// The cores that have it.
    holders: Cores,
    /// Whether the only one that has it has changed it.
    changed: bool,
    /// Until when it is on its way, in picoseconds.
    busy: u64,
    /// The cost of its transfers for all cores together, in picoseconds.
    cost: u64,
    /// How many there were.
    transfers: u64,
    /// Who asked for it last.
    site: Option<Site>,
}

/// All lines that were touched.
#[derive(Debug)]
pub(super) struct Lines {
    lines: FxHashMap<usize, Line>,
    /// Distances: cores at a distance, and the cost.
    levels: Vec<(usize, u64)>,
    hit: u64,
    change: u64,
    shared_read: u64,
    memory: u64,
}

/// The cost of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    /// Picoseconds in all.
    pub(super) total: u64,
    /// Of these, those that a hit would not have cost.
    pub(super) transfer: u64,
}

impl Lines {
    pub(super) fn new(machine: &Machine) -> Lines {
        Lines {
            lines: FxHashMap::default(),
            levels: machine.levels.iter().map(|level| (level.cores, level.transfer)).collect(),
            hit: machine.hit,
            change: machine.change,
            shared_read: machine.shared_read,
            memory: machine.memory,
        }
    }

    /// Whether the access would be a hit.
    pub(super) fn is_hit(&self, number: usize, core: usize, access: Access) -> bool {
        self.lines.get(&number).is_some_and(|line| hits(line, core, access))
    }

    /// The core accesses the line at this time.
    pub(super) fn access(&mut self, number: usize, core: usize, access: Access, now: u64, site: Site) -> Cost {
        let line = self.lines.entry(number).or_default();
        let own = self.hit + if access == Access::Change { self.change } else { 0 };
        if hits(line, core, access) {
            line.changed |= access != Access::Read;
            return Cost { total: own, transfer: 0 };
        }
        let me = 1 << core;
        let others = line.holders & !me;
        let start = now.max(line.busy);
        let latency = if others == 0 {
            self.memory
        } else if access == Access::Read {
            nearest(&self.levels, core, others)
        } else {
            farthest(&self.levels, core, others)
        };
        if access == Access::Read {
            // From a cache that has changed it, the line moves once; after that its readers overlap.
            line.busy = start + if line.changed { latency } else { self.shared_read.min(latency) };
            line.changed = false;
            line.holders |= me;
        } else {
            line.busy = start + latency + own;
            line.changed = true;
            line.holders = me;
        }
        let transfer = start - now + latency;
        line.cost += transfer;
        line.transfers += 1;
        line.site = Some(site);
        Cost { total: transfer + own, transfer }
    }

    /// The core alone has the line, and has changed it.
    pub(super) fn give(&mut self, number: usize, core: usize) {
        let line = self.lines.entry(number).or_default();
        (line.holders, line.changed) = (1 << core, true);
    }

    /// Begins to count again.
    pub(super) fn forget_costs(&mut self) {
        for line in self.lines.values_mut() {
            (line.cost, line.transfers) = (0, 0);
        }
    }

    /// The lines whose transfers cost most: picoseconds, transfers, who asked last.
    pub(super) fn hottest(&self, count: usize) -> Vec<(u64, u64, Site)> {
        let mut all: Vec<_> = self
            .lines
            .iter()
            .filter_map(|(number, line)| Some((line.cost, line.transfers, line.site?, *number)))
            .filter(|(cost, ..)| *cost > 0)
            .collect();
        all.sort_by(|a, b| b.0.cmp(&a.0).then(a.3.cmp(&b.3)));
        all.into_iter().take(count).map(|(cost, transfers, site, _)| (cost, transfers, site)).collect()
    }
}

fn hits(line: &Line, core: usize, access: Access) -> bool {
    let me = 1 << core;
    if access == Access::Read { line.holders & me != 0 } else { line.holders == me }
}

/// The cores at a distance from a core, itself among them.
fn within(core: usize, cores: usize) -> Cores {
    let mask = if cores >= 128 { Cores::MAX } else { (1 << cores) - 1 };
    mask << (core / cores * cores)
}

/// The cost of a line that the nearest of these has.
fn nearest(levels: &[(usize, u64)], core: usize, holders: Cores) -> u64 {
    let level = levels.iter().find(|(cores, _)| within(core, *cores) & holders != 0);
    level.or(levels.last()).map_or(0, |(_, cost)| *cost)
}

/// The cost of a line that all of these have to give up.
fn farthest(levels: &[(usize, u64)], core: usize, holders: Cores) -> u64 {
    let level = levels.iter().find(|(cores, _)| within(core, *cores) & holders == holders);
    level.or(levels.last()).map_or(0, |(_, cost)| *cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: Site = Site { file: "here", line: 1, what: "word" };

    #[test]
    fn a_line_costs_by_its_state_and_distance() {
        let machine = Machine::epyc();
        let mut lines = Lines::new(&machine);
        let mut access = |core, access, now| lines.access(7, core, access, now, SITE).transfer;
        assert_eq!(access(0, Access::Read, 0), 100_000, "memory");
        assert_eq!(access(0, Access::Change, 1_000_000), 0, "nobody else has it");
        assert_eq!(access(1, Access::Read, 2_000_000), 22_000, "from the neighbour");
        assert_eq!(access(0, Access::Read, 3_000_000), 0, "both have it");
        assert_eq!(access(64, Access::Read, 4_000_000), 200_000, "from the other socket");
        assert_eq!(access(65, Access::Read, 5_000_000), 22_000, "from the nearest");
        assert_eq!(access(0, Access::Change, 6_000_000), 200_000, "the farthest gives it up");
        assert_eq!(access(8, Access::Write, 7_000_000), 95_000);
        // Two at once: one after the other.
        assert_eq!(access(0, Access::Change, 8_000_000), 95_000);
        assert_eq!(access(16, Access::Change, 8_000_000), 95_000 + 6_200 + 95_000);
        lines.give(7, 3);
        assert_eq!(lines.access(7, 3, Access::Read, 9_000_000, SITE).transfer, 0);
        assert_eq!(lines.access(7, 4, Access::Read, 9_000_000, SITE).transfer, 22_000, "it was changed");
        assert_eq!(lines.access(7, 5, Access::Read, 9_000_000, SITE).transfer, 44_000, "and is on its way");
    }
}

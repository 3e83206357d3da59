//! Machines, as tables of costs.

/// Picoseconds of a nanosecond: times are in picoseconds.
pub const PICOSECONDS: u64 = 1000;

/// A transfer between caches, by distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Cores that are so near: cores `n * cores` to `n * cores + cores - 1`.
    pub cores: usize,
    /// Picoseconds until a line that another of these cores has is here.
    pub transfer: u64,
}

/// A machine: its cores, and what they pay, in picoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its name in commands.
    pub name: &'static str,
    /// A description, and where the numbers are from.
    pub source: &'static str,
    /// Distances, the nearest first; the last one has all cores of the machine, 128 at most.
    pub levels: Vec<Level>,
    /// An access to a line in the own cache.
    pub hit: u64,
    /// An atomic read-modify-write, a fence: on top of the access.
    pub change: u64,
    /// How long a read keeps a line that several have from the next read.
    pub shared_read: u64,
    /// A line that nobody has.
    pub memory: u64,
    /// One pause instruction.
    pub pause: u64,
    /// A system call that gives the processor up, with nobody there to take it.
    pub yield_call: u64,
    /// The cost of parking, for the core that goes to sleep.
    pub park: u64,
    /// The cost of waking one.
    pub wake: u64,
    /// How long it takes from there until the woken core goes on.
    pub wakeup: u64,
    /// How much longer than on this project's machine the instructions between accesses take, in percent.
    pub slower: u64,
}

impl Machine {
    /// All machines of the table.
    #[must_use]
    pub fn all() -> Vec<Machine> {
        vec![Machine::paper(), Machine::epyc(), Machine::xeon16(), Machine::this()]
    }

    /// The machine with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Machine> {
        Machine::all().into_iter().find(|machine| machine.name == name)
    }

    /// Eight sockets of 15 cores (Xeon E7-8870 v2, 2.3 GHz), as in the papers on unlink and on reads.
    #[must_use]
    pub fn paper() -> Machine {
        Machine {
            name: "paper",
            source: "8 x 15 cores, Xeon E7-8870 v2. Lines: an 8-socket Xeon E7-8867L in David, Guerraoui, Trigonakis, \"Everything \
                     you always wanted to know about synchronization\", SOSP 2013, table 2: 109, 289 and 400 cycles within a die, over \
                     one and two hops, at 2.13 GHz; 355 cycles to memory; written down from memory, not compared with \
                     it. System calls: estimates",
            levels: vec![
                Level { cores: 15, transfer: 51_000 },
                Level { cores: 60, transfer: 136_000 },
                Level { cores: 120, transfer: 188_000 },
            ],
            hit: 2_200,
            change: 8_700,
            shared_read: 20_000,
            memory: 167_000,
            pause: 4_300,
            yield_call: 600_000,
            park: 1_500_000,
            wake: 2_000_000,
            wakeup: 5_000_000,
            slower: 200,
        }
    }

    /// Two sockets of 64 cores (EPYC 7763, 8 cores to a cache).
    #[must_use]
    pub fn epyc() -> Machine {
        Machine {
            name: "epyc",
            source: "2 x 64 cores, EPYC 7763. Lines: AnandTech's review of the EPYC 7003 (March 2021), rounded: about 22 ns within \
                     a chiplet, 95 ns within a socket, 200 ns between sockets; \
                     written down from memory, not compared with it. System calls: estimates",
            levels: vec![
                Level { cores: 8, transfer: 22_000 },
                Level { cores: 64, transfer: 95_000 },
                Level { cores: 128, transfer: 200_000 },
            ],
            hit: 1_200,
            change: 5_000,
            shared_read: 15_000,
            memory: 100_000,
            pause: 12_000,
            yield_call: 400_000,
            park: 1_000_000,
            wake: 1_500_000,
            wakeup: 4_000_000,
            slower: 130,
        }
    }

    /// Sixteen virtual processors of a Xeon (Emerald Rapids).
    #[must_use]
    pub fn xeon16() -> Machine {
        Machine {
            name: "xeon16",
            source: "16 virtual processors, Xeon of family 6, model 207. Measured (`cargo bench -p f2fs-benches --bench manycore -- \
                     --hardware`), but for parking, which is an estimate",
            levels: vec![Level { cores: 16, transfer: 37_000 }],
            hit: 2_200,
            change: 4_300,
            shared_read: 17_700,
            memory: 157_000,
            pause: 15_100,
            yield_call: 250_000,
            park: 1_300_000,
            wake: 1_290_000,
            wakeup: 3_590_000,
            slower: 100,
        }
    }

    /// The two processors on which this project is measured (virtual ones, EPYC of family 26).
    #[must_use]
    pub fn this() -> Machine {
        Machine {
            name: "this",
            source: "2 virtual processors, EPYC of family 26. All numbers are \
                     estimates, none is measured",
            levels: vec![Level { cores: 2, transfer: 45_000 }],
            hit: 900,
            change: 2_000,
            shared_read: 10_000,
            memory: 100_000,
            pause: 12_000,
            yield_call: 300_000,
            park: 1_500_000,
            wake: 2_500_000,
            wakeup: 8_000_000,
            slower: 100,
        }
    }

    /// Cores of the machine.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.levels.last().map_or(1, |level| level.cores)
    }

    /// So many cores, in turn one of each smallest group of the machine: where Linux puts processes that it starts, if
    /// nobody binds them.
    #[must_use]
    pub fn spread(&self, cores: usize) -> Vec<usize> {
        let group = self.levels.first().map_or(1, |level| level.cores);
        let groups = (self.cores() / group).max(1);
        (0..cores.min(groups * group)).map(|number| number % groups * group + number / groups).collect()
    }

    /// The same machine, on which lines and system calls cost so many percent; hits and instructions cost what they
    /// did.
    #[must_use]
    pub fn with_costs(&self, percent: u64) -> Machine {
        let mut machine = self.clone();
        for level in &mut machine.levels {
            level.transfer = level.transfer * percent / 100;
        }
        let costs = [
            &mut machine.shared_read,
            &mut machine.memory,
            &mut machine.yield_call,
            &mut machine.park,
            &mut machine.wake,
            &mut machine.wakeup,
        ];
        for cost in costs {
            *cost = *cost * percent / 100;
        }
        machine
    }
}

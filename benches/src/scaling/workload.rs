//! The workloads, and how long their operations take.

use f2fs_nat::Policy;

/// The operations that are measured, or played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Unlink in private directories, with no free node ID left.
    Mwul,
    /// Unlink in a shared directory, with no free node ID left.
    Mwum,
    /// Create in private directories.
    Mwcl,
    /// Create in a shared directory, and write 4 KiB.
    Mwcm,
    /// Rename a private file in its directory.
    Mwrl,
    /// Move private files into a shared directory.
    Mwrm,
    /// Open a private file, five directories deep.
    Mrpl,
    /// Open any file of a shared directory, five directories deep.
    Mrpm,
    /// Open the same file, five directories deep.
    Mrph,
    /// List a private directory of 17 entries.
    Mrdl,
    /// List a shared directory of 16 entries for each core.
    Mrdm,
    /// Read a block of a private file.
    Drbl,
    /// Read a block of one's own in a shared file.
    Drbm,
    /// Read the same block of a shared file.
    Drbh,
    /// Overwrite a block of a private file.
    Dwol,
    /// Overwrite a block of one's own in a shared file.
    Dwom,
    /// Append a block to a private file.
    Dwal,
    /// Cut a block off a private file.
    Dwtl,
    /// Overwrite a block of a private file, and sync it into the log.
    Dwsl,
    /// The same with a journal, which takes the data, too.
    Dwsj,
    /// Allocate, bind and free a node ID, with both balances.
    Nids,
    /// Free a node ID and balance, while few are free.
    NidsShort,
    /// Random reads of one file through a tree of ranges under one lock, on a device. On virtual cores only.
    Tree,
    /// Raise one counter.
    Counter,
    /// Raise a counter of one's own.
    Padded,
    /// Raise a counter under a lock that all spin on.
    Spin,
    /// Raise a counter under a mutex.
    Mutex,
    /// Read under one reader-writer lock.
    Readers,
}

use Workload::*;

/// Workloads, their names in commands and tables, and the nanoseconds of one operation on one thread of this project's
/// machine for `sharded`, as `cargo bench -p f2fs-benches --bench manycore -- --measure` measured them. The part that
/// the model's accesses do not explain is instructions. The tree's is that of its four locked sections alone, with a tree
/// of some 200 states in the cache (`StateTree` with `lock`, `has`, `mark` and an unlock for random blocks; the least of
/// 400 trees in each of three runs).
const TABLE: [(Workload, &str, u64); 28] = [
    (Mwul, "mwul", 3_000),
    (Mwum, "mwum", 3_000),
    (Mwcl, "mwcl", 3_000),
    (Mwcm, "mwcm", 6_500),
    (Mwrl, "mwrl", 3_000),
    (Mwrm, "mwrm", 3_000),
    (Mrpl, "mrpl", 700),
    (Mrpm, "mrpm", 700),
    (Mrph, "mrph", 700),
    (Mrdl, "mrdl", 1_000),
    (Mrdm, "mrdm", 5_000),
    (Drbl, "drbl", 450),
    (Drbm, "drbm", 450),
    (Drbh, "drbh", 450),
    (Dwol, "dwol", 2_000),
    (Dwom, "dwom", 2_000),
    (Dwal, "dwal", 2_000),
    (Dwtl, "dwtl", 2_000),
    (Dwsl, "dwsl", 4_000),
    (Dwsj, "dwsj", 4_000),
    (Nids, "nids", 250),
    (NidsShort, "nids-short", 120),
    (Tree, "tree", 220),
    (Counter, "counter", 3),
    (Padded, "padded", 3),
    (Spin, "spin", 8),
    (Mutex, "mutex", 8),
    (Readers, "readers", 8),
];

impl Workload {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Workload> {
        TABLE.iter().map(|(workload, ..)| *workload)
    }

    /// Those that threads of a real machine can do.
    pub fn real() -> impl Iterator<Item = Workload> {
        Workload::all().filter(|workload| *workload != Tree)
    }

    /// Those that have files, or node IDs.
    pub fn of_files() -> impl Iterator<Item = Workload> {
        Workload::all().filter(|workload| !workload.is_lock())
    }

    /// A counter or a lock, and nothing else.
    #[must_use]
    pub fn is_lock(self) -> bool {
        matches!(self, Counter | Padded | Spin | Mutex | Readers)
    }

    /// Operations of each core that are enough for a prediction: 6 ms of them, between 300 and 4000.
    #[must_use]
    pub fn laps(self) -> u64 {
        (6_000_000 / self.nanoseconds().max(1)).clamp(300, 4000)
    }

    /// Each operation needs memory, or files that were made before.
    #[must_use]
    pub fn leaves_something(self) -> bool {
        matches!(self, Mwul | Mwum | Mwcl | Mwcm | Mwrl | Mwrm | Dwal | Dwtl | Dwsl | Dwsj | Nids | NidsShort)
    }

    fn entry(self) -> (&'static str, u64) {
        let entry = TABLE.iter().find(|(workload, ..)| *workload == self);
        entry.map_or(("", 0), |(_, name, nanoseconds)| (name, *nanoseconds))
    }

    /// Its name in commands and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().0
    }

    /// The workload with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Workload> {
        Workload::all().find(|workload| workload.name() == name)
    }

    /// Nanoseconds of an operation on one thread of this project's machine.
    #[must_use]
    pub fn nanoseconds(self) -> u64 {
        self.entry().1
    }
}

/// The kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The workload.
    pub workload: Workload,
    /// How free node IDs are found.
    pub policy: Policy,
    /// Names are changed under one lock for the directory, as in Linux.
    pub whole_directory: bool,
    /// Bytes of the volume of a workload on files; otherwise as many as are enough.
    pub volume: Option<usize>,
}

impl Subject {
    /// A workload with the library's defaults.
    #[must_use]
    pub fn new(workload: Workload) -> Subject {
        Subject { workload, policy: Policy::Sharded, whole_directory: false, volume: None }
    }

    /// The same with another policy.
    #[must_use]
    pub fn with(self, policy: Policy) -> Subject {
        Subject { policy, ..self }
    }
}

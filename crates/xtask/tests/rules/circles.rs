//! The circles of modules that are there, each with its reason. No other one may come; a line whose circle was opened goes.

/// Crate, its modules that need each other, and why they do.
pub(crate) const KNOWN: [(&str, &[&str], &str); 21] = [
    ("check", &["ahead", "buffers"], "reads ahead and their buffers share the length of a run"),
    (
        "check",
        &["directory", "inode", "pipeline", "tree", "walk", "xattr"],
        "the walk over a tree is recursive: a directory leads to inodes, an inode to a directory",
    ),
    ("check", &["subject", "summary"], "what is checked reads its summaries by itself"),
    (
        "check",
        &["repair::directory", "repair::inode"],
        "an inode is repaired with its entries, these with their inodes",
    ),
    ("check", &["repair::entries", "repair::grow"], "entries that find no room let their directory grow, by entries"),
    (
        "device",
        &["device", "error", "flush_gate", "info", "queue", "request", "ticket", "zoned"],
        "the trait names its zones, and the zoned device implements the trait",
    ),
    ("device-test", &["pmem::cut", "pmem::lines"], "a power cut is asked for at changes of lines"),
    (
        "extent",
        &["fast", "guard", "queue", "table", "wait"],
        "the table hands out guards and tickets, which give themselves back to it",
    ),
    ("format", &["checkpoint", "nat_bits", "summary"], "a pack holds summaries and the bits of free NIDs"),
    ("format", &["crc", "superblock"], "the checksum of F2FS begins with the superblock's magic number"),
    ("format", &["inode", "node", "path"], "a node block is an inode or not, and an inode is a node block"),
    ("journal", &["checksum", "record"], "the sum of a record begins behind its header"),
    ("journal", &["journal", "recovered"], "what is recovered is taken out of the journal that it came from"),
    ("nat", &["baseline", "sharded", "table"], "a baseline is a kind of the table of NAT blocks, and is built on it"),
    (
        "segment",
        &["ages", "allocate", "index", "lanes", "manager", "opening", "pressure", "sections", "victim"],
        "the manager owns its parts, whose files hold the manager's methods on them",
    ),
    (
        "sync",
        &["manycore::core", "manycore::lines"],
        "a core counts its accesses to lines, a line the accesses of cores",
    ),
    ("ublk", &["ring", "server", "worker"], "the server owns its workers, which count into it"),
    ("uring", &["lock", "options"], "an error of opening names the holder of the lock"),
    (
        "volume",
        &["flight", "node", "nodes", "roll_forward", "synced", "tree", "volume"],
        "a sync waits in a queue of the volume, and brings along a write that ends in an operation on the volume",
    ),
    (
        "workload",
        &[
            "fxmark::error",
            "fxmark::measured",
            "fxmark::names",
            "fxmark::prepare",
            "fxmark::run",
            "fxmark::setting",
            "fxmark::work",
        ],
        "a setting knows how many files it prepares, and what is prepared depends on the setting",
    ),
    ("workload", &["reads::files", "reads::work"], "the volume of the bench is made by the work that reads it"),
];

//! The circles of modules that are there, each with its reason. No other one may come; a line whose circle was opened
//! goes.

/// Crate, its modules that need each other, and why they do.
pub(crate) const KNOWN: [(&str, &[&str], &str); 14] = [
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
    ("format", &["inode", "node", "path"], "a node block is an inode or not, and an inode is a node block"),
    ("journal", &["journal", "recovered"], "what is recovered is taken out of the journal that it came from"),
    ("nat", &["baseline", "sharded", "table"], "a baseline is a kind of the table of NAT blocks, and is built on it"),
    (
        "sync",
        &["manycore::core", "manycore::lines"],
        "a core counts its accesses to lines, a line the accesses of cores",
    ),
    ("uring", &["lock", "options"], "an error of opening names the holder of the lock"),
    (
        "volume",
        &["flight", "journal", "node", "nodes", "op", "roll_forward", "synced", "tree", "volume"],
        "a sync waits in a queue of the volume, or of its journal, and brings along a write that ends in an operation on the volume",
    ),
    ("workload", &["reads::files", "reads::work"], "the volume of the bench is made by the work that reads it"),
];

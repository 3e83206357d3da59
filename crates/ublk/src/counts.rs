//! What a server has done.

/// The counts of a server's queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueCounts {
    /// Requests of the kernel.
    pub requests: u64,
    /// Of these, answered with an error.
    pub failed: u64,
    /// Entries into the kernel for them: those of the device below, and of user copies, come on top.
    pub entries: u64,
}

//! Why there is no device in memory. No locks.

/// Why there is no such device in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// It would have more blocks than one can have.
    #[error("a device of {blocks} blocks in memory: the most is {max}")]
    TooLarge {
        /// Its blocks.
        blocks: u64,
        /// The most blocks that one can have.
        max: u64,
    },
    /// The system has no memory for its locks.
    #[error("a device of {blocks} blocks in memory: the system has no {bytes} bytes for its {groups} locks")]
    NoMemory {
        /// Its blocks.
        blocks: u64,
        /// Its locks.
        groups: u64,
        /// The memory that they take.
        bytes: u64,
    },
}

//! When memory of nodes that were written is worth giving back to the system.
//!
//! Dirty nodes take memory until a checkpoint has written them: up to 2 GiB with a file of 4 TB that is reserved at once.
//! What they leave is free then, and the allocator keeps it for the next ones. While there are such, giving it back
//! would only have the kernel hand it out again; so it goes when a time has passed in which few nodes were written.
//!
//! No locks: the thread that writes checkpoints by age has this.

/// Nodes that are written in a quiet time at most (4 MiB).
const FEW: u64 = 1024;
/// Nodes whose memory is worth the time that giving back takes (16 MiB).
const MANY: u64 = 4096;

/// The nodes that were written since memory was given back.
#[derive(Debug, Default)]
pub(crate) struct Released {
    /// The count of written nodes when it was last looked at.
    seen: u64,
    /// Those since memory was given back.
    nodes: u64,
}

impl Released {
    /// Looks at how many nodes were written since the volume was opened. Whether it is time to give memory back.
    pub(crate) fn is_due(&mut self, written: u64) -> bool {
        let new = written - self.seen;
        self.seen = written;
        self.nodes += new;
        let is_due = new <= FEW && self.nodes >= MANY;
        if is_due {
            self.nodes = 0;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_goes_once_many_nodes_were_written_and_few_are() {
        let mut released = Released::default();
        let mut written = 0;
        let mut look = |nodes| {
            written += nodes;
            released.is_due(written)
        };
        assert!(!look(0) && !look(MANY), "they are being written");
        assert!(!look(FEW + 1), "more of them");
        assert!(look(FEW) && !look(0), "once");
        // Many times a few are many.
        assert_eq!((1..=MANY / FEW).filter(|_| look(FEW)).count(), 1);
    }
}

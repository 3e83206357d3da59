//! Reading a lane piece by piece.

use zerocopy::FromBytes;

use crate::geometry::HEADER;
use crate::geometry::Ring;
use crate::record::Header;
use crate::{Medium, MediumError};

/// Bytes that are read at once.
const PIECE: u64 = 64 << 10;

/// A piece of a ring in memory. It reads on by pieces; where a piece cannot be read, by the grain, so that only bad
/// grains are lost.
#[derive(Debug)]
pub(crate) struct Window<'a, M> {
    medium: &'a M,
    ring: Ring,
    bytes: Vec<u8>,
    /// The position of the first byte, and how many there are.
    at: u64,
    filled: usize,
    /// Nothing is read from here on.
    limit: u64,
}

impl<'a, M: Medium> Window<'a, M> {
    /// Of the positions from `head` (the beginning of a grain) that the ring has at once.
    pub(crate) fn new(medium: &'a M, ring: Ring, head: u64) -> Self {
        let bytes = vec![0; PIECE.min(ring.bytes) as usize];
        Window { medium, ring, bytes, at: head, filled: 0, limit: head.saturating_add(ring.bytes) }
    }

    /// Up to `most` bytes from this position: one at least, if it lies below the limit.
    ///
    /// # Errors
    /// Those of the medium for the grain at this position.
    pub(crate) fn slice(&mut self, position: u64, most: usize) -> Result<&[u8], MediumError> {
        if position < self.at || position - self.at >= self.filled as u64 {
            self.fill(position / self.ring.grain * self.ring.grain)?;
        }
        let from = (position.saturating_sub(self.at) as usize).min(self.filled);
        let to = from.saturating_add(most).min(self.filled);
        Ok(&self.bytes[from..to])
    }

    fn fill(&mut self, position: u64) -> Result<(), MediumError> {
        let wanted = self.limit.saturating_sub(position).min(self.bytes.len() as u64) as usize;
        let grain = wanted.min(self.ring.grain as usize);
        (self.at, self.filled) = (position, 0);
        self.filled = match self.ring.read(self.medium, position, &mut self.bytes[..wanted]) {
            Ok(()) => wanted,
            Err(_) if wanted > grain => {
                self.ring.read(self.medium, position, &mut self.bytes[..grain])?;
                grain
            }
            Err(error) => return Err(error),
        };
        Ok(())
    }

    /// The header of a record at this position, if one stands there.
    ///
    /// # Errors
    /// As for [`slice`](Self::slice).
    pub(crate) fn header(&mut self, position: u64) -> Result<Option<Header>, MediumError> {
        // A header does not go beyond its grain.
        Ok(Header::read_from_bytes(self.slice(position, HEADER)?).ok())
    }
}

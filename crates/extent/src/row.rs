//! Rows of places that are found without a lock.
//!
//! ```text
//! row of 1024 places or fewer ── place
//! longer row ── piece ── place           a piece is made when the first of its places is wanted
//! ```
//!
//! A short row is found with one load less. A long one is that of a file of more than 32 GiB; only the pieces that its
//! blocks in use lie in take memory, since a file may be as long as it likes with hardly a block in it.
//!
//! **Rules.** Rows and pieces are written once, and then never move or go until their owner does. Two threads may make
//! the same piece; the later drops its own.

use f2fs_sync::OnceLock;

use crate::geometry::PIECE;

/// Places that begin as `T::default()`.
#[derive(Debug)]
pub(crate) struct Row<T> {
    /// All of a short row, none of a long one.
    whole: Box<[T]>,
    pieces: Box<[OnceLock<Box<[T]>>]>,
}

impl<T: Default> Row<T> {
    /// A row of so many places.
    pub(crate) fn new(places: usize) -> Row<T> {
        let (whole, pieces) = if places <= PIECE { (places, 0) } else { (0, places.div_ceil(PIECE)) };
        Row { whole: new_places(whole), pieces: (0..pieces).map(|_| OnceLock::new()).collect() }
    }

    /// The place, if the row is so long and its piece is there.
    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<&T> {
        self.whole.get(place).or_else(|| self.pieces.get(place / PIECE)?.get()?.get(place % PIECE))
    }

    /// The place, with its piece made if need be; `None` beyond the end of the row.
    pub(crate) fn get_or_make(&self, place: usize) -> Option<&T> {
        if let Some(piece) = self.pieces.get(place / PIECE).filter(|piece| piece.get().is_none()) {
            let new = new_places(PIECE);
            piece.get_or_init(|| new);
        }
        self.get(place)
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        let made = self.pieces.iter().filter_map(OnceLock::get);
        let in_pieces: usize = made.map(|places| size_of_val(&**places)).sum();
        size_of_val(&*self.whole) + size_of_val(&*self.pieces) + in_pieces
    }
}

fn new_places<T: Default>(places: usize) -> Box<[T]> {
    (0..places).map(|_| T::default()).collect()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use f2fs_sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;

    #[test]
    fn every_place_is_one_of_its_own_and_stays() {
        for places in [1, 64, PIECE, 2 * PIECE, 8 * PIECE] {
            let row = Row::<AtomicU32>::new(places);
            for place in 0..places {
                let there = row.get_or_make(place).unwrap();
                assert_eq!(there.swap(1 + place as u32, Relaxed), 0, "place {place} of {places}");
            }
            for place in 0..places {
                assert_eq!(row.get(place).map(|there| there.load(Relaxed)), Some(1 + place as u32));
            }
            assert!(row.get(places).is_none() && row.get_or_make(places).is_none());
        }
    }

    #[test]
    fn a_row_of_one_piece_has_no_others() {
        let row = Row::<u64>::new(PIECE);
        assert_eq!(row.bytes(), PIECE * 8);
        assert!(row.get(PIECE - 1).is_some(), "it is there from the start");
    }

    #[test]
    fn a_place_far_behind_takes_one_piece() {
        let row = Row::<u64>::new(1 << 17);
        assert!(row.get((1 << 17) - 1).is_none());
        row.get_or_make((1 << 17) - 1).unwrap();
        assert!(row.get((1 << 17) - 1 - PIECE).is_none());
        assert_eq!(row.bytes(), (1 << 17) / PIECE * size_of::<OnceLock<Box<[u64]>>>() + PIECE * 8);
    }
}

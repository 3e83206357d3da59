//! A request's range, mode and policy.

use f2fs_sync::Arc;

use crate::geometry::{COVERING_BLOCKS, MAPPED_BLOCKS};
use crate::range::BlockRange;
use crate::word::Mode;

/// One range in one mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) range: BlockRange,
    pub(crate) mode: Mode,
}

impl Claim {
    /// Whether the claim is kept in the queue as a covering range, and not in the words of its blocks.
    #[inline]
    pub(crate) fn covering(self) -> bool {
        self.range.blocks_less_one() >= COVERING_BLOCKS - 1 || self.range.last() >= MAPPED_BLOCKS
    }

    /// Whether the two cannot be held together by different holders.
    pub(crate) fn conflicts(self, other: Claim) -> bool {
        self.mode.conflicts(other.mode) && self.range.overlaps(other.range)
    }
}

/// The claims of one request: disjoint and ascending. They are granted all at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Claims {
    One(Claim),
    Many(Arc<[Claim]>),
}

impl Claims {
    /// Makes any claims disjoint: where they overlap the stronger mode counts; neighbours in one mode become one.
    pub(crate) fn normalized(claims: &[Claim]) -> Claims {
        let mut disjoint: Vec<Claim> = Vec::with_capacity(claims.len());
        // The points where coverage changes: before the first block of a claim, and after its last.
        let mut starts: Vec<u64> = claims.iter().map(|claim| claim.range.first()).collect();
        starts.extend(claims.iter().filter_map(|claim| claim.range.last().checked_add(1)));
        starts.sort_unstable();
        starts.dedup();
        for (at, &first) in starts.iter().enumerate() {
            let last = starts.get(at + 1).map_or(u64::MAX, |&next| next - 1);
            let here = claims.iter().filter(|claim| claim.range.contains(first));
            let (Some(mode), Some(range)) = (here.map(|claim| claim.mode).max(), BlockRange::new(first, last)) else {
                continue;
            };
            match disjoint.last_mut() {
                Some(previous) if previous.mode == mode && previous.range.last().checked_add(1) == Some(first) => {
                    previous.range = BlockRange::new(previous.range.first(), last).unwrap_or(previous.range);
                }
                _ => disjoint.push(Claim { range, mode }),
            }
        }
        match disjoint[..] {
            [one] => Claims::One(one),
            _ => Claims::Many(disjoint.into()),
        }
    }

    pub(crate) fn as_slice(&self) -> &[Claim] {
        match self {
            Claims::One(claim) => std::slice::from_ref(claim),
            Claims::Many(claims) => claims,
        }
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Claim> {
        self.as_slice().iter()
    }

    /// The claims that live in words.
    pub(crate) fn in_words(&self) -> impl Iterator<Item = Claim> + '_ {
        self.iter().copied().filter(|claim| !claim.covering())
    }

    /// Whether a claim is kept as a covering range.
    pub(crate) fn covering(&self) -> bool {
        self.iter().any(|claim| claim.covering())
    }

    /// Whether some claim of one and some claim of the other cannot be held together.
    pub(crate) fn conflict(&self, other: &Claims) -> bool {
        self.iter().any(|&a| other.iter().any(|&b| a.conflicts(b)))
    }

    /// Whether the two have a block in common.
    pub(crate) fn overlap(&self, other: &[Claim]) -> bool {
        self.iter().any(|a| other.iter().any(|b| a.range.overlaps(b.range)))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn claim(first: u64, last: u64, mode: Mode) -> Claim {
        Claim { range: BlockRange::new(first, last).expect("a range of blocks"), mode }
    }

    #[test]
    fn overlaps_take_the_stronger_mode_and_neighbours_join() {
        use Mode::{Exclusive, Shared};
        let claims = Claims::normalized(&[
            claim(20, 30, Shared),
            claim(0, 9, Shared),
            claim(5, 6, Exclusive),
            claim(10, 12, Shared),
            claim(25, u64::MAX, Shared),
        ]);
        let expected = [claim(0, 4, Shared), claim(5, 6, Exclusive), claim(7, 12, Shared), claim(20, u64::MAX, Shared)];
        assert_eq!(claims.as_slice(), expected);
    }

    #[test]
    fn normalized_claims_equal_a_map_of_blocks() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut next = |below: u64| random.u64(..below);
        for _ in 0..2000 {
            let given: Vec<Claim> = (0..next(6))
                .map(|_| {
                    let first = next(20);
                    let mode = if next(2) == 0 { Mode::Shared } else { Mode::Exclusive };
                    claim(first, first + next(8), mode)
                })
                .collect();
            let claims = Claims::normalized(&given);
            for block in 0..40 {
                let expected = given.iter().filter(|c| c.range.contains(block)).map(|c| c.mode).max();
                let got: Vec<Mode> = claims.iter().filter(|c| c.range.contains(block)).map(|c| c.mode).collect();
                assert_eq!(got, expected.into_iter().collect::<Vec<_>>(), "block {block} of {given:?}");
            }
            assert!(claims.as_slice().is_sorted_by(|a, b| a.range.last() < b.range.first()));
        }
    }

    #[test]
    fn large_and_far_ranges_cover() {
        assert!(!claim(0, COVERING_BLOCKS - 2, Mode::Shared).covering());
        assert!(claim(0, COVERING_BLOCKS - 1, Mode::Shared).covering());
        assert!(!claim(MAPPED_BLOCKS - 1, MAPPED_BLOCKS - 1, Mode::Shared).covering());
        assert!(claim(MAPPED_BLOCKS, MAPPED_BLOCKS, Mode::Shared).covering());
    }
}

//! Blocks of a file of which nobody knows how far they are: a sync that was to make them durable did not come to its
//! end, or they were written while it went on.

use std::collections::BTreeSet;

use f2fs_volume::FsyncMode;

use super::{BLOCK, Expectation};
use crate::record::Lane;
use crate::tree::Content;

/// These blocks, and what they may hold.
#[derive(Debug)]
pub(super) struct Torn<'a> {
    blocks: BTreeSet<usize>,
    /// Contents of the file: each of the blocks is as in one of them. `None`: anything.
    versions: Option<Vec<&'a [u8]>>,
}

impl Expectation<'_> {
    /// Some blocks of a file that had these contents.
    pub(super) fn torn<'a>(&self, blocks: BTreeSet<usize>, versions: impl Iterator<Item = &'a Content>) -> Torn<'a> {
        let strict = self.recording.options.volume.fsync == FsyncMode::Strict;
        let bytes = |content: &'a Content| match content {
            Content::File(bytes) => Some(bytes.as_slice()),
            _ => None,
        };
        Torn { blocks, versions: strict.then(|| versions.filter_map(bytes).collect()) }
    }
}

impl Torn<'_> {
    /// Blocks that may hold anything.
    #[cfg(test)]
    pub(super) fn anyhow(blocks: BTreeSet<usize>) -> Torn<'static> {
        Torn { blocks, versions: None }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Whether a block may have this content.
    fn may_hold(&self, at: usize, found: &[u8]) -> bool {
        // What a file does not reach is zeros.
        let same = |version: &[u8]| {
            let wanted = version.iter().skip(at * BLOCK).copied().chain(std::iter::repeat(0));
            found.iter().copied().eq(wanted.take(found.len()))
        };
        let versions = self.versions.as_ref();
        self.blocks.contains(&at) && versions.is_none_or(|all| all.iter().any(|version| same(version)))
    }

    /// Whether a file is as wanted but for these blocks.
    pub(super) fn explains(&self, found: &Content, wanted: &Content) -> bool {
        let (Content::File(found), Content::File(wanted)) = (found, wanted) else { return false };
        found.len() == wanted.len() && self.explains_blocks(found, wanted)
    }

    /// Whether a file ends with one of these blocks, and all that is missing behind it are such blocks; others differ
    /// in such blocks alone.
    pub(super) fn explains_end(&self, found: &Content, wanted: &Content) -> bool {
        let (Content::File(found), Content::File(wanted)) = (found, wanted) else { return false };
        let (end, all) = (found.len() / BLOCK, wanted.len().div_ceil(BLOCK));
        let off = found.len() == end * BLOCK && end < all && end > 0;
        off && (end - 1..all).all(|at| self.blocks.contains(&at)) && self.explains_blocks(found, wanted)
    }

    fn explains_blocks(&self, found: &[u8], wanted: &[u8]) -> bool {
        let mut blocks = found.chunks(BLOCK).zip(wanted.chunks(BLOCK)).enumerate();
        blocks.all(|(at, (found, wanted))| found == wanted || self.may_hold(at, found))
    }
}

/// The blocks of a file that operations `from..to` wrote, with other bytes or with the same.
pub(super) fn written(lane: &Lane, from: usize, to: usize, ino: u32) -> BTreeSet<usize> {
    let steps = lane.steps[from..to].iter().enumerate();
    let of = steps.filter_map(|(at, step)| {
        let (path, range) = step.op.writes()?;
        (lane.history(from + at).names.get(path) == Some(&ino)).then_some(range)
    });
    of.flat_map(|range| range.start / BLOCK..range.end.div_ceil(BLOCK)).collect()
}

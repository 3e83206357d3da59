//! Names that are not found by their own hash and bytes: in encrypted directories, and in casefolded ones.
//!
//! An encrypted name is shown, and asked for, by a text that holds its hash ([`NoKeyName`]). A casefolded directory is
//! hashed by the folded name. The folded form of an ASCII name is the one in small letters; Unicode's tables, which
//! fold the others, are not here, so those are looked for in the bucket of their own bytes, where names are that fold
//! to themselves, and then in all blocks.

use f2fs_format::dentry::{DentryView, Entry};
use f2fs_format::encryption::{NoKeyName, no_key_name};
use f2fs_format::hash::{bucket_range, dentry_hash, folded_ascii_hash};
use f2fs_volume::Volume;
use f2fs_volume::tree::present_blocks;

use super::lookup::found;
use super::{Directory, Found, is_inline};
use crate::FsError;

/// How well an entry fits a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Not,
    /// But for the case of letters.
    Folded,
    Exact,
}

/// The best match so far.
#[derive(Debug, Default)]
struct Best {
    exact: Option<Found>,
    folded: Option<Found>,
}

impl Best {
    /// Looks at the entries of a block; tells whether nothing better can come.
    fn look(&mut self, view: DentryView<'_>, fit: &impl Fn(&Entry<'_>) -> Fit) -> Result<bool, FsError> {
        for entry in view.entries() {
            let entry = entry?;
            match fit(&entry) {
                Fit::Exact => {
                    self.exact = Some(found(entry));
                    return Ok(true);
                }
                Fit::Folded if self.folded.is_none() => self.folded = Some(found(entry)),
                Fit::Folded | Fit::Not => {}
            }
        }
        Ok(false)
    }

    fn into_found(self) -> Option<Found> {
        self.exact.or(self.folded)
    }
}

impl Directory {
    /// The name of an entry as it is shown.
    pub(super) fn shown(&self, entry: &Entry<'_>) -> Vec<u8> {
        if self.form.encrypted && !entry.is_dot() { no_key_name(entry.hash, entry.name) } else { entry.name.to_vec() }
    }

    /// Looks for a name as it is shown. The caller holds its stripe.
    pub(super) fn find_foreign(&self, volume: &Volume, name: &[u8]) -> Result<Option<Found>, FsError> {
        if self.form.encrypted {
            let Some(wanted) = NoKeyName::parse(name) else { return Ok(None) };
            let fit = |entry: &Entry<'_>| {
                let this = entry.hash == wanted.hash() && !entry.is_dot() && wanted.means(entry.name);
                if this { Fit::Exact } else { Fit::Not }
            };
            return self.find_in_bucket(volume, wanted.hash(), &fit);
        }
        let exact = |entry: &Entry<'_>| if entry.name == name { Fit::Exact } else { Fit::Not };
        if let Some(hash) = folded_ascii_hash(name) {
            let fit = |entry: &Entry<'_>| match exact(entry) {
                Fit::Not if entry.name.eq_ignore_ascii_case(name) => Fit::Folded,
                fit => fit,
            };
            return self.find_in_bucket(volume, hash, &fit);
        }
        match self.find_in_bucket(volume, dentry_hash(name), &exact)? {
            None => self.find_anywhere(volume, &exact),
            found => Ok(found),
        }
    }

    /// Looks at the inline entries; `None` if the directory has none.
    fn find_inline(&self, volume: &Volume, fit: &impl Fn(&Entry<'_>) -> Fit) -> Result<Option<Option<Found>>, FsError> {
        let block = self.node.read();
        if !is_inline(block.inode()) {
            return Ok(None);
        }
        let mut best = Best::default();
        best.look(DentryView::inline(block.inode().inline_data(volume.features())), fit)?;
        Ok(Some(best.into_found()))
    }

    /// Looks where entries with this hash are.
    fn find_in_bucket(
        &self,
        volume: &Volume,
        hash: u32,
        fit: &impl Fn(&Entry<'_>) -> Fit,
    ) -> Result<Option<Found>, FsError> {
        if let Some(found) = self.find_inline(volume, fit)? {
            return Ok(found);
        }
        let blocks = (0..self.depth()).flat_map(|level| bucket_range(level, self.dir_level, hash));
        let mut best = Best::default();
        for block in blocks {
            if self.look_at(volume, block, &mut best, fit)? {
                break;
            }
        }
        Ok(best.into_found())
    }

    /// Looks at all entries.
    fn find_anywhere(&self, volume: &Volume, fit: &impl Fn(&Entry<'_>) -> Fit) -> Result<Option<Found>, FsError> {
        if let Some(found) = self.find_inline(volume, fit)? {
            return Ok(found);
        }
        let blocks = self.node.read().inode().i_size.get().div_ceil(f2fs_format::BLOCK_SIZE as u64);
        let (mut block, mut best) = (0, Best::default());
        while block < blocks {
            let mut present = Vec::new();
            block = present_blocks(volume, &self.node, block, blocks, &mut present)?;
            for number in present {
                if self.look_at(volume, number, &mut best, fit)? {
                    return Ok(best.into_found());
                }
            }
        }
        Ok(best.into_found())
    }

    fn look_at(
        &self,
        volume: &Volume,
        block: u64,
        best: &mut Best,
        fit: &impl Fn(&Entry<'_>) -> Fit,
    ) -> Result<bool, FsError> {
        let Some(page) = self.page(volume, block)? else { return Ok(false) };
        let data = page.data.read();
        if page.is_dead() { Ok(false) } else { best.look(DentryView::block(&data), fit) }
    }

    /// The hash under which an entry with these bytes is put into memory when it is recovered; `None`: that of the
    /// bytes. Behind the name in the inode stands the hash, if both key and folding make it. A folded name beyond ASCII
    /// gets the hash of its bytes: it is found by looking everywhere.
    pub(crate) fn recovered_hash(&self, name: &[u8], behind: &[u8]) -> Option<u32> {
        match (self.form.encrypted, self.form.casefolded) {
            (true, true) => behind.first_chunk().map(|hash| u32::from_le_bytes(*hash)),
            (false, true) => Some(folded_ascii_hash(name).unwrap_or_else(|| dentry_hash(name))),
            (true, false) => Some(dentry_hash(name)),
            (false, false) => None,
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

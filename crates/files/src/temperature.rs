//! Which log a file's data goes to: how soon it is expected to change.
//!
//! | Data | Log | Source |
//! |---|---|---|
//! | directory blocks | hot | `fs/f2fs/segment.c`, `__get_segment_type_6` |
//! | files with the cold mark; moved by the cleaner | cold | the same |
//! | files with the hot mark | hot | the same |
//! | others, by their write hint | short-lived: hot; extremely long-lived: cold; else warm | `f2fs_rw_hint_to_seg_type` |
//!
//! A new regular file gets its mark by its name: the superblock lists extensions of cold files (`jpg`, `mp4`, ...) and
//! of hot ones (`db`). Hints are per open inode and never stored, as with `fcntl(F_SET_RW_HINT)`.

use f2fs_format::LogType;
use f2fs_format::inode::advise;
use f2fs_format::superblock::SuperBlock;
use f2fs_sync::atomic::Ordering;

use crate::inode::Inode;

/// How long what is written to a file is expected to live (`RWH_WRITE_LIFE_*` of `fcntl(2)`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WriteHint {
    /// Nothing was said.
    #[default]
    NotSet,
    /// Nothing is known.
    None,
    /// Short: hot data.
    Short,
    /// Medium.
    Medium,
    /// Long.
    Long,
    /// Extremely long: cold data.
    Extreme,
}

impl WriteHint {
    const ALL: [WriteHint; 6] =
        [WriteHint::NotSet, WriteHint::None, WriteHint::Short, WriteHint::Medium, WriteHint::Long, WriteHint::Extreme];

    /// The number in `fcntl(2)`.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The hint with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<WriteHint> {
        WriteHint::ALL.get(usize::from(number)).copied()
    }
}

/// The mark of a file that is stored with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Temperature {
    /// Changes often.
    Hot,
    /// No mark: the hint decides.
    Warm,
    /// Written once.
    Cold,
}

/// The log of a file with these marks and this hint.
pub(crate) fn log_of(marks: u8, hint: WriteHint) -> LogType {
    if marks & advise::COLD != 0 {
        LogType::ColdData
    } else if marks & advise::HOT != 0 || hint == WriteHint::Short {
        LogType::HotData
    } else if hint == WriteHint::Extreme {
        LogType::ColdData
    } else {
        LogType::WarmData
    }
}

/// The mark of a new file of this name (`set_file_temperature` in `fs/f2fs/namei.c`). The first extension of the list
/// decides that stands behind a dot anywhere in the name, but not at its start; `*` is every name.
pub(crate) fn marks_of_name(superblock: &SuperBlock, name: &[u8]) -> u8 {
    let list = &superblock.extension_list;
    let cold = (superblock.extension_count.get() as usize).min(list.len());
    let all = cold.saturating_add(usize::from(superblock.hot_ext_count)).min(list.len());
    let extensions = &list[..all];
    let mut first = extensions.iter().position(|extension| extension[..2] == *b"*\0");
    for dot in (1..name.len()).filter(|at| name[*at] == b'.') {
        let before = &extensions[..first.unwrap_or(all)];
        first = before.iter().position(|extension| begins_with(&name[dot + 1..], extension)).or(first);
    }
    match first {
        Some(index) if index < cold => advise::COLD,
        Some(_) => advise::HOT,
        None => 0,
    }
}

/// Whether what stands behind a dot of a name begins with an extension of the list, in upper or lower case
/// (`is_extension_exist`: a further ending may follow, as with unfinished downloads).
#[inline]
fn begins_with(ending: &[u8], extension: &[u8; 8]) -> bool {
    // Each new file asks for all of them, and nearly all differ in the first letter, by more than the bit of its case.
    if ending.first().is_none_or(|byte| (byte ^ extension[0]) & !0x20 != 0) || extension[0] == 0 {
        return false;
    }
    let len = extension.iter().position(|letter| *letter == 0).unwrap_or(extension.len());
    ending.get(..len).is_some_and(|ending| ending.eq_ignore_ascii_case(&extension[..len]))
}

impl Inode {
    /// The write hint of the open inode.
    pub(crate) fn hint(&self) -> WriteHint {
        WriteHint::from_number(self.hint.load(Ordering::Relaxed)).unwrap_or_default()
    }

    /// The log that its data goes to.
    pub(crate) fn log(&self) -> LogType {
        log_of(self.mark.get(&self.node), self.hint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_decide_as_in_the_kernel() {
        let mut superblock = SuperBlock::read(&[0; f2fs_format::BLOCK_SIZE]);
        superblock.extension_list[0][..3].copy_from_slice(b"jpg");
        superblock.extension_list[1][..3].copy_from_slice(b"mp4");
        superblock.extension_list[2][..2].copy_from_slice(b"db");
        (superblock.extension_count, superblock.hot_ext_count) = (2.into(), 1);
        for (name, marks) in [
            (&b"photo.jpg"[..], advise::COLD),
            (b"PHOTO.JPG", advise::COLD),
            (b"film.mp4.part", advise::COLD),
            (b"mail.db", advise::HOT),
            (b"mail.db-journal", advise::HOT),
            (b".jpg", 0),
            (b"a.jp", 0),
            (b"jpg", 0),
            (b"a.txt", 0),
            (b"", 0),
        ] {
            assert_eq!(marks_of_name(&superblock, name), marks, "{}", String::from_utf8_lossy(name));
        }
        // A damaged list: an extension without a letter is no ending, whatever stands behind the dot.
        superblock.extension_list[0] = [0; 8];
        assert_eq!(marks_of_name(&superblock, b"photo.\0"), 0);
        assert_eq!(marks_of_name(&superblock, b"photo. jpg"), 0);
        superblock.extension_list[1][..2].copy_from_slice(b"*\0");
        assert_eq!(marks_of_name(&superblock, b"mail.db"), advise::COLD, "every name");
        superblock.extension_list[1] = [0; 8];
        superblock.extension_count = 1000.into();
        assert_eq!(marks_of_name(&superblock, b"mail.db"), advise::COLD, "a count beyond the list");
    }

    #[test]
    fn marks_go_before_hints() {
        assert_eq!(log_of(0, WriteHint::NotSet), LogType::WarmData);
        assert_eq!(log_of(0, WriteHint::Short), LogType::HotData);
        assert_eq!(log_of(0, WriteHint::Extreme), LogType::ColdData);
        assert_eq!(log_of(advise::HOT, WriteHint::Extreme), LogType::HotData);
        assert_eq!(log_of(advise::COLD | advise::HOT, WriteHint::Short), LogType::ColdData);
        assert_eq!(WriteHint::from_number(5), Some(WriteHint::Extreme));
        assert_eq!(WriteHint::from_number(6), None);
    }
}

//! Advice to the system.

use core::ffi::c_void;
use core::mem::MaybeUninit;

use rustix::mm::{Advice, madvise};

/// Bytes of a huge page of most processors.
pub(crate) const HUGE: usize = 2 << 20;

/// Asks the system for huge pages for memory that is about to be written for the first time, as far as whole ones of
/// 2 MiB fit into it. It may have none, or be told to give none; nothing else changes then either.
///
/// ```
/// let mut table: Vec<u64> = Vec::with_capacity(1 << 20);
/// f2fs_frames::prefer_huge_pages(table.spare_capacity_mut());
/// table.resize(1 << 20, 0);
/// ```
pub fn prefer_huge_pages<T>(memory: &mut [MaybeUninit<T>]) {
    let begin = memory.as_mut_ptr().cast::<u8>();
    let before = begin.align_offset(HUGE);
    let Some(whole) = size_of_val(memory).checked_sub(before).map(|bytes| bytes / HUGE * HUGE) else { return };
    if whole != 0 {
        let from = begin.wrapping_add(before).cast::<c_void>();
        // SAFETY: the range lies inside of the slice. The advice does not change what is in it, or who may use it.
        let _ = unsafe { madvise(from, whole, Advice::LinuxHugepage) };
    }
}

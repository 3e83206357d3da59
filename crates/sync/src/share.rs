//! Cloning an [`Arc`] where others may clone the same one.

use crate::Arc;

/// Another reference to the same value: `Arc::clone`, which the counting half puts on record.
///
/// A clone writes the line of the reference count, which all who clone the same `Arc` share. Use this for those that threads
/// have in common (an inode, a page), so that the lines they cost are counted.
#[cfg(not(f2fs_counting))]
#[inline(always)]
#[must_use]
pub fn share<T: ?Sized>(arc: &Arc<T>) -> Arc<T> {
    Arc::clone(arc)
}

/// Another reference to the same value: `Arc::clone`, on record.
///
/// The counts stand right before the value, as far before it as its alignment and their size ask for.
#[cfg(f2fs_counting)]
#[must_use]
#[track_caller]
pub fn share<T: ?Sized>(arc: &Arc<T>) -> Arc<T> {
    let counts = (2 * size_of::<usize>()).next_multiple_of(align_of_val(&**arc));
    let address = Arc::as_ptr(arc).cast::<u8>().addr() - counts;
    drop(crate::counting_half::Word::written_at(address, std::any::type_name::<Arc<T>>()));
    Arc::clone(arc)
}

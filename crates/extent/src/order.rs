//! Two ordering hints that only loom builds need.

use f2fs_sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst, fence};

/// Orders the write of one variable before the read of another. Loom needs it, since it does not order sequentially
/// consistent accesses fully: such a read may return a variable's first value although it was overwritten. Elsewhere
/// the accesses themselves are ordered, and on x86-64 the write is the barrier.
#[inline(always)]
pub(crate) fn store_load() {
    if cfg!(loom) {
        fence(SeqCst);
    }
}

/// The value to try a compare-and-swap with first: the present one.
///
/// Of all accesses to a variable loom remembers the last; a thread that reads and then swaps would hide the read that
/// another thread made before, and loom would not try the other order. There, the swap is tried without reading, and
/// may fail.
#[inline(always)]
pub(crate) fn first_guess(word: &AtomicU64) -> u64 {
    if cfg!(loom) { 0 } else { word.load(Relaxed) }
}

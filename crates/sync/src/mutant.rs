//! Mutants: one-line faults that a model must find.
//!
//! A model that passes proves little until it is seen to fail. Each model therefore has a mutant: the line of production
//! code that the model is about, left out or spoilt when [`mutant`] says so. In production [`mutant`] is the constant
//! `false` and the compiler removes the test; in the halves for models it compares with the environment variable `F2FS_MUTANT`, so
//! one build serves all mutants. So it does with the feature `mutants`, for tests that are no
//! models (`f2fs-trials`); nothing that ships turns it on.
//!
//! ```
//! use f2fs_sync::atomic::{Ordering::SeqCst, fence};
//! use f2fs_sync::mutant;
//!
//! // Without the fence, neither side of the pair need see the other's store.
//! if !mutant("gate_enter_no_fence") {
//!     fence(SeqCst);
//! }
//! ```

/// Whether the named fault is to be committed: never, in production.
#[cfg(not(any(loom, shuttle, feature = "mutants")))]
#[inline(always)]
#[must_use]
pub const fn mutant(_name: &str) -> bool {
    false
}

/// Whether the named fault is to be committed: if `F2FS_MUTANT` names it.
#[cfg(any(loom, shuttle, feature = "mutants"))]
#[must_use]
pub fn mutant(name: &str) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("F2FS_MUTANT").ok()).as_deref() == Some(name)
}

//! Memory that a program has freed, and that its allocator has kept.

/// Gives memory that was freed back to the system, as far as the allocator keeps whole pages of it. Worth its time, some
/// milliseconds for 100 MiB, after a large part of a cache was dropped; who asks the allocator for memory may wait so
/// long. What is in use does not change.
///
/// This is `malloc_trim` of the GNU C library. With others nothing is done.
pub fn give_back_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: declared as in malloc.h. It takes the locks of the allocator itself, and touches free memory only.
        unsafe extern "C" {
            safe fn malloc_trim(pad: usize) -> core::ffi::c_int;
        }
        let _had_some = malloc_trim(0);
    }
}

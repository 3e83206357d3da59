//! The processor's instructions for persistent memory: those that write a line back, and the fence.
//!
//! `clwb` leaves the line in the cache, `clflushopt` drops it, and `clflush` drops it and waits for the flushes before
//! it. CPUID leaf 7 says which of the first two there are; every x86-64 processor has the third.

use std::fmt;

/// How a line is written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteBack {
    /// `clwb`: the line stays in the cache.
    Clwb,
    /// `clflushopt`: the line leaves the cache.
    ClflushOpt,
    /// `clflush`: as that, one after the other.
    Clflush,
    /// None that is known here: another architecture. Files are synced by the kernel.
    Missing,
}

impl WriteBack {
    /// The best that this processor has.
    #[must_use]
    pub fn detect() -> WriteBack {
        by_cpuid()
    }
}

impl fmt::Display for WriteBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clwb => "clwb",
            Self::ClflushOpt => "clflushopt",
            Self::Clflush => "clflush",
            Self::Missing => "no write-back of lines",
        })
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "newer compilers have `__cpuid` as a safe function")]
fn by_cpuid() -> WriteBack {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    /// The leaf with the newer features, and their bits in EBX.
    const FEATURES: u32 = 7;
    const CLWB: u32 = 1 << 24;
    const CLFLUSHOPT: u32 = 1 << 23;
    // SAFETY: every x86-64 processor has CPUID and its leaf 0.
    let leaves = unsafe { __cpuid(0) }.eax;
    let found = if leaves >= FEATURES {
        // SAFETY: leaf 0 says that there is this one.
        unsafe { __cpuid_count(FEATURES, 0) }.ebx
    } else {
        0
    };
    match found {
        found if found & CLWB != 0 => WriteBack::Clwb,
        found if found & CLFLUSHOPT != 0 => WriteBack::ClflushOpt,
        _ => WriteBack::Clflush,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn by_cpuid() -> WriteBack {
    WriteBack::Missing
}

/// Waits for the stores past the cache and the write-backs of this thread.
#[cfg(target_arch = "x86_64")]
pub(crate) fn fence() {
    // SAFETY: `sfence` only waits; every x86-64 processor has it. The compiler takes the block for one that touches
    // memory, so that it moves no store across it.
    unsafe { std::arch::asm!("sfence", options(nostack, preserves_flags)) };
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn fence() {
    f2fs_sync::atomic::fence(f2fs_sync::atomic::Ordering::SeqCst);
}

/// Asks for a line, so that a store to it soon finds it in the cache. The address may be any.
#[cfg(target_arch = "x86_64")]
pub(crate) fn expect_store(line: *const u8) {
    // SAFETY: `prefetchw` changes no memory and never faults; processors that do not know it do nothing.
    unsafe { std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly)) };
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn expect_store(_line: *const u8) {}

/// Begins to write `lines` lines from `first` back.
///
/// # Safety
/// The lines lie in mapped memory.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn write_back(first: *const u8, lines: usize, how: WriteBack) {
    use std::arch::asm;

    use crate::LINE;
    let mut at = first;
    for _ in 0..lines {
        match how {
            // SAFETY: the caller says that `at` is mapped; the instruction changes no memory, and this processor has
            // it.
            WriteBack::Clwb => unsafe { asm!("clwb [{}]", in(reg) at, options(nostack, preserves_flags)) },
            // SAFETY: as above.
            WriteBack::ClflushOpt => unsafe { asm!("clflushopt [{}]", in(reg) at, options(nostack, preserves_flags)) },
            // SAFETY: as above.
            _ => unsafe { asm!("clflush [{}]", in(reg) at, options(nostack, preserves_flags)) },
        }
        at = at.wrapping_add(LINE);
    }
}

/// Does nothing: there is no such instruction here.
///
/// # Safety
/// None is needed.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn write_back(_first: *const u8, _lines: usize, _how: WriteBack) {}

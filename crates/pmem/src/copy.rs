//! Copying to and from mapped memory.
//!
//! The instructions are written out. The compiler knows nothing of memory that other processes and threads change
//! meanwhile, so it must neither split a word nor read one twice; and what is stored past the cache needs instructions
//! of its own. Lines are moved with SSE2, which every x86-64 processor has.

use crate::{LINE, WORD};

/// Copies `bytes` bytes from mapped memory.
///
/// # Safety
/// `from` is readable and `to` writable for so many bytes, and they do not overlap; nobody else has access to `to`.
pub(crate) unsafe fn load(to: *mut u8, from: *const u8, bytes: usize) {
    let lines = bytes / LINE;
    // SAFETY: so many lines lie within what the caller lends.
    unsafe { load_lines(to, from, lines) };
    for at in lines * LINE..bytes {
        // SAFETY: within what the caller lends; a byte is always aligned.
        let byte = unsafe { from.wrapping_add(at).read_volatile() };
        // SAFETY: as above.
        unsafe { to.wrapping_add(at).write(byte) };
    }
}

/// Stores `bytes` bytes in mapped memory, through the cache, words of `to` in ascending order.
///
/// # Safety
/// `from` is readable and `to` writable for so many bytes, and they do not overlap; nobody else changes `from`.
pub(crate) unsafe fn store(to: *mut u8, from: *const u8, bytes: usize) {
    let mut at = 0;
    while at < bytes {
        let here = to.wrapping_add(at);
        if here.addr().is_multiple_of(WORD) && bytes - at >= WORD {
            // SAFETY: a whole word is left of the caller's memory.
            let word = unsafe { from.wrapping_add(at).cast::<u64>().read_unaligned() };
            // SAFETY: as above, and `here` is aligned to a word.
            unsafe { here.cast::<u64>().write_volatile(word) };
            at += WORD;
        } else {
            // SAFETY: a byte is left of the caller's memory.
            let byte = unsafe { from.wrapping_add(at).read() };
            // SAFETY: as above.
            unsafe { here.write_volatile(byte) };
            at += 1;
        }
    }
}

/// Copies `lines` lines from mapped memory.
///
/// # Safety
/// As for [`load`], of so many lines.
#[cfg(target_arch = "x86_64")]
unsafe fn load_lines(to: *mut u8, from: *const u8, lines: usize) {
    if lines == 0 {
        return;
    }
    // SAFETY: the loop moves `lines` lines, which the caller lends; it names all registers that it changes, and no
    // stack.
    unsafe {
        std::arch::asm!(
            "2:",
            "movdqu xmm0, [{from}]",
            "movdqu xmm1, [{from} + 16]",
            "movdqu xmm2, [{from} + 32]",
            "movdqu xmm3, [{from} + 48]",
            "movdqu [{to}], xmm0",
            "movdqu [{to} + 16], xmm1",
            "movdqu [{to} + 32], xmm2",
            "movdqu [{to} + 48], xmm3",
            "add {from}, 64",
            "add {to}, 64",
            "dec {lines}",
            "jnz 2b",
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            lines = inout(reg) lines => _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            options(nostack),
        );
    }
}

/// Stores `lines` lines past the cache.
///
/// # Safety
/// As for [`store`], of so many lines; `to` is aligned to a line.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn store_lines_nontemporal(to: *mut u8, from: *const u8, lines: usize) {
    if lines == 0 {
        return;
    }
    // SAFETY: the loop moves `lines` lines, which the caller lends; `movntdq` needs 16 bytes of alignment, and `to` has 64. It
    // names all registers that it changes, and no stack.
    unsafe {
        std::arch::asm!(
            "2:",
            "movdqu xmm0, [{from}]",
            "movdqu xmm1, [{from} + 16]",
            "movdqu xmm2, [{from} + 32]",
            "movdqu xmm3, [{from} + 48]",
            "movntdq [{to}], xmm0",
            "movntdq [{to} + 16], xmm1",
            "movntdq [{to} + 32], xmm2",
            "movntdq [{to} + 48], xmm3",
            "add {from}, 64",
            "add {to}, 64",
            "dec {lines}",
            "jnz 2b",
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            lines = inout(reg) lines => _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            options(nostack),
        );
    }
}

/// Copies `lines` lines from mapped memory.
///
/// # Safety
/// As for [`load`], of so many lines.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn load_lines(to: *mut u8, from: *const u8, lines: usize) {
    // SAFETY: the caller lends so many lines, which do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(from, to, lines * LINE) };
}

/// Stores `lines` lines; through the cache, for want of another instruction.
///
/// # Safety
/// As for [`store`], of so many lines.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn store_lines_nontemporal(to: *mut u8, from: *const u8, lines: usize) {
    // SAFETY: the caller lends so many lines.
    unsafe { store(to, from, lines * LINE) };
}

//! Whether this machine has FUSE over `io_uring`, and what is missing if not.

use std::fs;
use std::io;
use std::path::Path;

use io_uring::{IoUring, cqueue, squeue};
use thiserror::Error;

/// The kernel's parameter that allows it.
const PARAMETER: &str = "/sys/module/fuse/parameters/enable_uring";

/// Why FUSE over `io_uring` cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The kernel does not have it.
    #[error("this kernel has no FUSE over io_uring: it needs Linux 6.14 or later, built with CONFIG_FUSE_IO_URING")]
    Kernel,
    /// It is switched off.
    #[error("FUSE over io_uring is switched off: root switches it on with `echo Y > {PARAMETER}`")]
    Off,
    /// This process may not use `io_uring`.
    #[error("io_uring cannot be used here: {0}")]
    Ring(#[source] io::Error),
}

/// Whether FUSE over `io_uring` can be used. The module `fuse` has to be loaded.
///
/// # Errors
/// What is missing.
pub fn available() -> Result<(), Unavailable> {
    is_allowed(PARAMETER.as_ref())?;
    build(1).map(drop).map_err(Unavailable::Ring)
}

fn is_allowed(parameter: &Path) -> Result<(), Unavailable> {
    match fs::read_to_string(parameter) {
        Ok(text) if matches!(text.trim(), "Y" | "1") => Ok(()),
        Ok(_) => Err(Unavailable::Off),
        Err(_) => Err(Unavailable::Kernel),
    }
}

/// A ring for one thread, which runs completions only when it enters the kernel.
pub(crate) fn build(entries: u32) -> io::Result<IoUring<squeue::Entry128, cqueue::Entry>> {
    let mut builder = IoUring::<squeue::Entry128, cqueue::Entry>::builder();
    builder.dontfork().setup_submit_all().setup_single_issuer().setup_defer_taskrun();
    builder.build(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let dir = std::env::temp_dir().join(format!("f2fs-fuse-uring-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let parameter = dir.join("enable_uring");
        assert!(matches!(is_allowed(&parameter), Err(Unavailable::Kernel)));
        fs::write(&parameter, "N\n").unwrap();
        let off = is_allowed(&parameter).unwrap_err();
        assert!(off.to_string().contains("echo Y > /sys/module/fuse/parameters/enable_uring"), "{off}");
        fs::write(&parameter, "Y\n").unwrap();
        is_allowed(&parameter).unwrap();
        fs::remove_dir_all(&dir).unwrap();
    }
}

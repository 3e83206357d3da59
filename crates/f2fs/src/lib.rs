//! F2FS in user space: byte-compatible volumes with no file-system-wide lock on a hot path

//! F2FS on-disk structures, checksums, bit orders, hashes and validated geometry

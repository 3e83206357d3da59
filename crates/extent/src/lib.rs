//! Extent-bit lock table: shared, exclusive and fair range locks with per-block state bits

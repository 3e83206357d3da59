//! Read-only consistency check of a volume.

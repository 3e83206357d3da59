//! Laying out a new volume.

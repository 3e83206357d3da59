//! Block devices for f2fs: the trait, aligned buffers, the memory device and test wrappers

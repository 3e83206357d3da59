//! F2FS node address table and free-NID allocator

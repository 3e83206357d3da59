//! io_uring back end of f2fs for files and block devices

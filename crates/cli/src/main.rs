//! The `f2fs` command.

fn main() {}

//! The files that the results of a measurement are written to.

use std::path::{Path, absolute};

/// Whether both paths lead to one file. What is missing is made under its name.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other && one.is_file(),
        (Err(_), Err(_)) => matches!((absolute(one), absolute(other)), (Ok(one), Ok(other)) if one == other),
        _ => false,
    }
}

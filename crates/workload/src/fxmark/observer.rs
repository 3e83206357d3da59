//! Who watches a measurement.

use super::measured::Measured;
use super::setting::Setting;

/// Somebody who watches: a progress bar, say. `()` does not.
pub trait Observer: Sync {
    /// A measurement begins, with the making of so many files.
    fn begin(&self, _setting: &Setting, _files: u64) {}
    /// So many more files are made. Called from any worker, never in the time that is measured.
    fn advance(&self, _files: u64) {}
    /// The workers are released.
    fn start(&self) {}
    /// The measurement has ended.
    fn end(&self, _measured: &Measured) {}
}

impl Observer for () {}

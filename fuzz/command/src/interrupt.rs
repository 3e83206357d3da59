//! Signals are the fuzzer's: work is done where it is asked for.

use crate::error::CliError;

pub(crate) fn is_stopping() -> bool {
    false
}

pub(crate) fn listen() {}

pub(crate) fn guarded<T>(work: impl FnOnce() -> T, _: impl FnOnce() -> String) -> Result<T, CliError> {
    Ok(work())
}

pub(crate) fn until_stopped<T>(
    work: impl FnOnce() -> T,
    _: impl FnOnce(),
    _: impl FnOnce(&T) -> Option<String>,
) -> Result<T, CliError> {
    Ok(work())
}

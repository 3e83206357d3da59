//! What the command lines of several benches have in common.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

/// The longest time that one measurement may be asked for, in seconds.
const LONGEST: f64 = 3600.0;

/// What `cargo bench` adds to each command line.
#[derive(Clone, Copy, Debug, Args)]
pub struct ByCargo {
    /// cargo passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A time in seconds: 0.01 to 3600.
///
/// # Errors
/// Why it is none.
pub fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) if (0.01..=LONGEST).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("it is not a number of seconds from 0.01 to {LONGEST}")),
    }
}

/// The directory for temporary files of this machine.
#[must_use]
pub fn temporary() -> PathBuf {
    std::env::temp_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_limits() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(seconds("3600"), Ok(Duration::from_secs(3600)));
        for wrong in ["", "0", "-1", "NaN", "inf", "3601", "1s"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}

//! How free NIDs are found: the names of the policies.

use std::fmt;
use std::str::FromStr;

/// How free NIDs are found.
///
/// As text, for commands and reports: `kernel-scan`, `clue`, `clue:` with one or more of `optimistic`, `heuristic`, `lazy`
/// joined by `+`, and `sharded`.
///
/// ```
/// use f2fs_nat::Policy;
///
/// let policy: Policy = "clue:optimistic+lazy".parse()?;
/// assert_eq!(policy, Policy::Clue { optimistic: true, heuristic: false, lazy: true });
/// assert_eq!("clue".parse::<Policy>()?.to_string(), "clue");
/// # Ok::<(), f2fs_nat::UnknownPolicy>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Policy {
    /// What Linux does (`fs/f2fs/node.c`): a list of free NIDs under a lock, refilled by scans under another.
    KernelScan,
    /// The same with the techniques of CLUE ("Compact and Lazy Update for unlink in F2FS"), each of which can be had alone.
    Clue {
        /// The two stages of a scan have a lock each, and nobody waits for a bitmap scan that runs.
        optimistic: bool,
        /// A bitmap scan goes on where the last one ended.
        heuristic: bool,
        /// NAT blocks are scanned at a checkpoint, or when an allocation would fail otherwise.
        lazy: bool,
    },
    /// No list and no global lock: state lives with its NAT block, every lane of threads allocates from its own block.
    #[default]
    Sharded,
}

impl Policy {
    /// CLUE with all its techniques.
    pub const CLUE: Policy = Policy::Clue { optimistic: true, heuristic: true, lazy: true };
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Policy::KernelScan => f.write_str("kernel-scan"),
            Policy::CLUE => f.write_str("clue"),
            Policy::Clue { optimistic, heuristic, lazy } => {
                let names = [(optimistic, "optimistic"), (heuristic, "heuristic"), (lazy, "lazy")];
                let names: Vec<&str> = names.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
                write!(f, "clue:{}", if names.is_empty() { "none".to_owned() } else { names.join("+") })
            }
            Policy::Sharded => f.write_str("sharded"),
        }
    }
}

/// A policy's name that nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown NID policy {name:?}: kernel-scan, clue, clue:TECHNIQUE[+TECHNIQUE] (optimistic, heuristic, lazy), sharded"
)]
pub struct UnknownPolicy {
    /// What was given.
    pub name: String,
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownPolicy { name: name.to_owned() };
        match name {
            "kernel-scan" => return Ok(Policy::KernelScan),
            "clue" => return Ok(Policy::CLUE),
            "sharded" => return Ok(Policy::Sharded),
            _ => {}
        }
        let (mut optimistic, mut heuristic, mut lazy) = (false, false, false);
        for technique in name.strip_prefix("clue:").ok_or_else(unknown)?.split('+') {
            match technique {
                "optimistic" => optimistic = true,
                "heuristic" => heuristic = true,
                "lazy" => lazy = true,
                "none" => {}
                _ => return Err(unknown()),
            }
        }
        Ok(Policy::Clue { optimistic, heuristic, lazy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for n in 0..8 {
            let policy = Policy::Clue { optimistic: n & 1 != 0, heuristic: n & 2 != 0, lazy: n & 4 != 0 };
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        for policy in [Policy::KernelScan, Policy::Sharded, Policy::CLUE] {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        for name in ["", "clue:", "clue:fast", "kernel", "Sharded", "clue:lazy+"] {
            assert_eq!(name.parse::<Policy>().unwrap_err().name, name);
        }
    }
}

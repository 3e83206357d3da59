//! How free NIDs are found: the names of the policies.

use std::fmt;
use std::str::FromStr;

/// How free NIDs are found.
///
/// # What the baselines do as Linux does, and what they do not
///
/// The feature `baselines` has `KernelScan` and `Clue`. The first follows `fs/f2fs/node.c`, the second changes it where
/// the paper does. Taken over are: when a build runs and with which locks; thresholds by the number of NIDs; one NID at
/// a time under the list's lock; and `nat_tree_lock`, which a scan holds shared to the end of its stage, and a change
/// of an entry exclusively. The user calls `Nat::balance` with the lock of the directory held, as Linux does in
/// `f2fs_unlink` and its kin. The differences:
///
/// | | Linux | here | makes the baselines |
/// |---|---|---|---|
/// | around it | the VFS, one `cp_rwsem`, lists of orphans and of dirty inodes under one lock each | this library's operations | faster |
/// | the list | a radix tree, memory from a slab for each NID | a hash table and a queue | faster |
/// | a NID that a scan finds | looked up in the cache of entries before it is listed | by its block, which is looked at once | faster |
/// | the entries in use of a scanned block | the list's lock for each | no lock | faster |
/// | a build whose 8 NAT blocks were all scanned before | asks the page cache for them, and reads those that left it | does nothing | faster |
/// | the count of cached entries | falls when they take too large a share of memory (a quarter of 1 %) | falls when a NAT block leaves memory | slower on machines with little memory for the number of NIDs |
/// | a first write to a node since a checkpoint | triggers a build, too | triggers none | faster |
/// | who waits for a lock | spins while its holder runs | spins shortly, then sleeps | either |
///
/// FxMark's unlinks begin with all NAT blocks scanned and all entries cached: there the fifth row's difference is that
/// of a look into the page cache, and the sixth has no effect on a machine such as the paper's.
///
/// As text, for commands and reports: `sharded`; and of the baselines `kernel-scan`, `clue`, and `clue:` with one or
/// more of `optimistic`, `heuristic`, `lazy` joined by `+`.
///
/// ```
/// use f2fs_nat::Policy;
///
/// assert_eq!("sharded".parse::<Policy>()?, Policy::Sharded);
/// # #[cfg(feature = "baselines")] {
/// let policy: Policy = "clue:optimistic+lazy".parse()?;
/// assert_eq!(policy, Policy::Clue { optimistic: true, heuristic: false, lazy: true });
/// # }
/// # Ok::<(), f2fs_nat::UnknownPolicy>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Policy {
    /// No list and no global lock: state lives with its NAT block, every lane of threads allocates from its own block.
    #[default]
    Sharded,
    /// Linux's way (`fs/f2fs/node.c`): a list of free NIDs under a lock, refilled by scans under another.
    #[cfg(feature = "baselines")]
    KernelScan,
    /// The same with the techniques of CLUE ("Compact and Lazy Update for unlink in F2FS"), each of which can be had
    /// alone.
    #[cfg(feature = "baselines")]
    Clue {
        /// The two stages of a scan have a lock each, and nobody waits for a bitmap scan that runs.
        optimistic: bool,
        /// A bitmap scan goes on where the last one ended.
        heuristic: bool,
        /// NAT blocks are scanned at a checkpoint, or when an allocation would fail otherwise.
        lazy: bool,
    },
}

#[cfg(feature = "baselines")]
impl Policy {
    /// CLUE with all its techniques.
    pub const CLUE: Policy = Policy::Clue { optimistic: true, heuristic: true, lazy: true };
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Policy::Sharded => f.write_str("sharded"),
            #[cfg(feature = "baselines")]
            Policy::KernelScan => f.write_str("kernel-scan"),
            #[cfg(feature = "baselines")]
            Policy::CLUE => f.write_str("clue"),
            #[cfg(feature = "baselines")]
            Policy::Clue { optimistic, heuristic, lazy } => {
                let names = [(optimistic, "optimistic"), (heuristic, "heuristic"), (lazy, "lazy")];
                let names: Vec<&str> = names.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
                write!(f, "clue:{}", if names.is_empty() { "none".to_owned() } else { names.join("+") })
            }
        }
    }
}

/// The names that are known.
const NAMES: &str = if cfg!(feature = "baselines") {
    "sharded, kernel-scan, clue, clue:TECHNIQUE[+TECHNIQUE] (optimistic, heuristic, lazy)"
} else {
    "sharded"
};

/// A policy's name that nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown NID policy {name:?}: {NAMES}")]
#[non_exhaustive]
pub struct UnknownPolicy {
    /// The name that was given.
    pub name: String,
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = match name {
            "sharded" => Some(Policy::Sharded),
            #[cfg(feature = "baselines")]
            _ => baseline(name),
            #[cfg(not(feature = "baselines"))]
            _ => None,
        };
        known.ok_or_else(|| UnknownPolicy { name: name.to_owned() })
    }
}

#[cfg(feature = "baselines")]
fn baseline(name: &str) -> Option<Policy> {
    match name {
        "kernel-scan" => return Some(Policy::KernelScan),
        "clue" => return Some(Policy::CLUE),
        _ => {}
    }
    let (mut optimistic, mut heuristic, mut lazy) = (false, false, false);
    for technique in name.strip_prefix("clue:")?.split('+') {
        let chosen = match technique {
            "optimistic" => &mut optimistic,
            "heuristic" => &mut heuristic,
            "lazy" => &mut lazy,
            "none" => continue,
            _ => return None,
        };
        // Twice would be a mistake for another.
        if std::mem::replace(chosen, true) {
            return None;
        }
    }
    Some(Policy::Clue { optimistic, heuristic, lazy })
}

#[cfg(all(test, feature = "baselines"))]
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
        for name in ["", "clue:", "clue:fast", "kernel", "Sharded", "clue:lazy+", "clue:lazy+lazy"] {
            assert_eq!(name.parse::<Policy>().unwrap_err().name, name);
        }
    }
}

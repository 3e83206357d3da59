//! Operations for the kernel, and the volumes that they begin on.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use f2fs_device::MemoryDevice;
use f2fs_files::FileSystem;
use f2fs_sync::Arc;

use crate::base::{Base, BaseKind, first_files, options};
use crate::op::Op;
use crate::tree::Tree;
use crate::workload::{Steps, Workload, sequences};

/// Makes the bytes that scripts write, together with the number of the operation.
pub const SALT: u64 = 1 << 16;

/// The salt of operation `index` of a script.
#[must_use]
pub fn salt(index: usize) -> u64 {
    SALT ^ (index as u64 + 1) << 8
}

/// Bytes of a volume that mkfs.f2fs makes.
const SIZE: u64 = 64 << 20;

/// The volume that a script begins on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ground {
    /// Made by mkfs.f2fs. The kernel makes the first files.
    Mkfs,
    /// The same with checksums in superblock and inodes.
    MkfsChecksums,
    /// Made and filled here.
    Made(BaseKind),
}

impl Ground {
    /// All that scripts begin on.
    pub const ALL: [Ground; 5] = [
        Ground::Mkfs,
        Ground::MkfsChecksums,
        Ground::Made(BaseKind::Plain),
        Ground::Made(BaseKind::Tight),
        Ground::Made(BaseKind::Broad),
    ];

    /// The name in scripts and of the image.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Ground::Mkfs => "mkfs",
            Ground::MkfsChecksums => "mkfs-checksums",
            Ground::Made(kind) => kind.name(),
        }
    }

    /// A number that tells its content from that of the others.
    #[must_use]
    pub fn print(self) -> u64 {
        let at = Ground::ALL.iter().position(|ground| *ground == self).unwrap_or(Ground::ALL.len());
        (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn kind(self) -> BaseKind {
        match self {
            Ground::Mkfs | Ground::MkfsChecksums => BaseKind::Plain,
            Ground::Made(kind) => kind,
        }
    }

    /// Makes the volume, as a file.
    ///
    /// # Errors
    /// What went wrong, for people.
    pub fn make(self, image: &Path) -> Result<(), String> {
        let mkfs =
            |words: &[&str]| f2fs_oracle::mkfs_sized(image, SIZE, words).map(drop).map_err(|error| error.to_string());
        match self {
            Ground::Mkfs => mkfs(&[]),
            Ground::MkfsChecksums => mkfs(&["-O", "extra_attr,inode_checksum,sb_checksum"]),
            Ground::Made(kind) => {
                let base = Base::new(kind).map_err(|error| error.to_string())?;
                base.device.save(image).map_err(|error| error.to_string())
            }
        }
    }
}

/// A volume that scripts begin on, as it was made.
#[derive(Debug)]
pub struct Floor {
    /// Which one.
    pub ground: Ground,
    /// Its blocks.
    pub device: MemoryDevice,
    /// Its content.
    pub tree: Tree,
    /// The version of its checkpoint.
    pub version: u64,
}

impl Floor {
    /// Reads it from a file.
    ///
    /// # Errors
    /// What went wrong, for people.
    pub fn load(ground: Ground, image: &Path) -> Result<Floor, String> {
        let device = MemoryDevice::load(image).map_err(|error| format!("{}: {error}", image.display()))?.rechunked(4);
        let fs = FileSystem::open(Arc::new(device.snapshot()), options(|volume| volume.read_only(true)));
        let fs = fs.map_err(|error| format!("{}: {error}", image.display()))?;
        let tree = Tree::walk_among(&fs, &crate::tree::Known::default().timeless(true));
        let tree = tree.map_err(|error| format!("{}: {error}", image.display()))?;
        let version = fs.volume().last_checkpoint().version;
        Ok(Floor { ground, device, tree, version })
    }
}

/// Operations on a volume. Its text: `mkfs: create /a; sync /a`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The volume.
    pub ground: Ground,
    /// The operations, in order.
    pub ops: Vec<Op>,
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.ops.iter().map(Op::to_string).collect();
        write!(f, "{}: {}", self.ground.name(), texts.join("; "))
    }
}

impl FromStr for Script {
    type Err = String;

    fn from_str(text: &str) -> Result<Script, String> {
        let (name, ops) =
            text.split_once(':').ok_or_else(|| format!("`{text}` is not a script: GROUND: OPERATION; ..."))?;
        let ground = Ground::ALL.into_iter().find(|ground| ground.name() == name.trim());
        let ground = ground.ok_or_else(|| format!("there is no ground `{}`", name.trim()))?;
        let ops = ops.split(';').map(str::trim).filter(|op| !op.is_empty());
        let ops = ops.map(|op| op.parse().map_err(|error: crate::op::ParseOpError| error.to_string()));
        Ok(Script { ground, ops: ops.collect::<Result<_, _>>()? })
    }
}

/// Whether the kernel does it as the model says: it has no call that cleans one section, and its clock does not stand
/// still.
fn is_for_kernel(op: &Op) -> bool {
    !matches!(op, Op::Clean | Op::Replace(..) | Op::Append(..) | Op::SetTimes(..))
}

impl Script {
    /// Random operations.
    #[must_use]
    pub fn by_chance(floor: &Floor, seed: u64) -> Script {
        let mut script = Script { ground: floor.ground, ops: Vec::new() };
        let mut tree = floor.tree.clone();
        // Any numbers do, so long as they are not those of the floor's inodes.
        let mut add = |op: Op, tree: &mut Tree| {
            op.apply(tree, salt(script.ops.len()), 1 << 20 | script.ops.len() as u32);
            script.ops.push(op);
        };
        if !matches!(floor.ground, Ground::Made(_)) {
            first_files().into_iter().for_each(|op| add(op, &mut tree));
            add(Op::Checkpoint, &mut tree);
        }
        let mut steps = Steps::new(seed, "", floor.ground.kind());
        while let Some(op) = steps.next(&tree) {
            if is_for_kernel(&op) {
                add(op, &mut tree);
            }
        }
        script
    }

    /// All sequences of so many operations on the plain volume.
    #[must_use]
    pub fn enumerated(plain: &Base, length: usize) -> Vec<Script> {
        let script = |workload| match workload {
            Workload::Sequence(kind, ops) if ops.iter().all(is_for_kernel) => {
                Some(Script { ground: Ground::Made(kind), ops })
            }
            _ => None,
        };
        sequences(plain, length).into_iter().filter_map(script).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_lead_back() {
        let base = Base::new(BaseKind::Plain).unwrap();
        let all = Script::enumerated(&base, 1);
        assert!(all.len() > 60, "{}", all.len());
        let floor = Floor { ground: Ground::Mkfs, device: base.device, tree: Tree::default(), version: 1 };
        for script in all.iter().chain([&Script::by_chance(&floor, 7)]) {
            assert_eq!(script.to_string().parse().as_ref(), Ok(script));
        }
        assert!("nowhere: checkpoint".parse::<Script>().is_err() && "mkfs: fly /a".parse::<Script>().is_err());
    }
}

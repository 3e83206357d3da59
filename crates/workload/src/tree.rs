//! Scripts of file system operations, and the trees they make.
//!
//! A script is a list of [`Op`]s, the same every time for the same scale: [`everything`] makes a tree with every kind
//! of file in thousands of places, [`changes`] changes that tree in many places. Any [`TreeTarget`] can run them:
//! [`HostTree`] runs them through the operating system, [`VolumeTree`] through this library, so the Linux kernel on a
//! mounted F2FS and this library on the same device can be asked for the same tree, and their
//! [manifests](crate::manifest) compared.
//!
//! ```
//! use f2fs_workload::tree::{HostTree, Op, TreeTarget};
//! let root = std::env::temp_dir().join(format!("f2fs-tree-doc-{}", std::process::id()));
//! std::fs::create_dir_all(&root)?;
//! let mut tree = HostTree::new(&root);
//! tree.apply(&Op::Create { path: b"/greeting".to_vec(), mode: 0o644 })?;
//! tree.apply(&Op::Write { path: b"/greeting".to_vec(), offset: 100, length: 50, seed: 1 })?;
//! assert_eq!(std::fs::metadata(root.join("greeting"))?.len(), 150);
//! std::fs::remove_dir_all(&root)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod changes;
mod data;
mod everything;
mod host;
mod op;
mod random;
mod syncs;
mod volume;

pub use changes::changes;
pub use data::fill;
pub(crate) use data::mix;
pub use everything::everything;
pub use host::{HostTree, HostTreeError};
pub use op::{NodeKind, Op, Scale, TreeTarget, apply_all};
pub use random::{random_base, random_syncs};
pub use syncs::syncs;
pub use volume::{VolumeTree, VolumeTreeError};

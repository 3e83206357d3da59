//! `mkfs.f2fs` and `fsck.f2fs` (f2fs-tools 1.15 or 1.16) as judges for this project's tests. A development crate: nothing that
//! is published depends on it.
//!
//! * [`fsck`] runs `yes n | fsck.f2fs --dry-run PATH` and judges the status **and every line**: the tool reports some
//!   damage with status 0 and a single `[FIX]` line, and some with status 1 although a dry run writes nothing. Lines
//!   are judged by a list of lines that a clean volume may print; any other line is a [finding](FsckReport::findings),
//!   so that a message nobody thought of cannot pass.
//! * [`mkfs`] and [`mkfs_sized`] make volumes, [`sload`] fills them.
//! * [`assert_clean`] and [`assert_accepted`] are the one-line forms for tests; they panic with the findings.
//!
//! A missing tool is [`OracleError::MissingTool`], which names the package to install; it is never a pass.
//!
//! ```
//! let dir = std::env::temp_dir().join(format!("f2fs-oracle-doc-{}", std::process::id()));
//! f2fs_oracle::mkfs_sized(&dir, 64 << 20, &["-l", "demo"])?;
//! assert!(f2fs_oracle::fsck(&dir)?.is_clean());
//! std::fs::remove_file(&dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Locking model
//!
//! None: every call starts its own process and waits for it, with a time limit of [`TIME_LIMIT`].
#![forbid(unsafe_code)]

mod error;
mod fsck;
mod lines;
mod mkfs;
mod process;
mod sload;

pub use error::OracleError;
pub use fsck::{FsckReport, assert_accepted, assert_clean, fsck};
pub use lines::{LineKind, classify};
pub use mkfs::{mkfs, mkfs_sized};
pub use process::TIME_LIMIT;
pub use sload::sload;

//! What `cargo xtask guest` runs on both sides of a test: makes and changes trees by the scripts of
//! [`f2fs_workload::tree`], and prints their manifests. Linked statically, so that it runs in a guest that has no C library.
#![forbid(unsafe_code)]

mod sparse;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand, ValueEnum};
use f2fs_workload::manifest::{walk_host, walk_host_with};
use f2fs_workload::tree::{HostTree, Op, Scale, apply_all, changes, everything};
use rustix::fs::Mode;

use sparse::Deferred;

#[derive(Debug, Parser)]
#[command(about = "Makes, changes and prints trees for the guest tests")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Makes the tree with every kind of file in an empty directory.
    Make(TreeArgs),
    /// Changes that tree in many places.
    Change(TreeArgs),
    /// Prints the manifest of a directory.
    Manifest {
        /// The directory that becomes `/`.
        directory: PathBuf,
        /// Copies the data of large files to sparse files in this directory instead of digesting it.
        #[arg(long)]
        defer: Option<PathBuf>,
    },
}

/// Files from this size on are worth a copy (bytes).
const LARGE: u64 = 32 << 20;

#[derive(Debug, clap::Args)]
struct TreeArgs {
    /// The directory that is `/` for the script.
    directory: PathBuf,
    /// How large the tree is.
    #[arg(long, value_enum, default_value_t = Size::Full)]
    scale: Size,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Size {
    Small,
    Medium,
    Full,
}

impl Size {
    fn scale(self) -> Scale {
        match self {
            Self::Small => Scale::SMALL,
            Self::Medium => Scale::MEDIUM,
            Self::Full => Scale::FULL,
        }
    }
}

fn main() -> anyhow::Result<()> {
    // The scripts name exact modes.
    rustix::process::umask(Mode::empty());
    match Args::parse().command {
        Command::Make(args) => run(&args.directory, &everything(args.scale.scale())),
        Command::Change(args) => run(&args.directory, &changes(args.scale.scale())),
        Command::Manifest { directory, defer } => {
            let manifest = match defer {
                Some(copies) => {
                    let mut deferred = Deferred::new(copies, LARGE);
                    walk_host_with(&directory, |file, meta| deferred.content(file, meta))?
                }
                None => walk_host(&directory)?,
            };
            let mut out = BufWriter::new(std::io::stdout().lock());
            write!(out, "{manifest}")?;
            out.flush()?;
            Ok(())
        }
    }
}

fn run(directory: &Path, script: &[Op]) -> anyhow::Result<()> {
    apply_all(&mut HostTree::new(directory), script)?;
    println!("{} operations done", script.len());
    Ok(())
}

//! Flipped bits in the tables of a volume that was not closed.

use std::path::PathBuf;

use anyhow::Context;
use f2fs_format::{LogType, Nid};
use f2fs_test_kit::entries::Tables;
use f2fs_uring::{OpenOptions, UringDevice};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The image.
    #[arg(long)]
    image: PathBuf,
}

/// A bit of where the root lies.
const OF_ADDRESS: usize = 46;
/// A bit of the map of valid blocks, which follows the count.
const OF_MAP: usize = 16 + 77;

/// Flips one in the entry of the root, and one in that of the segment in which the log of warm nodes goes on.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let device = UringDevice::open(&args.image, OpenOptions::new())?;
    let tables = Tables::read(&*device);
    let place = tables.geometry.locate(tables.log(LogType::WarmNode));
    let (segment, _) = place.context("the log of warm nodes is nowhere")?;
    tables.nat(Nid::ROOT).flip(&*device, OF_ADDRESS);
    tables.sit(segment).flip(&*device, OF_MAP);
    Ok(())
}

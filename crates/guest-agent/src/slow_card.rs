//! The experiment of partial cleaning (`f2fs_workload::partial_gc`) by a real clock: a long write into an aged volume,
//! on a device that is as slow as an SD card, by the library and by whoever has the volume mounted.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use f2fs_device::BlockDevice;
use f2fs_uring::{OpenOptions, UringDevice};
use f2fs_volume::Allocation;
use f2fs_workload::partial_gc::{Aged, REQUEST, card_a, write_on};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Makes an aged volume as an image, says how many blocks are to be written, and how long that takes in virtual
    /// time.
    Make {
        /// The image, which must not be there yet.
        image: PathBuf,
        /// MiB of the volume.
        #[arg(long, default_value_t = 96)]
        mib: u64,
        /// The ways of the library.
        #[arg(long, value_delimiter = ',', required = true)]
        ways: Vec<String>,
    },
    /// Writes with the library.
    Library {
        /// The device with the volume.
        device: PathBuf,
        /// How it treats valid blocks in its way.
        #[arg(long)]
        way: String,
        /// Blocks of the new file.
        #[arg(long)]
        blocks: u64,
    },
    /// Writes a new file of a mounted volume.
    Mounted {
        /// The file.
        file: PathBuf,
        /// Its blocks.
        #[arg(long)]
        blocks: u64,
    },
}

/// A way of the library on the card.
fn allocation(way: &str) -> anyhow::Result<Allocation> {
    Ok(way.parse::<Allocation>()?.on(card_a()))
}

pub(crate) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Make { image, mib, ways } => {
            let aged = Aged::new(*mib, 1)?;
            aged.device().save(image)?;
            println!("blocks {}", aged.blocks);
            for way in ways {
                let (written, _) = aged.measure(allocation(way)?, card_a())?;
                println!(
                    "virtual {way} {:.2} s, {} requests of data",
                    written.time.as_secs_f64(),
                    written.data_requests()
                );
            }
        }
        Command::Library { device, way, blocks } => {
            let device: Arc<dyn BlockDevice> = UringDevice::open(device, OpenOptions::new())?;
            let written = write_on(&Arc::new(device), allocation(way)?, *blocks)?;
            println!("library {way} {:.2} s, {} requests of data", written.time.as_secs_f64(), written.data_requests());
        }
        Command::Mounted { file, blocks } => {
            let data = f2fs_device_test::bytes(REQUEST * 4096, 1);
            let begun = Instant::now();
            let file = File::create_new(file)?;
            let mut left = *blocks as usize * 4096;
            while left > 0 {
                let now = left.min(data.len());
                std::io::Write::write_all(&mut &file, &data[..now])?;
                left -= now;
            }
            file.sync_all()?;
            rustix::fs::syncfs(&file)?;
            println!("{:.2} s", begun.elapsed().as_secs_f64());
        }
    }
    Ok(())
}

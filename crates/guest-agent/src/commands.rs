//! An NVMe namespace by its own commands: one of each kind, and what a device that refuses says.

use std::path::PathBuf;

use anyhow::{bail, ensure};
use f2fs_device::{AlignedBuf, BlockDevice, DeviceErrorKind, Request};
use f2fs_uring::{NvmeDevice, OpenOptions};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The character device, whose contents are lost.
    device: PathBuf,
    /// Reads and writes this block, which has to fail, instead of sending one command of each kind.
    #[arg(long)]
    refused: Option<u64>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let device = NvmeDevice::open(&args.device, OpenOptions::new())?;
    println!("{}", device.info().description);
    println!("{} blocks, {} bytes a command", device.info().blocks, device.transfer_bytes());
    if let Some(block) = args.refused {
        return refused(&device, block);
    }
    ensure!(device.uses_io_uring(), "no rings");
    let block = |byte| AlignedBuf::from_bytes(&[byte; 4096]);
    // By an ioctl, and on a ring.
    device.write(3, block(3))?;
    device.submit(vec![Request::write(4, block(4))]).wait().pop().map_or(Ok(()), |done| done.result)?;
    device.write_fua(5, block(5))?;
    let mut queue = device.queue(2);
    queue.push(Request::write_fua(6, block(6)));
    queue.next_completion().map_or(Ok(()), |done| done.result)?;
    drop(queue);
    for number in 3..7 {
        ensure!(device.read(number, 1)?.as_bytes().iter().all(|&byte| u64::from(byte) == number), "block {number}");
    }
    device.flush()?;
    device.discard(3, 1)?;
    device.write_zeroes(4, 2)?;
    ensure!(device.read(4, 2)?.as_bytes().iter().all(|&byte| byte == 0), "zeros that were written are none");
    ensure!(device.read(6, 1)?.as_bytes()[0] == 6, "more zeros than were asked for");
    println!("one of each kind: ok");
    Ok(())
}

/// By an ioctl and on a ring, the device's status is the error.
fn refused(device: &NvmeDevice, block: u64) -> anyhow::Result<()> {
    let calls = device.read(block, 1).map(drop);
    let ring =
        device.submit(vec![Request::read(block, AlignedBuf::new(1))]).wait().pop().map_or(Ok(()), |done| done.result);
    let write = device.write(block, AlignedBuf::new(1));
    for (what, result) in [("read by a call", calls), ("read on a ring", ring), ("write", write)] {
        let Err(error) = result else { bail!("{what}: passed") };
        ensure!(matches!(error.kind, DeviceErrorKind::Nvme(_)), "{what}: {error}");
        println!("{what}: {error}");
    }
    let durable = device.write_fua(block, AlignedBuf::new(1));
    ensure!(matches!(durable.map_err(|error| error.kind), Err(DeviceErrorKind::Nvme(_))), "a durable write");
    let next = device.write(0, AlignedBuf::new(1)).map_err(|error| error.kind);
    ensure!(matches!(next, Err(DeviceErrorKind::Poisoned { .. })), "a failed durable write left no poison: {next:?}");
    println!("refusals: ok");
    Ok(())
}

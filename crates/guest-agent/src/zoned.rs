//! Volumes on zones as mkfs.f2fs makes them, and as the library does: the same blocks, and the same write pointers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use f2fs_device::{BLOCK_SIZE, BlockDevice, Zone};
use f2fs_format::checkpoint::CheckpointBlock;
use f2fs_format::feature::Features;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{BLOCKS_PER_SEGMENT, Geometry, nat_bits};
use f2fs_uring::UringDevice;
use f2fs_volume::devices;
use f2fs_volume::format::{FormatOptions, format};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The first device.
    first: PathBuf,
    /// Another one; once for each.
    #[arg(long = "device")]
    others: Vec<PathBuf>,
    /// The program mkfs.f2fs, and what goes before its arguments.
    #[arg(long, value_delimiter = ' ', required = true)]
    mkfs: Vec<String>,
}

const UUID: &str = "01234567-89ab-4def-8123-456789abcdef";
const TIME: u64 = 1_234_567_890;
/// Blocks that are read at a time.
const READ: u64 = 1024;

/// The numbers of a volume on its devices.
struct Found {
    /// The blocks that are neither zeros nor ones.
    blocks: BTreeMap<u64, Vec<u8>>,
    zones: Vec<Zone>,
}

/// Lets mkfs.f2fs make a volume, then the library, and compares them; the library's stays.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut mkfs = Command::new(&args.mkfs[0]);
    mkfs.args(&args.mkfs[1..]).args(["-f", "-m", "-U", UUID, "-T", &TIME.to_string(), "-R", "0:0"]);
    for other in &args.others {
        mkfs.arg("-c").arg(other);
    }
    let output = mkfs.arg(&args.first).output()?;
    ensure!(output.status.success(), "mkfs.f2fs: {}", String::from_utf8_lossy(&output.stdout));

    let paths: Vec<&PathBuf> = std::iter::once(&args.first).chain(&args.others).collect();
    let open = |path: &&PathBuf| Ok(UringDevice::open(path, f2fs_uring::OpenOptions::new())? as Arc<dyn BlockDevice>);
    let opened: Vec<Arc<dyn BlockDevice>> = paths.iter().map(open).collect::<anyhow::Result<_>>()?;
    let device: Arc<dyn BlockDevice> =
        if opened.len() == 1 { opened[0].clone() } else { Arc::new(devices::whole(opened)?) };
    let mut theirs = found(&*device)?;
    let block = |found: &Found, at: u64| -> anyhow::Result<[u8; BLOCK_SIZE]> {
        let bytes = found.blocks.get(&at).with_context(|| format!("block {at} is empty"))?;
        Ok(<[u8; BLOCK_SIZE]>::try_from(&bytes[..])?)
    };
    let superblock = SuperBlock::read(&block(&theirs, 0)?);
    let pack = CheckpointBlock::read(&block(&theirs, superblock.cp_blkaddr.get().into())?).header;

    if args.others.is_empty() {
        take_front(&mut theirs, &superblock)?;
    }
    let mut options = FormatOptions::default().with_features(Features::BLKZONED).forced();
    if args.others.is_empty() {
        options.device_paths = Vec::new();
    } else {
        options.device_paths = paths.iter().map(|path| path.as_os_str().as_encoded_bytes().to_vec()).collect();
    }
    options.uuid = Some(u128::from_str_radix(&UUID.replace('-', ""), 16)?.to_be_bytes());
    options.time = Some(TIME);
    options.checkpoint_version = Some(pack.checkpoint_ver.get());
    format(&*device, &options)?;
    let ours = found(&*device)?;
    ensure!(ours.zones == theirs.zones, "zones: ours {:?}\nmkfs.f2fs {:?}", written(&ours), written(&theirs));
    let mut differences = Vec::new();
    let all: std::collections::BTreeSet<u64> = ours.blocks.keys().chain(theirs.blocks.keys()).copied().collect();
    for at in all {
        if at < 2 {
            let (ours, theirs) = (masked(&block(&ours, at)?), masked(&block(&theirs, at)?));
            if ours != theirs {
                differences.push(format!("superblock {at}:\n{ours}\n{theirs}"));
            }
        } else if ours.blocks.get(&at) != theirs.blocks.get(&at) {
            let words = |found: &Found| -> Vec<u32> {
                let bytes = found.blocks.get(&at).map_or(&[][..], |bytes| &bytes[..]);
                bytes.chunks(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
            };
            let (ours, theirs) = (words(&ours), words(&theirs));
            let first = ours.iter().zip(&theirs).enumerate().filter(|(_, (ours, theirs))| ours != theirs).take(8);
            differences.push(format!("block {at}: words {:?} (ours, mkfs.f2fs)", first.collect::<Vec<_>>()));
        }
    }
    if !differences.is_empty() {
        bail!("{} blocks differ:\n{}", differences.len(), differences.join("\n"));
    }
    println!("{} blocks and {} zones are those of mkfs.f2fs", ours.blocks.len(), ours.zones.len());
    Ok(())
}

/// On a single device mkfs.f2fs counts the segments in front of the volume's first one as free and the user's: takes
/// them from its checkpoints.
fn take_front(theirs: &mut Found, superblock: &SuperBlock) -> anyhow::Result<()> {
    let geometry = Geometry::from_superblock(superblock)?;
    let front = geometry.segs_per_sec;
    let mut at = Vec::new();
    let mut pack_blocks = 0;
    for pack in 0..2 {
        let start = u64::from(geometry.checkpoint_pack(pack).0);
        let bytes = theirs.blocks.get(&start).context("no checkpoint")?;
        let header = CheckpointBlock::read(&<[u8; BLOCK_SIZE]>::try_from(&bytes[..])?).header;
        pack_blocks = header.cp_pack_total_block_count.get();
        at.extend([start, start + u64::from(pack_blocks) - 1]);
    }
    let mut first = None;
    for at in at {
        let bytes = theirs.blocks.get_mut(&at).context("no end of a checkpoint")?;
        let mut block = CheckpointBlock::read(&<[u8; BLOCK_SIZE]>::try_from(&bytes[..])?);
        let header = &mut block.header;
        header.user_block_count = (header.user_block_count.get() - u64::from(front * BLOCKS_PER_SEGMENT)).into();
        header.free_segment_count = (header.free_segment_count.get() - front).into();
        block.seal();
        bytes.copy_from_slice(block.as_block());
        first.get_or_insert(block);
    }
    // The NAT bits name their checkpoint.
    if let (Some(block), Some(bits)) = (first, nat_bits::first_block(&geometry, pack_blocks)) {
        let at = u64::from(geometry.checkpoint_pack(0).0) + u64::from(bits);
        let bytes = theirs.blocks.get_mut(&at).context("no NAT bits")?;
        bytes[..8].copy_from_slice(&nat_bits::signature(&block)?.to_le_bytes());
    }
    Ok(())
}

/// A superblock without the versions, which name the makers, and of paths what goes before the first zero.
fn masked(block: &[u8; BLOCK_SIZE]) -> String {
    let mut superblock = SuperBlock::read(block);
    (superblock.version, superblock.init_version) = ([0; 256], [0; 256]);
    for device in &mut superblock.devs {
        let end = device.path.iter().position(|byte| *byte == 0).unwrap_or(device.path.len());
        device.path[end..].fill(0);
    }
    format!("{superblock:?}")
}

fn written(found: &Found) -> Vec<(u64, Option<u64>)> {
    let written = |zone: &&Zone| zone.written.is_some_and(|blocks| blocks > 0);
    found.zones.iter().filter(written).map(|zone| (zone.start, zone.written)).collect()
}

fn found(device: &dyn BlockDevice) -> anyhow::Result<Found> {
    let (mut blocks, size) = (BTreeMap::new(), device.info().blocks);
    for start in (0..size).step_by(READ as usize) {
        let buf = device.read(start, READ.min(size - start) as usize)?;
        for (at, block) in (start..).zip(buf.as_bytes().chunks(BLOCK_SIZE)) {
            // Behind a write pointer null_blk reads as ones.
            if block.iter().any(|byte| *byte != 0) && block.iter().any(|byte| *byte != 0xff) {
                blocks.insert(at, block.to_vec());
            }
        }
    }
    Ok(Found { blocks, zones: device.report_zones(0, usize::MAX)? })
}

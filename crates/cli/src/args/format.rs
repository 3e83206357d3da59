//! Options of `f2fs format`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use f2fs::format::feature::Features;

use crate::size::Size;

#[derive(Debug, Args)]
pub(crate) struct FormatArgs {
    /// File or block device.
    pub(crate) image: PathBuf,
    /// Size of the file, as in 1.5G [default: the file's own].
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) size: Option<Size>,
    /// Volume label.
    #[arg(long, short = 'l', default_value = "")]
    pub(crate) label: String,
    /// Features, separated by commas.
    #[arg(
        short = 'O',
        value_delimiter = ',',
        value_parser = feature,
        value_name = "FEATURE",
        long_help = "Features, separated by commas: extra_attr, project_quota, inode_checksum, \
        flexible_inline_xattr, inode_crtime, lost_found, sb_checksum."
    )]
    pub(crate) features: Vec<Features>,
    /// Segments in a section.
    #[arg(short = 's', default_value_t = 1)]
    pub(crate) segs_per_sec: u32,
    /// Sections in a zone.
    #[arg(short = 'z', default_value_t = 1)]
    pub(crate) secs_per_zone: u32,
    /// Percentage of the main area that is kept for cleaning [default: the one of mkfs.f2fs].
    ///
    /// That one leaves users the most, out of those of at most 10, or of at least 10 where the main area is below 512
    /// MiB. With large sections a larger one may leave them more.
    #[arg(short = 'o', value_name = "PERCENT", allow_hyphen_values = true, value_parser = percentage)]
    pub(crate) overprovision: Option<f64>,
    /// For zoned devices: each section is a zone. The first device, or its first zones, must take writes anywhere.
    #[arg(short = 'm')]
    pub(crate) zoned: bool,
    /// File name extensions of cold files, separated by commas.
    #[arg(short = 'e', value_delimiter = ',')]
    pub(crate) cold_extensions: Vec<String>,
    /// File name extensions of hot files, separated by commas.
    #[arg(short = 'E', value_delimiter = ',')]
    pub(crate) hot_extensions: Vec<String>,
    /// Make the NAT larger, for many small files.
    #[arg(short = 'i')]
    pub(crate) large_nat_bitmap: bool,
    /// Owner of the root directory, as user and group numbers [default: who calls the command].
    #[arg(short = 'R', long, value_name = "UID:GID", value_parser = owner)]
    pub(crate) root_owner: Option<(u32, u32)>,
    /// 1: discard all of the device first, if it can; 0: do not, so that an image file keeps its blocks.
    #[arg(short = 't', value_name = "0|1", default_value_t = 1, value_parser = clap::value_parser!(u8).range(..=1))]
    pub(crate) discard: u8,
    /// With --device: the path of a device that the volume records, where the kernel looks for it.
    ///
    /// Give it once for IMAGE and once for each --device, in this order [default: the paths of the command line].
    #[arg(long, value_name = "PATH")]
    pub(crate) record_as: Vec<OsString>,
    /// Overwrite an existing file system.
    #[arg(long, short = 'f')]
    pub(crate) force: bool,
    /// Print JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A part of the main area.
fn percentage(text: &str) -> Result<f64, String> {
    let percent = text.parse().map_err(|error| format!("{error}"))?;
    if percent > 0.0 && percent < 100.0 {
        Ok(percent)
    } else {
        Err("more than 0 and less than 100 are possible".to_owned())
    }
}

/// What system calls take for "no user" and "no group".
pub(super) const NOBODYS: &str = "4294967295 is no number of a user or group";

/// Two numbers, as of `id -u` and `id -g`.
fn owner(text: &str) -> Result<(u32, u32), String> {
    let numbers = text.split_once(':').and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)));
    match numbers {
        Some((u32::MAX, _) | (_, u32::MAX)) => Err(NOBODYS.to_owned()),
        Some(numbers) => Ok(numbers),
        None => Err("two numbers with a colon between them are needed, as in 1000:1000".to_owned()),
    }
}

/// A feature that a new volume can have.
fn feature(name: &str) -> Result<Features, String> {
    // Zones have an option of their own.
    let of_new = Features(Features::READ_WRITE.0 & !Features::BLKZONED.0);
    let possible = || format!("a new volume has none of this name; possible: {}", of_new.names().join(", "));
    Features::from_name(name).filter(|feature| of_new.contains(*feature)).ok_or_else(possible)
}

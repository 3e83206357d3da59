//! `f2fs format`.

mod planned;

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use f2fs::device::BlockDevice;
use f2fs::format::feature::Features;
use f2fs::format::mkfs::VolumePlan;
use f2fs::format::{BLOCK_BYTES, FormatError};
use f2fs::uring::OpenOptions;
use f2fs::volume::format::{FewZones, FormatOptions, FormatReport, FormatVolumeError, format_until};
use f2fs_workload::shell::Quoted;
use serde_json::json;

use self::planned::Planned;
use super::names::caller;
use crate::args::format::FormatArgs;
use crate::error::{CliError, Context, say};
use crate::interrupt::until_stopped;
use crate::medium;
use crate::size::human;

/// The planner's name for the size of the device.
const DEVICE_BYTES: &str = "bytes of the device";
/// The same of any other device.
const OTHER_BYTES: &str = "bytes of a device behind the first";

pub(crate) fn run(args: &FormatArgs, others: &[PathBuf]) -> Result<(), CliError> {
    let options = options(args, others)?;
    if let Some(size) = args.size.filter(|_| others.is_empty() && !args.zoned) {
        // Before a file of another size is cut.
        VolumePlan::new(&options, size.0).map_err(|error| CliError::usage(impossible(&error)))?;
    }
    let (device, found) = prepare(args, &options, others)?;
    let result = make(&*device, &options, &args.image, others, found);
    if result.is_err() && found == Found::Made {
        // Nothing is left behind of a file that was made for this.
        drop(device);
        let _ = std::fs::remove_file(&args.image);
    }
    tell(args, &result?)
}

/// The library's options for the command's.
fn options(args: &FormatArgs, others: &[PathBuf]) -> Result<FormatOptions, CliError> {
    let mut options =
        FormatOptions::default().with_label(&*args.label).with_sections(args.segs_per_sec, args.secs_per_zone);
    for feature in &args.features {
        options.features = options.features.union(*feature);
    }
    if args.zoned {
        options.features = options.features.union(Features::BLKZONED);
    }
    options.overprovision = args.overprovision;
    options.cold_extensions.clone_from(&args.cold_extensions);
    options.hot_extensions.clone_from(&args.hot_extensions);
    options.large_nat_bitmap = args.large_nat_bitmap;
    options.root_owner = args.root_owner.unwrap_or_else(caller);
    options.discard = args.discard == 1;
    options.force = args.force;
    options.device_paths = device_paths(args, others)?;
    Ok(options)
}

/// How the image came to be there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// It was there, and has its old size.
    AsItWas,
    /// It was there, and has a new size.
    Resized,
    /// It was made for this.
    Made,
}

impl Found {
    /// The end of the message when nothing was written to it.
    fn untouched(self) -> &'static str {
        match self {
            Found::Made => "is not made",
            Found::AsItWas => "is as it was",
            Found::Resized => "has its new size, and nothing was written",
        }
    }

    /// The end of the message when the old superblocks are gone.
    fn touched(self) -> &'static str {
        if self == Found::Made { self.untouched() } else { "holds no volume now" }
    }
}

/// The device, made or given its size if that was asked for.
fn prepare(
    args: &FormatArgs,
    options: &FormatOptions,
    others: &[PathBuf],
) -> Result<(Arc<dyn BlockDevice>, Found), CliError> {
    match (args.image.try_exists().about(&args.image)?, args.size) {
        (true, None) => Ok((medium::whole(&args.image)?, Found::AsItWas)),
        (true, Some(size)) => {
            let file = args.image.metadata().about(&args.image)?;
            let resizes = file.is_file() && file.len() != size.0;
            if resizes {
                if file.len() > 0 && !args.force {
                    return Err(CliError::at(
                        &args.image,
                        format_args!("has {} bytes, not {}; --force changes its size", file.len(), size.0),
                    ));
                }
                if file.len() >= BLOCK_BYTES {
                    expect_possible(args, options, others, size.0)?;
                }
                resize(&args.image, size.0)?;
            }
            Ok((medium::whole(&args.image)?, if resizes { Found::Resized } else { Found::AsItWas }))
        }
        (false, Some(size)) => {
            drop(medium::create(&args.image, size.0)?);
            let device = medium::whole(&args.image).inspect_err(|_| {
                // It was made here a moment ago.
                let _ = std::fs::remove_file(&args.image);
            })?;
            Ok((device, Found::Made))
        }
        (false, None) => Err(CliError::at(&args.image, "does not exist; --size creates it")),
    }
}

/// Refuses what would be refused once the file has its new size, while it has its old one.
fn expect_possible(args: &FormatArgs, options: &FormatOptions, others: &[PathBuf], bytes: u64) -> Result<(), CliError> {
    // The zones that a file keeps stand at its end: with another size it has none.
    let first = medium::open_plain(&args.image, false, OpenOptions::new())?;
    let device = medium::whole_with(&args.image, Arc::new(Planned::new(first, bytes / BLOCK_BYTES)))?;
    match format_until(&*device, options, &|| true) {
        Err(FormatVolumeError::Stopped { .. }) | Ok(_) => Ok(()),
        Err(error) => Err(refusal(&error, &args.image, others)),
    }
}

/// Says what was made.
fn tell(args: &FormatArgs, report: &FormatReport) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    if args.json {
        let value = json!({
            "uuid": hex(&report.uuid),
            "blocks": report.geometry.block_count,
            "main_segments": report.geometry.main_segments,
            "user_blocks": report.user_blocks,
            "reserved_segments": report.reserved_segments,
            "overprovision_segments": report.overprovision_segments,
            "overprovision_percent": report.overprovision,
            "few_zones": report.few_zones.map(|few| json!({
                "zones": few.zones,
                "kept": few.kept,
                "wanted": few.wanted,
                "overprovision_percent": few.overprovision,
            })),
            "features": report.geometry.features.names(),
        });
        writeln!(out, "{value:#}")?;
    } else {
        writeln!(
            out,
            "{}: {} in {} segments, {} for users",
            Quoted::path(&args.image),
            human(report.geometry.block_count * 4096),
            report.geometry.main_segments,
            human(report.user_blocks * 4096)
        )?;
        if let Some(few) = report.few_zones {
            note_few_zones(args, few);
        }
    }
    Ok(())
}

/// Says that the volume will be slow, and what would help.
fn note_few_zones(args: &FormatArgs, few: FewZones) {
    let FewZones { zones, kept, wanted, .. } = few;
    let percent = few.overprovision.map_or_else(String::new, |percent| format!(", and so does -o {percent}"));
    say(format_args!(
        "{}: once it is nearly full it will be slow: of its {zones} zones {kept} are kept free, and it takes \
         {wanted} to empty zones ahead of writes; smaller zones help{percent}",
        Quoted::path(&args.image)
    ));
}

/// The paths that the volume is to record of its devices: none if it is one.
fn device_paths(args: &FormatArgs, others: &[PathBuf]) -> Result<Vec<Vec<u8>>, CliError> {
    if others.is_empty() && args.record_as.is_empty() {
        return Ok(Vec::new());
    }
    if others.is_empty() {
        return Err(CliError::usage("--record-as is for volumes on several devices, which --device names"));
    }
    let given = || std::iter::once(&args.image).chain(others).map(|path| path.as_os_str().as_bytes().to_vec());
    if args.record_as.is_empty() {
        return Ok(given().collect());
    }
    if args.record_as.len() != others.len() + 1 {
        let (found, devices) = (args.record_as.len(), others.len() + 1);
        return Err(CliError::usage(format_args!("--record-as was given {found} times for {devices} devices")));
    }
    Ok(args.record_as.iter().map(|path| path.as_bytes().to_vec()).collect())
}

/// Writes the volume. A signal stops it between two writes, before the new superblocks are written.
fn make(
    device: &dyn BlockDevice,
    options: &FormatOptions,
    image: &Path,
    others: &[PathBuf],
    found: Found,
) -> Result<FormatReport, CliError> {
    let stopping = AtomicBool::new(false);
    let stop = || stopping.load(Ordering::Relaxed);
    let shown = Quoted::path(image);
    let formatted = until_stopped(
        || format_until(device, options, &stop),
        || stopping.store(true, Ordering::Relaxed),
        |result| match result {
            Err(FormatVolumeError::Stopped { touched: false }) => Some(format!("{shown} {}", found.untouched())),
            Err(FormatVolumeError::Stopped { touched: true }) => Some(format!("{shown} {}", found.touched())),
            _ => None,
        },
    )?;
    formatted.map_err(|error| refusal(&error, image, others))
}

/// Why there is no volume.
fn refusal(error: &FormatVolumeError, image: &Path, others: &[PathBuf]) -> CliError {
    let paths: Vec<_> = std::iter::once(image).chain(others.iter().map(PathBuf::as_path)).collect();
    let image = Quoted::path(image);
    match error {
        // The options ask for something that is possible on no device.
        FormatVolumeError::Plan(FormatError::Layout { what, .. }) if ![DEVICE_BYTES, OTHER_BYTES].contains(what) => {
            CliError::usage(error)
        }
        FormatVolumeError::Plan(FormatError::NotAPowerOfTwo { .. } | FormatError::Dependency { .. }) => {
            CliError::usage(error)
        }
        FormatVolumeError::Plan(FormatError::NoZones) => CliError::usage(format_args!(
            "{image}: -m needs a device with zones; `f2fs zones --make` makes a file that has some"
        )),
        FormatVolumeError::Plan(FormatError::ZonesUnasked { .. }) => {
            CliError::usage(format_args!("{image}: there are zones, which only a zoned volume can use: add -m"))
        }
        FormatVolumeError::Plan(error) => CliError::new(format_args!("{image}: {}", impossible(error))),
        FormatVolumeError::Exists { found, device } => {
            let path = paths.get(*device).map_or(image, |path| Quoted::path(path));
            CliError::new(format_args!("{path}: holds {found}; --force overwrites it"))
        }
        _ => CliError::new(format_args!("{image}: {error}")),
    }
}

/// The limit that a number is beyond.
fn limit(found: u64, min: u64, max: u64) -> (&'static str, u64) {
    if found < min { ("at least", min) } else { ("at most", max) }
}

/// Why there cannot be such a volume.
pub(super) fn impossible(error: &FormatError) -> String {
    match error {
        FormatError::Layout { what, found, min, max } if *what == DEVICE_BYTES => {
            let (limit, bytes) = limit(*found, *min, *max);
            format!(
                "{found} bytes, {}, is not a size for a volume: with these options it takes {limit} {bytes} bytes, {}",
                human(*found),
                human(bytes)
            )
        }
        FormatError::Layout { what, found, min, max } if *what == OTHER_BYTES => {
            let (limit, bytes) = limit(*found, *min, *max);
            format!("a device of {}: each behind the first takes {limit} {}", human(*found), human(bytes))
        }
        error => error.to_string(),
    }
}

fn resize(path: &Path, size: u64) -> Result<(), CliError> {
    std::fs::File::options().write(true).open(path).and_then(|file| file.set_len(size)).about(path)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

//! `f2fs format`.

use std::io::Write;

use f2fs::format::feature::Features;
use f2fs::uring::{OpenOptions, UringDevice};
use f2fs::volume::format::{FormatOptions, format};
use serde_json::json;

use crate::args::FormatArgs;
use crate::error::{CliError, Context};
use crate::size::human;

pub(crate) fn run(args: &FormatArgs) -> Result<(), CliError> {
    let mut options =
        FormatOptions::default().with_label(&*args.label).with_sections(args.segs_per_sec, args.secs_per_zone);
    for name in &args.features {
        let feature =
            Features::from_name(name).filter(|feature| Features::READ_WRITE.contains(*feature)).ok_or_else(|| {
                CliError::new(format_args!(
                    "unknown or unsupported feature {name:?}; possible: {}",
                    Features::READ_WRITE.names().join(", ")
                ))
            })?;
        options.features = options.features.union(feature);
    }
    options.overprovision = args.overprovision;
    options.cold_extensions.clone_from(&args.cold_extensions);
    options.hot_extensions.clone_from(&args.hot_extensions);
    options.large_nat_bitmap = args.large_nat_bitmap;
    options.force = args.force;

    let exists = args.image.try_exists().about(&args.image)?;
    let device = match (exists, args.size) {
        (true, None) => UringDevice::open(&args.image, OpenOptions::new()).map_err(CliError::new)?,
        (true, Some(size)) => {
            let file = args.image.metadata().about(&args.image)?;
            if file.is_file() && file.len() != size.0 {
                if file.len() > 0 && !args.force {
                    return Err(CliError::at(
                        &args.image,
                        format_args!("has {} bytes, not {}; --force changes its size", file.len(), size.0),
                    ));
                }
                resize(&args.image, size.0)?;
            }
            UringDevice::open(&args.image, OpenOptions::new()).map_err(CliError::new)?
        }
        (false, Some(size)) => UringDevice::create(&args.image, size.0, OpenOptions::new()).map_err(CliError::new)?,
        (false, None) => return Err(CliError::at(&args.image, "does not exist; --size creates it")),
    };
    let result = format(&*device, &options).about(&args.image);
    if result.is_err() && !exists {
        // Nothing is left behind of a file that was made for this.
        drop(device);
        let _ = std::fs::remove_file(&args.image);
    }
    let report = result?;
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
            "features": report.geometry.features.names(),
        });
        writeln!(out, "{value:#}")?;
    } else {
        writeln!(
            out,
            "{}: {} in {} segments, {} for users",
            args.image.display(),
            human(report.geometry.block_count * 4096),
            report.geometry.main_segments,
            human(report.user_blocks * 4096)
        )?;
    }
    Ok(())
}

fn resize(path: &std::path::Path, size: u64) -> Result<(), CliError> {
    std::fs::File::options().write(true).open(path).and_then(|file| file.set_len(size)).about(path)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

//! Counts of a file system, as a program exports them: here in the text format that Prometheus reads.
//!
//! ```text
//! cargo run --release --example stats              a volume in memory
//! cargo run --release --example stats -- IMAGE     an image, which is opened for reading
//! ```
//!
//! Exit codes: those of [`f2fs_examples::program`].

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use f2fs::device::MemoryDevice;
use f2fs::{FileSystem, Options, StatKind, Stats};
use f2fs_examples::program;

/// Counts of a file system, in the text format that Prometheus reads.
#[derive(Debug, Parser)]
#[command(name = "stats", after_help = program::EXIT_CODES)]
struct Arguments {
    /// An image, which is opened for reading. Without it, a volume in memory.
    image: Option<PathBuf>,
}

/// One line of its kind and one of its value for each.
fn exported(stats: &Stats) -> String {
    let mut text = String::new();
    for (name, kind, value) in stats.named() {
        let (kind, name) = match kind {
            StatKind::Counter => ("counter", format!("f2fs_{name}_total")),
            _ => ("gauge", format!("f2fs_{name}")),
        };
        text.push_str(&format!("# TYPE {name} {kind}\n{name} {value}\n"));
    }
    text
}

fn main() -> ExitCode {
    program::run(print)
}

fn print(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    if let Some(path) = &arguments.image {
        let failed = |error| format!("{}: {error}", path.display());
        let fs = FileSystem::open_path(path, Options::new().read_only(true)).map_err(failed)?;
        return Ok(write!(out, "{}", exported(&fs.stats()))?);
    }
    let device = Arc::new(MemoryDevice::new(32 * 1024)); // 128 MiB
    f2fs::volume::format::format(&*device, &Default::default())?;
    let fs = FileSystem::open(device, Options::new())?;
    let file = fs.create_file("/log", 0o644)?;
    for record in 0..1000 {
        file.append(format!("record {record}\n").as_bytes())?;
    }
    file.sync_all()?;
    fs.checkpoint()?;
    write!(out, "{}", exported(&fs.stats()))?;
    let stats = fs.stats();
    writeln!(out, "# {} blocks written, {} of them data of users", stats.blocks_written(), stats.user_blocks_written)?;
    fs.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_kind() {
        let text = exported(&Stats::default());
        assert!(text.contains("# TYPE f2fs_checkpoints_total counter\nf2fs_checkpoints_total 0\n"), "{text}");
        assert!(text.contains("# TYPE f2fs_free_segments gauge\n"), "{text}");
    }

    #[test]
    fn errors_are_told_in_words() {
        let arguments = Arguments { image: Some("/nonexist/x".into()) };
        let error = print(&arguments, &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("/nonexist/x") && error.contains("No such file"), "{error}");
        let full = &mut std::fs::File::options().write(true).open("/dev/full").unwrap();
        assert!(print(&Arguments { image: None }, full).is_err());
        for wrong in [["stats", "a", "b"], ["stats", "--none", "b"]] {
            assert!(Arguments::try_parse_from(wrong).is_err());
        }
    }
}

//! Counts of a file system, as a program exports them: here in the text format that Prometheus reads.
//!
//! ```text
//! cargo run --release --example stats              a volume in memory
//! cargo run --release --example stats -- IMAGE     an image, which is opened for reading
//! ```

use std::error::Error;
use std::sync::Arc;

use f2fs::device::MemoryDevice;
use f2fs::{FileSystem, Options, StatKind, Stats};

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

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(path) = std::env::args_os().nth(1) {
        let fs = FileSystem::open_path(path, Options::new().read_only(true))?;
        print!("{}", exported(&fs.stats()));
        return Ok(());
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
    print!("{}", exported(&fs.stats()));
    let stats = fs.stats();
    println!("# {} blocks written, {} of them data of users", stats.blocks_written(), stats.user_blocks_written);
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
}

//! What a number ships with: the machine, the commit, and a CSV that plots are drawn from.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// CPU model, processors, kernel, governor and commit, on one line.
pub fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let cpu =
        info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':')).map_or("?", |(_, name)| name);
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let governor = if governor.is_empty() { "not known" } else { governor.trim() };
    let commit = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output().map(|output| output.stdout);
    let commit = String::from_utf8_lossy(&commit.unwrap_or_default()).trim().to_owned();
    format!("{}; {processors} processors; Linux {}; governor {governor}; commit {commit}", cpu.trim(), kernel.trim())
}

/// A CSV file that begins with the machine, in the target directory.
#[derive(Debug)]
pub struct Csv {
    file: File,
    path: PathBuf,
}

impl Csv {
    /// Creates `target/NAME.csv` with these columns.
    ///
    /// # Errors
    /// Those of creating and writing a file.
    pub fn create(name: &str, columns: &str) -> io::Result<Csv> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
        std::fs::create_dir_all(&directory)?;
        let path = directory.join(format!("{name}.csv"));
        let mut file = File::create(&path)?;
        writeln!(file, "# {}", machine())?;
        writeln!(file, "{columns}")?;
        Ok(Csv { file, path })
    }

    /// Adds a line.
    ///
    /// # Errors
    /// Those of writing a file.
    pub fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.file, "{line}")
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

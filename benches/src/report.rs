//! The CSV that plots are drawn from. The machine that stands in its head is [`f2fs_workload::report::Machine`].

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use f2fs_workload::report::Machine;

/// CPU model, processors, kernel, governor and commit, on one line.
pub fn machine() -> String {
    Machine::here().to_string()
}

/// Values from the least to the greatest, for their middle and their spread.
pub fn ascending(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values
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
    /// Errors of creating and writing a file.
    pub fn create(name: &str, columns: &str) -> io::Result<Csv> {
        let path = output(&format!("{name}.csv"))?;
        let mut file = File::create(&path)?;
        write!(file, "{}", Machine::here().comments())?;
        writeln!(file, "{columns}")?;
        Ok(Csv { file, path })
    }

    /// Adds a line.
    ///
    /// # Errors
    /// Errors of writing a file.
    pub fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.file, "{line}")
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The path of a file in the target directory, which is made if it is missing.
///
/// # Errors
/// Errors of making a directory.
pub fn output(name: &str) -> io::Result<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    std::fs::create_dir_all(&directory)?;
    Ok(directory.join(name))
}

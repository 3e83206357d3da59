//! One large file, written in order.

use std::path::Path;
use std::process::Command;

use f2fs::device::AlignedBuf;
use f2fs::files::Flusher;
use f2fs::{File, FileSystem};

use crate::ext4::output;
use crate::volumes::volume;
use crate::{Clock, Goal, Measure, Place, Result, Row};

const PIECE: usize = 2 << 20;

/// A file of a volume that is written again and again.
struct Stream {
    fs: FileSystem,
    _flusher: Option<Flusher>,
    file: File,
    bytes: u64,
}

impl Stream {
    fn new(image: &Path, bytes: u64, cache: u64) -> Result<Stream> {
        let (fs, flusher) = volume(image, cache)?;
        let file = fs.create_file("/file", 0o644)?;
        let stream = Stream { fs, _flusher: flusher, file, bytes };
        stream.write()?;
        Ok(stream)
    }

    fn write(&self) -> Result<Measure> {
        self.fs.checkpoint()?;
        let mut piece = AlignedBuf::new(PIECE / 4096);
        piece.as_bytes_mut().fill(0xa5);
        let clock = Clock::start()?;
        for offset in (0..self.bytes).step_by(PIECE) {
            if self.file.write_at(piece.as_bytes(), offset)? != PIECE {
                return Err("the volume is too small".into());
            }
        }
        self.file.sync_all()?;
        Ok(clock.stop(self.bytes as f64 / 1e6)?)
    }
}

pub(crate) fn beside_fio(place: &Place) -> Result<Row<'_>> {
    let image = place.filled("image", place.image_bytes())?;
    let plain = place.filled("plain", place.args.bytes())?;
    let (bytes, cache) = (place.args.bytes(), place.args.cache());
    let ours = Stream::new(&image, bytes, cache)?;
    Ok(Row {
        name: "stream, fio",
        unit: "MB",
        goal: Goal::Ratio(0.95),
        ours: Box::new(move || ours.write()),
        theirs: Box::new(move || run_fio(&plain, bytes)),
    })
}

pub(crate) fn beside_direct(place: &Place) -> Result<Row<'_>> {
    let image = place.filled("image", place.image_bytes())?;
    let second = place.filled("image-2", place.image_bytes())?;
    let (bytes, cache) = (place.args.bytes(), place.args.cache());
    let (ours, theirs) = (Stream::new(&image, bytes, cache)?, Stream::new(&second, bytes, 0)?);
    Ok(Row {
        name: "stream, direct",
        unit: "MB",
        goal: Goal::None,
        ours: Box::new(move || ours.write()),
        theirs: Box::new(move || theirs.write()),
    })
}

fn run_fio(plain: &Path, bytes: u64) -> Result<Measure> {
    let clock = Clock::start()?;
    let report = output(
        Command::new("fio")
            .args(["--name=baseline", "--ioengine=psync", "--rw=write", "--bs=2m", "--end_fsync=1"])
            .args(["--fallocate=none", "--overwrite=1", "--output-format=json"])
            .arg(format!("--filename={}", plain.display()))
            .arg(format!("--size={bytes}")),
    )?;
    let report: serde_json::Value = serde_json::from_str(&report)?;
    // With the sync at the end, and without the start of the program.
    let runtime = report["jobs"][0]["job_runtime"].as_f64().ok_or("fio's report lacks its time")?;
    let mut measure = clock.stop(bytes as f64)?;
    measure.per_second = bytes as f64 / 1e6 / (runtime / 1e3);
    Ok(measure)
}

//! Many small files.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use crate::ext4::Ext4;
use crate::volumes::volume;
use crate::{Clock, Goal, Measure, Place, Result, Row, about};

/// Files in a directory.
const IN_DIRECTORY: u64 = 1000;
const DATA: [u8; 4096] = [0x3c; 4096];

pub(crate) fn beside_direct(place: &Place) -> Result<Row<'_>> {
    let image = place.filled("image", place.image_bytes())?;
    let (files, cache) = (place.args.files, place.args.cache());
    let other = image.clone();
    Ok(Row {
        name: "create, direct",
        unit: "files",
        goal: Goal::Ratio(8.0),
        ours: Box::new(move || create(&image, files, cache)),
        theirs: Box::new(move || create(&other, files, 0)),
    })
}

pub(crate) fn beside_ext4(place: &Place) -> Result<Row<'_>> {
    let image = place.filled("image", place.image_bytes())?;
    let (files, cache) = (place.args.files, place.args.cache());
    let loop_file = place.filled("ext4", place.image_bytes())?;
    let dir = place.path("ext4-mounted");
    Ok(Row {
        name: "create, ext4",
        unit: "files",
        goal: Goal::Ratio(1.0),
        ours: Box::new(move || create(&image, files, cache)),
        theirs: Box::new(move || {
            let ext4 = Ext4::make(&loop_file, &dir)?;
            create_on_host(ext4.dir(), files)
        }),
    })
}

fn create(image: &Path, files: u64, cache: u64) -> Result<Measure> {
    let (fs, flusher) = volume(image, cache)?;
    let clock = Clock::start()?;
    for number in 0..files {
        let directory = number / IN_DIRECTORY;
        if number % IN_DIRECTORY == 0 {
            fs.create_dir(format!("/{directory}"), 0o755)?;
        }
        let file = fs.create_file(format!("/{directory}/{number}"), 0o644)?;
        if file.write_at(&DATA, 0)? != DATA.len() {
            return Err("the volume is full".into());
        }
    }
    fs.checkpoint()?;
    let measure = clock.stop(files as f64)?;
    drop(flusher);
    fs.close()?;
    Ok(measure)
}

fn create_on_host(dir: &Path, files: u64) -> Result<Measure> {
    let clock = Clock::start()?;
    for number in 0..files {
        let directory = dir.join((number / IN_DIRECTORY).to_string());
        if number % IN_DIRECTORY == 0 {
            about(&directory, fs::create_dir(&directory))?;
        }
        let mut file = fs::File::create_new(directory.join(number.to_string()))?;
        file.write_all(&DATA)?;
    }
    rustix::fs::syncfs(fs::File::open(dir)?)?;
    Ok(clock.stop(files as f64)?)
}

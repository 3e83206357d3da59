//! A tree of the host into an image, and out of one, by programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ext4::{Ext4, output};
use crate::{Clock, Goal, Measure, Place, Result, Row, Side};

/// The command `f2fs` of this build, which is made if it is missing or old.
fn f2fs() -> Result<PathBuf> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let words = ["build", "--release", "--package", "f2fs-cli", "--bin", "f2fs", "--message-format"];
    let built = output(Command::new(cargo).args(words).arg("json-render-diagnostics"))?;
    // Cargo knows where it put the program; beside this bench may be an older one.
    let messages = built.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut programs = messages.filter(|message| message["target"]["name"] == "f2fs");
    let program = programs.find_map(|message| message["executable"].as_str().map(PathBuf::from));
    Ok(program.ok_or("cargo has built no program f2fs")?)
}

/// An image file for a program, twice as large as the tree, without holes, and how much the tree holds in MB.
struct Tree {
    from: PathBuf,
    image: PathBuf,
    amount: f64,
}

impl Tree {
    fn new(place: &Place, image: &str) -> Result<Tree> {
        let from = place.args.tree.clone();
        let size = output(Command::new("du").args(["-s", "--block-size=1"]).arg(&from))?;
        let bytes: u64 = size.split_whitespace().next().unwrap_or_default().parse()?;
        let image = place.filled(image, (3 * bytes).next_multiple_of(2 << 20) + (256 << 20))?;
        let amount = bytes as f64 / 1e6;
        Ok(Tree { from, image, amount })
    }

    fn put(&self, f2fs: &Path) -> Result<Measure> {
        let clock = Clock::start()?;
        output(Command::new(f2fs).args(["format", "--force"]).arg(&self.image))?;
        output(Command::new(f2fs).args(["put", "-r"]).arg(&self.image).arg(&self.from).arg("/tree"))?;
        Ok(clock.stop(self.amount)?)
    }
}

pub(crate) fn put_beside_mke2fs(place: &Place) -> Result<Row<'_>> {
    let (ours, theirs, f2fs) = (Tree::new(place, "put-f2fs")?, Tree::new(place, "put-ext4")?, f2fs()?);
    Ok(Row {
        name: "put, mke2fs",
        unit: "MB",
        goal: Goal::Ratio(1.0),
        ours: Box::new(move || ours.put(&f2fs)),
        theirs: Box::new(move || {
            let clock = Clock::start()?;
            let make = ["-q", "-F", "-t", "ext4", "-E", "nodiscard", "-d"];
            output(Command::new("mke2fs").args(make).arg(&theirs.from).arg(&theirs.image))?;
            std::fs::File::open(&theirs.image)?.sync_all()?;
            Ok(clock.stop(theirs.amount)?)
        }),
    })
}

pub(crate) fn put_beside_sload(place: &Place) -> Result<Row<'_>> {
    let (ours, theirs, f2fs) = (Tree::new(place, "put-f2fs")?, Tree::new(place, "put-sload")?, f2fs()?);
    Ok(Row {
        name: "put, sload",
        unit: "MB",
        goal: Goal::Ratio(2.0),
        ours: Box::new(move || ours.put(&f2fs)),
        theirs: Box::new(move || {
            let clock = Clock::start()?;
            output(Command::new("mkfs.f2fs").args(["-q", "-f", "-t", "0"]).arg(&theirs.image))?;
            output(Command::new("sload.f2fs").arg("-f").arg(&theirs.from).arg(&theirs.image))?;
            std::fs::File::open(&theirs.image)?.sync_all()?;
            Ok(clock.stop(theirs.amount)?)
        }),
    })
}

pub(crate) fn get_beside_cp(place: &Place) -> Result<Row<'_>> {
    let (ours, theirs, f2fs) = (Tree::new(place, "put-f2fs")?, Tree::new(place, "put-ext4")?, f2fs()?);
    ours.put(&f2fs)?;
    output(Command::new("mke2fs").args(["-q", "-F", "-t", "ext4", "-d"]).arg(&theirs.from).arg(&theirs.image))?;
    let ext4 = Ext4::mount(&theirs.image, &place.path("ext4-tree"))?;
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let out = tempfile::Builder::new().prefix("page_cache-").tempdir_in(base)?;
    let to = |name: &str| out.path().join(name);
    let (our_out, their_out) = (to("ours"), to("theirs"));
    let get = move || {
        let _ = std::fs::remove_dir_all(&our_out);
        let clock = Clock::start()?;
        output(Command::new(&f2fs).args(["get", "-r"]).arg(&ours.image).arg("/tree").arg(&our_out))?;
        let measure = clock.stop(ours.amount)?;
        std::fs::remove_dir_all(&our_out)?;
        Ok(measure)
    };
    let copy = move || {
        // The directory lives as long as the copies.
        let _ = (out.path(), std::fs::remove_dir_all(&their_out));
        let clock = Clock::start()?;
        output(Command::new("cp").arg("-a").arg(ext4.dir()).arg(&their_out))?;
        let measure = clock.stop(theirs.amount)?;
        std::fs::remove_dir_all(&their_out)?;
        Ok(measure)
    };
    // Both are warm then.
    let (mut get, mut copy): (Side<'_>, Side<'_>) = (Box::new(get), Box::new(copy));
    get()?;
    copy()?;
    Ok(Row { name: "get, cp", unit: "MB", goal: Goal::Ratio(0.9), ours: get, theirs: copy })
}

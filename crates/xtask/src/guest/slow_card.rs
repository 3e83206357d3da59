//! The published cost model of an SD card, made real: a long write into an aged volume on `f2fs ublk add --slow
//! card-a`, by Linux's F2FS with SSR (`mode=adaptive`) and without (`mode=lfs`), and by the library in several ways,
//! each beside the virtual time of the model.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::{Bench, Outcome, judge};
use crate::{Result, process};

const LIMIT: Duration = Duration::from_secs(3600);
const SCRIPT: &str = include_str!("slow-card.sh");
/// Ways of the library.
const WAYS: [&str; 3] = ["ssr", "partial", "selective-optimal"];

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let image = bench.images.join("aged");
    if image.exists() {
        fs_err::remove_file(&image)?;
    }
    let mib = if bench.quick { "64" } else { "128" };
    let mut command = Command::new(&bench.here.agent);
    command.args(["slow-card", "make"]).arg(&image).args(["--mib", mib, "--ways", &WAYS.join(",")]);
    let made = String::from_utf8(process::output(&mut command)?)?;
    let blocks = made.lines().find_map(|line| line.strip_prefix("blocks ")).context("no count of blocks")?;
    let boot = bench.guest.boot("slow-card").processors(2).carry(&image);
    let output = boot.run(&format!("BLOCKS={blocks}\nWAYS='{}'\n{SCRIPT}", WAYS.join(" ")), LIMIT)?;
    judge::succeeded(&output)?;
    fs_err::remove_file(&image)?;
    let measured: Vec<&str> =
        output.log.lines().filter(|line| line.starts_with("Linux ") || line.starts_with("library ")).collect();
    ensure!(measured.len() == 2 + WAYS.len(), "{} measurements:\n{}", measured.len(), output.log.trim());
    for line in made.lines().chain(measured) {
        println!("    {line}");
    }
    Ok(Outcome { wall: output.wall, remark: format!("{blocks} blocks written in {} ways", 2 + WAYS.len()) })
}

//! libfuse's `passthrough_hp`, built from the sources of Debian's package.
//!
//! Debian has the library, and not this example. Its sources come by `apt-get source`, with a list of its own, because
//! most machines have none of sources.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;

use crate::{Result, files, process, tools};

/// The list of Debian's sources.
const SOURCES: &str = "Types: deb-src\nURIs: http://deb.debian.org/debian\nSuites: bookworm\nComponents: main\n\
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n";

/// The program, which is built if it is not yet there.
///
/// # Errors
///
/// If a package cannot be had, or the compiler fails.
pub(super) fn installed() -> Result<PathBuf> {
    let root = process::root().join("target/mount/tools");
    let program = root.join("bin/passthrough_hp");
    if program.is_file() {
        return Ok(program);
    }
    tools::require(&["c++", "pkg-config", "fusermount3"])?;
    tools::install(&["libfuse3-dev", "libcxxopts-dev"])?;
    let work = root.join("fuse3");
    fs_err::create_dir_all(work.join("lists/partial"))?;
    fs_err::create_dir_all(root.join("bin"))?;
    let list = work.join("fuse3.sources");
    fs_err::write(&list, SOURCES)?;
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.current_dir(&work).arg("-qq").arg(format!("-oDir::Etc::sourcelist={}", list.display()));
        command.arg("-oDir::Etc::sourceparts=-").arg(format!("-oDir::State::lists={}", work.join("lists").display()));
        process::output(command.args(args)).map(drop)
    };
    apt(&["update"])?;
    apt(&["source", "--download-only", "fuse3"])?;
    let archive = fs::read_dir(&work)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.to_string_lossy().ends_with(".orig.tar.xz"))
        .context("the sources of fuse3 have no archive")?;
    let unpack = ["--strip-components=1", "--extract", "--file"];
    process::run(Command::new("tar").current_dir(&work).args(unpack).arg(&archive))?;
    let flags = process::output(Command::new("pkg-config").args(["--cflags", "--libs", "fuse3"]))?;
    let flags = String::from_utf8(flags)?;
    let mut compiler = Command::new("c++");
    compiler.args(["-O2", "-std=c++17", "-DHAVE_STRUCT_STAT_ST_ATIM=1"]).arg("-o").arg(&program);
    process::run(compiler.arg(work.join("example/passthrough_hp.cc")).args(flags.split_whitespace()).arg("-lpthread"))?;
    files::remove_dir(&work)?;
    Ok(program)
}

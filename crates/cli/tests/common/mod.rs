//! Helpers that the tests of the command share. Each uses a part of it.
#![allow(dead_code)]

pub(crate) mod mounted;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A directory for one test, where the build lies: direct transfers work there.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Place {
        Place(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    pub(crate) fn dir(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// The command with these arguments, and nothing on standard input.
pub(crate) fn command<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_f2fs"));
    command.args(args).stdin(Stdio::null());
    command
}

/// A copy of the command in a directory, made by a process of its own: while this one had the copy open for writing, a
/// child that another test starts would inherit that, and a file that is open for writing cannot be run.
pub(crate) fn program_in(dir: &Path) -> PathBuf {
    let program = dir.join("f2fs");
    ok(Command::new("cp").arg(env!("CARGO_BIN_EXE_f2fs")).arg(&program));
    program
}

/// A new volume.
pub(crate) fn formatted(place: &Place) -> PathBuf {
    let image = place.path("disk.img");
    ok(command(["format", "--size", "64M"]).arg(&image));
    image
}

pub(crate) fn run(command: &mut Command) -> Output {
    command.output().unwrap()
}

/// Runs a command that must succeed without a word on stderr; what it printed.
#[track_caller]
pub(crate) fn ok(command: &mut Command) -> String {
    let output = run(command);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{command:?}: {}: {stderr}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must fail with this code, and say this word.
#[track_caller]
pub(crate) fn fail(command: &mut Command, code: i32, word: &str) {
    let output = run(command);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{command:?}: {stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert!(stderr.contains(word), "{word:?} is not in {stderr:?}");
}

/// Puts other bytes of the same length in the place of a name, wherever it stands in the image.
pub(crate) fn rename_by_hand(image: &Path, name: &[u8], other: &[u8]) {
    assert_eq!(name.len(), other.len());
    let mut bytes = std::fs::read(image).unwrap();
    let places: Vec<usize> =
        bytes.windows(name.len()).enumerate().filter(|(_, window)| *window == name).map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + name.len()].copy_from_slice(other);
    }
    std::fs::write(image, bytes).unwrap();
}

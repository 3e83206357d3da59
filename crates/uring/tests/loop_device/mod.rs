//! A loop device on a file, as long as it lives. Making one takes root.

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) struct Loop(pub(crate) PathBuf);

impl Loop {
    /// With more words for `losetup`. `None`, and a line that says so, without the rights to make one.
    pub(crate) fn new(image: &Path, words: &[&str]) -> Option<Loop> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("NOT RUN: this test needs root, to make a loop device");
            return None;
        }
        let output = Command::new("losetup").args(["--find", "--show"]).args(words).arg(image).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Some(Loop(String::from_utf8(output.stdout).unwrap().trim().into()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.0).status();
    }
}

//! This project's own programs, run on the host: the `f2fs` command and the script runner.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::{Result, process};

/// The programs.
#[derive(Debug)]
pub(crate) struct Here {
    /// The `f2fs` command.
    pub(crate) f2fs: PathBuf,
    /// The runner of the tree scripts.
    pub(crate) agent: PathBuf,
}

impl Here {
    /// `f2fs format IMAGE --size SIZE ...`: a new image.
    pub(crate) fn format(&self, image: &Path, size: &str, options: &[&str]) -> Result<()> {
        if image.exists() {
            fs_err::remove_file(image)?;
        }
        let mut command = Command::new(&self.f2fs);
        process::output(command.arg("format").arg(image).args(["--size", size]).args(options))?;
        Ok(())
    }

    /// `f2fs manifest IMAGE`.
    pub(crate) fn manifest(&self, image: &Path) -> Result<String> {
        let text = process::output(Command::new(&self.f2fs).arg("manifest").arg(image))?;
        String::from_utf8(text).context("a manifest that is not UTF-8")
    }

    /// `f2fs manifest --no-recovery IMAGE`: the last checkpoint.
    pub(crate) fn checkpoint_manifest(&self, image: &Path) -> Result<String> {
        let text = process::output(Command::new(&self.f2fs).args(["manifest", "--no-recovery"]).arg(image))?;
        String::from_utf8(text).context("a manifest that is not UTF-8")
    }

    /// `f2fs mkdir IMAGE PATH`.
    pub(crate) fn mkdir(&self, image: &Path, path: &str) -> Result<()> {
        process::output(Command::new(&self.f2fs).arg("mkdir").arg(image).arg(path))?;
        Ok(())
    }

    /// `f2fs check IMAGE`, which must find no damage. Returns what it says.
    pub(crate) fn check(&self, image: &Path) -> Result<String> {
        let said = process::output(Command::new(&self.f2fs).arg("check").arg(image))?;
        String::from_utf8(said).context("findings that are not UTF-8")
    }

    /// `f2fs check --repair IMAGE`, which must find damage and mend it. Returns what it says.
    pub(crate) fn repair(&self, image: &Path) -> Result<String> {
        // The backup of an earlier run, whose test failed, is not written over.
        let backup = image.with_extension("img.f2fs-backup");
        if backup.exists() {
            fs_err::remove_file(&backup)?;
        }
        let output = Command::new(&self.f2fs).args(["check", "--repair"]).arg(image).output()?;
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        ensure!(output.status.code() == Some(1), "{}: {}: {said}", image.display(), output.status);
        Ok(said)
    }

    /// Runs the tree script `what` (`make` or `change`) on an image with the library.
    pub(crate) fn script(&self, what: &str, scale: &str, image: &Path) -> Result<()> {
        process::output(Command::new(&self.agent).args([what, "--scale", scale, "--image"]).arg(image))?;
        Ok(())
    }

    /// Runs the agent with these words and an image.
    pub(crate) fn agent(&self, words: &[&str], image: &Path) -> Result<()> {
        process::output(Command::new(&self.agent).args(words).arg("--image").arg(image))?;
        Ok(())
    }

    /// Makes the tree on an image with the library, takes a checkpoint, begins to change it, and ends without closing
    /// it.
    pub(crate) fn abandon(&self, scale: &str, image: &Path) -> Result<()> {
        process::output(Command::new(&self.agent).args(["make", "--abandon", "--scale", scale, "--image"]).arg(image))?;
        Ok(())
    }

    /// Fills an empty image and overwrites it four times, with unclean stops; gives what the agent says of it.
    pub(crate) fn age(&self, image: &Path, options: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.agent);
        let text = process::output(command.arg("age").arg(image).args(options))?;
        String::from_utf8(text).context("a report that is not UTF-8")
    }

    /// A manifest that the guest left in the share, its deferred digests filled in from the copies beside it: large
    /// files are not digested in the guest, where that takes half a minute a gibibyte, but copied out as sparse files.
    pub(crate) fn guest_manifest(&self, share: &Path, name: &str) -> Result<String> {
        let file = share.join(name);
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let mut whole = String::with_capacity(text.len());
        for line in text.lines() {
            match content(line).and_then(|content| content.strip_prefix("@deferred/")) {
                Some(copy) => {
                    let digest = self.digest(&share.join(format!("{name}.large")).join(copy))?;
                    whole.push_str(&line.replacen(&format!("@deferred/{copy}"), &digest, 1));
                }
                None => whole.push_str(line),
            }
            whole.push('\n');
        }
        Ok(whole)
    }

    /// The content field of a host file, from the manifest of that file alone.
    fn digest(&self, file: &Path) -> Result<String> {
        let line = process::output(Command::new(&self.agent).arg("manifest").arg(file))?;
        let line = String::from_utf8(line).context("a manifest that is not UTF-8")?;
        content(&line).map(str::to_owned).with_context(|| format!("no content in the manifest line {line}"))
    }
}

/// The content field of a manifest's line.
fn content(line: &str) -> Option<&str> {
    line.split('\t').nth(6)
}

//! A new ext4 in a file, on a loop device with direct transfers, mounted.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, about};

/// It is mounted until this is dropped.
pub(crate) struct Ext4 {
    dir: PathBuf,
    device: String,
}

impl Ext4 {
    /// Formats `file` and mounts it on `dir`.
    pub(crate) fn make(file: &Path, dir: &Path) -> Result<Ext4> {
        let complete = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
        output(Command::new("mkfs.ext4").args(["-q", "-F", "-E", complete]).arg(file))?;
        Ext4::mount(file, dir)
    }

    /// Mounts `file` on `dir`.
    pub(crate) fn mount(file: &Path, dir: &Path) -> Result<Ext4> {
        if !rustix::process::geteuid().is_root() {
            return Err("ext4 is mounted by root only".into());
        }
        about(dir, std::fs::create_dir_all(dir))?;
        let device = output(Command::new("losetup").args(["--find", "--show", "--direct-io=on"]).arg(file))?;
        let ext4 = Ext4 { dir: dir.to_owned(), device: device.trim().to_owned() };
        output(Command::new("mount").args(["-t", "ext4", &ext4.device]).arg(dir))?;
        Ok(ext4)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        // A bench has nobody to tell; what stays mounted is seen by the next one.
        let _ = output(Command::new("umount").arg(&self.dir));
        let _ = output(Command::new("losetup").arg("--detach").arg(&self.device));
    }
}

/// What a program printed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = about(&name, command.output())?;
    if !done.status.success() {
        return Err(format!("{name}: {}: {}", done.status, String::from_utf8_lossy(&done.stderr).trim()).into());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

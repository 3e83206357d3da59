//! Volumes on three devices: one made by `mkfs.f2fs -c`, filled here, mounted by the kernel and changed there, and read
//! and changed here again; one made here, mounted by the kernel and changed there.
//!
//! The kernel opens the devices by the paths in the superblock. So the paths are those of links, which lead to the
//! images on the host and to the disks in the guest.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::judge;
use super::machine::Bus;
use super::{Bench, Outcome};
use crate::{Result, files, process};

const LIMIT: Duration = Duration::from_secs(600);

/// Name, bus, MiB.
type Disk = (&'static str, Bus, u64);

/// A volume that mkfs.f2fs makes, and one that is made here: most of each lies on the second device and the third.
const THEIRS: [Disk; 3] = [("t1", Bus::VirtioBlk, 30), ("t2", Bus::Nvme, 120), ("t3", Bus::VirtioBlk, 75)];
const OURS: [Disk; 3] = [("o1", Bus::Nvme, 30), ("o2", Bus::VirtioBlk, 64), ("o3", Bus::Nvme, 150)];

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let links = Links::new()?;
    let scale = bench.scale("medium");
    let mut boot = bench.guest.boot("several");
    let mut script = format!("set -e\nmkdir -p {}\n", links.0.display());
    for (name, bus, mib) in THEIRS.into_iter().chain(OURS) {
        let image = bench.image(&format!("several-{name}"));
        files::make_sparse(&image, mib << 20)?;
        symlink(&image, links.path(name)).context("cannot make a link")?;
        boot = boot.disk(&image, bus, name);
        script += &format!("ln -s $(device {name}) {}\n", links.path(name).display());
    }
    let [theirs, ours] = [THEIRS, OURS].map(|disks| Volume(disks.map(|(name, ..)| links.path(name))));
    f2fs_oracle::mkfs(&theirs.0[0], &theirs.flags("-c"))?;
    ours.f2fs(bench, &["format"])?;
    let mut made = Vec::new();
    for (name, volume) in [("theirs", &theirs), ("ours", &ours)] {
        volume.agent(bench, &["make", "--scale", scale])?;
        volume.sound(bench)?;
        made.push((name, volume, volume.f2fs(bench, &["manifest"])?));
        script += &changed_by_kernel(name, &volume.0[0], scale);
    }
    let output = boot.run(&script, LIMIT)?;
    judge::succeeded(&output)?;
    let mut paths = 0;
    for (name, volume, before) in &made {
        let mounted = bench.here.guest_manifest(&output.share, &format!("{name}.before"))?;
        judge::same(name, ("this project", before), ("the kernel", &mounted))?;
        volume.sound(bench)?;
        let changed = bench.here.guest_manifest(&output.share, &format!("{name}.after"))?;
        let here = volume.f2fs(bench, &["manifest"])?;
        judge::same(name, ("the kernel after its changes", &changed), ("this project", &here))?;
        volume.is_spread()?;
        // Work goes on with the kernel's volume.
        volume.f2fs(bench, &["mkdir", "/afterwards"])?;
        volume.sound(bench)?;
        paths += before.lines().count() + changed.lines().count();
    }
    Ok(Outcome {
        wall: output.wall,
        remark: format!("{paths} paths on three devices each, the same in the kernel and here"),
    })
}

/// The kernel shows the tree, changes it, and shows it again after a remount.
fn changed_by_kernel(name: &str, first: &Path, scale: &str) -> String {
    let first = first.display();
    format!(
        "mount -t f2fs {first} /mnt\n\
         guest-agent manifest --defer /share/{name}.before.large /mnt > /share/{name}.before\n\
         guest-agent change --scale {scale} /mnt\n\
         umount /mnt\n\
         mount -t f2fs -o ro {first} /mnt\n\
         guest-agent manifest --defer /share/{name}.after.large /mnt > /share/{name}.after\n\
         umount /mnt\n"
    )
}

/// A directory of links, short enough for the paths of a superblock; it goes with this.
struct Links(PathBuf);

impl Links {
    fn new() -> Result<Links> {
        let directory = PathBuf::from(format!("/tmp/f2fs-several-{}", std::process::id()));
        fs::create_dir(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
        Ok(Links(directory))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        // Only links lie there.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A volume by its devices.
struct Volume([PathBuf; 3]);

impl Volume {
    /// The other devices, each behind this word.
    fn flags<'a>(&'a self, word: &'a str) -> Vec<&'a str> {
        self.0[1..].iter().flat_map(|path| [word, path.to_str().unwrap_or_default()]).collect()
    }

    fn f2fs(&self, bench: &Bench, words: &[&str]) -> Result<String> {
        let mut command = Command::new(&bench.here.f2fs);
        command.arg(words[0]).args(self.flags("--device")).arg(&self.0[0]).args(&words[1..]);
        String::from_utf8(process::output(&mut command)?).context("text that is not UTF-8")
    }

    fn agent(&self, bench: &Bench, words: &[&str]) -> Result<()> {
        let mut command = Command::new(&bench.here.agent);
        process::output(command.args(words).args(self.flags("--device")).arg("--image").arg(&self.0[0]))?;
        Ok(())
    }

    /// Neither check finds anything.
    fn sound(&self, bench: &Bench) -> Result<()> {
        self.f2fs(bench, &["check"])?;
        judge::fsck_clean(&self.0[0])
    }

    /// Each device holds something.
    fn is_spread(&self) -> Result<()> {
        for path in &self.0 {
            let file = File::open(path)?;
            let (mut block, mut written) = (vec![0; 4096], 0);
            for at in (0..file.metadata()?.len()).step_by(4096) {
                let read = file.read_at(&mut block, at)?;
                written += usize::from(block[..read].iter().any(|byte| *byte != 0));
            }
            ensure!(written > 50, "{} holds {written} blocks", path.display());
        }
        Ok(())
    }
}

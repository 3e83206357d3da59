//! A volume on which the kernel uses what this project only reads: casefolded, compressed, encrypted and verity files,
//! quotas. What the kernel shows of it without the keys, this project shows, byte by byte; what it does not read it
//! names.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::judge;
use super::machine::Bus;
use super::programs::{LOADER, dynamic};
use super::{Bench, Outcome};
use crate::Result;

const LIMIT: Duration = Duration::from_secs(600);

/// Programs of Debian that give the file system its commands.
const PROGRAMS: [&str; 3] = ["f2fs_io", "xfs_io", "fsverity"];
const FEATURES: &str = "encrypt,extra_attr,project_quota,inode_checksum,flexible_inline_xattr,quota,inode_crtime,lost_found,\
                        verity,sb_checksum,casefold,compression";
/// Makes the tree; shows it with the keys, and mounted again without.
const SCRIPT: &str = include_str!("features.sh");

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let image = bench.image("features");
    f2fs_oracle::mkfs_sized(&image, 512 << 20, &["-O", FEATURES, "-C", "utf8"])?;
    let stopped = bench.image("features-stopped");
    f2fs_oracle::mkfs_sized(&stopped, 256 << 20, &["-O", FEATURES, "-C", "utf8"])?;
    let mut boot = bench.guest.boot("features").disk(&image, Bus::Nvme, "features");
    boot = boot.disk(&stopped, Bus::VirtioBlk, "stopped");
    for program in PROGRAMS {
        for file in dynamic(&[program])? {
            boot = boot.program(&file);
        }
    }
    let output = boot.run(&format!("LOADER={LOADER}\n{SCRIPT}"), LIMIT)?;
    judge::succeeded(&output)?;
    judge::fsck_clean(&image)?;
    bench.here.check(&image)?;
    let kernel = bench.here.guest_manifest(&output.share, "no-key")?;
    let here = bench.here.manifest(&image)?;
    let unread = compare(&kernel, &here)?;
    let with_key = bench.here.guest_manifest(&output.share, "with-key")?;
    ensure!(with_key.lines().count() == here.lines().count(), "the keys show other paths than there are without");
    let recovered = recovered(bench, &output.share)?;
    let tool = Tool { bench, image: &image };
    tool.look_ups()?;
    tool.errors(&fs_err::read_to_string(output.share.join("key"))?)?;
    tool.marks(&fs_err::read_to_string(output.share.join("saved"))?)?;
    let (paths, unread) = (here.lines().count(), unread.len());
    let remark = format!(
        "{paths} paths, names without a key among them, the same here; {unread} compressed files named; \
                          {recovered} paths of a stopped volume"
    );
    Ok(Outcome { wall: output.wall, remark })
}

/// Checks that files that were synced before a stop are shown here as the kernel recovers them afterwards. Gives their
/// number.
fn recovered(bench: &Bench, share: &Path) -> Result<usize> {
    let kernel = bench.here.guest_manifest(share, "stopped")?;
    let here = fs_err::read_to_string(share.join("stopped-here"))?;
    judge::same("a stopped volume", ("the kernel", &kernel), ("this project", &here))?;
    let said = fs_err::read_to_string(share.join("stopped-said"))?;
    ensure!(said.contains("300 files synced after the last checkpoint"), "nothing was recovered: {said}");
    Ok(here.lines().count())
}

/// Both views are the same, but for the data of compressed files, which the kernel reads. Gives their paths.
fn compare(kernel: &str, here: &str) -> Result<Vec<String>> {
    let mut unread = Vec::new();
    let mut told = String::with_capacity(kernel.len());
    let ours: std::collections::HashMap<&str, &str> =
        here.lines().filter_map(|line| Some((line.rsplit('\t').next()?, line))).collect();
    for line in kernel.lines() {
        let path = line.rsplit('\t').next().unwrap_or_default();
        let mut fields: Vec<&str> = line.split('\t').collect();
        if ours.get(path).and_then(|ours| ours.split('\t').nth(6)) == Some("compressed") {
            ensure!(path.starts_with("/packed/"), "{path} is no compressed file");
            fields[6] = "compressed";
            unread.push(path.to_owned());
        }
        told.push_str(&fields.join("\t"));
        told.push('\n');
    }
    judge::same("features", ("the kernel", &told), ("this project", here))?;
    for path in ["/packed/text", "/packed/mixed", "/packed/released"] {
        ensure!(unread.iter().any(|unread| unread == path), "{path} was read");
    }
    for path in ["/packed/random", "/packed/small", "/packed/empty"] {
        ensure!(!unread.iter().any(|unread| unread == path), "{path}, of which nothing is compressed, was not read");
    }
    let encrypted = here.lines().filter(|line| line.split('\t').nth(6) == Some("encrypted")).count();
    ensure!(encrypted > 300, "only {encrypted} files are encrypted");
    Ok(unread)
}

/// The `f2fs` command on the image.
struct Tool<'a> {
    bench: &'a Bench,
    image: &'a Path,
}

impl Tool<'_> {
    fn run(&self, words: &[&str]) -> Result<std::process::Output> {
        let mut command = Command::new(&self.bench.here.f2fs);
        command.arg(words[0]).arg(self.image).args(&words[1..]);
        command.output().with_context(|| format!("cannot run {command:?}"))
    }

    fn shows(&self, words: &[&str], expected: &str) -> Result<()> {
        let output = self.run(words)?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success() && text.contains(expected), "f2fs {words:?}: {output:?} without {expected:?}");
        Ok(())
    }

    fn refuses(&self, words: &[&str], expected: &str) -> Result<()> {
        let output = self.run(words)?;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.code() == Some(1) && text.contains(expected),
            "f2fs {words:?}: {output:?} without {expected:?}"
        );
        Ok(())
    }

    /// Names in ASCII without case, others as they are.
    fn look_ups(&self) -> Result<()> {
        for name in ["/fold/ReadMe.TXT", "/fold/readme.txt", "/FOLD/../fold/README.txt", "/fold/Sub/FILE-399"] {
            let found = self.shows(&["cat", name], if name.ends_with("399") { "399" } else { "text" });
            match (name.starts_with("/FOLD"), found) {
                // The root is no casefolded directory.
                (true, Ok(())) => bail!("{name} was found"),
                (true, Err(_)) => {}
                (false, found) => found?,
            }
        }
        self.shows(&["cat", "/fold/Sub/Größe-17"], "17")?;
        self.shows(&["cat", "/fold/Ünïcode Straße"], "folds")?;
        self.refuses(&["cat", "/fold/Sub/file-400"], "no such file")?;
        self.refuses(&["cat", "/fold/Sub/Größe-400"], "no such file")
    }

    /// Checks the errors of files that cannot be read, and that nothing is written.
    fn errors(&self, key: &str) -> Result<()> {
        let listed = self.run(&["ls", "/secret"])?;
        let listed = String::from_utf8(listed.stdout)?;
        let file =
            listed.lines().find(|name| self.shows(&["stat", &format!("/secret/{name}")], "regular file").is_ok());
        let file = format!("/secret/{}", file.context("no regular file in /secret")?);
        self.refuses(&["cat", &file], &format!("is encrypted (policy v2, key {})", key.trim()))?;
        self.shows(&["stat", &file], "form:     encrypted")?;
        self.refuses(&["cat", "/packed/text"], "is compressed (lz4 in clusters of 4 blocks)")?;
        self.refuses(&["mkdir", "/new"], "it opens for reading only")
    }

    fn marks(&self, saved: &str) -> Result<()> {
        self.shows(&["inspect"], "casefold")?;
        self.shows(&["stat", "/verified/large"], "form:     verity")?;
        self.shows(&["stat", "/fold"], "form:     casefolded")?;
        self.shows(&["ls", "-l", "/verified"], "large [verity]")?;
        self.shows(&["stat", "/packed/released"], "0 blocks saved, saved blocks released")?;
        // The kernel's own count, of `f2fs_io get_cblocks`.
        self.shows(&["stat", "/packed/text"], &format!("blocks, {} blocks saved", saved.trim()))
    }
}

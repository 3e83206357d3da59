//! Volumes on which files were synced and that were not closed: the kernel's after a reset of the machine, ours after a
//! power cut. Each side recovers what either synced, and the same.
//!
//! ```text
//!   the kernel, reset ----+--> image --> a copy, opened here: for reading (nothing is written), for writing
//!   this project, cut ----+         \--> mounted by the kernel --> the same paths, contents, attributes
//! ```
//!
//! On one of them bits of the tables are flipped between, and mended by `f2fs check --repair`, which keeps what was synced.
//!
//! Set `F2FS_ROUNDS` for more than one round, each with random scripts and cuts of its own.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::judge;
use super::machine::Bus;
use super::{Bench, EXTRA_FEATURES, Outcome};
use crate::Result;

const LIMIT: Duration = Duration::from_secs(600);
/// Operations of a random script that runs to its end.
const STEPS: &str = "400";

/// The side that makes and syncs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maker {
    /// The kernel, which is reset when all is done.
    Kernel,
    /// The kernel, which is reset in the middle.
    InterruptedKernel,
    /// This project, whose process ends.
    Library,
    /// This project, cut off at some event.
    Cut,
    /// The same; then the volume is damaged and repaired.
    Mended,
}

/// An image: its name, its maker, whether it has the extra features, and whether a random script fills it.
type Image = (&'static str, Maker, bool, bool);

const IMAGES: [Image; 11] = [
    ("kernel", Maker::Kernel, false, false),
    ("kernel-extra", Maker::Kernel, true, false),
    ("kernel-random", Maker::Kernel, false, true),
    ("kernel-random-extra", Maker::Kernel, true, true),
    ("kernel-reset", Maker::InterruptedKernel, true, true),
    ("library", Maker::Library, false, false),
    ("library-extra", Maker::Cut, true, false),
    ("library-random", Maker::Cut, false, true),
    ("library-random-extra", Maker::Cut, true, true),
    ("library-random-end", Maker::Library, true, true),
    ("library-mended", Maker::Mended, true, false),
];

/// Images of the short form. The others differ from them in one thing each.
const QUICK: [&str; 7] = [
    "kernel",
    "kernel-random-extra",
    "kernel-reset",
    "library",
    "library-extra",
    "library-random-extra",
    "library-mended",
];

/// The images of a form, with their indices among all, which seed their scripts.
fn images(bench: &Bench) -> impl Iterator<Item = (usize, Image)> {
    let quick = bench.quick;
    IMAGES.into_iter().enumerate().filter(move |(_, image)| !quick || QUICK.contains(&image.0))
}

impl Maker {
    fn is_kernel(self) -> bool {
        matches!(self, Self::Kernel | Self::InterruptedKernel)
    }
}

/// What a repair says that keeps synced files.
const KEPT: &str = "synced after the last checkpoint are kept";
/// Of these the kernel shows the last checkpoint as well.
const SHOWN_WITHOUT_RECOVERY: [&str; 2] = ["kernel", "library"];
/// The kernel is shown what was recovered here of this one.
const RECOVERED_HERE: &str = "kernel";
/// Here the kernel cuts files and syncs them, which loses the nodes that it cuts off: what it recovers has blocks behind
/// its end. Here they go.
const CUT: &str = "kernel";
/// The finding of `f2fs check` about such a file.
const BEHIND_END: &str = "behind the end:";
/// Names of such files, and their sizes in bytes afterwards. Before, they reach beyond both direct nodes of an inode.
const CUT_FILES: [(&str, u32); 3] = [("cut-to-nothing", 0), ("cut-to-a-block", 5000), ("cut-to-a-node", 5_000_000)];

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let rounds = match std::env::var("F2FS_ROUNDS") {
        Ok(text) => text.parse().with_context(|| format!("F2FS_ROUNDS is {text}, which is no number"))?,
        Err(_) => 1,
    };
    let mut sum = Sum::default();
    for round in 0..rounds {
        sum.round(bench, round).with_context(|| format!("round {round}"))?;
    }
    let Sum { wall, images, paths, recovered } = sum;
    let remark =
        format!("{images} volumes, {paths} paths the same on both sides, {recovered} lines of them by recovery");
    Ok(Outcome { wall, remark })
}

/// The sum of what was seen so far.
#[derive(Default)]
struct Sum {
    wall: Duration,
    images: usize,
    paths: usize,
    /// Lines of manifests that the last checkpoint does not have.
    recovered: usize,
}

impl Sum {
    fn round(&mut self, bench: &Bench, round: u64) -> Result<()> {
        let image = |name: &str| bench.image(&format!("rolled-forward-{name}"));
        let mut crash = bench.guest.boot("rolled-forward-crash");
        for (index, (name, maker, extra, random)) in images(bench) {
            let features: &[&str] = if extra { &["-O", EXTRA_FEATURES] } else { &[] };
            let size = if random { 128 << 20 } else { 256 << 20 };
            if maker.is_kernel() {
                f2fs_oracle::mkfs_sized(image(name), size, features)?;
                crash = crash.disk(&image(name), Bus::VirtioBlk, name);
                continue;
            }
            bench.here.format(&image(name), &size.to_string(), features)?;
            let seed = (round * IMAGES.len() as u64 + index as u64).to_string();
            let mut words: Vec<&str> = if random {
                bench.here.agent(&["random-base", "--seed", &seed], &image(name))?;
                vec!["random-syncs", "--seed", &seed, "--steps", STEPS]
            } else {
                bench.here.script("make", "small", &image(name))?;
                vec!["sync", "--scale", "small"]
            };
            if matches!(maker, Maker::Cut | Maker::Mended) {
                // The expectations of the fixed script are those of its end.
                words.extend(["--cut", if random { &seed } else { "0" }]);
            }
            bench.here.agent(&words, &image(name))?;
            if maker == Maker::Mended {
                bench.here.agent(&["flip"], &image(name))?;
                let said = bench.here.repair(&image(name))?;
                ensure!(said.contains(KEPT), "{name}: {said}");
            }
        }
        let output = crash.run(&crash_script(bench, round), LIMIT)?;
        judge::succeeded(&output)?;
        self.wall += output.wall;

        let mut show = bench.guest.boot("rolled-forward");
        let mut here = Vec::new();
        for (_, (name, _, _, random)) in images(bench) {
            let views = show_here(bench, &image(name)).with_context(|| name.to_owned())?;
            if !random {
                as_expected(name, &views)?;
            }
            if name == RECOVERED_HERE {
                let copy = copy_of(bench, &image(name));
                show = show.disk(&copy, Bus::VirtioBlk, &format!("{name}-h"));
            }
            here.push(views);
            show = show.disk(&image(name), Bus::VirtioBlk, name);
        }
        let output = show.run(&show_script(bench), LIMIT)?;
        judge::succeeded(&output)?;
        self.wall += output.wall;
        for ((_, (name, ..)), views) in images(bench).zip(&here) {
            let there = bench.here.guest_manifest(&output.share, &format!("{name}.recovered"))?;
            judge::same(name, ("this project", &views.recovered), ("the kernel", &there))?;
            judge::fsck_clean(&image(name))?;
            let said = bench.here.check(&image(name))?;
            if name == CUT {
                // Otherwise there was nothing to cut here.
                ensure!(said.matches(BEHIND_END).count() == CUT_FILES.len(), "{name}, as the kernel left it: {said}");
                let said = bench.here.check(&copy_of(bench, &image(name)))?;
                ensure!(!said.contains(BEHIND_END), "{name}, as it was left here: {said}");
            }
            judge::same(
                name,
                ("this project afterwards", &bench.here.manifest(&image(name))?),
                ("the kernel", &there),
            )?;
            if name == RECOVERED_HERE {
                let there = bench.here.guest_manifest(&output.share, &format!("{name}-h.recovered"))?;
                judge::same(name, ("what was recovered here", &views.recovered), ("the kernel", &without(&there)))?;
            }
            if SHOWN_WITHOUT_RECOVERY.contains(&name) {
                let there = bench.here.guest_manifest(&output.share, &format!("{name}.checkpoint"))?;
                judge::same(name, ("this project", &views.checkpoint), ("the kernel", &there))?;
            }
            self.paths += there.lines().count();
            self.recovered += there.lines().filter(|line| !views.checkpoint.contains(line)).count();
            self.images += 1;
        }
        Ok(())
    }
}

/// The kernel makes and syncs on all its disks, then the machine is reset, while one of them is in the middle of it.
/// Its own checkpoints, every minute, are put off. All trees are made before the first file is synced: `sync` writes a
/// checkpoint on every disk, and is not called afterwards.
fn crash_script(bench: &Bench, round: u64) -> String {
    let mut make = String::new();
    let mut sync = String::new();
    let mut interrupted = String::new();
    for (index, (name, maker, _, random)) in images(bench).filter(|(_, image)| image.1.is_kernel()) {
        let seed = round * IMAGES.len() as u64 + index as u64;
        // Writing to a String cannot fail.
        let _ = write!(
            make,
            "disk=$(device {name})\n\
             mkdir -p /mnt/{name}\n\
             mount -t f2fs $disk /mnt/{name}\n\
             echo 3600 > /sys/fs/f2fs/${{disk##*/}}/cp_interval\n"
        );
        let _ = match random {
            false => writeln!(make, "guest-agent make --scale small /mnt/{name}"),
            true => writeln!(make, "guest-agent random-base --seed {seed} /mnt/{name}"),
        };
        let _ = match (maker, random) {
            (Maker::InterruptedKernel, _) => writeln!(
                interrupted,
                "guest-agent random-syncs --seed {seed} --steps 100000 /mnt/{name} &\nusleep {}",
                2_500_000 + seed * 77_777 % 2_000_000
            ),
            (_, false) => writeln!(sync, "guest-agent sync --scale small /mnt/{name}"),
            (_, true) => writeln!(sync, "guest-agent random-syncs --seed {seed} --steps {STEPS} /mnt/{name}"),
        };
    }
    let mut cut = String::new();
    for (name, size) in CUT_FILES {
        let path = format!("/mnt/{CUT}/{name}");
        let _ = writeln!(make, "dd if=/dev/urandom of={path} bs=4096 count=3500 2> /dev/null");
        // The command syncs what it opens, and writes nothing.
        let _ = writeln!(
            cut,
            "truncate -s {size} {path}\ndd if=/dev/null of={path} count=0 conv=notrunc,fsync 2> /dev/null"
        );
    }
    format!(
        "set -e\n\
         {make}\
         sync\n\
         {sync}\
         {cut}\
         dmesg > /share/dmesg\n\
         echo 0 > /share/status\n\
         {interrupted}\
         echo b > /proc/sysrq-trigger\n\
         sleep 100\n"
    )
}

/// Mounts with recovery, which writes; for those with a known script first without it.
fn show_script(bench: &Bench) -> String {
    let mut script = "set -e\n".to_owned();
    let mut show = |name: &str, view: &str, options: &str| {
        // Writing to a String cannot fail.
        let _ = write!(
            script,
            "mount -t f2fs{options} $(device {name}) /mnt\n\
             guest-agent manifest --defer /share/{name}.{view}.large /mnt > /share/{name}.{view}\n\
             umount /mnt\n"
        );
    };
    for (_, (name, ..)) in images(bench) {
        if SHOWN_WITHOUT_RECOVERY.contains(&name) {
            show(name, "checkpoint", " -o ro,norecovery");
        }
        show(name, "recovered", "");
        if name == RECOVERED_HERE {
            show(&format!("{name}-h"), "recovered", "");
        }
    }
    script
}

/// How an image looks here.
struct Views {
    checkpoint: String,
    recovered: String,
}

fn copy_of(bench: &Bench, image: &Path) -> PathBuf {
    bench.image(&format!("{}-here", image.file_stem().unwrap_or_default().to_string_lossy()))
}

/// Shows an image without recovery and with it, which writes nothing; and recovers it for good on a copy, with the same
/// result.
fn show_here(bench: &Bench, image: &Path) -> Result<Views> {
    judge::fsck_accepted(image)?;
    bench.here.check(image)?;
    let before = fs::read(image)?;
    let views = Views { checkpoint: bench.here.checkpoint_manifest(image)?, recovered: bench.here.manifest(image)? };
    if fs::read(image)? != before {
        bail!("showing the recovered tree wrote to the image");
    }
    let copy = copy_of(bench, image);
    fs::write(&copy, before).with_context(|| format!("cannot write {}", copy.display()))?;
    bench.here.mkdir(&copy, "/opened")?;
    bench.here.check(&copy)?;
    judge::fsck_clean(&copy)?;
    let written = without(&bench.here.manifest(&copy)?);
    judge::same("recovered", ("a reader", &views.recovered), ("a writer", &written))?;
    Ok(views)
}

/// Checks the expectations of the fixed script.
fn as_expected(name: &str, views: &Views) -> Result<()> {
    for (path, at_checkpoint, recovered) in
        [("\t/sizes/100", true, true), ("\t/new-large", false, true), ("\t/not-synced", false, false)]
    {
        let has = |view: &str| view.lines().any(|line| line.ends_with(path));
        if (has(&views.checkpoint), has(&views.recovered)) != (at_checkpoint, recovered) {
            bail!("{name}: {} is not where it should be: at the checkpoint, or recovered, or neither", path.trim());
        }
    }
    Ok(())
}

/// A manifest without the directory that opening for writing is shown by: it gives the root another link.
fn without(manifest: &str) -> String {
    let root = |line: &str| -> String {
        let mut fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
        if fields.last().is_some_and(|path| path == "/") {
            // The sixth field counts links.
            if let Some((field, links)) =
                fields.get_mut(5).and_then(|field| field.parse::<u64>().ok().map(|n| (field, n)))
            {
                *field = links.saturating_sub(1).to_string();
            }
        }
        fields.join("\t") + "\n"
    };
    manifest.lines().filter(|line| !line.ends_with("\t/opened")).map(root).collect()
}

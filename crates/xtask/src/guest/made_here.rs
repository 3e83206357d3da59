//! Images made and filled by this project: the kernel mounts them read-write, sees the same tree, changes it in many
//! places, and this project opens them again.

use std::path::Path;
use std::time::Duration;

use super::judge;
use super::machine::Bus;
use super::{Bench, EXTRA_FEATURES, Outcome};
use crate::Result;

const LIMIT: Duration = Duration::from_secs(900);

/// Name, bus, size, options of `f2fs format`, scale of the tree.
type Variant = (&'static str, Bus, &'static str, &'static [&'static str], &'static str);

const VARIANTS: [Variant; 2] = [
    ("plain", Bus::VirtioBlk, "2G", &[], "wide"),
    ("extra", Bus::Nvme, "1G", &["-O", EXTRA_FEATURES, "--label", "made here"], "medium"),
];

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let image = |name: &str| bench.image(&format!("made-here-{name}"));
    let mut boot = bench.guest.boot("made-here");
    let mut script = "set -e\n".to_owned();
    let mut made = Vec::new();
    for (name, bus, size, options, scale) in VARIANTS {
        bench.here.format(&image(name), size, options)?;
        bench.here.script("make", bench.scale(scale), &image(name))?;
        sound(bench, &image(name))?;
        made.push(bench.here.manifest(&image(name))?);
        boot = boot.disk(&image(name), bus, name);
        script.push_str(&change_script(name, bench.scale(scale)));
    }
    let output = boot.run(&script, LIMIT)?;
    judge::succeeded(&output)?;
    let mut paths = 0;
    for ((name, ..), made) in VARIANTS.into_iter().zip(&made) {
        let before = bench.here.guest_manifest(&output.share, &format!("{name}.before"))?;
        judge::same(name, ("this project", made), ("the kernel", &before))?;
        sound(bench, &image(name))?;
        let after = bench.here.guest_manifest(&output.share, &format!("{name}.after"))?;
        let here = bench.here.manifest(&image(name))?;
        judge::same(name, ("the kernel after its changes", &after), ("this project", &here))?;
        paths += before.lines().count() + after.lines().count();
    }
    Ok(Outcome { wall: output.wall, remark: format!("{paths} paths, the same in the kernel and here") })
}

/// Neither check finds anything.
fn sound(bench: &Bench, image: &Path) -> Result<()> {
    bench.here.check(image)?;
    judge::fsck_clean(image)
}

/// The kernel shows the tree, changes it, and shows it again after a remount.
fn change_script(name: &str, scale: &str) -> String {
    format!(
        "disk=$(device {name})\n\
         mount -t f2fs $disk /mnt\n\
         guest-agent manifest --defer /share/{name}.before.large /mnt > /share/{name}.before\n\
         guest-agent change --scale {scale} /mnt\n\
         umount /mnt\n\
         mount -t f2fs -o ro $disk /mnt\n\
         guest-agent manifest --defer /share/{name}.after.large /mnt > /share/{name}.after\n\
         umount /mnt\n"
    )
}

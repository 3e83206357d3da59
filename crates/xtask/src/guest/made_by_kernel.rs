//! Images made by `mkfs.f2fs` and filled by the kernel: this project reads them as the kernel does, and the kernel
//! reads what this project then changed.

use std::time::Duration;

use super::judge;
use super::machine::Bus;
use super::{Bench, EXTRA_FEATURES, Outcome};
use crate::Result;

const LIMIT: Duration = Duration::from_secs(900);

struct Variant {
    name: &'static str,
    bus: Bus,
    bytes: u64,
    mkfs: &'static [&'static str],
    mount: &'static str,
    scale: &'static str,
    changed_by: ChangedBy,
}

#[derive(PartialEq, Eq)]
enum ChangedBy {
    Kernel,
    Library,
}

const VARIANTS: [Variant; 4] = [
    Variant {
        name: "plain",
        bus: Bus::VirtioBlk,
        bytes: 2 << 30,
        mkfs: &[],
        mount: "rw",
        scale: "full",
        changed_by: ChangedBy::Kernel,
    },
    Variant {
        name: "extra",
        bus: Bus::Nvme,
        bytes: 1 << 30,
        mkfs: &["-O", EXTRA_FEATURES],
        mount: "rw",
        scale: "medium",
        changed_by: ChangedBy::Library,
    },
    Variant {
        name: "no-inline",
        bus: Bus::VirtioBlk,
        bytes: 1 << 30,
        mkfs: &[],
        mount: "noinline_data,noinline_dentry,noinline_xattr",
        scale: "medium",
        changed_by: ChangedBy::Library,
    },
    Variant {
        name: "sections",
        bus: Bus::VirtioBlk,
        bytes: 1 << 30,
        mkfs: &["-s", "2", "-i"],
        mount: "rw",
        scale: "medium",
        changed_by: ChangedBy::Kernel,
    },
];

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let image = |variant: &Variant| bench.image(&format!("made-by-kernel-{}", variant.name));
    let mut first = bench.guest.boot("made-by-kernel");
    let mut second = bench.guest.boot("made-by-kernel-changed-here");
    let (mut make, mut show) = ("set -e\n".to_owned(), "set -e\n".to_owned());
    for variant in &VARIANTS {
        f2fs_oracle::mkfs_sized(image(variant), variant.bytes, variant.mkfs)?;
        first = first.disk(&image(variant), variant.bus, variant.name);
        make.push_str(&make_script(variant, bench.scale(variant.scale)));
        if variant.changed_by == ChangedBy::Library {
            second = second.disk(&image(variant), variant.bus, variant.name);
            show.push_str(&show_script(variant.name));
        }
    }
    let output = first.run(&make, LIMIT)?;
    judge::succeeded(&output)?;
    let mut paths = 0;
    for variant in &VARIANTS {
        let kernel = bench.here.guest_manifest(&output.share, variant.name)?;
        compare(bench, variant, &image(variant), &kernel)?;
        paths += kernel.lines().count();
    }
    let mut wall = output.wall;
    for variant in VARIANTS.iter().filter(|variant| variant.changed_by == ChangedBy::Library) {
        bench.here.script("change", bench.scale(variant.scale), &image(variant))?;
        bench.here.check(&image(variant))?;
        judge::fsck_clean(&image(variant))?;
    }
    let output = second.run(&show, LIMIT)?;
    judge::succeeded(&output)?;
    wall += output.wall;
    for variant in VARIANTS.iter().filter(|variant| variant.changed_by == ChangedBy::Library) {
        let kernel = bench.here.guest_manifest(&output.share, variant.name)?;
        compare(bench, variant, &image(variant), &kernel)?;
        paths += kernel.lines().count();
    }
    Ok(Outcome { wall, remark: format!("{paths} paths of {} images, the same here", VARIANTS.len()) })
}

/// The image is sound, and this project sees in it what the kernel saw.
fn compare(bench: &Bench, variant: &Variant, image: &std::path::Path, kernel: &str) -> Result<()> {
    judge::fsck_clean(image)?;
    bench.here.check(image)?;
    judge::same(variant.name, ("the kernel", kernel), ("this project", &bench.here.manifest(image)?))
}

/// The kernel makes the tree (and changes it), and shows it after a remount.
fn make_script(variant: &Variant, scale: &str) -> String {
    let Variant { name, mount, .. } = variant;
    let change = match variant.changed_by {
        ChangedBy::Kernel => format!("guest-agent change --scale {scale} /mnt\n"),
        ChangedBy::Library => String::new(),
    };
    let show = show_script(name);
    format!(
        "mount -t f2fs -o {mount} $(device {name}) /mnt\nguest-agent make --scale {scale} /mnt\n{change}umount /mnt\n{show}"
    )
}

/// The kernel shows the tree; read-only, so that nothing changes on the way.
fn show_script(name: &str) -> String {
    format!(
        "mount -t f2fs -o ro $(device {name}) /mnt\n\
         guest-agent manifest --defer /share/{name}.large /mnt > /share/{name}\n\
         umount /mnt\n"
    )
}

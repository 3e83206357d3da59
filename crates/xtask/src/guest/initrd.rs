//! The initial RAM disk: busybox, the modules, the script that runs a test, and libraries of its programs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::cpio::Archive;
use super::kernel::Kernel;
use super::modules::ModuleTree;
use crate::{Result, tools};

/// Modules that the guest needs besides those built into Debian's kernel. F2FS asks for the ciphers of encrypted files
/// and the format of quota files by names that only modprobe could resolve, so they are named here. `null_blk` and `brd` make no device by themselves; NVMe devices have
/// a queue that is polled beside the others.
const MODULES: [&str; 22] = [
    "virtio_blk",
    "nvme",
    "nd_e820",
    "nd_pmem",
    "dax_pmem",
    "device_dax",
    "ext4",
    "9p",
    "9pnet_virtio",
    "f2fs",
    "loop",
    "null_blk",
    "brd",
    "ublk_drv",
    "xts",
    "cts",
    "quota_v2",
    "nvme_fabrics",
    "nvme_tcp",
    "nvmet_tcp",
    "dm_log_writes",
    "dm_delay",
];
/// The same where the kernel has them: up to 6.15 or so F2FS and ext4 asked for checksums by such names, too.
const OLDER_MODULES: [&str; 3] = ["crc32_generic", "crc32c_generic", "crc32_pclmul"];
/// Parameters of modules.
const PARAMETERS: [(&str, &str); 3] = [("null_blk", "nr_devices=0"), ("brd", "rd_nr=0"), ("nvme", "poll_queues=1")];

/// Runs as process 1. The share carries the test's script in, and its log and exit status out.
const INIT: &str = include_str!("init.sh");
/// `device SERIAL`: the path of the disk with that serial number, since disks are numbered in any order.
const DEVICE: &str = include_str!("device.sh");

/// Builds the archive under `cache`, with libraries at the paths that they have here, and returns its path.
pub(crate) fn build(cache: &Path, kernel: &Kernel, libraries: &BTreeSet<PathBuf>) -> Result<PathBuf> {
    let busybox = tools::find("busybox").context("busybox is not installed")?;
    let busybox = fs::read(&busybox).with_context(|| format!("cannot read {}", busybox.display()))?;
    // A dynamic program names its loader; the guest has none.
    if busybox.windows(7).any(|window| window == b"/ld-lin") {
        bail!("busybox is not statically linked: install the package busybox-static");
    }
    let mut archive = Archive::default();
    for dir in ["bin", "dev", "mnt", "modules", "proc", "run", "share", "sys", "tmp"] {
        archive.directory(dir);
    }
    archive.character_device("dev/console", 5, 1);
    archive.file("bin/busybox", 0o755, &busybox);
    archive.file("bin/device", 0o755, DEVICE.as_bytes());
    archive.file("init", 0o755, INIT.as_bytes());
    let mut names = String::new();
    let tree = ModuleTree::index(&kernel.modules)?;
    let older = OLDER_MODULES.into_iter().filter(|name| tree.has(name));
    for module in tree.load_order(&older.chain(MODULES).collect::<Vec<_>>())? {
        archive.file(&format!("modules/{}.ko", module.name), 0o644, &module.object);
        let parameters = PARAMETERS.iter().find(|(name, _)| *name == module.name).map_or("", |(_, value)| value);
        names.push_str(&format!("{} {parameters}\n", module.name));
    }
    for directory in libraries.iter().flat_map(|file| file.ancestors().skip(1)).collect::<BTreeSet<_>>() {
        let path = directory.to_string_lossy();
        if let Some(path) = path.strip_prefix('/').filter(|path| !path.is_empty()) {
            archive.directory(path);
        }
    }
    for library in libraries {
        let content = fs::read(library).with_context(|| format!("cannot read {}", library.display()))?;
        archive.file(library.to_string_lossy().trim_start_matches('/'), 0o755, &content);
    }
    archive.file("modules/order", 0o644, names.as_bytes());
    let path = cache.join("initrd.cpio");
    fs::write(&path, archive.finish()).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

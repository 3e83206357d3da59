//! Kernel modules and what they depend on. A kernel package carries no `modules.dep` (depmod makes it on installation),
//! so the dependencies are read from the modules themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::{Result, process};

/// A module ready to be loaded.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: String,
    /// The uncompressed object file.
    pub(crate) object: Vec<u8>,
}

/// The modules of a kernel tree by name.
#[derive(Debug)]
pub(crate) struct ModuleTree {
    files: BTreeMap<String, PathBuf>,
    builtin: BTreeSet<String>,
}

impl ModuleTree {
    /// Indexes `lib/modules/VERSION`.
    pub(crate) fn index(root: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        collect(&root.join("kernel"), &mut files)?;
        let list = fs_err::read_to_string(root.join("modules.builtin"))?;
        let builtin = list.lines().filter_map(|line| module_name(Path::new(line))).collect();
        Ok(Self { files, builtin })
    }

    /// Whether there is a module of this name that can be loaded.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// The named modules and all that they need, each after what it needs. Names that are built into the kernel are
    /// left out; a name that the kernel does not know is an error.
    pub(crate) fn load_order(&self, wanted: &[&str]) -> Result<Vec<Module>> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        for name in wanted {
            self.add(name, &mut seen, &mut order)?;
        }
        Ok(order)
    }

    fn add(&self, name: &str, seen: &mut BTreeSet<String>, order: &mut Vec<Module>) -> Result<()> {
        let name = name.replace('-', "_");
        if self.builtin.contains(&name) || !seen.insert(name.clone()) {
            return Ok(());
        }
        let Some(file) = self.files.get(&name) else {
            bail!("the kernel package has no module {name}");
        };
        let object = read_object(file)?;
        for needed in dependencies(&object) {
            self.add(&needed, seen, order)?;
        }
        order.push(Module { name, object });
        Ok(())
    }
}

fn collect(dir: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            collect(&path, files)?;
        } else if let Some(name) = module_name(&path) {
            files.insert(name, path);
        }
    }
    Ok(())
}

/// `nvme-core.ko.xz` is `nvme_core`; other files have no module name.
fn module_name(path: &Path) -> Option<String> {
    let (stem, extension) = path.file_name()?.to_str()?.split_once(".ko")?;
    matches!(extension, "" | ".xz" | ".zst" | ".gz").then(|| stem.replace('-', "_"))
}

fn read_object(file: &Path) -> Result<Vec<u8>> {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("ko") => fs::read(file).with_context(|| format!("cannot read {}", file.display())),
        Some("xz") => process::output(Command::new("busybox").args(["xz", "-dc"]).arg(file)),
        _ => bail!("{} is compressed in a way that is not supported", file.display()),
    }
}

/// The `depends=a,b` entry of the `.modinfo` section, whose strings are NUL-separated.
fn dependencies(object: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(start) = object.windows(KEY.len()).position(|window| window == KEY) else {
        return Vec::new();
    };
    let value = object[start + KEY.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(value).split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_come_from_modinfo() {
        assert_eq!(
            dependencies(b"ELF\0license=GPL\0depends=lz4_compress,crc32\0name=f2fs\0"),
            ["lz4_compress", "crc32"]
        );
        assert!(dependencies(b"ELF\0depends=\0name=x\0").is_empty());
        assert!(dependencies(b"ELF").is_empty());
    }

    #[test]
    fn names_are_normalised() {
        assert_eq!(module_name(Path::new("kernel/drivers/nvme/host/nvme-core.ko.xz")).as_deref(), Some("nvme_core"));
        assert_eq!(module_name(Path::new("modules.order")), None);
    }
}

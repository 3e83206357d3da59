//! Debian's 6.12 kernel package, downloaded and unpacked under `target/guest/kernel`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::{Result, files, process, tools};

/// The kernel series that judges.
const SERIES: &str = "6.12";
/// Names a kernel package file to use instead of a download.
const PACKAGE_VARIABLE: &str = "F2FS_GUEST_KERNEL_DEB";

/// An unpacked kernel package.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    /// The bootable image.
    pub(crate) image: PathBuf,
    /// `lib/modules/VERSION`.
    pub(crate) modules: PathBuf,
    /// The release, as `uname -r` gives it.
    pub(crate) release: String,
}

impl Kernel {
    /// The kernel unpacked under `cache`, which is filled when it is empty.
    pub(crate) fn obtain(cache: &Path) -> Result<Self> {
        let home = cache.join("kernel");
        if let Some(kernel) = Self::unpacked(&home)? {
            return Ok(kernel);
        }
        fs_err::create_dir_all(&home)?;
        let package = package_file(&home)?;
        let staging = home.join("staging");
        files::remove_dir(&staging)?;
        println!("unpacking {}", package.display());
        process::output(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&staging))?;
        // The rename is the last step, so that an interrupted unpacking never looks like a kernel.
        fs::rename(&staging, home.join("root"))?;
        Self::unpacked(&home)?.with_context(|| format!("{} holds no kernel", package.display()))
    }

    fn unpacked(home: &Path) -> Result<Option<Self>> {
        let root = home.join("root");
        // Merged-/usr packages keep the modules in usr/lib.
        let Some(modules) =
            ["lib/modules", "usr/lib/modules"].iter().map(|dir| root.join(dir)).find(|dir| dir.is_dir())
        else {
            return Ok(None);
        };
        let versions = files::entries(&modules)?;
        let Some(release) = versions.first().and_then(|version| version.file_name()) else {
            return Ok(None);
        };
        let release = release.to_string_lossy().into_owned();
        let image = root.join("boot").join(format!("vmlinuz-{release}"));
        Ok(image.is_file().then(|| Self { image, modules: modules.join(&release), release }))
    }
}

/// The package file: named by the environment, or downloaded with apt.
fn package_file(home: &Path) -> Result<PathBuf> {
    if let Some(file) = std::env::var_os(PACKAGE_VARIABLE) {
        let file = PathBuf::from(file);
        if !file.is_file() {
            bail!("{PACKAGE_VARIABLE} names {}, which is not a file", file.display());
        }
        return Ok(file);
    }
    if let Some(file) = downloaded(home)? {
        return Ok(file);
    }
    let advice = || {
        format!(
            "the guest tests need Debian's kernel package linux-image-{SERIES}.*-amd64: add a Debian mirror that has it \
             (bookworm-security, bookworm-backports or trixie) and run `apt-get update`, or download the package and \
             name the file in {PACKAGE_VARIABLE}"
        )
    };
    let name = newest_package().with_context(advice)?;
    println!("downloading {name}");
    process::output(Command::new("apt-get").arg("download").arg(&name).current_dir(home)).with_context(advice)?;
    downloaded(home)?.with_context(advice)
}

fn downloaded(home: &Path) -> Result<Option<PathBuf>> {
    for path in files::entries(home)? {
        if path.extension().is_some_and(|extension| extension == "deb") {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn newest_package() -> Result<String> {
    if let Some(name) = known_packages()?.pop() {
        return Ok(name);
    }
    if tools::is_root() {
        println!("updating apt's package lists");
        process::output(Command::new("apt-get").arg("update"))?;
    }
    known_packages()?.pop().context("apt knows no such package")
}

/// The packages that apt knows, the newest last.
fn known_packages() -> Result<Vec<String>> {
    let pattern = format!(r"^linux-image-{}\.[0-9]+\+deb[0-9]+-amd64$", SERIES.replace('.', r"\."));
    let found = process::output(Command::new("apt-cache").args(["search", "--names-only", &pattern]))?;
    let mut names: Vec<String> = String::from_utf8_lossy(&found)
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    names.sort_by_key(|name| version_numbers(name));
    Ok(names)
}

/// All numbers in a package name, for comparing versions.
fn version_numbers(name: &str) -> Vec<u64> {
    name.split(|character: char| !character.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::version_numbers;

    #[test]
    fn versions_compare_as_numbers() {
        let old = version_numbers("linux-image-6.12.90+deb12-amd64");
        let new = version_numbers("linux-image-6.12.117+deb12-amd64");
        assert_eq!(old, [6, 12, 90, 12, 64]);
        assert!(old < new);
    }
}

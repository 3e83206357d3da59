//! Debian's kernel packages, downloaded and unpacked under `target/guest`: `kernel` for the usual series,
//! `kernel-SERIES` for another one. Older series are one package; since 6.19 the image, the modules and their lists have
//! one each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::{Result, files, process, tools};

/// The kernel series that judges where no other one is asked for.
pub(crate) const SERIES: &str = "6.12";
/// Names kernel package files to use instead of a download, with colons between them.
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
    /// The kernel of a series, such as `6.12`, unpacked under `cache`, which is filled when it has none.
    pub(crate) fn obtain(cache: &Path, series: &str) -> Result<Self> {
        let home = cache.join(if series == SERIES { "kernel".to_owned() } else { format!("kernel-{series}") });
        if let Some(kernel) = Self::unpacked(&home)? {
            return Ok(kernel);
        }
        fs_err::create_dir_all(&home)?;
        let packages = packages(&home, series)?;
        let staging = home.join("staging");
        files::remove_dir(&staging)?;
        for package in &packages {
            println!("unpacking {}", package.display());
            process::output(Command::new("dpkg-deb").arg("-x").arg(package).arg(&staging))?;
        }
        let release = Self::at(&staging)?.map(|kernel| kernel.release);
        let release = release.with_context(|| format!("no whole kernel in {}", names(&packages)))?;
        if !release.starts_with(&format!("{series}.")) {
            bail!("{} is a kernel of release {release}, not of the series {series}", names(&packages));
        }
        // The rename is the last step, so that an interrupted unpacking never looks like a kernel.
        fs::rename(&staging, home.join("root"))?;
        Self::unpacked(&home)?.with_context(|| format!("{} holds no kernel", home.display()))
    }

    fn unpacked(home: &Path) -> Result<Option<Self>> {
        Self::at(&home.join("root"))
    }

    fn at(root: &Path) -> Result<Option<Self>> {
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
        let modules = modules.join(&release);
        let images = [root.join("boot").join(format!("vmlinuz-{release}")), modules.join("vmlinuz")];
        let image = images.into_iter().find(|image| image.is_file() && modules.join("modules.builtin").is_file());
        Ok(image.map(|image| Self { image, modules, release }))
    }
}

fn names(packages: &[PathBuf]) -> String {
    packages.iter().map(|package| package.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The package files: named by the environment, or downloaded with apt.
fn packages(home: &Path, series: &str) -> Result<Vec<PathBuf>> {
    if let Some(list) = std::env::var_os(PACKAGE_VARIABLE) {
        let packages: Vec<PathBuf> = std::env::split_paths(&list).collect();
        if let Some(missing) = packages.iter().find(|file| !file.is_file()) {
            bail!("{PACKAGE_VARIABLE} names {}, which is not a file", missing.display());
        }
        return Ok(packages);
    }
    let advice = || {
        format!(
            "the guest tests need Debian's kernel packages linux-image-{series}.*-amd64, and of newer ones also \
             linux-binary, linux-modules and linux-base of the same release: add a Debian mirror that has them \
             (for 6.12 bookworm-security, bookworm-backports or trixie; for the newest trixie-backports or forky) and \
             run `apt-get update`, or download the packages and name the files in {PACKAGE_VARIABLE}, with colons \
             between them"
        )
    };
    let image = newest_package(series).with_context(advice)?;
    for name in parts(&image)? {
        // The file's name begins with the package's; what is there need not come again.
        if downloaded(home)?.iter().any(|file| is_package(file, &name)) {
            continue;
        }
        println!("downloading {name}");
        process::output(Command::new("apt-get").arg("download").arg(&name).current_dir(home)).with_context(advice)?;
    }
    let packages = downloaded(home)?;
    if packages.is_empty() { Err(anyhow::anyhow!("nothing was downloaded")).with_context(advice) } else { Ok(packages) }
}

/// Whether a file is that of a package: `NAME_VERSION_ARCHITECTURE.deb`.
fn is_package(file: &Path, name: &str) -> bool {
    file.file_name().and_then(|file| file.to_str()).is_some_and(|file| file.split('_').next() == Some(name))
}

fn downloaded(home: &Path) -> Result<Vec<PathBuf>> {
    let is_package = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "deb");
    Ok(files::entries(home)?.into_iter().filter(is_package).collect())
}

/// The packages that a kernel is in: the image's own, and those of the same release beside it.
fn parts(image: &str) -> Result<Vec<String>> {
    let release = image.trim_start_matches("linux-image-");
    let pattern = format!("^linux-(base|binary|modules)-{}$", release.replace('.', r"\.").replace('+', r"\+"));
    let beside = known_packages(&pattern)?;
    Ok(std::iter::once(image.to_owned()).chain(beside).collect())
}

fn newest_package(series: &str) -> Result<String> {
    let pattern = format!(r"^linux-image-{}\.[0-9]+\+deb[0-9]+-amd64$", series.replace('.', r"\."));
    if let Some(name) = known_packages(&pattern)?.pop() {
        return Ok(name);
    }
    if tools::is_root() {
        println!("updating apt's package lists");
        process::output(Command::new("apt-get").arg("update"))?;
    }
    known_packages(&pattern)?.pop().context("apt knows no such package")
}

/// The packages that apt knows whose names match, the newest last.
fn known_packages(pattern: &str) -> Result<Vec<String>> {
    let found = process::output(Command::new("apt-cache").args(["search", "--names-only", pattern]))?;
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
    use std::path::Path;

    use super::{is_package, version_numbers};

    #[test]
    fn versions_compare_as_numbers() {
        let old = version_numbers("linux-image-6.12.90+deb12-amd64");
        let new = version_numbers("linux-image-6.12.117+deb12-amd64");
        assert_eq!(old, [6, 12, 90, 12, 64]);
        assert!(old < new);
    }

    #[test]
    fn files_of_packages_are_known_by_their_names() {
        let file = Path::new("home/linux-base-7.3.4+deb13-amd64_7.3.4-1~bpo13+1_amd64.deb");
        assert!(is_package(file, "linux-base-7.3.4+deb13-amd64"));
        assert!(!is_package(file, "linux-base-7.3"));
    }
}

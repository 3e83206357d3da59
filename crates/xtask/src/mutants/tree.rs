//! The copy of the tree that faults are woven into.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::{Result, process};

/// A copy of the sources in `target/mutants/tree`, with its builds beside it.
#[derive(Debug)]
pub(super) struct Tree {
    home: PathBuf,
    path: PathBuf,
    /// Locked as long as this run uses the copy.
    _running: File,
}

impl Tree {
    /// Makes the copy equal to the sources: files that git tracks, and new ones that it does not ignore. Files that are
    /// equal already stay as they are, so that only changed crates are built again. Files named in `changed` have that
    /// text instead.
    ///
    /// # Errors
    ///
    /// If the sources cannot be listed or copied, or another run uses the copy.
    pub(super) fn update(root: &Path, changed: &BTreeMap<String, String>) -> Result<Tree> {
        let home = root.join("target/mutants");
        fs_err::create_dir_all(&home)?;
        let tree = Tree { _running: claim(&home.join("running"))?, path: home.join("tree"), home };
        let mut command = Command::new("git");
        command.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let listed = String::from_utf8(process::output(&mut command)?).context("names of sources are text")?;
        let sources: BTreeSet<&str> = listed.split('\0').filter(|name| root.join(name).is_file()).collect();
        for name in sources.iter().filter(|name| !changed.contains_key(**name)) {
            copy(&root.join(name), &tree.path.join(name)).with_context(|| format!("cannot copy {name}"))?;
        }
        tree.write(changed)?;
        for name in sources_below(&tree.path, &tree.path) {
            if !sources.contains(name.as_str()) && !changed.contains_key(&name) {
                fs::remove_file(tree.path.join(&name)).with_context(|| format!("cannot remove {name}"))?;
            }
        }
        Ok(tree)
    }

    /// Writes files of the copy, those that change.
    ///
    /// # Errors
    ///
    /// If one cannot be written.
    pub(super) fn write(&self, changed: &BTreeMap<String, String>) -> Result<()> {
        for (name, text) in changed {
            put(text.as_bytes(), &self.path.join(name)).with_context(|| format!("cannot write {name}"))?;
        }
        Ok(())
    }

    /// Lets a command of cargo work on the copy. All commands build alike, so that none builds anew what another one
    /// has built.
    pub(super) fn prepare(&self, command: &mut Command) {
        command
            .current_dir(&self.path)
            .env("CARGO_TARGET_DIR", self.home.join("build"))
            .env("CARGO_INCREMENTAL", "1")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_TERM_COLOR", "never")
            // What is woven in looks odd to the compiler, and is allowed to.
            .env("RUSTFLAGS", "--cap-lints=allow")
            // The flags of this program's own build are not theirs.
            .env_remove("CARGO_MANIFEST_DIR");
    }
}

/// Makes sure that no other run uses the copy, until what is returned is dropped. The file is locked, and names the
/// process for people. The kernel takes the lock from a process that ends, however it ends.
fn claim(path: &Path) -> Result<File> {
    let what = || format!("cannot lock {}", path.display());
    let open = File::options().read(true).write(true).create(true).truncate(false).open(path);
    let mut file = open.with_context(what)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            let other = fs::read_to_string(path).unwrap_or_default();
            let place = path.display();
            bail!("process {other} tries faults in the same copy of the tree ({place} is locked): wait for its end");
        }
        Err(error) => return Err(error).with_context(what),
    }
    let number = std::process::id().to_string();
    let mut write = || file.set_len(0).and_then(|()| file.write_all(number.as_bytes()));
    write().with_context(|| format!("cannot write {}", path.display()))?;
    Ok(file)
}

/// Copies a file unless the other one is equal.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    put(&fs::read(from)?, to)
}

/// Writes a file unless it holds that already.
fn put(content: &[u8], to: &Path) -> std::io::Result<()> {
    if fs::read(to).is_ok_and(|there| there == content) {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(to, content)
}

/// The Rust sources of the copy, from its root: one that is left over from before would be built.
fn sources_below(root: &Path, dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources_below(root, &path));
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && let Ok(name) = path.strip_prefix(root)
        {
            found.push(name.to_string_lossy().into_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_runs_one_has_the_copy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("running");
        let first = claim(&path).unwrap();
        let error = claim(&path).unwrap_err().to_string();
        let number = std::process::id().to_string();
        assert!(error.contains(&format!("process {number} ")) && error.contains("running"), "{error}");
        drop(first);
        drop(claim(&path).unwrap());
        // The number that a dead run left behind may be that of any process: this one, or the first of the machine.
        for left in ["1", &number] {
            fs::write(&path, left).unwrap();
            drop(claim(&path).unwrap());
            assert_eq!(fs::read_to_string(&path).unwrap(), number);
        }
    }

    #[test]
    fn equal_files_stay_and_old_ones_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("a.rs"), dir.path().join("tree/src/a.rs"));
        fs::write(&from, "one").unwrap();
        copy(&from, &to).unwrap();
        let before = fs::metadata(&to).unwrap().modified().unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(fs::metadata(&to).unwrap().modified().unwrap(), before);
        fs::write(&from, "two").unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), "two");
        assert_eq!(sources_below(&dir.path().join("tree"), &dir.path().join("tree")), ["src/a.rs"]);
    }
}

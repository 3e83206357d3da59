//! `f2fs ls`.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

use f2fs::files::{Nid, path_from_bytes};
use f2fs::{DirEntry, FileKind, FileSystem, InodeRef, ReadDir};
use f2fs_workload::shell::Quoted;

use crate::args::ListArgs;
use crate::commands::attributes::{Attributes, bytes, date, describe, form, mode_text};
use crate::error::{CliError, Context, Failures};
use crate::image::open_to_list;
use crate::size::short;

/// Inodes that are read together.
const AHEAD: usize = 256;

pub(crate) fn run(args: &ListArgs) -> Result<(), CliError> {
    let fs = open_to_list(&args.image, args.view.into())?;
    let out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut list = List { fs: &fs, args, out, headings: args.recursive || args.paths.len() > 1, begun: false };
    let mut failures = Failures::default();
    // Paths that are no directories come first, as in coreutils.
    let mut directories = Vec::new();
    for path in &args.paths {
        match list.is_listed(path) {
            Ok(true) => directories.push(path),
            Ok(false) => {
                let done = list.entry(path, bytes(path), || Attributes::at(&fs, path));
                list.begun = true;
                failures.note(done)?;
            }
            Err(error) => failures.note(Err(error))?,
        }
    }
    for path in directories {
        let done = list.directory(path, &mut failures);
        // The listing before a message is printed first.
        list.out.flush()?;
        failures.note(done)?;
    }
    list.out.flush()?;
    failures.result()
}

/// A directory on the way to the one that is listed.
struct Level {
    directory: InodeRef,
    /// Names of the directories in it that are still to be listed, the next one last.
    below: Vec<Vec<u8>>,
}

/// The attributes of what a name in a directory means.
fn attributes(directory: &InodeRef, name: &[u8], path: &Path) -> Result<Attributes, CliError> {
    directory.lookup(name).and_then(|inode| Attributes::of(&inode)).about(path)
}

struct List<'a, W> {
    fs: &'a FileSystem,
    args: &'a ListArgs,
    out: W,
    headings: bool,
    /// Something was printed.
    begun: bool,
}

impl<W: Write> List<'_, W> {
    /// Whether what a directory holds is shown, not the path itself. A link to one is followed where it would not be
    /// shown as a link.
    fn is_listed(&self, path: &Path) -> Result<bool, CliError> {
        let stat = self.fs.symlink_metadata(path).about(path)?;
        if self.args.directory {
            return Ok(false);
        }
        Ok(match stat.kind {
            FileKind::Directory => true,
            FileKind::Symlink if !self.args.long && !self.args.json => {
                self.fs.metadata(path).is_ok_and(|stat| stat.kind == FileKind::Directory)
            }
            _ => false,
        })
    }

    /// Lists a directory, and all below it if that is wanted: depth first, by a stack of our own, as a volume's depth is
    /// not ours to trust.
    fn directory(&mut self, path: &Path, failures: &mut Failures) -> Result<(), CliError> {
        let top = self.fs.inode_at(path).about(path)?;
        // In a damaged volume a directory may contain itself.
        let mut known = HashSet::from([top.ino()]);
        // One path for all levels: each with its own would take the square of the depth.
        let mut path = path.to_path_buf();
        let mut levels = vec![self.level(&path, top, &mut known, failures)?];
        while let Some(level) = levels.last_mut() {
            let Some(name) = level.below.pop() else {
                levels.pop();
                path.pop();
                continue;
            };
            path.push(path_from_bytes(&name));
            match level.directory.lookup(&name).about(&path) {
                Ok(directory) => {
                    let next = self.level(&path, directory, &mut known, failures)?;
                    levels.push(next);
                }
                Err(error) => {
                    self.failed(error, failures)?;
                    path.pop();
                }
            }
        }
        Ok(())
    }

    /// Lists one directory, and notes the directories in it.
    fn level(
        &mut self,
        path: &Path,
        directory: InodeRef,
        known: &mut HashSet<Nid>,
        failures: &mut Failures,
    ) -> Result<Level, CliError> {
        let mut level = Level { directory, below: Vec::new() };
        let mut entries = match level.directory.open_dir().about(path) {
            Ok(entries) => self.readable(entries.into_iter(), path, failures)?,
            Err(error) => {
                self.failed(error, failures)?;
                return Ok(level);
            }
        };
        entries.retain(|entry| self.shows(&entry.name));
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        self.heading(path)?;
        if self.args.all && !self.args.json {
            for name in [".", ".."] {
                let path = path.join(name);
                self.entry(&path, name.as_bytes(), || attributes(&level.directory, name.as_bytes(), &path))?;
            }
        }
        let looks = self.args.long || self.args.json;
        for (place, found) in entries.iter().enumerate() {
            if looks && place % AHEAD == 0 {
                let next = entries[place..].iter().take(AHEAD).map(|entry| entry.ino);
                self.fs.read_inodes_ahead(&next.collect::<Vec<_>>());
            }
            let path = path.join(path_from_bytes(&found.name));
            let whole = self.args.json || self.args.zero && self.args.recursive;
            let name = if whole { bytes(&path) } else { &found.name };
            let done = self.entry(&path, name, || attributes(&level.directory, &found.name, &path));
            if let Err(error) = done {
                self.failed(error, failures)?;
            }
            if self.args.recursive && found.kind == Some(FileKind::Directory) {
                if !known.insert(found.ino) {
                    self.out.flush()?;
                    return Err(CliError::at(&path, format_args!("directory {} has a second name", found.ino)));
                }
                level.below.push(found.name.clone());
            }
        }
        level.below.reverse();
        Ok(level)
    }

    /// The entries that can be listed. Each of the others is a failure of its own.
    fn readable(
        &mut self,
        entries: ReadDir,
        directory: &Path,
        failures: &mut Failures,
    ) -> Result<Vec<DirEntry>, CliError> {
        let mut readable = Vec::new();
        for entry in entries {
            match entry.about(directory) {
                Ok(entry) => readable.push(entry),
                Err(error) => self.failed(error, failures)?,
            }
        }
        Ok(readable)
    }

    /// Prints a failure after the output before it.
    fn failed(&mut self, error: CliError, failures: &mut Failures) -> Result<(), CliError> {
        self.out.flush()?;
        failures.note(Err(error))
    }

    fn shows(&self, name: &[u8]) -> bool {
        self.args.all || self.args.almost_all || self.args.json || !name.starts_with(b".")
    }

    fn heading(&mut self, directory: &Path) -> Result<(), CliError> {
        if self.headings && !self.args.json && !self.args.zero {
            let gap = if self.begun { "\n" } else { "" };
            writeln!(self.out, "{gap}{}:", Quoted::path(directory))?;
        }
        self.begun = true;
        Ok(())
    }

    /// Prints one entry; its attributes are looked for if they are printed.
    fn entry(
        &mut self,
        path: &Path,
        name: &[u8],
        look: impl FnOnce() -> Result<Attributes, CliError>,
    ) -> Result<(), CliError> {
        let out = &mut self.out;
        if self.args.zero {
            out.write_all(name)?;
            out.write_all(b"\0")?;
            return Ok(());
        }
        if !self.args.long && !self.args.json {
            writeln!(out, "{}", Quoted(name))?;
            return Ok(());
        }
        let found = look()?;
        if self.args.json {
            writeln!(out, "{}", describe(path, &found))?;
            return Ok(());
        }
        let Attributes { stat, target } = found;
        let size = match stat.device {
            Some(device) => format!("{}, {}", device.major, device.minor),
            None if self.args.human_readable => short(stat.size),
            None => stat.size.to_string(),
        };
        write!(
            out,
            "{} {:>3} {:>5} {:>5} {size:>12} {} {}",
            mode_text(&stat),
            stat.links,
            stat.uid,
            stat.gid,
            date(stat.modified.seconds),
            Quoted(name)
        )?;
        if let Some(target) = target {
            write!(out, " -> {}", Quoted(&target))?;
        }
        let form = form(&stat);
        if !form.is_empty() {
            write!(out, " [{}]", form.join(", "))?;
        }
        writeln!(out)?;
        Ok(())
    }
}

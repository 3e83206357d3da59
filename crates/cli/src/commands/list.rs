//! `f2fs ls`.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

use f2fs::files::path_from_bytes;
use f2fs::{DirEntry, FileKind, FileSystem, FsError, Metadata, ReadDir};
use f2fs_workload::shell::Quoted;
use serde_json::{Value, json};

use crate::args::ListArgs;
use crate::error::{CliError, Context, Failures};
use crate::escape::Printable;
use crate::image::open;
use crate::size::short;

pub(crate) fn run(args: &ListArgs) -> Result<(), CliError> {
    let fs = open(&args.image, args.view.into())?;
    let out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut list = List { fs: &fs, args, out, headings: args.recursive || args.paths.len() > 1, begun: false };
    let mut failures = Failures::default();
    // Paths that are no directories come first, as in coreutils.
    let mut directories = Vec::new();
    for path in &args.paths {
        match list.is_listed(path) {
            Ok(true) => directories.push(path),
            Ok(false) => {
                let done = list.entry(path, bytes(path));
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

    fn directory(&mut self, path: &Path, failures: &mut Failures) -> Result<(), CliError> {
        let mut pending = vec![path.to_path_buf()];
        // In a damaged volume a directory may contain itself.
        let mut known = HashSet::from([self.fs.metadata(path).about(path)?.ino]);
        while let Some(directory) = pending.pop() {
            let mut entries = match self.fs.read_dir(&directory).about(&directory) {
                Ok(entries) => self.readable(entries, &directory, failures)?,
                Err(error) => {
                    self.failed(error, failures)?;
                    continue;
                }
            };
            entries.retain(|entry| self.shows(&entry.name));
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            self.heading(&directory)?;
            if self.args.all && !self.args.json {
                self.entry(&directory.join("."), b".")?;
                self.entry(&directory.join(".."), b"..")?;
            }
            let mut below = Vec::new();
            for found in entries {
                let path = directory.join(path_from_bytes(&found.name));
                let whole = self.args.json || self.args.zero && self.args.recursive;
                let done = self.entry(&path, if whole { bytes(&path) } else { &found.name });
                if let Err(error) = done {
                    self.failed(error, failures)?;
                }
                if self.args.recursive && found.kind == Some(FileKind::Directory) {
                    if !known.insert(found.ino) {
                        self.out.flush()?;
                        return Err(CliError::at(&path, format_args!("directory {} has a second name", found.ino)));
                    }
                    below.push(path);
                }
            }
            pending.extend(below.into_iter().rev());
        }
        Ok(())
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

    fn entry(&mut self, path: &Path, name: &[u8]) -> Result<(), CliError> {
        let (fs, out) = (self.fs, &mut self.out);
        if self.args.zero {
            out.write_all(name)?;
            out.write_all(b"\0")?;
            return Ok(());
        }
        if !self.args.long && !self.args.json {
            writeln!(out, "{}", Quoted(name))?;
            return Ok(());
        }
        let stat = fs.symlink_metadata(path).about(path)?;
        if self.args.json {
            writeln!(out, "{}", describe(fs, path, &stat)?)?;
            return Ok(());
        }
        let target = target(fs, path, &stat)?;
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

pub(crate) fn bytes(path: &Path) -> &[u8] {
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str())
}

/// Properties of a file beside its kind: encrypted, casefolded, compressed, protected by verity.
pub(crate) fn form(stat: &Metadata) -> Vec<String> {
    let marks = [(stat.encrypted, "encrypted"), (stat.casefolded, "casefolded"), (stat.verity, "verity")];
    let marks = marks.into_iter().filter(|(is, _)| *is).map(|(_, mark)| mark.to_owned());
    let compressed = stat.compression.iter().map(|how| {
        let fate = if how.released { ", saved blocks released" } else { "" };
        format!("compressed: {how}, {} blocks saved{fate}", how.saved_blocks)
    });
    marks.chain(compressed).collect()
}

/// The target of a symbolic link, if it has one.
pub(crate) fn target(fs: &FileSystem, path: &Path, stat: &Metadata) -> Result<Option<Vec<u8>>, CliError> {
    match stat.kind {
        FileKind::Symlink => match fs.read_link(path) {
            Err(FsError::NoTarget) => Ok(None),
            target => target.map(Some).about(path),
        },
        _ => Ok(None),
    }
}

/// The attributes of a file, for programs. One line.
pub(crate) fn describe(fs: &FileSystem, path: &Path, stat: &Metadata) -> Result<Value, CliError> {
    let target = target(fs, path, stat)?.map(|target| Printable(&target).to_string());
    Ok(json!({
        "path": Printable(bytes(path)).to_string(),
        "ino": stat.ino.0,
        "kind": stat.kind.name(),
        "permissions": format!("{:04o}", stat.permissions),
        "uid": stat.uid,
        "gid": stat.gid,
        "links": stat.links,
        "size": stat.size,
        "blocks": stat.blocks,
        "accessed": [stat.accessed.seconds, i64::from(stat.accessed.nanoseconds)],
        "modified": [stat.modified.seconds, i64::from(stat.modified.nanoseconds)],
        "changed": [stat.changed.seconds, i64::from(stat.changed.nanoseconds)],
        "created": stat.created.map(|time| [time.seconds, i64::from(time.nanoseconds)]),
        "device": stat.device.map(|device| [device.major, device.minor]),
        "inline": stat.inline,
        "encrypted": stat.encrypted,
        "casefolded": stat.casefolded,
        "verity": stat.verity,
        "compression": stat.compression.map(|how| json!({
            "algorithm": how.algorithm_name(),
            "cluster_blocks": how.cluster_blocks(),
            "saved_blocks": how.saved_blocks,
            "released": how.released,
        })),
        "target": target,
    }))
}

/// Kind and permissions as `ls -l` writes them.
pub(crate) fn mode_text(stat: &Metadata) -> String {
    let kind = match stat.kind {
        FileKind::Regular => '-',
        kind => kind.letter(),
    };
    let mut text = String::from(kind);
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = stat.permissions >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (stat.permissions & special != 0, bits & 1 != 0) {
            (true, true) => letter,
            (true, false) => letter.to_ascii_uppercase(),
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// Date and time in UTC.
pub(crate) fn date(seconds: i64) -> String {
    // Days to a civil date, by the era of 400 years in which the calendar repeats.
    let days = seconds.div_euclid(86_400);
    let time = seconds.rem_euclid(86_400);
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", time / 3600, time / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01 00:00");
        assert_eq!(date(-1), "1969-12-31 23:59");
        assert_eq!(date(951_782_400), "2000-02-29 00:00");
        assert_eq!(date(4_102_444_799), "2099-12-31 23:59");
    }
}

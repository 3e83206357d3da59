//! The attributes of a file as `f2fs ls` and `f2fs stat` show them.

use std::path::Path;

use f2fs::{FileKind, FileSystem, FsError, InodeRef, Metadata};
use serde_json::{Value, json};

use crate::error::{CliError, Context};
use crate::escape::Printable;

/// What is shown of a file.
pub(crate) struct Attributes {
    pub(crate) stat: Metadata,
    /// The target of a symbolic link, if it has one.
    pub(crate) target: Option<Vec<u8>>,
}

impl Attributes {
    /// Those of what a path means; a symbolic link at the end is not followed.
    pub(crate) fn at(fs: &FileSystem, path: &Path) -> Result<Attributes, CliError> {
        let stat = fs.symlink_metadata(path).about(path)?;
        Attributes::new(stat, || fs.read_link(path)).about(path)
    }

    /// Those of an inode.
    pub(crate) fn of(inode: &InodeRef) -> Result<Attributes, FsError> {
        Attributes::new(inode.metadata()?, || inode.read_link())
    }

    fn new(stat: Metadata, read: impl FnOnce() -> Result<Vec<u8>, FsError>) -> Result<Attributes, FsError> {
        let target = match stat.kind {
            FileKind::Symlink => match read() {
                Err(FsError::NoTarget) => None,
                target => Some(target?),
            },
            _ => None,
        };
        Ok(Attributes { stat, target })
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

/// The attributes of a file, for programs. One line.
pub(crate) fn describe(path: &Path, Attributes { stat, target }: &Attributes) -> Value {
    let target = target.as_deref().map(|target| Printable(target).to_string());
    json!({
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
    })
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

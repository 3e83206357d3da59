//! The kernel's table of mounts, in which a mount is found without a question to its server.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where a mount stands among those on one directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The directory leads to it.
    OnTop,
    /// Others are mounted on top of it.
    Below,
    /// It is not mounted there.
    Nowhere,
}

/// Looks for the file system with this device number among those on a directory.
pub(crate) fn find(dir: &Path, number: (u32, u32)) -> io::Result<Found> {
    Ok(find_in(&std::fs::read("/proc/self/mountinfo")?, dir, number))
}

/// A line of the table: `36 35 98:0 /root /mount/point options ...`, with the mount's own number and that of the mount
/// that it stands on first.
struct Line<'t> {
    id: &'t [u8],
    parent: &'t [u8],
    number: (u32, u32),
    point: Vec<u8>,
}

impl<'t> Line<'t> {
    fn read(line: &'t [u8]) -> Option<Line<'t>> {
        let mut words = line.split(|byte| *byte == b' ');
        let (id, parent, number) = (words.next()?, words.next()?, words.next()?);
        let (major, minor) = std::str::from_utf8(number).ok()?.split_once(':')?;
        let number = (major.parse().ok()?, minor.parse().ok()?);
        Some(Line { id, parent, number, point: unescaped(words.nth(1)?) })
    }
}

fn find_in(table: &[u8], dir: &Path, number: (u32, u32)) -> Found {
    let lines = table.split(|byte| *byte == b'\n').filter_map(Line::read);
    let there: Vec<Line<'_>> = lines.filter(|line| OsStr::from_bytes(&line.point) == dir.as_os_str()).collect();
    let Some(ours) = there.iter().rfind(|line| line.number == number) else { return Found::Nowhere };
    if there.iter().any(|line| line.parent == ours.id) { Found::Below } else { Found::OnTop }
}

/// A path of the table: blanks, line breaks and backslashes stand there as a backslash and three octal digits.
fn unescaped(word: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((byte, behind)) = rest.split_first() {
        let digits = behind.first_chunk::<3>().filter(|digits| digits.iter().all(|digit| matches!(digit, b'0'..=b'7')));
        match digits {
            Some(digits) if *byte == b'\\' => {
                path.push(digits.iter().fold(0_u8, |value, digit| value.wrapping_mul(8) | (digit - b'0')));
                rest = &behind[3..];
            }
            _ => {
                path.push(*byte);
                rest = behind;
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_found_among_others() {
        let table = b"20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            30 20 0:40 / /mnt/a\\040b\\134c rw shared:1 - fuse.f2fs f2fs rw\n\
            31 30 0:41 / /mnt/a\\040b\\134c rw - tmpfs tmpfs rw\n\
            32 20 0:42 / /mnt/other rw - fuse f2fs rw\n\
            a line that is none\n";
        let dir = Path::new("/mnt/a b\\c");
        assert_eq!(find_in(table, dir, (0, 41)), Found::OnTop);
        assert_eq!(find_in(table, dir, (0, 40)), Found::Below);
        assert_eq!(find_in(table, dir, (0, 42)), Found::Nowhere);
        assert_eq!(find_in(table, Path::new("/mnt/other"), (0, 42)), Found::OnTop);
        assert_eq!(find_in(b"", dir, (0, 41)), Found::Nowhere);
    }
}

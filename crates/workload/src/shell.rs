//! Names as a shell takes them back.

use std::fmt::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Prints a name so that it can be pasted back, as an argument of a command in bash, zsh, ksh or busybox:
///
/// | Name | Printed |
/// |---|---|
/// | letters, digits, `_@%+:,./-` | as it is |
/// | with blanks and what means something to a shell | `'a b'`, `'it'\''s'` |
/// | with control characters, invisible ones, or bytes that are no UTF-8 | `$'a\nb\377'` |
/// | that begins with `-` | `./-x`, which is no option |
/// | empty | `''` |
///
/// Nothing of it moves a terminal's cursor or changes the order in which a line is shown.
///
/// ```
/// use f2fs_workload::shell::Quoted;
/// assert_eq!(Quoted(b"plain.txt").to_string(), "plain.txt");
/// assert_eq!(Quoted(b"two words").to_string(), "'two words'");
/// assert_eq!(Quoted(b"a\nb\xff").to_string(), r"$'a\nb\377'");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a [u8]);

impl<'a> Quoted<'a> {
    /// The name that a path is.
    #[must_use]
    pub fn path(path: &'a Path) -> Quoted<'a> {
        Quoted(path.as_os_str().as_bytes())
    }
}

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quoted(name) = *self;
        let unsafe_bytes =
            name.utf8_chunks().any(|chunk| !chunk.invalid().is_empty() || chunk.valid().contains(is_hidden));
        // Inside of quotes it is still an option to the command that reads it.
        let dash = if name.first() == Some(&b'-') { "./" } else { "" };
        if unsafe_bytes {
            return write_dollar(f, dash, name);
        }
        let text = str::from_utf8(name).unwrap_or_default();
        if !text.is_empty() && text.chars().all(is_plain) {
            return write!(f, "{dash}{text}");
        }
        write!(f, "'{dash}{}'", text.replace('\'', r"'\''"))
    }
}

/// As `$'...'`, every byte that is not shown in octal: three digits, so that no digit behind them is taken along.
fn write_dollar(f: &mut fmt::Formatter<'_>, dash: &str, name: &[u8]) -> fmt::Result {
    write!(f, "$'{dash}")?;
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\n' => f.write_str(r"\n")?,
                '\t' => f.write_str(r"\t")?,
                '\r' => f.write_str(r"\r")?,
                '\'' => f.write_str(r"\'")?,
                '\\' => f.write_str(r"\\")?,
                hidden if is_hidden(hidden) => octal(f, hidden.encode_utf8(&mut [0; 4]).as_bytes())?,
                shown => f.write_char(shown)?,
            }
        }
        octal(f, chunk.invalid())?;
    }
    f.write_char('\'')
}

fn octal(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "\\{byte:03o}"))
}

/// Whether a character means nothing to any shell, wherever it stands.
fn is_plain(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_alphanumeric() || "_@%+:,./-".contains(character);
    }
    character.is_alphanumeric()
}

/// Whether a character cannot be told from others by eye: control characters, and those that have no width, join
/// others, or turn the direction of a line.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::process::Command;

    use super::*;

    fn quoted(name: &[u8]) -> String {
        Quoted(name).to_string()
    }

    #[test]
    fn plain_names_stay() {
        for name in ["a", "today.txt", "/docs/a-b_c", "größe", "C++,v1:2@x%", "日本語"] {
            assert_eq!(quoted(name.as_bytes()), name);
        }
    }

    #[test]
    fn the_rest_is_quoted() {
        for (name, printed) in [
            (&b"a b"[..], "'a b'"),
            (b"it's", r"'it'\''s'"),
            (b"", "''"),
            (b"~root", "'~root'"),
            (b"#x", "'#x'"),
            (b"$HOME", "'$HOME'"),
            (b"a\\b", r"'a\b'"),
            (b"new\nline", r"$'new\nline'"),
            (b"\x1b[31m1", r"$'\033[31m1'"),
            (b"it's\t\\", r"$'it\'s\t\\'"),
            (b"\xff\xfe1", r"$'\377\3761'"),
            (b"-rf", "./-rf"),
            (b"-", "./-"),
            (b"- x", "'./- x'"),
            (b"-\x01", r"$'./-\001'"),
            ("a\u{202e}txt.b".as_bytes(), r"$'a\342\200\256txt.b'"),
        ] {
            assert_eq!(quoted(name), printed);
        }
    }

    /// bash reads each name back, byte for byte.
    #[test]
    fn a_shell_takes_them_back() {
        let mut names: Vec<Vec<u8>> = (1..=255).map(|byte| vec![byte]).collect();
        names.extend((1..=255).map(|byte| vec![b'a', byte, b'7', b'\'', b'!']));
        names.extend((1..=255).map(|byte| vec![0xc3, byte, b'\\', b'1']));
        names.extend(
            [&b"a{b,c}"[..], b"*?[x]", b"=ls", b"!!", b"a;b|c&d", b"if", "\u{a0}\u{2028}".as_bytes()]
                .map(<[u8]>::to_vec),
        );
        let script: String = names.iter().map(|name| format!("printf '%s\\0' {}\n", Quoted(name))).collect();
        let output = Command::new("bash").arg("-c").arg(OsStr::new(&script)).output().unwrap();
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        let found: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
        assert_eq!(found.len(), names.len() + 1);
        for (name, found) in names.iter().zip(found) {
            let same = if name.first() == Some(&b'-') { [b"./", &**name].concat() } else { name.clone() };
            assert_eq!(found, same, "{}", Quoted(name));
        }
    }
}

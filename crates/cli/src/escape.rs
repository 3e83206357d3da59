//! Names on a terminal: characters that are not printable are written as `\xNN`.

use std::fmt::{self, Write};

use f2fs_workload::shell::is_hidden;

/// Bytes of a name, for people.
pub(crate) struct Printable<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                if is_hidden(character) || character == '\\' {
                    let mut buffer = [0; 4];
                    for byte in character.encode_utf8(&mut buffer).bytes() {
                        write!(f, "\\x{byte:02x}")?;
                    }
                } else {
                    f.write_char(character)?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Printable;

    #[test]
    fn what_could_hurt_a_terminal_is_escaped() {
        assert_eq!(Printable(b"a\tb\\c\xff\x1b[31m").to_string(), "a\\x09b\\x5cc\\xff\\x1b[31m");
        assert_eq!(Printable("größe".as_bytes()).to_string(), "größe");
        assert_eq!(Printable("\u{202e}gpj.exe".as_bytes()).to_string(), "\\xe2\\x80\\xaegpj.exe");
    }
}

//! Bytes as text that survives a tab-separated line.

use std::fmt;

use crate::shell::is_hidden;

/// Prints bytes with everything outside printable UTF-8 as `\xNN`, and backslash and the bytes of `also` too.
pub(super) struct Escaped<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) also: &'static str,
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.bytes.utf8_chunks() {
            for character in chunk.valid().chars() {
                if is_hidden(character) || character == '\\' || self.also.contains(character) {
                    escape(f, character.encode_utf8(&mut [0; 4]).as_bytes())?;
                } else {
                    fmt::Write::write_char(f, character)?;
                }
            }
            escape(f, chunk.invalid())?;
        }
        Ok(())
    }
}

fn escape(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))
}

/// Prints bytes as lower-case hex.
pub(super) struct Hex<'a>(pub(super) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(bytes: &[u8]) -> String {
        Escaped { bytes, also: "" }.to_string()
    }

    #[test]
    fn printable_text_stays() {
        assert_eq!(escaped("a b=c;ä€😀".as_bytes()), "a b=c;ä€😀");
    }

    #[test]
    fn the_rest_is_escaped_byte_by_byte() {
        assert_eq!(escaped(b"a\tb\nc\\d\x7f"), "a\\x09b\\x0ac\\x5cd\\x7f");
        assert_eq!(escaped(b"\xff\xc3("), "\\xff\\xc3(");
        // U+0085 is a control character of two bytes.
        assert_eq!(escaped("\u{85}".as_bytes()), "\\xc2\\x85");
        // U+202E turns the direction of what follows.
        assert_eq!(escaped("\u{202e}a".as_bytes()), "\\xe2\\x80\\xaea");
        assert_eq!(Escaped { bytes: b"a=b;c", also: "=;" }.to_string(), "a\\x3db\\x3bc");
    }
}

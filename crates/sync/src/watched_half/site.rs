//! The place in the source that touches a line.

use std::fmt;

/// The writer of a line: the type of the lock or atomic, and the place of its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    /// The source file.
    pub file: &'static str,
    /// The line in the file.
    pub line: u32,
    /// The type of what is written.
    pub what: &'static str,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The file's place in the workspace is enough, and a type without the modules that it is in.
        let file = self.file.rfind("crates/").map_or(self.file, |at| &self.file[at..]);
        write!(f, "{file}:{} ", self.line)?;
        let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
        let mut rest = self.what;
        while let Some(letter) = rest.chars().next() {
            let word = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
            match rest[word..].strip_prefix("::") {
                Some(inner) if word > 0 => rest = inner,
                _ => {
                    let len = word.max(letter.len_utf8());
                    f.write_str(&rest[..len])?;
                    rest = &rest[len..];
                }
            }
        }
        Ok(())
    }
}

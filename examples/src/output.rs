//! What an example prints.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

/// A stream that says in its errors which one it is, as the standard output.
#[derive(Debug)]
pub struct Output<W> {
    name: &'static str,
    stream: W,
}

impl<W: Write> Output<W> {
    /// A stream of this name.
    pub fn new(name: &'static str, stream: W) -> Output<W> {
        Output { name, stream }
    }

    fn named<T>(&self, result: io::Result<T>) -> io::Result<T> {
        let name = self.name;
        result.map_err(|error| match error.kind() {
            // Tried once more by who writes.
            io::ErrorKind::Interrupted => error,
            kind => io::Error::new(kind, format!("{name}: {error}")),
        })
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stream.write(bytes);
        self.named(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.stream.flush();
        self.named(flushed)
    }
}

/// Says what went wrong, if somebody listens, and gives back the exit code.
pub(crate) fn say(error: &mut dyn Write, program: &str, what: &dyn Display, code: u8) -> ExitCode {
    // Nobody is left to be told.
    let _ = writeln!(error, "{program}: {what}");
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_stream() {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let error = writeln!(Output::new("the output", full), "text").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().starts_with("the output: "), "{error}");
    }
}

//! A place in a file, for code that reads and writes streams.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};

use crate::File;

/// A file with a position, which reads and writes move: [`Read`], [`Write`] and [`Seek`] of the standard library. Two
/// cursors on one file have a position each.
///
/// On a file that is open for appending writes go to its end, and the position goes there with them.
///
/// Each read and write is one of the file's: wrap the cursor in [`std::io::BufReader`] or [`std::io::BufWriter`] for
/// many small ones.
///
/// ```
/// use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
/// # use std::sync::Arc;
/// # use f2fs_files::{Cursor, FileSystem, Options};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let device = Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
/// # f2fs_volume::format::format(&*device, &Default::default())?;
/// # let fs = FileSystem::open(device, Options::new())?;
/// let mut cursor = Cursor::new(fs.create_file("/list", 0o644)?);
/// writeln!(cursor, "bread")?;
/// writeln!(cursor, "milk")?;
/// cursor.seek(SeekFrom::Start(0))?;
/// let lines: Result<Vec<String>, _> = BufReader::new(cursor).lines().collect();
/// assert_eq!(lines?, ["bread", "milk"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Cursor {
    file: File,
    /// In bytes; may lie behind the end of the file.
    position: u64,
}

impl Cursor {
    /// A cursor at the start of the file.
    #[must_use]
    pub fn new(file: File) -> Cursor {
        Cursor { file, position: 0 }
    }

    /// The file.
    #[must_use]
    pub fn get_ref(&self) -> &File {
        &self.file
    }

    /// The file, without the position.
    #[must_use]
    pub fn into_inner(self) -> File {
        self.file
    }

    /// Where the next read or write begins, in bytes.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }
}

impl Read for Cursor {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buf, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Write for Cursor {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if self.file.access.append {
            self.position = self.file.append(buf)? + buf.len() as u64;
            return Ok(buf.len());
        }
        let written = self.file.write_at(buf, self.position)?;
        self.position += written as u64;
        Ok(written)
    }

    /// Does nothing: nothing is held back. [`File::sync_all`] makes the file durable.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Cursor {
    /// A position behind the end of the file is possible: a write there leaves a hole.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a position before the start, or beyond what 64 bits hold.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(distance) => self.file.size().checked_add_signed(distance),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
        };
        self.position = position.ok_or_else(|| {
            io::Error::new(
                ErrorKind::InvalidInput,
                format!("no such position in a file: {to:?} from {}", self.position),
            )
        })?;
        Ok(self.position)
    }
}

//! The content of a file of the volume: into a regular file with its holes, or as bytes in a row.

use std::fs::File as HostFile;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use f2fs::File;
use f2fs::device::AlignedBuf;
use rustix::fs::OFlags;

use super::{CopyError, host, volume};

/// Blocks read at a time: 1 MiB.
const BLOCKS: usize = 256;
/// Zeros written at a time.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Where data is on its way.
pub(super) struct Buffer(AlignedBuf);

impl Buffer {
    pub(super) fn new() -> Buffer {
        Buffer(AlignedBuf::new(BLOCKS))
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        self.0.as_bytes_mut()
    }
}

/// Hands out the data of a file in pieces, with their offsets; holes are passed over. Gives the size.
pub(super) fn each_piece(
    file: &File,
    from: &Path,
    buffer: &mut Buffer,
    mut take: impl FnMut(u64, &[u8]) -> Result<(), CopyError>,
) -> Result<u64, CopyError> {
    let mut at = 0;
    while let Some(data) = file.next_data(at).map_err(volume(from))? {
        at = data.start;
        while at < data.end {
            let wanted = (data.end - at).min(buffer.0.len() as u64) as usize;
            let read = if wanted == buffer.0.len() {
                file.read_into(&mut buffer.0, at)
            } else {
                file.read_at(&mut buffer.bytes()[..wanted], at)
            };
            let read = read.map_err(volume(from))?;
            if read == 0 {
                break;
            }
            take(at, &buffer.bytes()[..read])?;
            at += read as u64;
        }
    }
    Ok(file.size())
}

/// Fills a new or empty regular file of the host; its holes are those of the file.
pub(super) fn fill(file: &File, from: &Path, out: &HostFile, to: &Path, buffer: &mut Buffer) -> Result<u64, CopyError> {
    let mut end = 0;
    let size = each_piece(file, from, buffer, |at, piece| {
        end = at + piece.len() as u64;
        out.write_all_at(piece, at).map_err(host(to))
    })?;
    if end != size {
        out.set_len(size).map_err(host(to))?;
    }
    Ok(size)
}

/// Writes a file of the volume to whatever `out` is, at the place where it stands: a pipe, a device, a file that was redirected to.
/// Holes are written as zeros without being read; behind the end of a regular file they are skipped, so that they are holes there
/// too. Gives the size.
///
/// # Errors
/// [`CopyError`]; what was written until then is written.
pub fn write_to(file: &File, from: &Path, out: &HostFile, to: &Path) -> Result<u64, CopyError> {
    let mut buffer = Buffer::new();
    let mut out = Sequence::new(out, to)?;
    let mut at = 0;
    let size = each_piece(file, from, &mut buffer, |start, piece| {
        out.skip(start - at)?;
        at = start + piece.len() as u64;
        out.write(piece)
    })?;
    out.skip(size.saturating_sub(at))?;
    out.finish()?;
    Ok(size)
}

struct Sequence<'a> {
    out: &'a HostFile,
    to: &'a Path,
    /// Bytes may be skipped: it is a regular file, written where it ends.
    seeks: bool,
    /// The last bytes were skipped.
    skipped: bool,
}

impl<'a> Sequence<'a> {
    fn new(mut out: &'a HostFile, to: &'a Path) -> Result<Self, CopyError> {
        let metadata = out.metadata().map_err(host(to))?;
        let appends = rustix::fs::fcntl_getfl(out).is_ok_and(|flags| flags.contains(OFlags::APPEND));
        let at_end = out.stream_position().is_ok_and(|at| at >= metadata.len());
        Ok(Sequence { out, to, seeks: metadata.is_file() && !appends && at_end, skipped: false })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), CopyError> {
        self.skipped = false;
        self.out.write_all(bytes).map_err(host(self.to))
    }

    fn skip(&mut self, mut len: u64) -> Result<(), CopyError> {
        if len > 0 && self.seeks {
            self.out.seek(SeekFrom::Current(len as i64)).map_err(host(self.to))?;
            self.skipped = true;
            return Ok(());
        }
        while len > 0 {
            let part = len.min(ZEROS.len() as u64);
            self.write(&ZEROS[..part as usize])?;
            len -= part;
        }
        Ok(())
    }

    /// A hole at the end exists by the size alone.
    fn finish(&mut self) -> Result<(), CopyError> {
        if self.skipped {
            let at = self.out.stream_position().map_err(host(self.to))?;
            self.out.set_len(at).map_err(host(self.to))?;
        }
        Ok(())
    }
}

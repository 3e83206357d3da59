//! The content of a file of the volume: into a regular file with its holes, or as bytes in a row.
//!
//! # Locking
//!
//! One lock for each file, on its next piece to copy. It is held while the file is asked where its data is, and never
//! while data is read or written.

use std::fs::File as HostFile;
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use f2fs::File;
use f2fs::device::{AlignedBuf, BLOCK_SIZE};
use f2fs::sync::Mutex;
use rustix::fs::OFlags;

use super::{CopyError, host, volume};

/// Blocks read at a time: 1 MiB.
const BLOCKS: usize = 256;
/// Files of this size (bytes) and above are copied by several threads, each with a buffer of its own.
const LARGE: u64 = 8 << 20;
/// Threads for one file at most: more would wait for the file of the host, which takes one write after the other.
const MOST: usize = 4;
/// Zeros written at a time.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Where data is on its way. It has room for the largest piece so far: many threads that copy small files take little.
pub(super) struct Buffer(AlignedBuf);

impl Buffer {
    pub(super) fn new() -> Buffer {
        Buffer(AlignedBuf::new(0))
    }

    /// Room for so many bytes, or for as many as are read at a time.
    pub(super) fn bytes(&mut self, wanted: u64) -> &mut [u8] {
        let len = wanted.min((BLOCKS * BLOCK_SIZE) as u64) as usize;
        let blocks = len.div_ceil(BLOCK_SIZE);
        if self.0.blocks() < blocks {
            self.0.resize(blocks);
        }
        &mut self.0.as_bytes_mut()[..len]
    }

    /// Room for as many bytes as are read at a time.
    pub(super) fn all(&mut self) -> &mut AlignedBuf {
        self.bytes(u64::MAX);
        &mut self.0
    }
}

/// The data of a file in pieces of a buffer's size at most, one after the other, to whichever thread asks next. Holes
/// are passed over.
struct Pieces<'a> {
    file: &'a File,
    from: &'a Path,
    /// The range that is known to be data and not handed out; `None`: nothing more is.
    ahead: Mutex<Option<Range<u64>>>,
}

impl<'a> Pieces<'a> {
    fn new(file: &'a File, from: &'a Path) -> Self {
        Pieces { file, from, ahead: Mutex::new(Some(0..0)) }
    }

    fn take(&self) -> Result<Option<Range<u64>>, CopyError> {
        let mut ahead = self.ahead.lock();
        let Some(known) = &mut *ahead else { return Ok(None) };
        if known.is_empty() {
            match self.file.next_data(known.end).map_err(volume(self.from))? {
                Some(data) => *known = data,
                None => {
                    *ahead = None;
                    return Ok(None);
                }
            }
        }
        let start = known.start;
        known.start = known.end.min(start + (BLOCKS * BLOCK_SIZE) as u64);
        Ok(Some(start..known.start))
    }

    /// Reads pieces and hands them on, with their offsets, until there are no more.
    fn each(
        &self,
        buffer: &mut Buffer,
        mut take: impl FnMut(u64, &[u8]) -> Result<(), CopyError>,
    ) -> Result<(), CopyError> {
        while let Some(Range { start: mut at, end }) = self.take()? {
            while at < end {
                let wanted = end - at;
                let read = if wanted == (BLOCKS * BLOCK_SIZE) as u64 {
                    self.file.read_into(buffer.all(), at)
                } else {
                    self.file.read_at(buffer.bytes(wanted), at)
                };
                let read = read.map_err(volume(self.from))?;
                if read == 0 {
                    break;
                }
                take(at, buffer.bytes(read as u64))?;
                at += read as u64;
            }
        }
        Ok(())
    }

    /// No thread gets another piece.
    fn stop(&self) {
        *self.ahead.lock() = None;
    }
}

/// Fills a new or empty regular file of the host; its holes are those of the file. A large file is read and written by
/// as many as `threads` threads, so that the device reads ahead of who writes. Gives the size.
pub(super) fn fill(
    file: &File,
    from: &Path,
    out: &HostFile,
    to: &Path,
    buffer: &mut Buffer,
    threads: usize,
) -> Result<u64, CopyError> {
    let (pieces, size) = (Pieces::new(file, from), file.size());
    let work = |buffer: &mut Buffer| {
        let mut end = 0;
        let done = pieces.each(buffer, |at, piece| {
            end = end.max(at + piece.len() as u64);
            out.write_all_at(piece, at).map_err(host(to))
        });
        if done.is_err() {
            pieces.stop();
        }
        done.map(|()| end)
    };
    let helpers = if size < LARGE { 0 } else { threads.min(MOST).saturating_sub(1) };
    let end = thread::scope(|scope| {
        // Without a helper, for which there may be no room in the system, the work is done all the same.
        let helpers: Vec<_> = (0..helpers)
            .filter_map(|_| thread::Builder::new().spawn_scoped(scope, || work(&mut Buffer::new())).ok())
            .collect();
        let mut end = work(buffer);
        for helper in helpers {
            let helped = helper.join().unwrap_or_else(|panic| resume_unwind(panic));
            end = end.and_then(|end| Ok(end.max(helped?)));
        }
        end
    })?;
    let size = file.size();
    if end != size {
        out.set_len(size).map_err(host(to))?;
    }
    Ok(size)
}

/// Writes a file of the volume to `out`, from the current position of `out`: a pipe, a device, a file that was
/// redirected to. Holes are written as zeros without being read; behind the end of a regular file they are skipped, so
/// that they are holes there too. Gives the size.
///
/// # Errors
/// [`CopyError`]; bytes written until then stay.
pub fn write_to(file: &File, from: &Path, out: &HostFile, to: &Path) -> Result<u64, CopyError> {
    let mut buffer = Buffer::new();
    let mut out = Sequence::new(out, to)?;
    let mut at = 0;
    Pieces::new(file, from).each(&mut buffer, |start, piece| {
        out.skip(start - at)?;
        at = start + piece.len() as u64;
        out.write(piece)
    })?;
    let size = file.size();
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

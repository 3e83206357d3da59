//! The bytes of a file of the host, on their way into a file of the volume.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::SeekFrom;

use super::stream::Buffer;
use super::{CopyError, host, volume};

/// Copies data, and leaves holes where the host has holes.
pub(super) fn content(
    source: &File,
    from: &Path,
    file: &f2fs::File,
    to: &Path,
    size: u64,
    buffer: &mut Buffer,
) -> Result<(), CopyError> {
    let mut offset = 0;
    while offset < size {
        let data = match rustix::fs::seek(source, SeekFrom::Data(offset)) {
            Ok(data) => data,
            Err(rustix::io::Errno::NXIO) => break,
            Err(_) => offset,
        };
        let end = rustix::fs::seek(source, SeekFrom::Hole(data)).unwrap_or(size).min(size);
        offset = data;
        while offset < end {
            let buffer = buffer.bytes(end - offset);
            let read = source.read_at(buffer, offset).map_err(host(from))?;
            if read == 0 {
                break;
            }
            put(file, to, offset, &buffer[..read], size)?;
            offset += read as u64;
        }
        if offset < end {
            break;
        }
    }
    if file.size() < size {
        file.set_len(size).map_err(volume(to))?;
    }
    Ok(())
}

/// Copies a stream up to its end; returns how many bytes.
pub(super) fn stream(
    mut source: &File,
    from: &Path,
    file: &f2fs::File,
    to: &Path,
    buffer: &mut Buffer,
) -> Result<u64, CopyError> {
    let (mut offset, mut ended) = (0, false);
    let buffer = buffer.all().as_bytes_mut();
    loop {
        // Pipes give little at a time: blocks are filled, so that each is written once.
        let mut filled = 0;
        while !ended && filled < buffer.len() {
            match source.read(&mut buffer[filled..]) {
                // A terminal would go on behind its end.
                Ok(0) => ended = true,
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(host(from)(error)),
            }
        }
        if filled == 0 {
            return Ok(offset);
        }
        put(file, to, offset, &buffer[..filled], offset + filled as u64)?;
        offset += filled as u64;
    }
}

/// Writes all of the bytes, of so many that there are.
fn put(file: &f2fs::File, to: &Path, offset: u64, bytes: &[u8], wanted: u64) -> Result<(), CopyError> {
    let written = match file.write_at(bytes, offset) {
        Ok(written) => written,
        Err(error) if error.is_no_space() => 0,
        Err(error) => return Err(volume(to)(error)),
    };
    if written < bytes.len() {
        return Err(CopyError::Short { path: to.to_path_buf(), written: offset + written as u64, wanted });
    }
    Ok(())
}

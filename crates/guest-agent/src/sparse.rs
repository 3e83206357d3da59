//! Large files are not digested in the guest, where a hash of a gibibyte takes half a minute: their data is copied to a
//! sparse file outside, and whoever reads the manifest there digests that.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use f2fs_workload::manifest::{Content, ContentHasher};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// Where copies go, and from which size on files are copied.
#[derive(Debug)]
pub(crate) struct Deferred {
    directory: PathBuf,
    threshold: u64,
    copies: u32,
    buffer: Vec<u8>,
}

impl Deferred {
    pub(crate) fn new(directory: PathBuf, threshold: u64) -> Self {
        Self { directory, threshold, copies: 0, buffer: vec![0; 256 << 10] }
    }

    /// The digest of a file below the threshold; for others the content `@deferred/N` (where a manifest shows a
    /// digest), `N` being the copy's name in the directory.
    pub(crate) fn content(&mut self, file: &File, meta: &Metadata) -> io::Result<Content> {
        if meta.size() < self.threshold {
            return self.digest(file, meta.size());
        }
        fs::create_dir_all(&self.directory)?;
        let name = self.copies.to_string();
        self.copies += 1;
        let copy = File::create(self.directory.join(&name))?;
        copy.set_len(meta.size())?;
        let mut at = 0;
        while let Some(start) = next(file, SeekFrom::Data(at))? {
            // A file always has a hole at its end.
            let end = next(file, SeekFrom::Hole(start))?.unwrap_or(meta.size());
            self.copy(file, &copy, start, end)?;
            at = end;
        }
        Ok(Content::Target(format!("@deferred/{name}").into_bytes()))
    }

    fn digest(&mut self, file: &File, size: u64) -> io::Result<Content> {
        let mut hasher = ContentHasher::new();
        let mut at = 0;
        loop {
            let count = file.read_at(&mut self.buffer, at)?;
            if count == 0 {
                break;
            }
            hasher.update(&self.buffer[..count]);
            at += count as u64;
        }
        if at != size {
            return Err(io::Error::other(format!("the file has {size} bytes, and {at} could be read")));
        }
        Ok(hasher.finish())
    }

    fn copy(&mut self, file: &File, copy: &File, start: u64, end: u64) -> io::Result<()> {
        let mut at = start;
        while at < end {
            let step = (end - at).min(self.buffer.len() as u64) as usize;
            let piece = &mut self.buffer[..step];
            file.read_exact_at(piece, at)?;
            copy.write_all_at(piece, at)?;
            at += step as u64;
        }
        Ok(())
    }
}

/// The next data or hole; `None` past the last one.
fn next(file: &File, from: SeekFrom) -> io::Result<Option<u64>> {
    match seek(file, from) {
        Ok(at) => Ok(Some(at)),
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

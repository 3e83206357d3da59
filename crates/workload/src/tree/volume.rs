//! Operations through this library.

use f2fs_files::{AllocateFlags, File, FileKind, FileSystem, FsError, NewFile, RenameMode, SetMode, path_from_bytes};

use super::{NodeKind, Op, TreeTarget, fill};

/// A volume as a tree.
#[derive(Debug)]
pub struct VolumeTree<'a> {
    fs: &'a FileSystem,
}

/// An operation that the library refused.
#[derive(Debug, thiserror::Error)]
#[error("{op:?}: {source}")]
pub struct VolumeTreeError {
    /// The operation.
    pub op: Box<Op>,
    /// The library's error.
    pub source: Box<FsError>,
}

impl<'a> VolumeTree<'a> {
    /// The tree of an open volume.
    #[must_use]
    pub fn new(fs: &'a FileSystem) -> Self {
        Self { fs }
    }

    fn write(
        &self,
        path: &[u8],
        offset: u64,
        length: u64,
        seed: u64,
        write: impl Fn(&File, &[u8], u64) -> Result<usize, FsError>,
    ) -> Result<(), FsError> {
        const PIECE: u64 = 1 << 20;
        let file = self.fs.open_file(path_from_bytes(path))?;
        let mut buffer = vec![0; length.min(PIECE) as usize];
        let mut done = 0;
        while done < length {
            let piece = &mut buffer[..(length - done).min(PIECE) as usize];
            fill(seed, done, piece);
            done += write(&file, piece, offset + done)? as u64;
        }
        Ok(())
    }

    fn run(&self, op: &Op) -> Result<(), FsError> {
        let at = path_from_bytes;
        let fs = self.fs;
        match op {
            Op::Mkdir { path, mode } => fs.create_dir(at(path), *mode).map(drop),
            Op::Create { path, mode } => fs.create_file(at(path), *mode).map(drop),
            Op::Write { path, offset, length, seed } => self.write(path, *offset, *length, *seed, File::write_at),
            Op::WriteDurable { path, offset, length, seed } => {
                self.write(path, *offset, *length, *seed, File::write_durable)
            }
            Op::Truncate { path, size } => fs.open_file(at(path))?.set_len(*size),
            Op::Allocate { path, offset, length, keep_size } => {
                fs.open_file(at(path))?.allocate(*offset, *length, AllocateFlags::NONE.keep_size(*keep_size))
            }
            Op::Fsync { path } => fs.open_file(at(path))?.sync_all(),
            Op::Symlink { path, target } => {
                fs.symlink(target, at(path), &NewFile::new(FileKind::Symlink, 0o777)).map(drop)
            }
            Op::Mknod { path, kind, mode } => {
                let new = match *kind {
                    NodeKind::Block(major, minor) => NewFile::new(FileKind::BlockDevice, *mode).device(major, minor),
                    NodeKind::Char(major, minor) => NewFile::new(FileKind::CharDevice, *mode).device(major, minor),
                    NodeKind::Fifo => NewFile::new(FileKind::Fifo, *mode),
                    NodeKind::Socket => NewFile::new(FileKind::Socket, *mode),
                };
                fs.create(at(path), &new).map(drop)
            }
            Op::Link { existing, path } => fs.link(at(existing), at(path)),
            Op::Unlink { path } => fs.remove_file(at(path)),
            Op::Rmdir { path } => fs.remove_dir(at(path)),
            Op::Rename { from, to } => fs.rename(at(from), at(to), RenameMode::Replace),
            Op::SetXattr { path, name, value } => fs.set_xattr(at(path), name, value, SetMode::Any),
            Op::RemoveXattr { path, name } => fs.remove_xattr(at(path), name),
            Op::Chmod { path, mode } => fs.set_permissions(at(path), *mode),
            Op::Chown { path, uid, gid } => fs.set_owner(at(path), Some(*uid), Some(*gid)),
        }
    }
}

impl TreeTarget for VolumeTree<'_> {
    type Error = VolumeTreeError;

    fn apply(&mut self, op: &Op) -> Result<(), VolumeTreeError> {
        self.run(op).map_err(|source| VolumeTreeError { op: Box::new(op.clone()), source: Box::new(source) })
    }
}

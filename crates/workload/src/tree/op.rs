//! One file system operation.

/// A device, FIFO or socket, as mknod(2) makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// A block device with its major and minor numbers.
    Block(u32, u32),
    /// A character device with its major and minor numbers.
    Char(u32, u32),
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
}

/// One operation. Paths are raw bytes from the root of the tree, beginning with `/`; the meaning is that of the system
/// call of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields say what their system calls' arguments say.
pub enum Op {
    /// A new directory; `mode` holds permission bits only (see [`Op::Chmod`] for the others).
    Mkdir { path: Vec<u8>, mode: u16 },
    /// A new, empty regular file.
    Create { path: Vec<u8>, mode: u16 },
    /// `length` bytes of [`fill`](super::fill) with `seed` at `offset`, of an existing file.
    Write { path: Vec<u8>, offset: u64, length: u64, seed: u64 },
    /// The same, and durable when it returns (`O_DSYNC`).
    WriteDurable { path: Vec<u8>, offset: u64, length: u64, seed: u64 },
    /// Sets the size of a file in bytes.
    Truncate { path: Vec<u8>, size: u64 },
    /// Reserves blocks for `length` bytes at `offset` of an existing file, without changing its size if `keep_size` is
    /// set.
    Allocate { path: Vec<u8>, offset: u64, length: u64, keep_size: bool },
    /// A new symbolic link.
    Symlink { path: Vec<u8>, target: Vec<u8> },
    /// A new device, FIFO or socket.
    Mknod { path: Vec<u8>, kind: NodeKind, mode: u16 },
    /// A new name `path` for the file `existing`.
    Link { existing: Vec<u8>, path: Vec<u8> },
    /// Removes a name that is not a directory's.
    Unlink { path: Vec<u8> },
    /// Removes an empty directory.
    Rmdir { path: Vec<u8> },
    /// Moves a name, replacing the file that `to` named.
    Rename { from: Vec<u8>, to: Vec<u8> },
    /// Sets an extended attribute of a path itself (not of a link's target); `name` is the full name.
    SetXattr { path: Vec<u8>, name: Vec<u8>, value: Vec<u8> },
    /// Removes an extended attribute of a path itself.
    RemoveXattr { path: Vec<u8>, name: Vec<u8> },
    /// Sets the permission, set-id and sticky bits.
    Chmod { path: Vec<u8>, mode: u16 },
    /// Makes a regular file durable.
    Fsync { path: Vec<u8> },
    /// Sets the owner and group of a path itself. Scripts use it before [`Op::Chmod`]: it clears set-id bits.
    Chown { path: Vec<u8>, uid: u32, gid: u32 },
}

/// A target that can run operations.
pub trait TreeTarget {
    /// Why an operation failed; says which.
    type Error;

    /// Runs one operation.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from being done. Scripts hold no operation that should fail.
    fn apply(&mut self, op: &Op) -> Result<(), Self::Error>;
}

/// Runs a whole script, up to the first failure.
///
/// # Errors
///
/// The error of the first operation that failed.
pub fn apply_all<T: TreeTarget>(target: &mut T, script: &[Op]) -> Result<(), T::Error> {
    script.iter().try_for_each(|op| target.apply(op))
}

/// How large a script's tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Entries of the one large directory.
    pub many: u32,
    /// Files of mixed kinds and sizes.
    pub mixed: u32,
    /// Size of the large sparse file in bytes.
    pub large: u64,
}

impl Scale {
    /// A directory of 50,000 entries, 3,000 mixed files, and a sparse file that reaches into the double indirect node
    /// (past 7.92 GiB).
    pub const FULL: Self = Self { many: 50_000, mixed: 3_000, large: (8 << 30) + (77 << 20) };
    /// The same with a sparse file that is quickly digested.
    pub const WIDE: Self = Self { large: 64 << 20, ..Self::FULL };
    /// Thousands of files of every kind in a tree that takes seconds.
    pub const MEDIUM: Self = Self { many: 5_000, mixed: 4_000, large: 64 << 20 };
    /// The same shapes in a tree that takes a moment: for unit tests.
    pub const SMALL: Self = Self { many: 300, mixed: 200, large: 40 << 20 };
}

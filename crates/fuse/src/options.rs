//! How a volume is mounted.

/// How a volume is mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MountOptions {
    /// What the list of mounts shows as the source.
    pub source: String,
    /// For reading only. The file system must be opened so as well.
    pub read_only: bool,
    /// All users may use the mount, not only the one who made it.
    pub allow_other: bool,
    /// Device nodes work. Only root can mount so.
    pub devices: bool,
    /// Set-id bits work. Only root can mount so.
    pub set_id: bool,
    /// Programs on the mount cannot be run.
    pub no_exec: bool,
    /// All files are shown as this user's.
    pub uid: Option<u32>,
    /// All files are shown as this group's.
    pub gid: Option<u32>,
    /// All files are shown with the permissions 777 without these.
    pub umask: Option<u16>,
    /// The kernel keeps what is written, and hands it on when a file is synced or closed, or after some seconds.
    pub write_back: bool,
    /// Threads that answer requests; 0: by the processors.
    pub threads: usize,
}

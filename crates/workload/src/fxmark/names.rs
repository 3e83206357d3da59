//! Paths, as FxMark makes them.

use std::fmt::Write;

use super::Workload;

/// A path that is made again for each operation, in the same memory.
#[derive(Debug)]
pub(super) struct PathBuffer<'a> {
    /// The directory that everything lies in, and that is the shared one.
    root: &'a str,
    path: String,
}

impl<'a> PathBuffer<'a> {
    pub(super) fn new(root: &'a str) -> PathBuffer<'a> {
        PathBuffer { root, path: String::new() }
    }

    fn set(&mut self, text: std::fmt::Arguments<'_>) -> &str {
        self.path.clear();
        self.path.push_str(self.root);
        // Writing to a string does not fail.
        let _ = self.path.write_fmt(text);
        &self.path
    }

    /// A worker's private directory.
    pub(super) fn directory(&mut self, worker: usize) -> &str {
        self.set(format_args!("/{worker}"))
    }

    /// The worker's file with this number, before the operation.
    #[inline]
    pub(super) fn file(&mut self, workload: Workload, worker: usize, number: u64) -> &str {
        match workload {
            Workload::Mwul => self.set(format_args!("/{worker}/u_file_rm-{number}.dat")),
            Workload::Mwum => self.set(format_args!("/u_sh_file_rm-{worker}-{number}.dat")),
            Workload::Mwcl => self.set(format_args!("/{worker}/n_inode_alloc-{number}.dat")),
            Workload::Mwcm => self.set(format_args!("/m_file_cr-{worker}-{number}.dat")),
            Workload::Mwrl => self.set(format_args!("/{worker}/n_file_rename-{number}.dat")),
            Workload::Mwrm => self.set(format_args!("/{worker}/n_dir_ins-{worker}-{number}.dat")),
            Workload::Drbl => self.set(format_args!("/{worker}/n_blk_rd.dat")),
            Workload::Drbm => self.set(format_args!("/n_shfile_rd.dat")),
            Workload::Drbh => self.set(format_args!("/n_shblk_rd.dat")),
            Workload::Dwol => self.set(format_args!("/{worker}/n_blk_wrt.dat")),
            Workload::Dwom => self.set(format_args!("/n_mtime_upt.dat")),
        }
    }

    /// Where a rename moves that file.
    #[inline]
    pub(super) fn renamed(&mut self, workload: Workload, worker: usize, number: u64) -> &str {
        match workload {
            Workload::Mwrm => self.set(format_args!("/n_dir_ins-{worker}-{number}.dat")),
            _ => self.file(workload, worker, number + 1),
        }
    }
}

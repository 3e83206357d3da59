//! The lists of file name extensions by which the kernel tells cold and hot files.

use alloc::string::String;
use alloc::vec::Vec;

use super::within;
use crate::FormatError;
use crate::superblock::{MAX_EXTENSIONS, SuperBlock};

/// Media, archives and programs: written once. Two letters cover what begins with them.
const COLD: [&str; 36] = [
    "mp", "wm", "og", "jp", "avi", "m4v", "m4p", "mkv", "mov", "webm", "wav", "m4a", "3gp", "opus", "flac", "gif",
    "png", "svg", "webp", "jar", "deb", "iso", "gz", "xz", "zst", "pdf", "pyc", "ttc", "ttf", "exe", "apk", "cnt",
    "exo", "odex", "vdex", "so",
];
/// Databases and disks of virtual machines.
const HOT: [&str; 4] = ["db", "vmdk", "vdi", "qcow2"];
/// Longest extension in bytes; a zero ends it.
const MAX_LEN: usize = 7;

/// Both lists, cold ones first.
pub(super) struct Extensions<'a> {
    all: Vec<&'a str>,
    cold: usize,
}

/// The usual lists and the user's. An extension that is in a list already is left out.
pub(super) fn lists<'a>(cold: &'a [String], hot: &'a [String]) -> Result<Extensions<'a>, FormatError> {
    let mut all = Vec::new();
    let mut cold_count = 0;
    for (index, (usual, own)) in [(&COLD[..], cold), (&HOT[..], hot)].into_iter().enumerate() {
        all.extend_from_slice(usual);
        for extension in own {
            within("bytes of an extension", extension.len() as u64, 1, MAX_LEN as u64)?;
            within("zero bytes in an extension", extension.bytes().filter(|byte| *byte == 0).count() as u64, 0, 0)?;
            if !all.contains(&extension.as_str()) {
                all.push(extension);
            }
        }
        if index == 0 {
            cold_count = all.len();
        }
    }
    within("extensions", all.len() as u64, 0, MAX_EXTENSIONS as u64)?;
    Ok(Extensions { all, cold: cold_count })
}

impl Extensions<'_> {
    pub(super) fn store(&self, superblock: &mut SuperBlock) {
        for (extension, stored) in self.all.iter().zip(&mut superblock.extension_list) {
            stored[..extension.len()].copy_from_slice(extension.as_bytes());
        }
        superblock.extension_count = (self.cold as u32).into();
        superblock.hot_ext_count = (self.all.len() - self.cold) as u8;
    }
}

//! The `newc` cpio archive of an initial RAM disk. Format: the kernel's
//! `Documentation/driver-api/early-userspace/buffer-format.rst`.

/// An archive in the making.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    inodes: u32,
}

impl Archive {
    /// Adds a directory.
    pub(crate) fn directory(&mut self, path: &str) {
        self.entry(path, 0o040_755, (0, 0), &[]);
    }

    /// Adds a regular file with the given permission bits.
    pub(crate) fn file(&mut self, path: &str, mode: u32, data: &[u8]) {
        self.entry(path, 0o100_000 | mode, (0, 0), data);
    }

    /// Adds a character device.
    pub(crate) fn character_device(&mut self, path: &str, major: u32, minor: u32) {
        self.entry(path, 0o020_600, (major, minor), &[]);
    }

    /// The finished archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), data: &[u8]) {
        self.inodes += 1;
        let fields = [
            self.inodes,
            mode,
            0, // uid
            0, // gid
            1, // links
            0, // mtime
            data.len() as u32,
            0,
            0, // device of the archive
            device.0,
            device.1,
            path.len() as u32 + 1,
            0, // checksum, unused
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(data);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::Archive;

    #[test]
    fn entries_are_padded_and_closed() {
        let mut archive = Archive::default();
        archive.file("a", 0o755, b"xyz");
        let bytes = archive.finish();
        assert!(bytes.starts_with(b"070701"));
        assert_eq!(bytes.len() % 4, 0);
        // Header (110) and "a\0" make 112, which is aligned; the data follows.
        assert_eq!(&bytes[112..116], b"xyz\0");
        assert!(bytes.windows(10).any(|window| window == b"TRAILER!!!"));
    }
}

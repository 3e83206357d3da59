//! A tree with every kind of file.

use super::data::mix;
use super::{NodeKind, Op, Scale};

const BLOCK: u64 = 4096;
/// Data blocks that an inode without extra attributes addresses itself: 923 slots less 50 for inline attributes.
const INODE_BLOCKS: u64 = 873;
/// Data blocks behind one direct node.
const NODE_BLOCKS: u64 = 1018;

/// The script that makes the tree in an empty root.
#[must_use]
pub fn everything(scale: Scale) -> Vec<Op> {
    let mut script = Script::default();
    script.directories();
    script.sizes();
    script.sparse(scale.large);
    script.links();
    script.special();
    script.attributes();
    script.names();
    script.mixed(scale.mixed);
    script.many(scale.many);
    script.deleted();
    script.owners();
    script.ops
}

#[derive(Default)]
struct Script {
    ops: Vec<Op>,
}

impl Script {
    fn mkdir(&mut self, path: &str) {
        self.ops.push(Op::Mkdir { path: path.into(), mode: 0o755 });
    }

    fn create(&mut self, path: impl Into<Vec<u8>>) {
        self.ops.push(Op::Create { path: path.into(), mode: 0o644 });
    }

    fn write(&mut self, path: impl Into<Vec<u8>>, offset: u64, length: u64) {
        let seed = self.ops.len() as u64;
        self.ops.push(Op::Write { path: path.into(), offset, length, seed });
    }

    fn file(&mut self, path: impl Into<Vec<u8>>, length: u64) {
        let path = path.into();
        self.create(path.clone());
        if length > 0 {
            self.write(path, 0, length);
        }
    }

    fn symlink(&mut self, path: impl Into<Vec<u8>>, target: impl Into<Vec<u8>>) {
        self.ops.push(Op::Symlink { path: path.into(), target: target.into() });
    }

    fn xattr(&mut self, path: &str, name: impl Into<Vec<u8>>, length: usize) {
        let mut value = vec![0; length];
        super::fill(self.ops.len() as u64, 0, &mut value);
        self.ops.push(Op::SetXattr { path: path.into(), name: name.into(), value });
    }

    /// Empty, nested and renamed directories.
    fn directories(&mut self) {
        self.mkdir("/empty");
        let mut path = String::new();
        for depth in 0..40 {
            path.push_str(&format!("/deep{depth}"));
            self.mkdir(&path);
        }
        self.file(format!("{path}/bottom"), 5000);
        self.mkdir("/before");
        self.mkdir("/parent");
        self.file("/before/child", 10);
        self.ops.push(Op::Rename { from: b"/before".to_vec(), to: b"/parent/after".to_vec() });
    }

    /// Sizes around every border of the format: inline data, blocks, the inode's slots, direct and indirect nodes.
    fn sizes(&mut self) {
        self.mkdir("/sizes");
        let indirect = INODE_BLOCKS + 2 * NODE_BLOCKS;
        let borders = [0, 1, 2, 100, 3000, 3488, 3489, 4095, 4096, 4097, 8192, 65_536, 1_000_003];
        let blocks = [INODE_BLOCKS - 10, INODE_BLOCKS, INODE_BLOCKS + 1, INODE_BLOCKS + NODE_BLOCKS + 1, indirect + 1];
        for size in borders.into_iter().chain(blocks.map(|count| count * BLOCK)) {
            self.file(format!("/sizes/{size}"), size);
        }
        // Inline data that grows out of its inode, and block data that shrinks.
        self.file("/sizes/grown", 1000);
        self.write("/sizes/grown", 1000, 20_000);
        self.file("/sizes/shrunk", 50_000);
        self.ops.push(Op::Truncate { path: b"/sizes/shrunk".to_vec(), size: 1234 });
        self.file("/sizes/stretched", 700);
        self.ops.push(Op::Truncate { path: b"/sizes/stretched".to_vec(), size: 3_000_000 });
        self.file("/sizes/overwritten", 40_000);
        self.write("/sizes/overwritten", 5000, 9000);
    }

    /// Files with holes, up to one of several gibibytes.
    fn sparse(&mut self, large: u64) {
        self.mkdir("/sparse");
        self.create("/sparse/points");
        for block in [1, INODE_BLOCKS, 5000, 6001] {
            self.write("/sparse/points", block * BLOCK + 17, 100);
        }
        self.create("/sparse/hole-only");
        self.ops.push(Op::Truncate { path: b"/sparse/hole-only".to_vec(), size: 10 << 20 });
        self.create("/sparse/large");
        let step = (large / 9).next_multiple_of(BLOCK);
        for offset in (0..large - (1 << 20)).step_by(step as usize) {
            self.write("/sparse/large", offset, 1 << 20);
        }
        self.write("/sparse/large", large - 12_345, 12_345);
    }

    /// Hard and symbolic links.
    fn links(&mut self) {
        for dir in ["/links", "/links/a", "/links/b"] {
            self.mkdir(dir);
        }
        for index in 0..40 {
            let existing = format!("/links/a/original{index}").into_bytes();
            self.file(existing.clone(), 100 * index);
            for copy in 0..=index % 5 {
                let path = format!("/links/b/{index}-{copy}").into_bytes();
                self.ops.push(Op::Link { existing: existing.clone(), path });
            }
        }
        self.symlink("/links/short", "a");
        self.symlink("/links/dangling", "/no/such/place");
        self.symlink("/links/bytes", b"\xff\xfe/\x01\t\\".to_vec());
        for length in [59, 60, 255, 1000, 3489, 4000] {
            self.symlink(format!("/links/long{length}"), vec![b'a' + (length % 26) as u8; length]);
        }
    }

    /// Devices, FIFOs and sockets.
    fn special(&mut self) {
        self.mkdir("/special");
        let kinds = [
            ("block", NodeKind::Block(7, 3)),
            ("block-new-encoding", NodeKind::Block(259, 70_000)),
            ("char", NodeKind::Char(5, 1)),
            ("char-old-encoding-limit", NodeKind::Char(255, 255)),
            ("char-largest", NodeKind::Char(4095, 1_048_575)),
            ("fifo", NodeKind::Fifo),
            ("socket", NodeKind::Socket),
        ];
        for (name, kind) in kinds {
            self.ops.push(Op::Mknod { path: format!("/special/{name}").into_bytes(), kind, mode: 0o640 });
        }
    }

    /// Extended attributes that fit the inode, and some that need a node of their own.
    fn attributes(&mut self) {
        self.mkdir("/xattrs");
        for name in ["inline", "node", "many", "empty-value", "replaced", "removed", "namespaces"] {
            self.file(format!("/xattrs/{name}"), 50);
        }
        self.xattr("/xattrs/inline", "user.small", 20);
        self.xattr("/xattrs/node", "user.large", 3400);
        self.xattr("/xattrs/node", "user.small", 30);
        for index in 0..60 {
            self.xattr("/xattrs/many", format!("user.attribute-{index}"), index % 23);
        }
        self.xattr("/xattrs/empty-value", "user.empty", 0);
        self.xattr("/xattrs/replaced", "user.value", 10);
        self.xattr("/xattrs/replaced", "user.value", 1000);
        self.xattr("/xattrs/replaced", "user.value", 100);
        self.xattr("/xattrs/removed", "user.stays", 40);
        self.xattr("/xattrs/removed", "user.goes", 2000);
        let path = b"/xattrs/removed".to_vec();
        self.ops.push(Op::RemoveXattr { path, name: b"user.goes".to_vec() });
        for name in ["user.u", "trusted.t", "security.s", "user.with=sign;and space"] {
            self.xattr("/xattrs/namespaces", name, 25);
        }
        self.mkdir("/xattrs/directory");
        self.xattr("/xattrs/directory", "user.on-directory", 500);
        self.symlink("/xattrs/symlink", "target");
        self.xattr("/xattrs/symlink", "trusted.on-symlink", 60);
        // Access control lists that leave the mode as it is; nothing is created below the directory that has a default
        // one.
        let (path, name) = (b"/xattrs/inline".to_vec(), b"system.posix_acl_access".to_vec());
        self.ops.push(Op::SetXattr { path, name, value: acl() });
        let (path, name) = (b"/xattrs/directory".to_vec(), b"system.posix_acl_default".to_vec());
        self.ops.push(Op::SetXattr { path, name, value: acl() });
        self.xattr("/special/fifo", "trusted.on-fifo", 60);
        self.xattr("/special/block", "security.on-block", 15);
    }

    /// Names of every byte, of the greatest length, and outside UTF-8.
    fn names(&mut self) {
        self.mkdir("/names");
        for byte in (1..=255).filter(|byte| *byte != b'/' && *byte != b'.') {
            self.create([b"/names/".as_slice(), &[byte]].concat());
        }
        for (byte, length) in [(b'x', 255), (0xfe, 255), (b'y', 8), (b'z', 9), (b'w', 254)] {
            self.create([b"/names/".as_slice(), &vec![byte; length]].concat());
        }
        for name in [
            "grüße",
            "日本語のファイル名",
            "😀",
            " leading",
            "trailing ",
            "new\nline",
            "tab\there",
            "back\\slash",
            "...",
        ] {
            self.create(format!("/names/{name}"));
        }
    }

    /// Thousands of files of mixed kinds, sizes and attributes, in directories of different sizes.
    fn mixed(&mut self, count: u32) {
        self.mkdir("/mixed");
        for dir in 0..20 {
            self.mkdir(&format!("/mixed/d{dir}"));
        }
        for index in 0..count {
            let random = mix(u64::from(index));
            // Squared, so that the directories differ in size.
            let dir = (random % 400).isqrt();
            let path = format!("/mixed/d{dir}/{index:x}-{}", "n".repeat((random >> 20) as usize % 40));
            match (random >> 32) % 16 {
                0 => self.symlink(path, format!("../d0/{index}")),
                1 => self.mkdir(&path),
                2 => self.ops.push(Op::Mknod { path: path.into(), kind: NodeKind::Fifo, mode: 0o600 }),
                3 => self.file(path, (random >> 40) % 300_000),
                4..8 => self.file(path, (random >> 40) % 40_000),
                8..10 => {
                    self.file(path.clone(), (random >> 40) % 3000);
                    self.xattr(&path, format!("user.mixed{index}"), (random >> 40) as usize % 300);
                }
                _ => self.file(path, (random >> 40) % 3000),
            }
        }
    }

    /// One large directory.
    fn many(&mut self, count: u32) {
        self.mkdir("/many");
        for index in 0..count {
            let path = format!("/many/entry-{index:05}");
            match index % 500 {
                499 => self.symlink(path, "entry-00000"),
                250 => self.ops.push(Op::Link { existing: b"/many/entry-00000".to_vec(), path: path.into() }),
                100 | 200 | 300 => self.file(path, u64::from(index % 3000)),
                _ => self.create(path),
            }
        }
    }

    /// Names, files and whole subtrees that are gone at the end.
    fn deleted(&mut self) {
        self.mkdir("/deleted");
        for index in 0..600_u64 {
            self.file(format!("/deleted/{index}"), index * 37 % 20_000);
        }
        for index in (0..600).filter(|index| index % 3 != 0) {
            self.ops.push(Op::Unlink { path: format!("/deleted/{index}").into_bytes() });
        }
        for dir in ["/deleted/tree", "/deleted/tree/a", "/deleted/tree/a/b"] {
            self.mkdir(dir);
        }
        self.file("/deleted/tree/a/b/large", 6 << 20);
        self.ops.push(Op::Unlink { path: b"/deleted/tree/a/b/large".to_vec() });
        for dir in ["/deleted/tree/a/b", "/deleted/tree/a", "/deleted/tree"] {
            self.ops.push(Op::Rmdir { path: dir.into() });
        }
        // Replaced by a rename: the old file goes.
        self.file("/deleted/old", 30_000);
        self.file("/deleted/new", 100);
        self.ops.push(Op::Rename { from: b"/deleted/new".to_vec(), to: b"/deleted/old".to_vec() });
    }

    /// Owners and modes. Last, since a change of the owner or a write clears set-id bits.
    fn owners(&mut self) {
        self.mkdir("/owners");
        let modes = [0, 0o400, 0o644, 0o777, 0o1777, 0o2755, 0o4755, 0o6711, 0o7777];
        for (index, mode) in modes.into_iter().enumerate() {
            let (file, dir) = (format!("/owners/file{mode:o}"), format!("/owners/dir{mode:o}"));
            self.file(file.clone(), 10);
            self.mkdir(&dir);
            let id = [0, 1, 1000, 65_534, 1_000_000][index % 5];
            for path in [file.into_bytes(), dir.into_bytes()] {
                self.ops.push(Op::Chown { path: path.clone(), uid: id, gid: id / 2 });
                self.ops.push(Op::Chmod { path, mode });
            }
        }
        self.ops.push(Op::Chown { path: b"/links/dangling".to_vec(), uid: 7, gid: 8 });
        self.ops.push(Op::Chmod { path: b"/special/fifo".to_vec(), mode: 0o666 });
    }
}

/// `user::rw-, user:1000:rw-, group::r--, mask::r--, other::r--` as the system calls carry it: a version, then tag,
/// permissions and identifier of each entry.
fn acl() -> Vec<u8> {
    const NOBODY: u32 = u32::MAX;
    let entries: [(u16, u16, u32); 5] =
        [(0x01, 6, NOBODY), (0x02, 6, 1000), (0x04, 4, NOBODY), (0x10, 4, NOBODY), (0x20, 4, NOBODY)];
    let mut value = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        value.extend(tag.to_le_bytes());
        value.extend(permissions.to_le_bytes());
        value.extend(id.to_le_bytes());
    }
    value
}

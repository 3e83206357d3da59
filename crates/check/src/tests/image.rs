//! Volumes in memory that tests take apart and put together again, checksums and all.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::OnceLock;

use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_format::checkpoint::{CheckpointBlock, flags};
use f2fs_format::dentry::DentryView;
use f2fs_format::nat::{NatBlock, RawNatEntry};
use f2fs_format::node::NodeBlock;
use f2fs_format::sit::{RawSitEntry, SitBlock};
use f2fs_format::summary::SummaryBlock;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{BlockAddr, Geometry, LogType, Nid, RawBlock, SegmentNo, bits::msb, inode, nat, nat_bits, sit};

use crate::pack::{self, Pack};
use crate::report::Collector;
use crate::source::Source;
use crate::{CheckOptions, CheckReport, check};

/// Features of the populated volume.
const FEATURES: &str = "extra_attr,inode_checksum,sb_checksum,lost_found";

/// A volume and where its parts are.
pub(crate) struct Image {
    pub(crate) device: MemoryDevice,
    pub(crate) geometry: Geometry,
}

/// Where a directory entry stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) ino: Nid,
    pub(crate) block: BlockAddr,
    pub(crate) slot: usize,
}

/// A directory for images: in memory where there is one for that.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// A fresh volume of the real mkfs.f2fs.
pub(crate) fn fresh(bytes: u64, args: &[&str]) -> Image {
    let dir = directory();
    let path = dir.path().join("image");
    f2fs_oracle::mkfs_sized(&path, bytes, args).unwrap();
    Image::load(&path)
}

/// A volume with files of most kinds, made once and shared. Take a [`copy`](Image::copy) to change it.
pub(crate) fn populated() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| filled(&["-O", FEATURES]))
}

/// The same files on a volume without features, whose inodes have no checksums.
pub(crate) fn without_checksums() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| filled(&[]))
}

/// The same files on a volume of the real mkfs.f2fs.
pub(crate) fn filled(args: &[&str]) -> Image {
    let dir = directory();
    let (path, tree) = (dir.path().join("image"), dir.path().join("tree"));
    host_tree(&tree);
    f2fs_oracle::mkfs_sized(&path, 100 << 20, args).unwrap();
    f2fs_oracle::sload(&path, &tree).unwrap();
    Image::load(&path)
}

/// A directory of several levels, nested ones, small, empty and large files, links.
fn host_tree(tree: &Path) {
    fs::create_dir_all(tree.join("deep/er/still")).unwrap();
    fs::create_dir(tree.join("many")).unwrap();
    for index in 0..700 {
        let name = format!("many/a name that takes several slots, number {index:04}");
        fs::write(tree.join(name), vec![b'x'; index % 7]).unwrap();
    }
    fs::write(tree.join("small"), vec![7; 9000]).unwrap();
    fs::write(tree.join("tiny"), b"hello").unwrap();
    // Beyond the inode and both direct nodes: 864 + 2 * 1018 blocks.
    fs::File::create(tree.join("large")).unwrap().set_len(12_500_000).unwrap();
    fs::hard_link(tree.join("small"), tree.join("deep/hard link")).unwrap();
    symlink("/some/where", tree.join("link")).unwrap();
    symlink("x".repeat(4000), tree.join("long link")).unwrap();
}

impl Image {
    pub(crate) fn load(path: &Path) -> Image {
        let device = MemoryDevice::load(path).unwrap();
        let sb = SuperBlock::read(device.read(0, 1).unwrap().block(0));
        Image { geometry: Geometry::from_superblock(&sb).unwrap(), device }
    }

    pub(crate) fn copy(&self) -> Image {
        Image { device: self.device.snapshot(), geometry: self.geometry.clone() }
    }

    pub(crate) fn check(&self) -> CheckReport {
        check(&self.device, &CheckOptions { threads: Some(2), progress: None }).unwrap()
    }

    /// The verdict of the real fsck.f2fs.
    pub(crate) fn fsck(&self) -> f2fs_oracle::FsckReport {
        let dir = directory();
        let path = dir.path().join("image");
        self.device.save(&path).unwrap();
        f2fs_oracle::fsck(&path).unwrap()
    }

    pub(crate) fn block(&self, addr: BlockAddr) -> RawBlock {
        *self.device.read(addr.0.into(), 1).unwrap().block(0)
    }

    pub(crate) fn put(&self, addr: BlockAddr, block: &RawBlock) {
        self.device.write_slice(addr.0.into(), block).unwrap();
    }

    pub(crate) fn edit(&self, addr: BlockAddr, change: impl FnOnce(&mut RawBlock)) {
        let mut block = self.block(addr);
        change(&mut block);
        self.put(addr, &block);
    }

    /// Changes a superblock copy and seals it.
    pub(crate) fn edit_superblock(&self, copy: u32, change: impl FnOnce(&mut SuperBlock)) {
        self.edit(BlockAddr(copy), |block| {
            let mut sb = SuperBlock::read(block);
            change(&mut sb);
            sb.crc = sb.compute_crc().into();
            sb.write(block);
        });
    }

    pub(crate) fn pack(&self) -> Pack {
        pack::load(&Source::new(&self.device), &self.geometry, &Collector::default()).unwrap().unwrap()
    }

    /// Changes the checkpoint in force, seals both copies and signs the NAT bits again.
    pub(crate) fn edit_checkpoint(&self, change: impl FnOnce(&mut CheckpointBlock)) {
        let pack = self.pack();
        let mut checkpoint = pack.block;
        change(&mut checkpoint);
        checkpoint.seal();
        self.put(pack.start, checkpoint.as_block());
        self.put(pack.start.offset(pack.total() - 1), checkpoint.as_block());
        // A checkpoint that says nonsense about its checksum has none to sign with.
        if pack.has(flags::NAT_BITS)
            && let Ok(signature) = nat_bits::signature(&checkpoint)
        {
            let bits = pack.start.offset(nat_bits::first_block(&self.geometry, pack.total()).unwrap());
            self.edit(bits, |block| block[..8].copy_from_slice(&signature.to_le_bytes()));
        }
    }

    /// The summary of a log in the pack. Only for packs without compact summaries.
    pub(crate) fn log_summary(&self, log: LogType) -> BlockAddr {
        let pack = self.pack();
        assert!(!pack.has(flags::COMPACT_SUM) && pack.has(flags::UMOUNT));
        pack.start.offset(pack.start_sum() + u32::from(log.number()))
    }

    pub(crate) fn edit_summary(&self, addr: BlockAddr, change: impl FnOnce(&mut SummaryBlock)) {
        self.edit(addr, |block| {
            let mut summary = *SummaryBlock::read(block);
            change(&mut summary);
            *block = *summary.as_block();
        });
    }

    /// The summary of the segment that holds a block, and the block's index in it.
    pub(crate) fn summary_of(&self, addr: BlockAddr) -> (BlockAddr, usize) {
        let (segment, offset) = self.geometry.locate(addr).unwrap();
        let log = LogType::ALL.into_iter().find(|log| self.pack().log(*log).0 == segment);
        (log.map_or_else(|| self.geometry.summary_block(segment), |log| self.log_summary(log)), offset as usize)
    }

    pub(crate) fn nat_block(&self, nid: Nid) -> BlockAddr {
        let index = nid.0 / nat::ENTRIES_PER_BLOCK as u32;
        self.geometry.nat_block(index, msb::test(&self.pack().bitmaps.nat, index as usize))
    }

    pub(crate) fn nat(&self, nid: Nid) -> RawNatEntry {
        NatBlock::read(&self.block(self.nat_block(nid))).entries[nid.index() % nat::ENTRIES_PER_BLOCK]
    }

    pub(crate) fn edit_nat(&self, nid: Nid, change: impl FnOnce(&mut RawNatEntry)) {
        self.edit(self.nat_block(nid), |block| {
            let mut table = *NatBlock::read(block);
            change(&mut table.entries[nid.index() % nat::ENTRIES_PER_BLOCK]);
            *block = *table.as_block();
        });
    }

    pub(crate) fn sit_block(&self, segment: SegmentNo) -> BlockAddr {
        let index = segment.0 / sit::ENTRIES_PER_BLOCK as u32;
        self.geometry.sit_block(index, msb::test(&self.pack().bitmaps.sit, index as usize))
    }

    pub(crate) fn sit(&self, segment: SegmentNo) -> RawSitEntry {
        SitBlock::read(&self.block(self.sit_block(segment))).entries[segment.index() % sit::ENTRIES_PER_BLOCK]
    }

    pub(crate) fn edit_sit(&self, segment: SegmentNo, change: impl FnOnce(&mut RawSitEntry)) {
        self.edit(self.sit_block(segment), |block| {
            let mut table = *SitBlock::read(block);
            change(&mut table.entries[segment.index() % sit::ENTRIES_PER_BLOCK]);
            *block = *table.as_block();
        });
    }

    pub(crate) fn addr(&self, nid: Nid) -> BlockAddr {
        self.nat(nid).block_addr.into()
    }

    pub(crate) fn node(&self, nid: Nid) -> NodeBlock {
        *NodeBlock::read(&self.block(self.addr(nid)))
    }

    /// Changes a node; an inode gets a good checksum again.
    pub(crate) fn edit_node(&self, nid: Nid, change: impl FnOnce(&mut NodeBlock)) {
        self.edit_node_at(self.addr(nid), change);
    }

    /// The same of one that stands here.
    pub(crate) fn edit_node_at(&self, addr: BlockAddr, change: impl FnOnce(&mut NodeBlock)) {
        let mut node = *NodeBlock::read(&self.block(addr));
        change(&mut node);
        let sb = SuperBlock::read(&self.block(BlockAddr(0)));
        if node.nid() == node.ino() && inode::has_checksum(node.inode(), self.geometry.features) {
            let sum = inode::checksum(&node, inode::checksum_seed(&sb));
            node.inode_mut().extra_mut().i_inode_checksum = sum.into();
        }
        self.put(addr, node.as_block());
    }

    /// Block `index` of a file, among those that its inode holds.
    pub(crate) fn data(&self, ino: Nid, index: usize) -> BlockAddr {
        self.node(ino).address(index, self.geometry.features).unwrap()
    }

    /// Looks a path up.
    pub(crate) fn find(&self, path: &str) -> Found {
        let mut found = Found { ino: Nid::ROOT, block: BlockAddr(0), slot: 0 };
        for name in path.split('/') {
            found = self.find_in(found.ino, name.as_bytes()).unwrap_or_else(|| panic!("no {name} of {path}"));
        }
        found
    }

    fn find_in(&self, dir: Nid, name: &[u8]) -> Option<Found> {
        let node = self.node(dir);
        for block in node.addresses(self.geometry.features).filter(|addr| addr.is_real()) {
            let content = self.block(block);
            let entry = DentryView::block(&content).entries().flatten().find(|entry| entry.name == name);
            if let Some(entry) = entry {
                return Some(Found { ino: entry.ino, block, slot: entry.slot });
            }
        }
        None
    }
}

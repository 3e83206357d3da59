//! Where on a volume its structures stand, and the fields that they have: so that damage hits the meaning of a number,
//! and not only some byte.

use std::collections::HashMap;
use std::mem::offset_of;

use f2fs_format::checkpoint::{CheckpointBlock, CheckpointHeader, VersionBitmaps};
use f2fs_format::dentry::{BITMAP_SIZE, ENTRY_SIZE, RESERVED_SIZE, SLOT_LEN, SLOTS_PER_BLOCK};
use f2fs_format::inode::{ADDRS_PER_INODE, INLINE_RESERVED_WORDS, Inode, inline, mode};
use f2fs_format::nat::NatBlock;
use f2fs_format::node::NodeBlock;
use f2fs_format::sit::SitBlock;
use f2fs_format::summary::{SummaryBlock, compact};
use f2fs_format::superblock::{OFFSET, SuperBlock};
use f2fs_format::{BlockAddr, Geometry, nat, sit, xattr};

use f2fs_device_test::SparseDevice;

/// Places of one kind at most.
const MOST: usize = 4000;
/// Free entries of a table that are places as well.
const FREE: usize = 8;
/// Where an inode has its addresses.
const ADDRESSES: usize = offset_of!(Inode, i_addr);

/// The kinds of structures that can be damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Superblock,
    Checkpoint,
    Bitmaps,
    Compact,
    Orphans,
    Sit,
    Nat,
    Summary,
    SummaryRest,
    Inode,
    Extra,
    Slots,
    Footer,
    Chain,
    XattrHeader,
    XattrEntry,
    Dentry,
    Name,
    SlotBitmap,
}

/// All kinds.
pub const KINDS: [Kind; 19] = [
    Kind::Superblock,
    Kind::Checkpoint,
    Kind::Bitmaps,
    Kind::Compact,
    Kind::Orphans,
    Kind::Sit,
    Kind::Nat,
    Kind::Summary,
    Kind::SummaryRest,
    Kind::Inode,
    Kind::Extra,
    Kind::Slots,
    Kind::Footer,
    Kind::Chain,
    Kind::XattrHeader,
    Kind::XattrEntry,
    Kind::Dentry,
    Kind::Name,
    Kind::SlotBitmap,
];

/// A field: its offset from the place, and its bytes.
type Field = (usize, usize);

macro_rules! fields {
    ($of:ty: $($name:ident $len:literal),+ $(,)?) => { &[$((offset_of!($of, $name), $len)),+] };
}

impl Kind {
    /// The fields of a structure of this kind.
    pub fn fields(self) -> &'static [Field] {
        match self {
            Kind::Superblock => fields!(SuperBlock: magic 4, log_sectorsize 4, log_sectors_per_block 4, segs_per_sec 4,
                secs_per_zone 4, checksum_offset 4, block_count 8, section_count 4, segment_count 4, segment_count_ckpt 4,
                segment_count_sit 4, segment_count_nat 4, segment_count_ssa 4, segment_count_main 4, segment0_blkaddr 4,
                cp_blkaddr 4, sit_blkaddr 4, nat_blkaddr 4, ssa_blkaddr 4, main_blkaddr 4, root_ino 4, volume_name 8,
                extension_count 4, extension_list 8, cp_payload 4, feature 4, encryption_level 1, devs 8, qf_ino 4,
                hot_ext_count 1, s_encoding 2, s_encoding_flags 2, s_stop_reason 1, s_errors 1),
            Kind::Checkpoint => fields!(CheckpointHeader: checkpoint_ver 8, user_block_count 8, valid_block_count 8,
                rsvd_segment_count 4, overprov_segment_count 4, free_segment_count 4, cur_node_segno 4, cur_node_segno 8,
                cur_node_blkoff 2, cur_node_blkoff 4, cur_data_segno 4, cur_data_segno 8, cur_data_blkoff 2,
                cur_data_blkoff 4, ckpt_flags 4, ckpt_flags 1, cp_pack_total_block_count 4, cp_pack_start_sum 4,
                valid_node_count 4, valid_inode_count 4, next_free_nid 4, sit_ver_bitmap_bytesize 4,
                nat_ver_bitmap_bytesize 4, checksum_offset 4, elapsed_time 8, alloc_type 1, alloc_type 4),
            Kind::Bitmaps => &[(0, 1), (1, 1), (7, 1), (63, 1), (64, 1), (65, 1), (128, 1), (129, 1)],
            // Both journals, and the first entries.
            Kind::Compact => &[
                (0, 2),
                (2, 4),
                (6, 1),
                (7, 4),
                (11, 4),
                (15, 4),
                (20, 4),
                (24, 4),
                (507, 2),
                (509, 4),
                (513, 2),
                (515, 1),
                (579, 8),
                (587, 4),
                (591, 2),
                (1014, 4),
                (1018, 1),
                (1019, 2),
                (1021, 4),
                (1025, 1),
            ],
            Kind::Orphans => &[(0, 4), (4, 4), (4080, 4), (4084, 2), (4086, 2), (4088, 4), (4092, 4)],
            Kind::Sit => &[(0, 2), (0, 1), (1, 1), (2, 1), (3, 1), (33, 1), (65, 1), (66, 8)],
            Kind::Nat => &[(0, 1), (1, 4), (5, 4), (5, 1)],
            Kind::Summary => &[(0, 4), (4, 1), (5, 2)],
            // From the end of the entries: a journal of either kind, and the footer.
            Kind::SummaryRest => &[
                (0, 2),
                (2, 4),
                (6, 1),
                (7, 4),
                (11, 4),
                (15, 4),
                (20, 4),
                (6, 2),
                (8, 1),
                (72, 8),
                (80, 4),
                (507, 1),
                (508, 4),
            ],
            Kind::Inode => {
                fields!(Inode: i_mode 2, i_advise 1, i_inline 1, i_uid 4, i_gid 4, i_links 4, i_size 8, i_size 4,
                i_blocks 8, i_atime 8, i_mtime 8, i_mtime_nsec 4, i_generation 4, i_current_depth 4, i_xattr_nid 4,
                i_flags 4, i_pino 4, i_namelen 4, i_name 8, i_dir_level 1, i_ext 4, i_ext 8, i_addr 4, i_addr 8,
                i_addr 1, i_nid 4, i_nid 8)
            }
            Kind::Extra => {
                &[(0, 2), (0, 1), (2, 2), (2, 1), (4, 4), (8, 4), (12, 8), (20, 4), (24, 8), (32, 1), (33, 1), (34, 2)]
            }
            Kind::Slots => &[(0, 4)],
            Kind::Footer => &[(4072, 4), (4076, 4), (4080, 4), (4080, 1), (4084, 8), (4092, 4), (4072, 8)],
            // Among them both numbers of an inode at once, and two addresses, with all attributes or without.
            Kind::Chain => &[
                (4072, 4),
                (4076, 4),
                (4080, 4),
                (4080, 1),
                (4084, 8),
                (4092, 4),
                (4072, 8),
                (ADDRESSES + 40, 4),
                (ADDRESSES + 44, 4),
            ],
            Kind::XattrHeader => &[(0, 4), (4, 4), (8, 4)],
            Kind::XattrEntry => &[(0, 1), (1, 1), (2, 2), (2, 1), (4, 1)],
            Kind::Dentry => &[(0, 4), (4, 4), (8, 2), (8, 1), (10, 1)],
            Kind::Name => &[(0, 1), (1, 1), (0, 2), (7, 1), (0, 8)],
            Kind::SlotBitmap => &[(0, 1), (1, 1), (2, 1), (3, 1), (10, 1), (22, 1), (26, 1)],
        }
    }
}

/// Where a structure stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The block.
    pub block: u64,
    /// The offset in it.
    pub offset: usize,
    /// A block in which the same stands once more: the other superblock, the end of a pack.
    pub twin: Option<u64>,
}

/// The places of each kind, in the order of [`KINDS`].
#[derive(Debug, Default)]
pub struct Structures {
    places: Vec<Vec<Place>>,
    /// Blocks whose content has a meaning for the file system: all but the data of files, and what nothing leads to.
    pub metadata: Vec<u64>,
    /// Numbers that are addresses or NIDs at a border of something, or in use.
    pub numbers: Vec<u32>,
}

impl Structures {
    /// Those of a sound volume.
    ///
    /// # Panics
    /// If it is not sound.
    pub fn of(device: &SparseDevice) -> Structures {
        let superblock = SuperBlock::read(&device.block(0));
        let geometry = Geometry::from_superblock(&superblock).expect("a sound superblock");
        let mut found = Structures { places: vec![Vec::new(); KINDS.len()], ..Structures::default() };
        let used = device.used();
        found.add(Kind::Superblock, Place { block: 0, offset: OFFSET, twin: Some(1) });
        found.add(Kind::Superblock, Place { block: 1, offset: OFFSET, twin: None });
        let areas = [&geometry.cp_blkaddr, &geometry.sit_blkaddr, &geometry.nat_blkaddr, &geometry.ssa_blkaddr];
        let borders = areas.into_iter().chain([&geometry.main_blkaddr]).map(|addr| addr.0);
        found.numbers.extend(borders.chain([geometry.main_end().0, geometry.main_end().0 - 1, geometry.max_nid()]));
        let pack = Pack::newest(device, &geometry);
        found.pack(device, &geometry, &pack);
        let nodes = found.tables(device, &geometry, &pack);
        let main = u64::from(geometry.main_blkaddr.0);
        found.metadata.extend(used.iter().copied().filter(|at| *at < main));
        found.nodes(device, &geometry, &nodes, pack.version, used.into_iter().filter(|at| *at >= main));
        found.metadata.sort_unstable();
        found.metadata.dedup();
        found
    }

    fn add(&mut self, kind: Kind, place: Place) {
        let places = &mut self.places[kind as usize];
        if places.len() < MOST {
            places.push(place);
        }
    }

    fn at(&mut self, kind: Kind, block: u64, offset: usize) {
        self.add(kind, Place { block, offset, twin: None });
    }

    /// The places of a kind.
    pub fn places(&self, kind: Kind) -> &[Place] {
        &self.places[kind as usize]
    }

    fn pack(&mut self, device: &SparseDevice, geometry: &Geometry, pack: &Pack) {
        let (start, blocks) = (pack.start, pack.blocks);
        let twin = Some(start + blocks - 1);
        self.add(Kind::Checkpoint, Place { block: start, offset: 0, twin });
        self.at(Kind::Checkpoint, start, 0);
        self.at(Kind::Checkpoint, start + blocks - 1, 0);
        let other = u64::from(geometry.checkpoint_pack(u32::from(start == u64::from(geometry.cp_blkaddr.0))).0);
        self.at(Kind::Checkpoint, other, 0);
        self.add(Kind::Bitmaps, Place { block: start, offset: size_of::<CheckpointHeader>(), twin });
        for block in start + 1..start + pack.summaries {
            self.at(Kind::Orphans, block, 0);
        }
        for (index, block) in (start + pack.summaries..start + blocks - 1).enumerate() {
            if pack.is_compact && index == 0 {
                self.at(Kind::Compact, block, 0);
            } else {
                self.summaries(device, block);
            }
        }
    }

    /// The entries and the rest of a summary block.
    fn summaries(&mut self, device: &SparseDevice, block: u64) {
        let bytes = device.block(block);
        for (index, entry) in bytes[..3584].chunks(7).enumerate() {
            if entry[..4] != [0; 4] && (index < 8 || index % 61 == 0) {
                self.at(Kind::Summary, block, index * 7);
            }
        }
        self.at(Kind::SummaryRest, block, 3584);
    }

    /// SIT, NAT and SSA. Gives the blocks of all nodes that the checkpoint knows.
    fn tables(&mut self, device: &SparseDevice, geometry: &Geometry, pack: &Pack) -> HashMap<u32, u32> {
        let is_second = |bitmap: &[u8], index: u32| {
            bitmap.get(index as usize / 8).is_some_and(|byte| byte & 0x80 >> (index % 8) != 0)
        };
        let mut nodes = HashMap::new();
        let mut free = 0;
        for index in 0..geometry.sit_blocks() {
            let block = u64::from(geometry.sit_block(index, is_second(&pack.bitmaps.sit, index)).0);
            let bytes = device.block(block);
            for (number, entry) in SitBlock::read(&bytes).entries.iter().enumerate() {
                free += usize::from(entry.valid_blocks() == 0);
                if entry.valid_blocks() > 0 || free < FREE {
                    self.at(Kind::Sit, block, number * size_of::<sit::RawSitEntry>());
                }
                let segment = index * sit::ENTRIES_PER_BLOCK as u32 + number as u32;
                if entry.valid_blocks() > 0 && segment < geometry.main_segments {
                    self.summaries(device, geometry.summary_block(f2fs_format::SegmentNo(segment)).0.into());
                }
            }
            // All entries behind are free, on a volume that is mostly empty.
            if index > 64 {
                break;
            }
        }
        let mut free = 0;
        for index in 0..geometry.nat_blocks().min(64) {
            let block = u64::from(geometry.nat_block(index, is_second(&pack.bitmaps.nat, index)).0);
            let bytes = device.block(block);
            for (number, entry) in NatBlock::read(&bytes).entries.iter().enumerate() {
                let address = entry.block_addr.get();
                free += usize::from(address == 0);
                if address != 0 || free < FREE {
                    self.at(Kind::Nat, block, number * size_of::<nat::RawNatEntry>());
                    nodes.insert(index * nat::ENTRIES_PER_BLOCK as u32 + number as u32, address);
                }
            }
        }
        let first = device.block(pack.start + pack.summaries);
        let journal = if pack.is_compact {
            compact::parse(&[first], [0; 3]).expect("a block for no entry")[0].journal
        } else {
            SummaryBlock::read(&first).journal
        };
        for (nid, entry) in journal.nat_entries().into_iter().flatten() {
            nodes.insert(nid.0, entry.block_addr.get());
        }
        nodes
    }

    /// Nodes, of the checkpoint and of the chain behind it, and what hangs on them.
    fn nodes(
        &mut self,
        device: &SparseDevice,
        geometry: &Geometry,
        nodes: &HashMap<u32, u32>,
        version: u64,
        blocks: impl Iterator<Item = u64>,
    ) {
        for at in blocks {
            let bytes = device.block(at);
            let node = NodeBlock::read(&bytes);
            let current = nodes.get(&node.nid().0).is_some_and(|address| u64::from(*address) == at);
            let in_chain = node.footer.cp_ver.get() == version && (3..geometry.max_nid()).contains(&node.nid().0);
            if !current && !in_chain {
                continue;
            }
            self.metadata.push(at);
            self.at(Kind::Footer, at, 0);
            if in_chain {
                self.at(Kind::Chain, at, 0);
            }
            self.numbers.extend([at as u32, node.nid().0]);
            if node.is_inode() {
                self.inode(device, geometry, nodes, at, node);
            } else {
                for slot in [0, 1, 2, 60, 100, 509, 1016, 1017] {
                    self.at(Kind::Slots, at, 4 * slot);
                }
                let used = node.slots().iter().enumerate().filter(|(_, slot)| slot.get() != 0);
                used.step_by(97).for_each(|(slot, _)| self.at(Kind::Slots, at, 4 * slot));
            }
        }
        self.numbers.sort_unstable();
        self.numbers.dedup();
    }

    fn inode(
        &mut self,
        device: &SparseDevice,
        geometry: &Geometry,
        nodes: &HashMap<u32, u32>,
        at: u64,
        node: &NodeBlock,
    ) {
        let inode = node.inode();
        let layout = inode.layout(geometry.features);
        self.at(Kind::Inode, at, 0);
        if inode.i_inline & inline::EXTRA_ATTR != 0 {
            self.at(Kind::Extra, at, ADDRESSES);
        }
        let start = ADDRESSES + 4 * (layout.extra_words + INLINE_RESERVED_WORDS);
        if inode.i_inline & inline::DENTRY != 0 {
            let size = layout.inline_data_size();
            let slots = size * 8 / ((ENTRY_SIZE + SLOT_LEN) * 8 + 1);
            let first = size - slots * (ENTRY_SIZE + SLOT_LEN);
            self.dentries(at, start, slots, start + first, &node.as_block()[..]);
        } else if inode.file_type() == mode::DIRECTORY {
            for address in node.addresses(geometry.features).filter(|address| geometry.in_main(*address)).take(8) {
                let bytes = device.block(address.0.into());
                self.metadata.push(address.0.into());
                self.numbers.push(address.0);
                self.dentries(address.0.into(), 0, SLOTS_PER_BLOCK, BITMAP_SIZE + RESERVED_SIZE, &bytes);
            }
            self.directory_nodes(device, geometry, nodes, inode);
        }
        // Attributes: in the inode, and from there on in a node of their own.
        let inline_at = ADDRESSES + 4 * (ADDRS_PER_INODE - layout.xattr_words);
        let inline = inode.inline_xattr(geometry.features);
        let own = inode.i_xattr_nid.get();
        let node_at = nodes.get(&own).filter(|_| own != 0).map(|address| u64::from(*address));
        let body = node_at.map(|at| device.block(at));
        let body = body.as_ref().map(|block| &NodeBlock::read(block).body);
        let Ok(buffer) = xattr::XattrBuffer::read(inline, body) else { return };
        let mut place = |kind, offset: usize| match (offset.checked_sub(inline.len()), node_at) {
            (None, _) => self.at(kind, at, inline_at + offset),
            (Some(offset), Some(node)) => self.at(kind, node, offset),
            _ => {}
        };
        if !buffer.is_empty() {
            place(Kind::XattrHeader, 0);
        }
        buffer.entries().flatten().for_each(|entry| place(Kind::XattrEntry, entry.offset));
    }

    /// Dentry blocks that direct nodes of a directory name: they are metadata, but no places.
    fn directory_nodes(
        &mut self,
        device: &SparseDevice,
        geometry: &Geometry,
        nodes: &HashMap<u32, u32>,
        inode: &Inode,
    ) {
        for nid in inode.i_nid.iter().map(|nid| nid.get()).filter(|nid| *nid != 0).take(2) {
            let Some(at) = nodes.get(&nid) else { continue };
            let bytes = device.block((*at).into());
            let addresses = NodeBlock::read(&bytes).slots().iter().map(|slot| BlockAddr(slot.get()));
            self.metadata.extend(addresses.filter(|at| geometry.in_main(*at)).map(|at| u64::from(at.0)));
        }
    }

    fn dentries(&mut self, block: u64, bitmap: usize, slots: usize, first: usize, bytes: &[u8]) {
        self.at(Kind::SlotBitmap, block, bitmap);
        let names = first + slots * ENTRY_SIZE;
        let is_used = |slot: usize| bytes[bitmap + slot / 8] & 1 << (slot % 8) != 0;
        for slot in (0..slots).filter(|slot| is_used(*slot)) {
            self.at(Kind::Dentry, block, first + slot * ENTRY_SIZE);
            self.at(Kind::Name, block, names + slot * SLOT_LEN);
        }
    }
}

/// The pack that counts.
struct Pack {
    start: u64,
    blocks: u64,
    /// Where its summaries begin.
    summaries: u64,
    is_compact: bool,
    /// As the nodes behind it carry it.
    version: u64,
    bitmaps: VersionBitmaps,
}

impl Pack {
    fn newest(device: &SparseDevice, geometry: &Geometry) -> Pack {
        let packs = [0, 1].map(|number| u64::from(geometry.checkpoint_pack(number).0));
        let sound = packs.into_iter().filter_map(|start| {
            let block = CheckpointBlock::read(&device.block(start));
            block.verify().is_ok().then_some((block.header.checkpoint_ver.get(), start, block))
        });
        let (_, start, block) = sound.max_by_key(|(version, ..)| *version).expect("a sound pack");
        let payload: Vec<_> = (1..=u64::from(geometry.cp_payload)).map(|at| device.block(start + at)).collect();
        let header = &block.header;
        Pack {
            start,
            blocks: header.cp_pack_total_block_count.get().into(),
            summaries: header.cp_pack_start_sum.get().into(),
            is_compact: header.ckpt_flags.get() & f2fs_format::checkpoint::flags::COMPACT_SUM != 0,
            version: block.footer_version(),
            bitmaps: VersionBitmaps::read(&block, &payload, geometry).expect("sound bitmaps"),
        }
    }
}

//! The record of one sync: the nodes of a file that changed since the checkpoint, without their zeros, and perhaps data
//! that they name. A record of names has the nodes of several files, and the names that lead to them.
//!
//! ```text
//!  0        8        12      16      20       24
//!  +--------+--------+-------+-------+--------+--------+-----+--------+-----+-----------------------+--------------------+
//!  | version| format | nodes | names | blocks | node   | ... | name   | ... | address of each block | each block of data |
//!  +--------+--------+-------+-------+--------+--------+-----+--------+-----+-----------------------+--------------------+
//!
//!  node:
//!  0     4     8      12     20       28
//!  +-----+-----+------+------+--------+-----------------------------------------------------------------+
//!  | nid | ino | flag | base | pieces | the pieces of 64 bytes that are not zero, or differ from the base |
//!  +-----+-----+------+------+--------+-----------------------------------------------------------------+
//!
//!  name:
//!  0           4     8     9
//!  +-----------+-----+-----+------------+
//!  | directory | ino | len | its bytes  |   ino 0: nothing has the name any more
//!  +-----------+-----+-----+------------+
//! ```
//! All numbers are little-endian. *Version* is the footer version of the checkpoint that the nodes build on. *Flag* is
//! that of the node's footer: offset and marks. *Base* is the stamp of the record before this one that holds the node;
//! 0: the node stands here as a whole. Bit `i` of *pieces* says that the 64 bytes from `64 * i` on follow; the
//! last piece has 40 bytes, up to the footer. The inode comes last and carries the fsync mark, as in the chain of nodes
//! that roll-forward follows.

use f2fs_format::bits::is_zero;
use f2fs_format::node::{BODY_SIZE, NodeBlock};
use f2fs_format::{BlockAddr, Nid, RawBlock};
use f2fs_sync::protocol_step;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::bases::Bases;
use super::piece::{PIECE, PIECES, place};

/// The format that this library writes.
const FORMAT: u32 = 4;
/// Pieces that are looked at together.
const GROUP: usize = 8;
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RecordHead {
    version: U64,
    format: U32,
    nodes: U32,
    names: U32,
    blocks: U32,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct NodeHead {
    nid: U32,
    ino: U32,
    flag: U32,
    base: U64,
    pieces: U64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct NameHead {
    directory: U32,
    ino: U32,
    len: u8,
}

/// Bytes of a node's head.
const NODE_HEAD: usize = size_of::<NodeHead>();

/// Puts a record together in a buffer that is used again and again.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    bytes: &'a mut Vec<u8>,
    version: u64,
    nodes: u32,
    names: u32,
    blocks: u32,
}

impl<'a> Writer<'a> {
    /// Begins a record of nodes that build on the checkpoint with this footer version.
    pub(crate) fn new(bytes: &'a mut Vec<u8>, version: u64) -> Writer<'a> {
        bytes.clear();
        let none = U32::ZERO;
        let head =
            RecordHead { version: version.into(), format: FORMAT.into(), nodes: none, names: none, blocks: none };
        bytes.extend_from_slice(head.as_bytes());
        Writer { bytes, version, nodes: 0, names: 0, blocks: 0 }
    }

    /// Adds a node as it is, with these marks in place of its own.
    pub(crate) fn node(&mut self, block: &NodeBlock, marks: u32) {
        self.put(block, marks, 0, |_, bytes| is_zero(bytes));
    }

    /// The same, for a record that follows those of `bases`: what differs from the last one is enough.
    pub(crate) fn node_upon(&mut self, block: &NodeBlock, marks: u32, bases: &mut Bases) {
        if let Some(base) = bases.of(block)
            && let Some(stamp) = base.stamp_of(block, self.version)
        {
            let pieces = self.put(block, marks, stamp, |at, bytes| base.has(at, bytes));
            base.take(block, pieces);
        } else {
            let pieces = self.put(block, marks, 0, |_, bytes| is_zero(bytes));
            bases.keep(block, self.version, pieces);
        }
    }

    /// Adds the pieces of a node that are not to be left out. Those of a group are looked at one by one if not all of it
    /// is. Gives a bit for each that was added.
    #[inline]
    fn put(&mut self, block: &NodeBlock, marks: u32, base: u64, leaves_out: impl Fn(usize, &[u8]) -> bool) -> u64 {
        let mut footer = block.footer;
        footer.flag = (footer.flag.get() & !(super::FSYNC | super::DENTRY) | marks).into();
        let head_at = self.bytes.len();
        let (nid, ino, flag) = (footer.nid, footer.ino, footer.flag);
        let mut head = NodeHead { nid, ino, flag, base: base.into(), pieces: 0.into() };
        self.bytes.extend_from_slice(head.as_bytes());
        self.bytes.reserve(BODY_SIZE);
        let mut pieces = 0_u64;
        for (group, bytes) in block.body.chunks(GROUP * PIECE).enumerate() {
            let begin = group * GROUP * PIECE;
            if leaves_out(begin, bytes) {
                continue;
            }
            for (number, piece) in bytes.chunks(PIECE).enumerate() {
                if !leaves_out(begin + number * PIECE, piece) {
                    pieces |= 1 << (group * GROUP + number);
                    self.bytes.extend_from_slice(piece);
                }
            }
        }
        head.pieces = pieces.into();
        self.bytes[head_at..head_at + NODE_HEAD].copy_from_slice(head.as_bytes());
        self.nodes += 1;
        pieces
    }

    /// Adds a name, behind all nodes.
    pub(crate) fn name(&mut self, entry: &NameEntry) {
        let ino = entry.bound.unwrap_or(Nid::NULL);
        let len = entry.name.len().min(usize::from(u8::MAX));
        let head = NameHead { directory: entry.directory.into(), ino: ino.into(), len: len as u8 };
        self.bytes.extend_from_slice(head.as_bytes());
        self.bytes.extend_from_slice(&entry.name[..len]);
        self.names += 1;
    }

    /// Whether there is anything in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes == 0 && self.names == 0
    }

    /// Bytes until now.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds where a block of data belongs, behind all nodes and names. The blocks themselves follow the record, in the same
    /// order.
    pub(crate) fn block(&mut self, addr: BlockAddr) {
        self.bytes.extend_from_slice(&addr.0.to_le_bytes());
        self.blocks += 1;
    }

    /// The record, without the blocks.
    pub(crate) fn finish(self) -> &'a [u8] {
        if let Ok((head, _)) = RecordHead::mut_from_prefix(self.bytes.as_mut_slice()) {
            head.nodes = self.nodes.into();
            head.names = self.names.into();
            head.blocks = self.blocks.into();
        }
        self.bytes
    }
}

/// A name that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameEntry {
    pub(crate) directory: Nid,
    pub(crate) name: Vec<u8>,
    /// The inode that it leads to; `None`: the name is gone.
    pub(crate) bound: Option<Nid>,
}

/// A node of a record, as it lies there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PackedNode {
    pub(crate) nid: Nid,
    pub(crate) ino: Nid,
    pub(crate) flag: u32,
    /// The stamp of the record whose node this one changes; 0: it is whole.
    pub(crate) base: u64,
    pieces: u64,
    bytes: Box<[u8]>,
}

impl PackedNode {
    /// The node block. Of a node that is not whole, what stands here.
    pub(crate) fn unpack(&self) -> Box<NodeBlock> {
        let mut block = NodeBlock::new_box();
        block.footer.nid = self.nid.into();
        block.footer.ino = self.ino.into();
        block.footer.flag = self.flag.into();
        self.pieces().for_each(|(piece, bytes)| block.body[place(piece)].copy_from_slice(bytes));
        block
    }

    /// This node laid over the one that it changes.
    pub(crate) fn upon(self, base: &PackedNode) -> PackedNode {
        let mut pieces: [Option<&[u8]>; PIECES] = [None; PIECES];
        base.pieces().for_each(|(piece, bytes)| pieces[piece] = Some(bytes));
        protocol_step!(
            "journal_change_not_laid_over",
            self.pieces().for_each(|(piece, bytes)| pieces[piece] = Some(bytes))
        );
        let bytes = pieces.iter().flatten().copied().flatten().copied().collect();
        PackedNode { base: 0, pieces: base.pieces | self.pieces, bytes, ..self }
    }

    /// The number of each piece, and its bytes.
    fn pieces(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let mut rest = &*self.bytes;
        (0..PIECES).filter(|piece| self.pieces & 1 << piece != 0).map_while(move |piece| {
            let (bytes, behind) = rest.split_at_checked(place(piece).len())?;
            rest = behind;
            Some((piece, bytes))
        })
    }
}

/// A record that was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Content<'a> {
    /// The footer version of the checkpoint that it builds on.
    pub(crate) version: u64,
    pub(crate) nodes: Vec<PackedNode>,
    pub(crate) names: Vec<NameEntry>,
    addrs: &'a [U32],
    data: &'a [RawBlock],
}

impl Content<'_> {
    /// Each block of data, and where it belongs.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (BlockAddr, &RawBlock)> {
        self.addrs.iter().map(|addr| BlockAddr(addr.get())).zip(self.data)
    }
}

/// Reads a record; `None` if the bytes are none.
pub(crate) fn read(payload: &[u8]) -> Option<Content<'_>> {
    let (head, mut rest) = RecordHead::read_from_prefix(payload).ok()?;
    if head.format.get() != FORMAT || (head.nodes.get() == 0 && head.names.get() == 0) {
        return None;
    }
    // No more than there are bytes for.
    let count = usize::try_from(head.nodes.get()).ok().filter(|count| *count <= rest.len() / NODE_HEAD)?;
    let mut nodes = Vec::with_capacity(count);
    for _ in 0..count {
        let (node, behind) = NodeHead::read_from_prefix(rest).ok()?;
        let pieces = node.pieces.get();
        let bytes = (0..PIECES).filter(|piece| pieces & 1 << piece != 0).map(|piece| place(piece).len()).sum();
        let (bytes, behind) = behind.split_at_checked(bytes)?;
        nodes.push(PackedNode {
            nid: node.nid.into(),
            ino: node.ino.into(),
            flag: node.flag.get(),
            base: node.base.get(),
            pieces,
            bytes: bytes.into(),
        });
        rest = behind;
    }
    let count = usize::try_from(head.names.get()).ok().filter(|count| *count <= rest.len() / size_of::<NameHead>())?;
    let mut names = Vec::with_capacity(count);
    for _ in 0..count {
        let (head, behind) = NameHead::read_from_prefix(rest).ok()?;
        let (name, behind) = behind.split_at_checked(usize::from(head.len))?;
        let ino = Nid::from(head.ino);
        let bound = (!ino.is_null()).then_some(ino);
        names.push(NameEntry { directory: head.directory.into(), name: name.to_vec(), bound });
        rest = behind;
    }
    let blocks = usize::try_from(head.blocks.get()).ok()?;
    let (addrs, data) = <[U32]>::ref_from_prefix_with_elems(rest, blocks).ok()?;
    let data = <[RawBlock]>::ref_from_bytes_with_elems(data, blocks).ok()?;
    Some(Content { version: head.version.get(), nodes, names, addrs, data })
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn block(nid: u32, fill: &[usize]) -> Box<NodeBlock> {
        let mut block = NodeBlock::new_box();
        block.footer.nid = nid.into();
        block.footer.ino = 7.into();
        block.footer.flag = (9 << 3 | 1).into();
        for at in fill {
            block.body[*at] = (*at % 255) as u8 + 1;
        }
        block
    }

    #[test]
    fn nodes_come_back_as_they_were() {
        let nodes =
            [block(8, &[]), block(9, &[0, 63, 64, BODY_SIZE - 1]), block(7, &(0..BODY_SIZE).collect::<Vec<_>>())];
        let mut bytes = vec![1; 10];
        let mut writer = Writer::new(&mut bytes, 0x1234_5678_9abc);
        for node in &nodes {
            writer.node(node, if node.is_inode() { super::super::FSYNC } else { 0 });
        }
        let entry = |name: &[u8], bound| NameEntry { directory: Nid(3), name: name.to_vec(), bound };
        let names = [entry(b"here", Some(Nid(7))), entry(&[b'x'; 255], None)];
        names.iter().for_each(|name| writer.name(name));
        writer.block(BlockAddr(900));
        writer.block(BlockAddr(700));
        let data = [[5; 4096], [6; 4096]];
        let record = [writer.finish(), data.as_flattened()].concat();
        let content = read(&record).unwrap();
        let blocks: Vec<_> = content.blocks().map(|(addr, block)| (addr.0, block[7])).collect();
        assert_eq!(blocks, [(900, 5), (700, 6)]);
        assert_eq!(content.names, names);
        let read_back = content.nodes;
        assert_eq!((content.version, read_back.len()), (0x1234_5678_9abc, 3));
        for (packed, node) in read_back.iter().zip(&nodes) {
            let unpacked = packed.unpack();
            assert_eq!(unpacked.body, node.body);
            assert_eq!((unpacked.footer.nid, unpacked.footer.node_offset()), (node.footer.nid, 9));
            assert_eq!(unpacked.footer.has_mark(super::super::FSYNC), node.is_inode());
        }
        for len in 0..record.len() {
            assert_eq!(read(&record[..len]), None, "cut to {len} bytes");
        }
        assert_eq!(read(&[record.as_slice(), &[0]].concat()), None);
    }

    #[test]
    fn nodes_upon_others_are_what_changed() {
        let mut bases = Bases::default();
        let mut all = block(7, &(0..BODY_SIZE).collect::<Vec<_>>());
        let record = |bases: &mut Bases, block: &NodeBlock, version| {
            let mut bytes = Vec::new();
            let mut writer = Writer::new(&mut bytes, version);
            bases.begin();
            writer.node_upon(block, 0, bases);
            let record = writer.finish();
            let node = read(record).unwrap().nodes.remove(0);
            (node, record.len())
        };
        let (first, len) = record(&mut bases, &all, 1);
        assert!(first.base == 0 && len > BODY_SIZE);
        // Its record did not become durable.
        assert_eq!(record(&mut bases, &all, 1).0.base, 0);
        bases.settle(5);
        all.body[..64].fill(0);
        all.body[BODY_SIZE - 1] = 77;
        let (second, len) = record(&mut bases, &all, 1);
        assert_eq!((second.base, len), (5, size_of::<RecordHead>() + NODE_HEAD + 64 + 40));
        assert_eq!(second.upon(&first).unpack().body, all.body);
        // Nor did this one: the node is whole again, and so it is in another epoch, and behind a record of names.
        assert_eq!(record(&mut bases, &all, 1).0.base, 0);
        bases.settle(6);
        assert_eq!(record(&mut bases, &all, 2).0.base, 0);
        bases.settle(7);
        assert_eq!(record(&mut bases, &all, 2).0.base, 7);
        bases.settle(8);
        bases.forget(Nid(7));
        assert_eq!(record(&mut bases, &all, 2).0.base, 0);
        // Pieces of a base that are zero, and some that become so, at both ends.
        let few = block(7, &[0, 100, BODY_SIZE - 1]);
        let (mut whole, _) = record(&mut bases, &few, 2);
        for (stamp, fill) in
            [(9, vec![1, 600]), (10, vec![600, BODY_SIZE - 2]), (11, vec![]), (12, (0..BODY_SIZE).collect())]
        {
            bases.settle(stamp);
            let next = block(7, &fill);
            let (changed, _) = record(&mut bases, &next, 2);
            assert_eq!(changed.base, stamp);
            whole = changed.upon(&whole);
            assert_eq!(whole.unpack().body, next.body);
        }
    }

    /// Nothing of a node stays that had its place before, and nothing of a record that did not become durable.
    #[test]
    fn a_base_is_the_node_that_its_record_holds() {
        let mut bases = Bases::default();
        let record = |bases: &mut Bases, blocks: &[&NodeBlock]| {
            let mut bytes = Vec::new();
            let mut writer = Writer::new(&mut bytes, 1);
            bases.begin();
            blocks.iter().for_each(|block| writer.node_upon(block, 0, bases));
            read(writer.finish()).unwrap().nodes
        };
        let inode = |ino: u32, fill: &[usize]| {
            let mut inode = block(ino, fill);
            inode.footer.ino = ino.into();
            inode
        };
        let everything: Vec<_> = (0..BODY_SIZE).collect();
        record(&mut bases, &[&inode(7, &everything)]);
        bases.settle(5);
        let few = record(&mut bases, &[&inode(8, &[3])]).remove(0);
        bases.settle(6);
        let full = inode(8, &everything);
        let changed = record(&mut bases, &[&full]).remove(0);
        assert_eq!((changed.base, changed.upon(&few).unpack().body == full.body), (6, true));

        record(&mut bases, &[&block(9, &[1]), &inode(7, &[1])]);
        // It was not written; one of another file comes that has no such node.
        record(&mut bases, &[&inode(8, &[1])]);
        bases.settle(7);
        assert_eq!(record(&mut bases, &[&block(9, &[1])]).remove(0).base, 0);
    }

    #[test]
    fn a_damaged_count_takes_no_memory() {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, 1);
        writer.node(&block(8, &[]), 0);
        let one = writer.finish().to_vec();
        let changed = |change: fn(&mut RecordHead)| {
            let mut record = one.clone();
            let Ok((head, _)) = RecordHead::mut_from_prefix(record.as_mut_slice()) else { panic!("a record") };
            change(head);
            read(&record).is_some()
        };
        assert!(changed(|_| ()) && !changed(|head| head.format = U32::new(FORMAT + 1)), "another format");
        assert!(read(Writer::new(&mut Vec::new(), 1).finish()).is_none(), "a record of nothing");
        let record = [one.as_slice(), &[0; 100_000]].concat();
        for (nodes, names) in [(1_000_000, 0), (0, 500_000)] {
            let mut record = record.clone();
            let Ok((head, _)) = RecordHead::mut_from_prefix(record.as_mut_slice()) else { panic!("a record") };
            (head.nodes, head.names) = (U32::new(nodes), U32::new(names));
            let memory = allocation_counter::measure(|| assert_eq!(read(&record), None));
            assert!(memory.bytes_max < 10 << 20, "{} bytes", memory.bytes_max);
        }
    }
}

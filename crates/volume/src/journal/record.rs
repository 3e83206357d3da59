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
//!  0     4     8      12       20
//!  +-----+-----+------+--------+-----------------------------------------+
//!  | nid | ino | flag | pieces | the pieces of 64 bytes that are not zero |
//!  +-----+-----+------+--------+-----------------------------------------+
//!
//!  name:
//!  0           4     8     9
//!  +-----------+-----+-----+------------+
//!  | directory | ino | len | its bytes  |   ino 0: nothing has the name any more
//!  +-----------+-----+-----+------------+
//! ```
//! All numbers are little-endian. *Version* is the footer version of the checkpoint that the nodes build on. *Flag* is
//! that of the node's footer: offset and marks. Bit `i` of *pieces* says that the 64 bytes from `64 * i` on follow; the
//! last piece has 40 bytes, up to the footer. The inode comes last and carries the fsync mark, as in the chain of nodes
//! that roll-forward follows.

use core::ops::Range;

use f2fs_format::bits::is_zero;
use f2fs_format::node::{BODY_SIZE, NodeBlock};
use f2fs_format::{BlockAddr, Nid, RawBlock};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The format that this library writes.
const FORMAT: u32 = 3;
/// Bytes of a piece: a line of the processor's cache.
const PIECE: usize = 64;
/// Pieces that are looked at together.
const GROUP: usize = 8;
/// Pieces of a node's body. There is a bit for each.
const PIECES: usize = BODY_SIZE.div_ceil(PIECE);

const _: () = assert!(PIECES == 64);

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

fn place(piece: usize) -> Range<usize> {
    piece * PIECE..((piece + 1) * PIECE).min(BODY_SIZE)
}

/// Puts a record together in a buffer that is used again and again.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    bytes: &'a mut Vec<u8>,
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
        Writer { bytes, nodes: 0, names: 0, blocks: 0 }
    }

    /// Adds a node as it is, with these marks in place of its own.
    pub(crate) fn node(&mut self, block: &NodeBlock, marks: u32) {
        let mut footer = block.footer;
        footer.flag = (footer.flag.get() & !(super::FSYNC | super::DENTRY) | marks).into();
        let at = self.bytes.len();
        let mut head = NodeHead { nid: footer.nid, ino: footer.ino, flag: footer.flag, pieces: 0.into() };
        self.bytes.extend_from_slice(head.as_bytes());
        self.bytes.reserve(BODY_SIZE);
        let mut pieces = 0_u64;
        // Most of an inode is zero: pieces are looked at one by one where there is anything.
        for (group, bytes) in block.body.chunks(GROUP * PIECE).enumerate().filter(|(_, bytes)| !is_zero(bytes)) {
            let (whole, last) = bytes.as_chunks::<PIECE>();
            for (at, piece) in whole.iter().enumerate().filter(|(_, piece)| !is_zero(*piece)) {
                pieces |= 1 << (group * GROUP + at);
                self.bytes.extend_from_slice(piece);
            }
            if !is_zero(last) {
                pieces |= 1 << (PIECES - 1);
                self.bytes.extend_from_slice(last);
            }
        }
        head.pieces = pieces.into();
        self.bytes[at..at + NODE_HEAD].copy_from_slice(head.as_bytes());
        self.nodes += 1;
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
    pieces: u64,
    bytes: Box<[u8]>,
}

impl PackedNode {
    /// The node block.
    pub(crate) fn unpack(&self) -> Box<NodeBlock> {
        let mut block = NodeBlock::new_box();
        block.footer.nid = self.nid.into();
        block.footer.ino = self.ino.into();
        block.footer.flag = self.flag.into();
        let mut rest = &*self.bytes;
        for piece in (0..PIECES).filter(|piece| self.pieces & 1 << piece != 0) {
            let to = &mut block.body[place(piece)];
            let Some((from, behind)) = rest.split_at_checked(to.len()) else { break };
            to.copy_from_slice(from);
            rest = behind;
        }
        block
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
}

//! The tree from a file's blocks to the address slots that hold them.
//!
//! ```text
//! inode ── address slots                                      blocks 0 .. A
//!   ├─ i_nid[0], [1]   direct node  (offsets 1, 2)            D = 1018 blocks each
//!   ├─ i_nid[2], [3]   indirect node (3, 1022)  ─ 1018 direct nodes each
//!   └─ i_nid[4]        double indirect (2041)   ─ 1018 indirect ─ 1018 direct nodes each
//! ```
//!
//! A is [`InodeLayout::address_count`](crate::inode::InodeLayout::address_count). In a compressed file no cluster lies
//! in two nodes: A and D are multiples of the cluster's size, and slots at the end of a node stay empty ([`Addresses`],
//! `addrs_per_page` in `fs/f2fs/inode.c`). Every node of a file has a *node offset*: its place in a walk of the tree
//! that visits parents before children. Footers carry it, and with it a stray node finds its blocks again. Source:
//! `get_node_path` in `fs/f2fs/node.c`, `f2fs_start_bidx_of_node` in `fs/f2fs/gc.c`, `IS_DNODE` in `fs/f2fs/node.h`.

use crate::node::{ADDRS_PER_BLOCK, XATTR_NODE_OFFSET};

/// Slots of `i_nid` in an inode.
pub const INODE_CHILDREN: usize = 5;
/// Node offset of the first indirect node.
pub const FIRST_INDIRECT: u32 = 3;
/// Node offset of the second indirect node.
pub const SECOND_INDIRECT: u32 = FIRST_INDIRECT + 1 + WIDTH;
/// Node offset of the double indirect node.
pub const DOUBLE_INDIRECT: u32 = SECOND_INDIRECT + 1 + WIDTH;
/// The first node offset that no file has (the xattr node's aside).
pub const END: u32 = DOUBLE_INDIRECT + 1 + WIDTH * (WIDTH + 1);

/// Children of an indirect node.
const WIDTH: u32 = ADDRS_PER_BLOCK as u32;

/// Addresses that each node of one file holds. A number is the inode's, with full direct nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Addresses in the inode.
    pub inode: u16,
    /// Addresses in a direct node: [`ADDRS_PER_BLOCK`], or fewer in a compressed file.
    pub direct: u16,
}

impl From<usize> for Addresses {
    fn from(inode: usize) -> Addresses {
        Addresses { inode: inode as u16, direct: ADDRS_PER_BLOCK as u16 }
    }
}

impl Addresses {
    /// File blocks below one direct node.
    fn below_direct(self) -> u64 {
        u64::from(self.direct)
    }

    /// File blocks below one indirect node.
    fn below_indirect(self) -> u64 {
        self.below_direct() * u64::from(WIDTH)
    }

    /// File blocks below the double indirect node.
    fn below_double(self) -> u64 {
        self.below_indirect() * u64::from(WIDTH)
    }
}

/// Blocks that a file can have whose nodes hold so many addresses: indices from 0 up to below this.
#[must_use]
pub fn max_file_blocks(addresses: impl Into<Addresses>) -> u64 {
    let addresses = addresses.into();
    let direct = 2 * addresses.below_direct();
    u64::from(addresses.inode) + direct + 2 * addresses.below_indirect() + addresses.below_double()
}

/// The kind of a node, by its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// The inode itself: offset 0.
    Inode,
    /// Holds block addresses.
    Direct,
    /// Holds NIDs of direct nodes.
    Indirect,
    /// Holds NIDs of indirect nodes.
    DoubleIndirect,
    /// Holds extended attributes.
    Xattr,
}

impl NodeKind {
    /// The kind of the node with this offset; `None` if no file has such a node.
    #[must_use]
    pub const fn of(node_offset: u32) -> Option<NodeKind> {
        Some(match node_offset {
            0 => NodeKind::Inode,
            XATTR_NODE_OFFSET => NodeKind::Xattr,
            FIRST_INDIRECT | SECOND_INDIRECT => NodeKind::Indirect,
            DOUBLE_INDIRECT => NodeKind::DoubleIndirect,
            END.. => return None,
            offset if offset > DOUBLE_INDIRECT && (offset - DOUBLE_INDIRECT - 1).is_multiple_of(WIDTH + 1) => {
                NodeKind::Indirect
            }
            _ => NodeKind::Direct,
        })
    }

    /// Whether such a node goes to the logs of direct nodes (inodes and xattr nodes do, `IS_DNODE`).
    #[must_use]
    pub const fn is_direct(self) -> bool {
        matches!(self, NodeKind::Inode | NodeKind::Direct | NodeKind::Xattr)
    }

    /// Whether such a node holds block addresses of file data.
    #[must_use]
    pub const fn holds_addresses(self) -> bool {
        matches!(self, NodeKind::Inode | NodeKind::Direct)
    }
}

/// The way from an inode to the slot of one file block.
///
/// `slots()[0]` is an index into `i_nid` (or the address slot itself when the level is 0), the slots after it are
/// indices into indirect nodes, and the last one is the address slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodePath {
    level: usize,
    slots: [u16; 4],
    node_offsets: [u32; 4],
    /// Addresses of a direct node.
    direct: u16,
}

impl NodePath {
    /// The way to file block `block` when the nodes hold so many addresses; `None` beyond [`max_file_blocks`].
    #[must_use]
    pub fn to_block(block: u64, addresses: impl Into<Addresses>) -> Option<NodePath> {
        let addresses = addresses.into();
        let mut path = NodePath { level: 0, slots: [0; 4], node_offsets: [0; 4], direct: addresses.direct };
        let Some(mut rest) = block.checked_sub(addresses.inode.into()) else {
            path.slots[0] = block as u16;
            return Some(path);
        };
        for child in 0..2 {
            if rest < addresses.below_direct() {
                path.push(child, 1 + u32::from(child));
                path.slots[1] = rest as u16;
                return Some(path);
            }
            rest -= addresses.below_direct();
        }
        let indirect = addresses.below_indirect();
        for (child, offset) in [(2, FIRST_INDIRECT), (3, SECOND_INDIRECT)] {
            if rest < indirect {
                path.push(child, offset);
                path.push_direct(offset, rest);
                return Some(path);
            }
            rest -= indirect;
        }
        if rest >= addresses.below_double() {
            return None;
        }
        path.push(4, DOUBLE_INDIRECT);
        let index = (rest / indirect) as u16;
        let offset = DOUBLE_INDIRECT + 1 + u32::from(index) * (WIDTH + 1);
        path.push(index, offset);
        path.push_direct(offset, rest % indirect);
        Some(path)
    }

    /// One node further down: slot `slot` of the node that the path has reached leads to the node with offset `offset`.
    fn push(&mut self, slot: u16, offset: u32) {
        self.slots[self.level] = slot;
        self.level += 1;
        self.node_offsets[self.level] = offset;
    }

    /// From the indirect node with offset `indirect` to block `rest` below it.
    fn push_direct(&mut self, indirect: u32, rest: u64) {
        let direct = u64::from(self.direct);
        let index = (rest / direct) as u16;
        self.push(index, indirect + 1 + u32::from(index));
        self.slots[self.level] = (rest % direct) as u16;
    }

    /// Nodes below the inode on the way: 0 (the inode holds the address) to 3.
    #[must_use]
    pub fn level(&self) -> usize {
        self.level
    }

    /// The slot to take in each node on the way, from the inode down: `level() + 1` of them.
    #[must_use]
    pub fn slots(&self) -> &[u16] {
        &self.slots[..=self.level]
    }

    /// The node offset of each node on the way, from the inode (0) down: `level() + 1` of them.
    #[must_use]
    pub fn node_offsets(&self) -> &[u32] {
        &self.node_offsets[..=self.level]
    }

    /// The index into `i_nid` of the first node on the way; `None` when the inode holds the address.
    #[must_use]
    pub fn inode_child(&self) -> Option<usize> {
        (self.level > 0).then_some(usize::from(self.slots[0]))
    }

    /// How many blocks, from this one on, lie below the node at `level` of the way, 1 to [`level`](Self::level): all of
    /// a hole, if that node does not exist (`f2fs_get_next_page_offset`). 1 at any other level.
    #[must_use]
    pub fn blocks_below(&self, level: usize) -> u64 {
        let below = self.slots().get(level..).filter(|_| level > 0).unwrap_or_default();
        let Some((last, nodes)) = below.split_last() else { return 1 };
        // Slots of indirect nodes lead to whole direct nodes; the last slot is of one of these.
        let step =
            |(all, at): (u64, u64), slot: &u16| (all * u64::from(WIDTH), at * u64::from(WIDTH) + u64::from(*slot));
        let (direct_nodes, before) = nodes.iter().fold((1, 0), step);
        let direct = u64::from(self.direct);
        direct_nodes * direct - (before * direct + u64::from(*last))
    }

    /// The address slot, in the last node of the way.
    #[must_use]
    pub fn address_slot(&self) -> usize {
        usize::from(self.slots[self.level])
    }

    /// The node offset of the last node of the way, which holds the address.
    #[must_use]
    pub fn last_node_offset(&self) -> u32 {
        self.node_offsets[self.level]
    }
}

/// The file block of address slot 0 of a node (`f2fs_start_bidx_of_node`); `None` if the node holds no addresses.
#[must_use]
pub fn first_block(node_offset: u32, addresses: impl Into<Addresses>) -> Option<u64> {
    let addresses = addresses.into();
    let direct_index = match NodeKind::of(node_offset)? {
        NodeKind::Inode => return Some(0),
        NodeKind::Direct => match node_offset {
            1 | 2 => node_offset - 1,
            // Two direct nodes, then one indirect node in front of every 1018 direct ones.
            FIRST_INDIRECT..DOUBLE_INDIRECT => node_offset - 2 - (node_offset - FIRST_INDIRECT - 1) / (WIDTH + 1),
            _ => node_offset - 5 - (node_offset - DOUBLE_INDIRECT - 1) / (WIDTH + 1),
        },
        NodeKind::Indirect | NodeKind::DoubleIndirect | NodeKind::Xattr => return None,
    };
    Some(u64::from(addresses.inode) + u64::from(direct_index) * addresses.below_direct())
}

/// The node offset of the child in slot `slot` of a node (of `i_nid` for the inode); `None` if there is no such slot,
/// or the node has no children.
#[must_use]
pub fn child(node_offset: u32, slot: usize) -> Option<u32> {
    let index = u32::try_from(slot).ok()?;
    match NodeKind::of(node_offset)? {
        NodeKind::Inode => [1, 2, FIRST_INDIRECT, SECOND_INDIRECT, DOUBLE_INDIRECT].get(slot).copied(),
        NodeKind::Indirect if index < WIDTH => Some(node_offset + 1 + index),
        NodeKind::DoubleIndirect if index < WIDTH => Some(node_offset + 1 + index * (WIDTH + 1)),
        _ => None,
    }
}

/// The parent of a node and the slot there: the inverse of [`child`]. `None` for the inode and the xattr node.
#[must_use]
pub fn parent(node_offset: u32) -> Option<(u32, usize)> {
    match NodeKind::of(node_offset)? {
        NodeKind::Inode | NodeKind::Xattr => None,
        NodeKind::DoubleIndirect => Some((0, 4)),
        NodeKind::Indirect => match node_offset {
            FIRST_INDIRECT => Some((0, 2)),
            SECOND_INDIRECT => Some((0, 3)),
            _ => Some((DOUBLE_INDIRECT, ((node_offset - DOUBLE_INDIRECT - 1) / (WIDTH + 1)) as usize)),
        },
        NodeKind::Direct => {
            if node_offset < FIRST_INDIRECT {
                return Some((0, node_offset as usize - 1));
            }
            let base = match node_offset {
                ..SECOND_INDIRECT => FIRST_INDIRECT,
                SECOND_INDIRECT..DOUBLE_INDIRECT => SECOND_INDIRECT,
                _ => {
                    let within = node_offset - DOUBLE_INDIRECT - 1;
                    node_offset - within % (WIDTH + 1)
                }
            };
            Some((base, (node_offset - base) as usize - 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const DIRECT: u64 = ADDRS_PER_BLOCK as u64;
    const INDIRECT: u64 = DIRECT * DIRECT;

    /// First blocks of every region of the tree, for an inode with `a` addresses.
    fn borders(a: u64) -> Vec<u64> {
        let mut all = alloc::vec![0];
        let mut at = a;
        for size in [DIRECT, DIRECT, INDIRECT, INDIRECT, INDIRECT * DIRECT] {
            all.extend([at.saturating_sub(1), at, at + 1, at + DIRECT - 1, at + DIRECT, at + size / 2, at + size - 1]);
            if size > INDIRECT {
                all.extend([at + INDIRECT - 1, at + INDIRECT, at + INDIRECT + DIRECT, at + 517 * INDIRECT + 3]);
            }
            at += size;
        }
        assert_eq!(at, max_file_blocks(a as usize));
        all
    }

    #[test]
    fn known_paths() {
        let path = |block| NodePath::to_block(block, 923).unwrap();
        let check = |block: u64, slots: &[u16], offsets: &[u32]| {
            assert_eq!(path(block).slots(), slots, "block {block}");
            assert_eq!(path(block).node_offsets(), offsets, "block {block}");
        };
        check(0, &[0], &[0]);
        check(922, &[922], &[0]);
        check(923, &[0, 0], &[0, 1]);
        check(923 + 1017, &[0, 1017], &[0, 1]);
        check(923 + 1018, &[1, 0], &[0, 2]);
        check(923 + 2 * 1018, &[2, 0, 0], &[0, 3, 4]);
        check(923 + 3 * 1018 + 5, &[2, 1, 5], &[0, 3, 5]);
        let second = 923 + 2 * 1018 + 1018 * 1018;
        check(second - 1, &[2, 1017, 1017], &[0, 3, 1021]);
        check(second, &[3, 0, 0], &[0, 1022, 1023]);
        let double = second + 1018 * 1018;
        check(double, &[4, 0, 0, 0], &[0, 2041, 2042, 2043]);
        check(double + 1018 * 1018 + 1018 + 1, &[4, 1, 1, 1], &[0, 2041, 3061, 3063]);
        let end = double + 1018 * 1018 * 1018;
        check(end - 1, &[4, 1017, 1017, 1017], &[0, 2041, 2042 + 1017 * 1019, END - 1]);
        assert_eq!(NodePath::to_block(end, 923), None);
        assert_eq!(NodePath::to_block(u64::MAX, 923), None);
        assert_eq!(path(100).inode_child(), None);
        assert_eq!((path(second).inode_child(), path(second).level()), (Some(3), 2));
    }

    #[test]
    fn path_and_inverse_agree_at_every_border() {
        for a in [0usize, 1, 864, 873, 914, 923] {
            // Whether the ways to two blocks have the node at a level in common.
            let shares = |one, other, level: usize| {
                let node =
                    |block| NodePath::to_block(block, a).and_then(|path| path.node_offsets().get(level).copied());
                node(one) == node(other)
            };
            for block in borders(a as u64) {
                let path = NodePath::to_block(block, a).unwrap();
                assert_eq!((path.blocks_below(0), path.blocks_below(path.level() + 1)), (1, 1));
                let last = path.last_node_offset();
                let kind = NodeKind::of(last).unwrap();
                assert!(kind.holds_addresses(), "block {block} of {a}: {kind:?}");
                assert_eq!(first_block(last, a).unwrap() + path.address_slot() as u64, block, "a {a}: {path:?}");
                for level in 1..=path.level() {
                    let behind = block + path.blocks_below(level);
                    assert!(shares(block, behind - 1, level) && !shares(block, behind, level), "{path:?} at {level}");
                    let (up, slot) = (path.node_offsets()[level - 1], usize::from(path.slots()[level - 1]));
                    assert_eq!(child(up, slot), Some(path.node_offsets()[level]), "{path:?}");
                    assert_eq!(parent(path.node_offsets()[level]), Some((up, slot)), "{path:?}");
                }
            }
        }
    }

    #[test]
    fn nodes_of_compressed_files_hold_whole_clusters() {
        // Clusters of 16 blocks: 1008 of 1018 slots are in use.
        let of = Addresses { inode: 864, direct: 1008 };
        let path = |block| NodePath::to_block(block, of).unwrap();
        assert_eq!((path(863).slots(), path(864).slots()), (&[863][..], &[0, 0][..]));
        assert_eq!((path(864 + 1007).slots(), path(864 + 1008).slots()), (&[0, 1007][..], &[1, 0][..]));
        let indirect = 864 + 2 * 1008;
        assert_eq!(path(indirect).node_offsets(), &[0, 3, 4]);
        assert_eq!(path(indirect + 1008 * 1018 - 1).slots(), &[2, 1017, 1007]);
        let second = indirect + 1008 * 1018;
        assert_eq!(path(second).slots(), &[3, 0, 0]);
        let double = second + 1008 * 1018;
        assert_eq!(path(double).slots(), &[4, 0, 0, 0]);
        let end = max_file_blocks(of);
        assert_eq!(end, double + 1008 * 1018 * 1018);
        assert_eq!(path(end - 1).node_offsets(), &[0, 2041, 2042 + 1017 * 1019, END - 1]);
        assert_eq!(NodePath::to_block(end, of), None);
        assert_eq!([path(double).blocks_below(1), path(second + 5).blocks_below(2)], [1008 * 1018 * 1018, 1008 - 5]);
        for block in [0, 863, 864, 1871, 1872, indirect, second - 1, second, double - 1, double, end - 1] {
            let path = path(block);
            assert_eq!(first_block(path.last_node_offset(), of).unwrap() + path.address_slot() as u64, block);
        }
    }

    #[test]
    fn walking_the_tree_meets_every_offset_once_and_in_order() {
        // Parents before children, children from left to right: exactly 0, 1, 2, ... And the direct nodes among them
        // hold consecutive runs of the file.
        let mut stack = alloc::vec![0u32];
        let mut expected = 0;
        let mut next_block = 0;
        while let Some(offset) = stack.pop() {
            assert_eq!(offset, expected);
            expected += 1;
            if let Some(first) = first_block(offset, 923) {
                assert_eq!(first, next_block);
                next_block += if offset == 0 { 923 } else { DIRECT };
            }
            let width = if offset == 0 { INODE_CHILDREN } else { ADDRS_PER_BLOCK };
            assert_eq!(child(offset, width), None);
            if NodeKind::of(offset) == Some(NodeKind::Direct) && offset % 1000 != 0 {
                // There are a million of them: of most, the slots at both ends.
                assert_eq!([0, width - 1].map(|slot| child(offset, slot)), [None; 2]);
                continue;
            }
            stack.extend((0..width).rev().filter_map(|slot| child(offset, slot)));
        }
        assert_eq!((expected, next_block), (END, max_file_blocks(923)));
    }

    #[test]
    fn offsets_that_no_file_has() {
        assert_eq!(NodeKind::of(END), None);
        assert_eq!(NodeKind::of(XATTR_NODE_OFFSET - 1), None);
        assert_eq!(NodeKind::of(XATTR_NODE_OFFSET), Some(NodeKind::Xattr));
        assert!(NodeKind::Xattr.is_direct() && !NodeKind::Xattr.holds_addresses());
        for offset in [END, XATTR_NODE_OFFSET, u32::MAX] {
            assert_eq!(first_block(offset, 923), None);
            assert_eq!(child(offset, 0), None);
            assert_eq!(parent(offset), None);
        }
        assert_eq!(NodeKind::of(DOUBLE_INDIRECT), Some(NodeKind::DoubleIndirect));
        assert_eq!(NodeKind::of(DOUBLE_INDIRECT + 1), Some(NodeKind::Indirect));
        assert_eq!(NodeKind::of(DOUBLE_INDIRECT + 2), Some(NodeKind::Direct));
    }
}

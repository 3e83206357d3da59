//! Damage: some bytes of a block, or a field of a structure.

use f2fs_format::checkpoint::CheckpointBlock;
use f2fs_format::dentry::{DentryViewMut, SLOTS_PER_BLOCK};
use f2fs_format::hash::dentry_hash;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{Geometry, inode, node};

use super::structures::{KINDS, Kind, Place, Structures};
use f2fs_device_test::SparseDevice;

/// The damage to a volume before it is used.
#[derive(Clone, Debug)]
pub enum Damage {
    Patch(Patch),
    Change(Change),
}

/// A change of some bytes of a block that is in use.
#[derive(Clone, Debug)]
pub struct Patch {
    /// Which block, reduced to how many there are.
    pub block: u16,
    /// Where in it, reduced to its size; the highest numbers lead to where nodes have their footer, links and numbers.
    pub offset: u16,
    /// The bytes that are written there.
    pub bytes: Vec<u8>,
}

impl Patch {
    /// Gives the block.
    pub(super) fn apply(&self, device: &SparseDevice, used: &[u64]) -> u64 {
        let at = used[usize::from(self.block) % used.len()];
        let mut block = device.block(at);
        for (to, from) in block[place(self.offset)..].iter_mut().zip(&self.bytes) {
            *to = *from;
        }
        device.put(at, &block);
        at
    }
}

/// Where in a block a patch goes.
fn place(offset: u16) -> usize {
    let low = usize::from(offset % 4096);
    match offset >> 12 {
        // The footer of a node; the nodes below an inode; what stands in front of its addresses.
        15 => 4072 + low % 24,
        14 => 4052 + low % 20,
        13 => low % 400,
        _ => low,
    }
}

/// A change of a field. All numbers are reduced to how many there are.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The kind of structure.
    pub kind: u8,
    /// Which of them.
    pub which: u16,
    /// Which field of it.
    pub field: u8,
    /// The change; the highest bit leaves a twin as it is.
    pub how: u8,
    /// With which number.
    pub number: u32,
}

impl Change {
    /// The kind of structure.
    pub fn kind(&self) -> Kind {
        KINDS[usize::from(self.kind) % KINDS.len()]
    }

    /// Gives the blocks. None, where the volume has nothing of the kind.
    pub(super) fn apply(&self, device: &SparseDevice, structures: &Structures) -> Vec<u64> {
        let kind = self.kind();
        let places = structures.places(kind);
        let Some(place) = places.get(usize::from(self.which) % places.len().max(1)) else { return Vec::new() };
        let fields = kind.fields();
        let (offset, len) = fields[usize::from(self.field) % fields.len()];
        let other = &places[self.number as usize % places.len()];
        let at = |place: &Place| place.offset + offset;
        // Slots of an inode that is shorter than a block of entries.
        if at(place) + len > 4096 || at(other) + len > 4096 {
            return Vec::new();
        }
        let old = get(device, place.block, at(place), len);
        let theirs = get(device, other.block, at(other), len);
        let bits = 8 * len as u32;
        let all = u64::MAX >> (64 - bits);
        let known = u64::from(structures.numbers[self.number as usize % structures.numbers.len()]);
        let new = match self.how % 9 {
            0 => self.number.into(),
            1 => old.wrapping_add(i64::from(self.number as i8) as u64),
            2 => old ^ 1 << (self.number % bits),
            3 => [0, 1, all, all - 1, all >> 1, (all >> 1) + 1, 2, 3][self.number as usize % 8],
            4 | 8 => theirs,
            // An inode says its number twice.
            5 if matches!(kind, Kind::Footer | Kind::Chain) && len == 8 => known << 32 | known,
            5 => known,
            6 => old.wrapping_mul(2),
            _ => old.wrapping_add(known),
        };
        set(device, place.block, at(place), len, new);
        let mut touched = vec![place.block];
        if self.how % 9 == 8 {
            // Both have what the other had.
            set(device, other.block, at(other), len, old);
            touched.push(other.block);
        }
        if let Some(twin) = place.twin.filter(|_| self.how & 0x80 == 0) {
            set(device, twin, at(place), len, new);
            touched.push(twin);
        }
        if kind == Kind::Name {
            mend_hashes(device, place.block);
        }
        touched
    }
}

fn get(device: &SparseDevice, block: u64, offset: usize, len: usize) -> u64 {
    let mut number = [0; 8];
    number[..len].copy_from_slice(&device.block(block)[offset..offset + len]);
    u64::from_le_bytes(number)
}

fn set(device: &SparseDevice, at: u64, offset: usize, len: usize, number: u64) {
    let mut block = device.block(at);
    block[offset..offset + len].copy_from_slice(&number.to_le_bytes()[..len]);
    device.put(at, &block);
}

/// Makes the hashes of a block of names right: a block that is not an inode.
fn mend_hashes(device: &SparseDevice, at: u64) {
    let mut block = device.block(at);
    if node::NodeBlock::read(&block).is_inode() {
        return;
    }
    let view = DentryViewMut::block(&mut block);
    let entries: Vec<_> = view.as_view().entries().flatten().map(|e| (e.slot, dentry_hash(e.name))).collect();
    for (slot, hash) in entries.into_iter().filter(|(slot, _)| *slot < SLOTS_PER_BLOCK) {
        block[30 + slot * 11..][..4].copy_from_slice(&hash.to_le_bytes());
    }
    device.put(at, &block);
}

/// Makes right what a checksum would give away.
pub(super) fn seal(device: &SparseDevice, at: u64, sound: &SparseDevice, geometry: &Geometry) {
    let mut block = device.block(at);
    if at < 2 {
        let mut sb = SuperBlock::read(&block);
        sb.crc = sb.compute_crc().into();
        sb.write(&mut block);
    } else if at < u64::from(geometry.sit_blkaddr.0) {
        let mut checkpoint = CheckpointBlock::read(&block);
        if checkpoint.checksums().is_ok() && checkpoint.header.user_block_count.get() > 0 {
            checkpoint.seal();
            block = *checkpoint.as_block();
        }
    } else if at >= u64::from(geometry.main_blkaddr.0) {
        let mut node = Box::new(*node::NodeBlock::read(&block));
        if node.is_inode() && inode::has_checksum(node.inode(), geometry.features) {
            let seed = inode::checksum_seed(&SuperBlock::read(&sound.block(0)));
            let sum = inode::checksum(&node, seed);
            node.inode_mut().extra_mut().i_inode_checksum = sum.into();
            block = *node.as_block();
        }
    }
    device.put(at, &block);
}

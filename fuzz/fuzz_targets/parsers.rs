//! Every parser of the format crate on raw bytes.
#![no_main]

use std::sync::LazyLock;

use f2fs_format::checkpoint::{Checkpoint, CheckpointBlock, VersionBitmaps};
use f2fs_format::dentry::{DentryView, DentryViewMut, FileType};
use f2fs_format::feature::Features;
use f2fs_format::hash::dentry_hash;
use f2fs_format::mkfs::{FormatOptions, VolumePlan};
use f2fs_format::nat::NatBlock;
use f2fs_format::node::NodeBlock;
use f2fs_format::orphan::OrphanBlock;
use f2fs_format::path::NodePath;
use f2fs_format::sit::SitBlock;
use f2fs_format::summary::{SummaryBlock, compact};
use f2fs_format::superblock::SuperBlock;
use f2fs_format::xattr::{SetMode, XattrBuffer};
use f2fs_format::{BlockAddr, Geometry, Nid, RawBlock, inode};
use f2fs_fuzz::seeds;

/// The geometry of a volume of 64 MiB.
static GEOMETRY: LazyLock<Geometry> = LazyLock::new(|| {
    let plan = VolumePlan::new(&FormatOptions::default(), 64 << 20).expect("64 MiB are enough");
    Geometry::from_superblock(&plan.superblock).expect("a sound superblock")
});

fn dentries(view: DentryView<'_>) {
    for entry in view.entries().flatten() {
        let _ = (entry.name.len(), entry.slots(), entry.is_dot());
    }
    let _ = view.find(dentry_hash(b"name"), b"name");
    let _ = view.is_empty_dir();
    for slots in [1, 2, 32] {
        let _ = view.room_for(slots);
    }
}

fn change_dentries(mut view: DentryViewMut<'_>, slot: usize) {
    let _ = view.set_target(slot, Nid(7), FileType::Regular);
    let _ = view.remove(slot);
    let _ = view.insert(slot, b"a name of two slots", 3, Nid(9), FileType::Directory);
    let _ = view.make_empty(Nid(4), Nid(3));
}

libfuzzer_sys::fuzz_target!(init: seeds::write(&[seeds::blocks]), |data: &[u8]| {
    let Some((&selector, data)) = data.split_first() else { return };
    let mut block: RawBlock = [0; 4096];
    let len = data.len().min(4096);
    block[..len].copy_from_slice(&data[..len]);
    let features = Features(u32::from(selector) << 3 & 0x7ff8);
    let geometry = &*GEOMETRY;
    match selector % 9 {
        0 => {
            let mut sb = SuperBlock::read(&block);
            let _ = Geometry::from_superblock(&sb);
            sb.magic = f2fs_format::superblock::MAGIC.into();
            sb.crc = sb.compute_crc().into();
            let _ = (Geometry::from_superblock(&sb), sb.label());
        }
        1 => {
            let mut checkpoint = CheckpointBlock::read(&block);
            let _ = (checkpoint.verify(), checkpoint.footer_version());
            checkpoint.seal();
            if let Ok(checked) = Checkpoint::from_header(&checkpoint.header, geometry) {
                let _ = (checked.check(geometry), checked.to_header(geometry));
            }
            let _ = VersionBitmaps::read(&checkpoint, &[block], geometry);
        }
        2 => {
            let mut node = Box::new(*NodeBlock::read(&block));
            let _ = (node.nid(), node.ino(), node.is_inode(), node.address_count(features));
            for index in [0, 922, 923, 1017, 1018, usize::from(selector)] {
                let _ = node.address(index, features);
                let _ = node.set_address(index, BlockAddr(5), features);
            }
            let raw = node.inode();
            let _ = (raw.layout(features), raw.extra(), raw.file_type(), raw.inline_xattr(features).len());
            dentries(DentryView::inline(raw.inline_data(features)));
            let _ = inode::checksum(&node, 7);
            change_dentries(DentryViewMut::inline(node.inode_mut().inline_data_mut(features)), selector.into());
        }
        3 => {
            dentries(DentryView::block(&block));
            change_dentries(DentryViewMut::block(&mut block), selector.into());
        }
        4 => {
            dentries(DentryView::inline(data));
            let mut data = data.to_vec();
            change_dentries(DentryViewMut::inline(&mut data), selector.into());
        }
        5 => {
            let (inline, rest) = data.split_at(data.len().min(200));
            let mut body = [0; f2fs_format::xattr::NODE_SIZE];
            let len = rest.len().min(body.len());
            body[..len].copy_from_slice(&rest[..len]);
            for node in [None, Some(&body)] {
                let Ok(mut buffer) = XattrBuffer::read(inline, node) else { continue };
                for entry in buffer.entries() {
                    if entry.is_err() {
                        break;
                    }
                }
                let _ = buffer.get(1, b"name");
                let _ = buffer.set(1, b"name", b"value", SetMode::Any);
                let _ = buffer.remove(1, b"name");
                let _ = (buffer.inline().len(), buffer.node().is_some(), buffer.is_empty());
            }
        }
        6 => {
            let summary = SummaryBlock::read(&block);
            let _ = (summary.journal.nat_entries(), summary.journal.sit_entries(), summary.journal.kbytes_written());
            let counts = [usize::from(selector), data.len() % 600, 512];
            let _ = compact::parse(&[block, block], counts);
            let _ = compact::parse(&[block], [1, 1, 1]);
        }
        7 => {
            let _ = OrphanBlock::read(&block).entry_count;
            for entry in SitBlock::read(&block).entries {
                let _ = (entry.valid_blocks(), entry.log_type(), entry.type_number());
            }
            let _ = NatBlock::read(&block).entries[454].block_addr;
        }
        _ => {
            for bytes in block.chunks_exact(8).take(64) {
                let mut number = [0; 8];
                number.copy_from_slice(bytes);
                let number = u64::from_le_bytes(number);
                for addresses in [923, 873, 864, usize::from(selector)] {
                    if let Some(path) = NodePath::to_block(number, addresses) {
                        let _ = (path.level(), path.slots().len(), path.address_slot(), path.last_node_offset());
                    }
                    let _ = f2fs_format::path::first_block(number as u32, addresses);
                }
                let _ = f2fs_format::path::parent(number as u32);
                let _ = f2fs_format::path::child(number as u32, usize::from(selector));
                let _ = f2fs_format::path::NodeKind::of(number as u32);
            }
        }
    }
});

//! Orphans: on the pack's list, and broken there or in themselves.

use f2fs_format::checkpoint::flags;
use f2fs_format::dentry::{DentryViewMut, FileType};
use f2fs_format::inode::inline;
use f2fs_format::orphan::OrphanBlock;
use f2fs_format::{BlockAddr, Nid, hash};

use super::cases::{Case, Fsck, case, run};
use super::crafted::{accepted, with_inline_directory};
use super::image::{Image, populated};
use crate::FindingKind as Kind;

/// `tiny` unlinked while open: the pack has an orphan block.
pub(super) fn with_orphan() -> Image {
    orphaned(populated().copy(), "tiny")
}

/// What stands at a path unlinked while open.
fn orphaned(image: Image, path: &str) -> Image {
    let orphan = image.find(path);
    unlink(&image, path);
    image.edit_node(orphan.ino, |node| node.inode_mut().i_links = 0.into());
    if let Some((parent, _)) = path.rsplit_once('/') {
        // Of a directory: `..` is gone.
        image.edit_node(image.find(parent).ino, |node| {
            node.inode_mut().i_links = (node.inode().i_links.get() - 1).into();
        });
    }
    let pack = image.pack();
    let (first, total) = (pack.start_sum(), pack.total());
    for block in (first..total).rev() {
        image.put(pack.start.offset(block + 1), &image.block(pack.start.offset(block)));
    }
    let mut orphans = OrphanBlock::ZERO;
    orphans.ino[0] = orphan.ino.into();
    (orphans.blk_addr, orphans.blk_count, orphans.entry_count) = (1.into(), 1.into(), 1.into());
    image.put(pack.start.offset(first), orphans.as_block());
    let mut checkpoint = pack.block;
    let header = &mut checkpoint.header;
    header.ckpt_flags = (header.ckpt_flags.get() | flags::ORPHAN_PRESENT).into();
    header.cp_pack_start_sum = (first + 1).into();
    header.cp_pack_total_block_count = (total + 1).into();
    checkpoint.seal();
    for block in [0, total] {
        image.put(pack.start.offset(block), checkpoint.as_block());
    }
    image.edit_checkpoint(|_| ());
    let image = accepted(image);
    assert_eq!(image.check().counts.orphans, 1);
    image
}

fn edit_orphans(image: &Image, change: impl FnOnce(&mut OrphanBlock)) {
    image.edit(image.pack().start.offset(1), |block| {
        let mut orphans = OrphanBlock::read(block);
        change(&mut orphans);
        *block = *orphans.as_block();
    });
}

/// The one on the list.
fn orphan(image: &Image) -> Nid {
    OrphanBlock::read(&image.block(image.pack().start.offset(1))).ino[0].into()
}

/// Takes the entry of a path away.
fn unlink(image: &Image, path: &str) {
    let entry = image.find(path);
    image.edit(entry.block, |block| {
        DentryViewMut::block(block).remove(entry.slot).unwrap();
    });
}

#[test]
fn orphans() {
    use Fsck::{Blind, Finds};
    let cases: Vec<Case> = vec![
        case("twice", Kind::Orphan, Finds, |image| {
            edit_orphans(image, |orphans| {
                orphans.ino[1] = orphans.ino[0];
                orphans.entry_count = 2.into();
            });
        }),
        case("free", Kind::Orphan, Finds, |image| edit_orphans(image, |orphans| orphans.ino[0] = 4000.into())),
        case("impossible", Kind::Orphan, Finds, |image| {
            edit_orphans(image, |orphans| orphans.ino[0] = u32::MAX.into());
        }),
        case("forgotten", Kind::UnreachableNid, Finds, |image| {
            edit_orphans(image, |orphans| orphans.entry_count = 0.into());
        }),
        case("more than fit", Kind::Orphan, Finds, |image| {
            edit_orphans(image, |orphans| orphans.entry_count = 60_000.into());
        }),
        case("index of the block", Kind::Orphan, Blind, |image| {
            edit_orphans(image, |orphans| orphans.blk_addr = 2.into());
        }),
        case("still linked", Kind::Parent, Finds, |image| {
            let other = image.find("small").ino;
            edit_orphans(image, |orphans| orphans.ino[0] = other.into());
        }),
        case("named by a lost directory", Kind::UnreachableNid, Finds, |image| {
            let named = image.find("many/a name that takes several slots, number 0003").ino;
            edit_orphans(image, |orphans| orphans.ino[0] = named.into());
            unlink(image, "many");
        }),
        case("with a block of a lost file", Kind::Summary, Finds, |image| {
            let (orphan, small, features) = (orphan(image), image.find("small").ino, image.geometry.features);
            let block = image.data(small, 1);
            image.edit_node(orphan, |node| {
                node.inode_mut().i_inline &= !(inline::DATA | inline::DATA_EXIST);
                for slot in 0..9 {
                    node.set_address(slot, BlockAddr::NULL, features);
                }
                node.set_address(2, block, features);
                node.inode_mut().i_blocks = 2.into();
            });
            unlink(image, "small");
            unlink(image, "deep/hard link");
        }),
        case("with links", Kind::Links, Finds, |image| {
            image.edit_node(orphan(image), |node| node.inode_mut().i_links = 1.into());
        }),
    ];
    run(&with_orphan(), &cases);
}

/// An orphan that is a directory, with its entries in the inode or in a block.
fn with_orphaned_directory(is_inline: bool) -> Image {
    orphaned(if is_inline { with_inline_directory() } else { populated().copy() }, "deep/er/still")
}

/// Changes the entries of the orphan, wherever they are.
fn edit_entries(image: &Image, change: impl FnOnce(&mut DentryViewMut<'_>)) {
    let (ino, features) = (orphan(image), image.geometry.features);
    if image.node(ino).inode().i_inline & inline::DENTRY == 0 {
        return image.edit(image.data(ino, 0), |block| change(&mut DentryViewMut::block(block)));
    }
    image.edit_node(ino, |node| {
        change(&mut DentryViewMut::inline(node.inode_mut().inline_data_mut(features)));
    });
}

fn lead_to(entries: &mut DentryViewMut<'_>, slot: usize, ino: Nid) {
    assert!(entries.set_target(slot, ino, FileType::Directory).unwrap());
}

/// An entry that a directory which was unlinked cannot have.
fn insert(image: &Image, path: &str, file_type: FileType) {
    let ino = image.find(path).ino;
    let hash = hash::dentry_hash(b"more");
    edit_entries(image, |entries| assert!(entries.insert(2, b"more", hash, ino, file_type)));
}

/// fsck.f2fs looks at those that stand in the inode alone.
#[test]
fn entries_of_orphaned_directories() {
    use Fsck::{Blind, Finds};
    for (is_inline, fsck, lost) in [(true, Finds, Blind), (false, Blind, Finds)] {
        let cases: Vec<Case> = vec![
            case("orphaned directory: dot", Kind::Dots, fsck, |image| {
                edit_entries(image, |entries| lead_to(entries, 0, Nid::ROOT));
            }),
            case("orphaned directory: dot-dot", Kind::Dots, fsck, |image| {
                edit_entries(image, |entries| lead_to(entries, 1, Nid::ROOT));
            }),
            case("orphaned directory: a file in it", Kind::Dentry, fsck, |image| {
                insert(image, "small", FileType::Regular);
            }),
            case("orphaned directory: a directory in it", Kind::Dentry, fsck, |image| {
                insert(image, "many", FileType::Directory);
            }),
            // It takes an entry in the inode for a name.
            case("orphaned directory: the only name of a file", Kind::Dentry, lost, |image| {
                insert(image, "large", FileType::Regular);
                unlink(image, "large");
            }),
        ];
        run(&with_orphaned_directory(is_inline), &cases);
    }
}

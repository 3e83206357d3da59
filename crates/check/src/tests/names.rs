//! Mutants of directories.

use f2fs_format::dentry::{DentryBlock, FileType};
use f2fs_format::inode::advise;
use f2fs_format::{BlockAddr, Nid, hash};
use zerocopy::{FromBytes, IntoBytes};

use super::cases::{Case, Fsck, case, run};
use super::image::{Found, Image, populated};
use crate::FindingKind as Kind;

fn edit_block(image: &Image, block: BlockAddr, change: impl FnOnce(&mut DentryBlock)) {
    image.edit(block, |bytes| {
        let mut content = DentryBlock::read_from_bytes(bytes).unwrap();
        change(&mut content);
        bytes.copy_from_slice(content.as_bytes());
    });
}

/// Changes the directory entry of a path.
fn edit(image: &Image, path: &str, change: impl FnOnce(&mut DentryBlock, usize)) {
    let Found { block, slot, .. } = image.find(path);
    edit_block(image, block, |content| change(content, slot));
}

fn many(index: usize) -> String {
    format!("many/a name that takes several slots, number {index:04}")
}

/// Takes an entry out of the block that holds it.
fn clear(image: &Image, path: &str) {
    edit(image, path, |content, slot| {
        let slots = usize::from(content.dentry[slot].name_len.get()).div_ceil(8);
        (slot..slot + slots).for_each(|slot| content.dentry_bitmap[slot / 8] &= !(1 << (slot % 8)));
    });
}

#[test]
fn entries() {
    use Fsck::{Blind, Finds};
    let cases: Vec<Case> = vec![
        case("hash", Kind::DentryHash, Finds, |image| {
            edit(image, "tiny", |content, slot| content.dentry[slot].hash_code = 1.into());
        }),
        case("ino out of range", Kind::Dentry, Finds, |image| {
            edit(image, "tiny", |content, slot| content.dentry[slot].ino = u32::MAX.into());
        }),
        case("ino free", Kind::Dentry, Finds, |image| {
            edit(image, "tiny", |content, slot| content.dentry[slot].ino = 4000.into());
        }),
        case("ino of a node that is no inode", Kind::NatEntry, Finds, |image| {
            let node = image.node(image.find("large").ino).inode().i_nid[0];
            edit(image, "tiny", |content, slot| content.dentry[slot].ino = node);
        }),
        case("type unknown", Kind::Dentry, Finds, |image| {
            edit(image, "tiny", |content, slot| content.dentry[slot].file_type = 0);
        }),
        case("type impossible", Kind::Dentry, Finds, |image| {
            edit(image, "tiny", |content, slot| content.dentry[slot].file_type = 200);
        }),
        case("type of another inode", Kind::FileType, Finds, |image| {
            edit(image, "tiny", |content, slot| content.dentry[slot].file_type = FileType::Symlink.number());
        }),
        case("type: two entries disagree", Kind::FileType, Finds, |image| {
            edit(image, "deep/hard link", |content, slot| content.dentry[slot].file_type = FileType::Fifo.number());
        }),
        case("name empty", Kind::Dentry, Finds, |image| {
            edit(image, "tiny", |content, slot| content.dentry[slot].name_len = 0.into());
        }),
        case("name too long", Kind::Dentry, Finds, |image| {
            edit(image, "tiny", |content, slot| content.dentry[slot].name_len = 256.into());
        }),
        case("name over a free slot", Kind::Dentry, Blind, |image| {
            edit(image, &many(3), |content, slot| {
                let free = slot + 1;
                content.dentry_bitmap[free / 8] &= !(1 << (free % 8));
            });
        }),
        case("slash in the name", Kind::Dentry, Blind, |image| {
            edit(image, "tiny", |content, slot| {
                content.filename[slot][1] = b'/';
                content.dentry[slot].hash_code = hash::dentry_hash(b"t/ny").into();
            });
        }),
        case("a name twice", Kind::DuplicateName, Blind, |image| {
            edit(image, "link", |content, slot| {
                content.filename[slot][..4].copy_from_slice(b"tiny");
                content.dentry[slot].hash_code = hash::dentry_hash(b"tiny").into();
            });
        }),
        case("entry taken away", Kind::UnreachableNid, Finds, |image| clear(image, "tiny")),
        case("hard link taken away", Kind::Links, Finds, |image| clear(image, "deep/hard link")),
        case("directory taken away", Kind::Links, Finds, |image| clear(image, "deep/er")),
        case("a second entry for a directory", Kind::Parent, Finds, |image| {
            let twice = image.find("deep/er");
            edit(image, "many", |content, slot| content.dentry[slot].ino = twice.ino.into());
        }),
        case("the root below itself", Kind::Parent, Finds, |image| {
            edit(image, "deep/er/still", |content, slot| content.dentry[slot].ino = Nid::ROOT.into());
        }),
        case("a loop of directories", Kind::Parent, Finds, |image| {
            let above = image.find("deep");
            edit(image, "deep/er/still", |content, slot| content.dentry[slot].ino = above.ino.into());
        }),
    ];
    run(populated(), &cases);
}

#[test]
fn directories() {
    use Fsck::{Blind, Finds};
    let cases: Vec<Case> = vec![
        case("blocks exchanged", Kind::DentryPosition, Finds, |image| {
            let (features, dir) = (image.geometry.features, image.find("many").ino);
            let blocks: Vec<usize> = (2..40).filter(|block| image.data(dir, *block).is_real()).take(3).collect();
            image.edit_node(dir, |node| {
                let [first, last] = [blocks[0], blocks[2]].map(|slot| node.address(slot, features).unwrap());
                node.set_address(blocks[0], last, features);
                node.set_address(blocks[2], first, features);
            });
        }),
        case("hash of the directory itself", Kind::DentryHash, Finds, |image| {
            let block = image.data(image.find("many").ino, 0);
            edit_block(image, block, |content| content.dentry[0].hash_code = 1.into());
        }),
        case("depth too small", Kind::DentryPosition, Blind, |image| {
            image.edit_node(image.find("many").ino, |node| node.inode_mut().i_current_depth = 1.into());
        }),
        case("size too small", Kind::DentryPosition, Blind, |image| {
            image.edit_node(image.find("many").ino, |node| node.inode_mut().i_size = 4096.into());
        }),
        case("size too small, and meant to be", Kind::DentryPosition, Blind, |image| {
            image.edit_node(image.find("many").ino, |node| {
                node.inode_mut().i_size = 4096.into();
                node.inode_mut().i_advise |= advise::KEEP_SIZE;
            });
        }),
        case("first block elsewhere", Kind::DentryPosition, Finds, |image| {
            let (features, dir) = (image.geometry.features, image.find("many").ino);
            let other = (2..40).rev().find(|block| image.data(dir, *block).is_real()).unwrap();
            image.edit_node(dir, |node| {
                let [first, last] = [0, other].map(|slot| node.address(slot, features).unwrap());
                node.set_address(0, last, features);
                node.set_address(other, first, features);
            });
        }),
        case("level of the directory", Kind::DentryPosition, Finds, |image| {
            image.edit_node(image.find("many").ino, |node| node.inode_mut().i_dir_level = 3);
        }),
        case("dot names another", Kind::Dots, Finds, |image| {
            edit_block(image, image.data(image.find("deep").ino, 0), |content| content.dentry[0].ino = 3.into());
        }),
        case("dot-dot names another", Kind::Dots, Finds, |image| {
            edit_block(image, image.data(image.find("deep").ino, 0), |content| content.dentry[1].ino = 5.into());
        }),
        case("dot-dot taken away", Kind::Dots, Finds, |image| {
            edit_block(image, image.data(image.find("deep").ino, 0), |content| content.dentry_bitmap[0] &= !2);
        }),
        case("dot is a file", Kind::Dots, Finds, |image| {
            edit_block(image, image.data(image.find("deep").ino, 0), |content| content.dentry[0].file_type = 1);
        }),
        case("parent, and dot-dot with it", Kind::Parent, Blind, |image| {
            let deep = image.find("deep").ino;
            let still = image.find("deep/er/still").ino;
            image.edit_node(still, |node| node.inode_mut().i_pino = deep.into());
            edit_block(image, image.data(still, 0), |content| content.dentry[1].ino = deep.into());
        }),
        case("block taken away", Kind::Dots, Finds, |image| {
            let (features, dir) = (image.geometry.features, image.find("deep/er/still").ino);
            image.edit_node(dir, |node| {
                node.set_address(0, BlockAddr::NULL, features);
            });
        }),
        case("block of zeros", Kind::Dots, Finds, |image| {
            image.put(image.data(image.find("deep").ino, 0), &[0; 4096]);
        }),
        case("block of ones", Kind::Dentry, Finds, |image| {
            image.put(image.data(image.find("deep").ino, 0), &[0xff; 4096]);
        }),
    ];
    run(populated(), &cases);
}

//! Inodes without checksums in which a bit says that they are something else.

use f2fs_format::inode::inline;
use f2fs_format::node::NodeBlock;
use f2fs_format::xattr::{SetMode, XattrBuffer};
use f2fs_format::{BlockAddr, Nid};

use super::image::{Image, without_checksums};
use super::lost::repaired;

const PATHS: [&str; 9] = [
    "small",
    "tiny",
    "large",
    "many",
    "deep",
    "deep/er/still",
    "link",
    "long link",
    "many/a name that takes several slots, number 0008",
];

/// Flips what `flip` flips, and repairs: the inode and the entry that names it are as they were.
fn comes_back(whole: &Image, path: &str, what: &str, flip: impl Fn(&mut NodeBlock)) {
    let found = whole.find(path);
    let image = whole.copy();
    image.edit_node(found.ino, &flip);
    let actions = repaired(&image);
    let is_same = |addr: BlockAddr| image.block(addr) == whole.block(addr);
    let node = |image: &Image, nid: Nid| {
        let mut node = image.node(nid);
        node.footer.cp_ver = 0.into();
        node
    };
    let same = node(&image, found.ino).as_block() == node(whole, found.ino).as_block();
    assert!(same, "{path}, {what}: {actions:?}");
    assert!(found.block.is_null() || is_same(found.block), "the entry of {path}, {what}: {actions:?}");
}

#[test]
fn a_flipped_bit_of_the_type_is_put_back() {
    let whole = without_checksums();
    for path in PATHS {
        for bit in 12..16 {
            comes_back(whole, path, &format!("bit {bit} of i_mode"), |node| {
                let inode = node.inode_mut();
                inode.i_mode = (inode.i_mode.get() ^ 1 << bit).into();
            });
        }
    }
}

#[test]
fn a_flipped_flag_of_what_stands_in_the_inode_is_put_back() {
    let whole = without_checksums();
    for path in PATHS {
        for flag in [inline::DATA, inline::DENTRY, inline::EXTRA_ATTR] {
            comes_back(whole, path, &format!("flag {flag:#x}"), |node| node.inode_mut().i_inline ^= flag);
        }
    }
}

/// Where they stand in place of addresses: beside inline content neither judge misses them.
#[test]
fn inline_attributes_are_found_without_their_flag() {
    for path in ["small", "many"] {
        let whole = without_checksums().copy();
        let (found, features) = (whole.find(path), whole.geometry.features);
        whole.edit_node(found.ino, |node| {
            let inode = node.inode_mut();
            inode.i_inline |= inline::XATTR;
            let mut list = XattrBuffer::read(inode.inline_xattr(features), None).unwrap();
            list.set(1, b"note", b"kept", SetMode::Create).unwrap();
            inode.inline_xattr_mut(features).copy_from_slice(list.inline());
        });
        assert!(whole.check().is_clean());
        comes_back(&whole, path, "inline attributes", |node| node.inode_mut().i_inline &= !inline::XATTR);
    }
}

/// A bit in one copy of the superblock makes quota files of files that have names.
#[test]
fn files_are_no_quota_files_that_one_superblock_alone_names() {
    let whole = without_checksums();
    let small = whole.find("small");
    for copy in [0, 1] {
        let image = whole.copy();
        image.edit_superblock(copy, |sb| sb.qf_ino[1] = small.ino.into());
        let actions = repaired(&image);
        assert_eq!(image.find("small").ino, small.ino, "{actions:?}");
        assert_eq!(image.block(image.addr(small.ino)), whole.block(whole.addr(small.ino)), "{actions:?}");
    }
}

//! The names of a volume in what a repair says: nothing in them reaches a terminal as it is, and no two look alike.

use f2fs_device::BlockDevice;
use f2fs_format::dentry::{DentryBlock, FileType};
use f2fs_format::hash;
use f2fs_sync::{Arc, PlainArc};
use zerocopy::{FromBytes, IntoBytes};

use super::image::{Found, Image, populated};
use crate::{CheckOptions, repair};

/// Gives an inode another name, which is as long, in the entry that leads to it and in itself.
fn rename(image: &Image, path: &str, name: &[u8], change: impl FnOnce(&mut DentryBlock, usize)) {
    let Found { ino, block, slot } = image.find(path);
    image.edit(block, |bytes| {
        let mut content = DentryBlock::read_from_bytes(bytes).unwrap();
        for (at, part) in name.chunks(8).enumerate() {
            content.filename[slot + at][..part.len()].copy_from_slice(part);
        }
        content.dentry[slot].name_len = (name.len() as u16).into();
        content.dentry[slot].hash_code = hash::dentry_hash(name).into();
        change(&mut content, slot);
        bytes.copy_from_slice(content.as_bytes());
    });
    image.edit_node(ino, |node| {
        let inode = node.inode_mut();
        inode.i_namelen = (name.len() as u32).into();
        inode.i_name[..name.len()].copy_from_slice(name);
    });
}

/// All that a repair says.
fn actions(image: &Image) -> Vec<String> {
    let device: PlainArc<dyn BlockDevice> = Arc::new(image.device.snapshot().read_only());
    let repair = repair::plan(&device, &CheckOptions::default()).unwrap();
    assert!(repair.after.is_clean(), "{}\n{:?}", repair.after, repair.actions);
    let is_plain = |text: &String| text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    assert!(repair.actions.iter().all(is_plain), "{:?}", repair.actions);
    repair.actions
}

fn says(actions: &[String], what: &str, name: &[u8]) -> bool {
    let name = format!("`{}`", name.escape_ascii());
    actions.iter().any(|action| action.contains(what) && action.contains(&name))
}

/// Escape sequences, a line of its own, letters that are no UTF-8.
const NAMES: [&[u8]; 4] = [b"\x1b[2J", b"\nls", b"\xff\xfe", b"\xfe\xff"];

#[test]
fn names_are_escaped_wherever_a_repair_says_them() {
    for name in NAMES {
        let image = populated().copy();
        rename(&image, "tiny", name, |content, slot| content.dentry[slot].file_type = FileType::Fifo.number());
        assert!(says(&actions(&image), "the entry in slot", name));

        let image = populated().copy();
        rename(&image, "tiny", name, |content, slot| content.dentry_bitmap[slot / 8] &= !(1 << (slot % 8)));
        assert!(says(&actions(&image), "had no name", name));

        // Some of the last ones stand in a bucket that is not that of their new name.
        let moved = (600..620).any(|index| {
            let image = populated().copy();
            let mut long = name.to_vec();
            long.resize(format!("a name that takes several slots, number {index:04}").len(), b'x');
            let path = format!("many/a name that takes several slots, number {index:04}");
            rename(&image, &path, &long, |_, _| ());
            says(&actions(&image), "stands in block", &long)
        });
        assert!(moved, "{}", name.escape_ascii());
    }
}

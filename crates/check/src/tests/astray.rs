//! Entries whose number leads to another inode than the one that has their name.

use f2fs_format::Nid;
use f2fs_format::node::NodeBlock;

use super::image::{Image, populated, without_checksums};
use super::lost::repaired;

const FILE: &str = "many/a name that takes several slots, number 0008";
const NEXT: &str = "many/a name that takes several slots, number 0009";

/// Everything that can be flipped to anything: all kinds, in the same directory and in others, with one name and two.
const PATHS: [&str; 11] =
    ["small", "tiny", "large", "link", "long link", "many", "deep", "deep/er", "deep/er/still", FILE, NEXT];

/// Where the number of an entry stands in a block of entries.
fn number_at(slot: usize) -> usize {
    30 + 11 * slot + 4
}

/// Lets the entry of a path lead to another inode.
fn lead_to(image: &Image, path: &str, ino: Nid) {
    let found = image.find(path);
    image.edit(found.block, |block| block[number_at(found.slot)..][..4].copy_from_slice(&ino.0.to_le_bytes()));
}

/// An inode but for what each checkpoint may change.
fn inode(image: &Image, ino: Nid) -> NodeBlock {
    let mut node = image.node(ino);
    node.footer.cp_ver = 0.into();
    node
}

fn leads_back(whole: &Image, path: &str, other: Nid) {
    let image = whole.copy();
    lead_to(&image, path, other);
    let actions = repaired(&image);
    let (found, was) = (image.find(path), whole.find(path));
    assert_eq!(found.ino, was.ino, "{path} to {other}: {actions:?}");
    for ino in [was.ino, other] {
        let same = inode(&image, ino).as_block() == inode(whole, ino).as_block();
        assert!(same, "{path} to {other}, inode {ino}: {actions:?}");
    }
    assert_eq!(image.check().counts.inodes, whole.check().counts.inodes, "{path} to {other}: {actions:?}");
}

#[test]
fn an_entry_leads_to_the_inode_that_has_its_name_again() {
    for whole in [populated(), without_checksums()] {
        for path in PATHS {
            // A loop of directories is another damage.
            let others = PATHS.into_iter().filter(|other| *other != path && !path.starts_with(other));
            for other in others {
                leads_back(whole, path, whole.find(other).ino);
            }
        }
    }
}

/// The first name of a file of two names, and the second one, which no inode says.
#[test]
fn names_of_a_file_that_has_several() {
    let whole = populated();
    let small = whole.find("small").ino;
    assert_eq!(whole.node(small).inode().i_links.get(), 2);
    // Of the last one there is nothing.
    let others = ["tiny", "large", FILE].map(|other| whole.find(other).ino);
    for other in others.into_iter().chain([Nid(4000)]) {
        let image = whole.copy();
        lead_to(&image, "small", other);
        let actions = repaired(&image);
        assert_eq!((image.find("small").ino, image.node(small).inode().i_links.get()), (small, 2), "{actions:?}");
        let image = whole.copy();
        lead_to(&image, "deep/hard link", other);
        let actions = repaired(&image);
        assert_eq!(image.node(small).inode().i_links.get(), 1, "{actions:?}");
        assert_eq!(image.find("small").ino, small, "{actions:?}");
    }
}

/// A name that another file was made with, which is lost: the one that has it now has as many names as links.
#[test]
fn a_file_keeps_the_names_that_it_counts() {
    let whole = populated();
    let (small, links) = (whole.find("small").ino, 3);
    let image = whole.copy();
    lead_to(&image, FILE, small);
    image.edit_node(small, |node| node.inode_mut().i_links = links.into());
    let actions = repaired(&image);
    assert_eq!((image.find(FILE).ino, image.node(small).inode().i_links.get()), (small, links), "{actions:?}");
}

/// Files that changed names, and have as many names as links.
#[test]
fn names_that_changed_hands_stay_where_they_are() {
    let whole = populated();
    let (one, other) = (whole.find(FILE), whole.find(NEXT));
    let image = whole.copy();
    lead_to(&image, FILE, other.ino);
    lead_to(&image, NEXT, one.ino);
    assert!(image.check().is_clean());
    // Something else is wrong.
    image.edit_node(whole.find("tiny").ino, |node| node.inode_mut().i_links = 7.into());
    let actions = repaired(&image);
    assert_eq!((image.find(FILE).ino, image.find(NEXT).ino), (other.ino, one.ino), "{actions:?}");
}

//! Blocks that hold a copy of another node, which is whole elsewhere: something was written to the wrong place.

use f2fs_format::Nid;

use super::image::{Image, populated, without_checksums};
use super::lost::{repaired, tree};

/// Writes a copy of a node over another one, and repairs: the one that was copied is as it was. Says what was done.
fn copied_over(image: &Image, from: Nid, to: Nid) -> Vec<String> {
    let before = image.block(image.addr(from));
    image.put(image.addr(to), &before);
    let actions = repaired(image);
    assert!(image.block(image.addr(from)) == before, "{from} over {to}: {actions:?}");
    actions
}

#[test]
fn a_directory_keeps_its_own_names() {
    for whole in [populated(), without_checksums()] {
        let many = whole.find("many").ino;
        for other in ["deep", "deep/er/still", "small", "link"] {
            let image = whole.copy();
            let actions = copied_over(&image, whole.find(other).ino, many);
            assert_eq!(image.find("many").ino, many);
            for index in 0..700 {
                let path = format!("many/a name that takes several slots, number {index:04}");
                assert_eq!(image.find(&path).ino, whole.find(&path).ino, "{other}: {actions:?}");
            }
            assert_eq!(image.check().counts.inodes, whole.check().counts.inodes, "{other}: {actions:?}");
        }
    }
}

#[test]
fn a_file_keeps_its_own_blocks() {
    for whole in [populated(), without_checksums()] {
        let ino = whole.find("large").ino;
        let before = tree(whole, ino);
        let [one, two, three, ..] = whole.node(ino).inode().i_nid.map(Nid::from);
        let (many, small) = (whole.find("many").ino, whole.find("small").ino);
        for (from, to) in [(small, ino), (many, ino), (two, one), (one, two), (one, three), (small, one)] {
            let image = whole.copy();
            let actions = copied_over(&image, from, to);
            assert_eq!(image.find("large").ino, ino);
            assert!(tree(&image, ino) == before, "{from} over {to}: {actions:?}");
        }
    }
}

//! Files that lost their names, directories that lost their entries, and blocks that are something else.

use super::*;

impl Place {
    /// A directory in its inode loses all its entries but `.` and `..`.
    fn lose_entries(&self, path: &str) {
        let features = Features::EXTRA_ATTR.union(Features::INODE_CHECKSUM);
        self.edit_inode(self.ino(path), |node| {
            let mut entries = DentryViewMut::inline(node.inode_mut().inline_data_mut(features));
            let slots: Vec<usize> =
                entries.as_view().entries().flatten().filter(|entry| !entry.is_dot()).map(|entry| entry.slot).collect();
            slots.into_iter().for_each(|slot| drop(entries.remove(slot)));
        });
    }
}

#[test]
fn a_directory_of_zeros_gets_its_files_back() {
    let place = Place::new();
    place.edit_inode(place.ino("/docs"), |node| *node = NodeBlock::ZERO);
    assert_eq!(place.run(&["check"], &[]).status.code(), Some(4));
    let (said, _) = place.code(&["check", "--repair"], &[], 1);
    place.sound();
    for (path, len) in FILES {
        assert!(place.run(&["cat"], &[path]).stdout == content(path, len), "{path}: {said}");
    }
}

#[test]
fn a_directory_without_its_first_block_is_marked_as_one_without_dots() {
    let place = Place::new();
    let device = Arc::new(UringDevice::open(&place.image, UringOptions::new()).unwrap());
    let fs = FileSystem::open(device, Options::new()).unwrap();
    let name = |number| format!("/docs/below/{number}-{}", "long".repeat(50));
    // More than the first bucket has room for; then only one of those behind it is left.
    fs.create_file(name(0), 0o644).unwrap();
    (1..24).for_each(|number| fs.link(name(0), name(number)).unwrap());
    let entries: Vec<_> = fs.read_dir("/docs/below").unwrap().map(Result::unwrap).collect();
    let (kept, others) = entries.split_last().unwrap();
    let path = |entry: &DirEntry| format!("/docs/below/{}", String::from_utf8_lossy(&entry.name));
    others.iter().filter(|entry| entry.name != b"deep").for_each(|entry| fs.remove_file(path(entry)).unwrap());
    let [ino, deep] = ["/docs/below", "/docs/below/deep"].map(|path| fs.metadata(path).unwrap().ino.0);
    let kept = path(kept);
    fs.close().unwrap();
    drop(fs);
    let features = Features::EXTRA_ATTR.union(Features::INODE_CHECKSUM);
    place.edit_inode(ino, |node| {
        assert!(node.addresses(features).skip(2).any(BlockAddr::is_real), "{node:?}");
        node.set_address(0, BlockAddr::NULL, features);
    });
    let (said, _) = place.code(&["check", "--repair"], &[], 1);
    assert!(said.contains(&format!("directory {ino}: is marked as one without")), "{said}");
    place.sound();
    place.ok(&["stat"], &[&kept]);
    // The content of the lost block is back, in a new one.
    assert_ne!(place.ino(&kept), deep);
    assert_eq!(place.ino("/docs/below/deep"), deep);
    // And it is used like any other.
    place.ok(&["mkdir"], &["/docs/below/new"]);
    place.sound();
}

#[test]
fn what_has_no_name_any_more_goes_to_lost_and_found() {
    let place = Place::new();
    let [small, below] = ["/docs/small", "/docs/below"].map(|path| place.ino(path));
    // The directory loses all its entries, and two of them do not know their own names.
    place.lose_entries("/docs");
    for ino in [small, below] {
        place.edit_inode(ino, |node| node.inode_mut().i_namelen = 0.into());
    }
    assert_eq!(place.run(&["check"], &[]).status.code(), Some(4));
    let (said, _) = place.code(&["check", "--repair"], &[], 1);
    place.sound();
    assert_eq!(place.ok(&["ls"], &["/docs"]), "large\n", "{said}");
    let found = [(format!("{small}"), FILES[0]), (format!("{below}/deep"), FILES[2])];
    for (name, (path, len)) in found {
        assert!(place.run(&["cat"], &[&format!("/lost+found/{name}")]).stdout == content(path, len), "{path}: {said}");
    }
    // The volume goes on.
    place.ok(&["mv"], &[&format!("/lost+found/{below}"), "/docs/below"]);
    assert!(place.run(&["cat"], &[FILES[2].0]).stdout == content(FILES[2].0, FILES[2].1));
    place.ok(&["rm", "-r"], &["/lost+found"]);
    place.sound();
}

/// The table of segments is garbage, so that no segment counts as free; two lost directories have names of one file.
#[test]
fn room_is_found_where_no_segment_counts_as_free() {
    let place = Place::new();
    place.ok(&["mkdir"], &["/docs/beside"]);
    for name in ["/docs/below/one", "/docs/beside/two"] {
        place.ok(&["ln"], &["/docs/small", name]);
    }
    place.ok(&["rm", "-r"], &["/docs/small", "/lost+found"]);
    // The directory loses all its entries, and those that were below it do not know their own names.
    let lost = ["/docs/below", "/docs/beside"].map(|path| place.ino(path));
    place.lose_entries("/docs");
    lost.iter().for_each(|ino| place.edit_inode(*ino, |node| node.inode_mut().i_namelen = 0.into()));
    let mut bytes = place.bytes();
    let superblock = SuperBlock::read(bytes[..BLOCK].first_chunk().unwrap());
    let [from, to] = [superblock.sit_blkaddr, superblock.nat_blkaddr].map(|addr| addr.get() as usize * BLOCK);
    // No map is empty.
    let garbage = (0u32..).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8 | 1);
    bytes[from..to].iter_mut().zip(garbage).for_each(|(byte, garbage)| *byte = garbage);
    fs::write(&place.image, bytes).unwrap();
    let (said, _) = place.code(&["check", "--repair"], &[], 1);
    place.sound();
    let [below, beside] = lost;
    let names = [format!("/lost+found/{below}/one"), format!("/lost+found/{beside}/two")];
    for name in &names {
        assert!(place.run(&["cat"], &[name]).stdout == content(FILES[0].0, FILES[0].1), "{name}: {said}");
    }
    assert_eq!(place.ino(&names[0]), place.ino(&names[1]));
}

/// Neither the table of segments nor a summary says anything; each file is what `f2fs cat` shows before.
#[test]
fn data_that_no_table_knows_stays() {
    let place = Place::new();
    let large = place.path("large");
    fs::write(&large, content("/kept", 9 << 20)).unwrap();
    place.ok(&["put"], &[large.to_str().unwrap(), "/9 MiB"]);
    let mut bytes = place.bytes();
    let superblock = SuperBlock::read(bytes[..BLOCK].first_chunk().unwrap());

    let [sit, nat, ssa, main] =
        [superblock.sit_blkaddr, superblock.nat_blkaddr, superblock.ssa_blkaddr, superblock.main_blkaddr]
            .map(|addr| addr.get() as usize * BLOCK);
    bytes[sit..nat].fill(0);
    bytes[ssa..main].fill(0);
    fs::write(&place.image, bytes).unwrap();
    assert_eq!(place.run(&["check"], &[]).status.code(), Some(4));
    let (said, _) = place.code(&["check", "--repair"], &[], 1);
    place.sound();
    assert!(!said.contains("hole"), "{said}");
    for (path, len, of) in FILES.map(|(path, len)| (path, len, path)).into_iter().chain([("/9 MiB", 9 << 20, "/kept")])
    {
        assert!(place.run(&["cat"], &[path]).stdout == content(of, len), "{path}: {said}");
    }
}

/// Data where an inode was: the table and the summary still say that it is one, and nothing in it does. The summaries of
/// its blocks say what was in the file.
#[test]
fn a_file_comes_back_though_data_stand_in_the_place_of_its_inode() {
    let place = Place::new();
    place.edit_inode(place.ino("/kept"), |node| {
        let mut data = [0; BLOCK];
        data.iter_mut().zip(0u32..).for_each(|(byte, at)| *byte = (at.wrapping_mul(2_654_435_761) >> 24) as u8);
        *node = *NodeBlock::read(&data);
    });
    let (said, _) = place.code(&["check", "--repair"], &[], 1);
    place.sound();
    assert_eq!(place.ok(&["ls"], &["/lost+found"]), "", "{said}");
    // To whole blocks: nobody knows its size.
    let mut expected = content("/kept", 5000);
    expected.resize(8192, 0);
    assert!(place.run(&["cat"], &["/kept"]).stdout == expected, "{said}");
}

/// More files than fit into the inode of a directory, or of all the directories that a root has room for in its own.
#[test]
fn directories_grow_for_what_comes_back() {
    const MANY: usize = 17_000;
    let names = |place: &Place, path: &str| {
        let device = Arc::new(UringDevice::open(&place.image, UringOptions::new()).unwrap());
        let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
        let mut names: Vec<Vec<u8>> = fs.read_dir(path).unwrap().map(|entry| entry.unwrap().name).collect();
        names.sort();
        names
    };
    let features = Features::EXTRA_ATTR.union(Features::INODE_CHECKSUM);
    for dir in ["/home/many", "/"] {
        let place = Place::new();
        place.ok(&["format", "--size", "160M", "-O", "extra_attr,inode_checksum,sb_checksum", "--force"], &[]);
        let device = Arc::new(UringDevice::open(&place.image, UringOptions::new()).unwrap());
        let fs = FileSystem::open(device, Options::new()).unwrap();
        fs.create_dir("/home", 0o755).unwrap();
        fs.create_dir("/home/many", 0o755).unwrap();
        (0..MANY).for_each(|number| drop(fs.create_file(format!("{dir}/file {number}"), 0o644).unwrap()));
        let ino = fs.metadata(dir).unwrap().ino.0;
        fs.close().unwrap();
        drop(fs);
        let before = names(&place, dir);
        // The inode is empty: the names are known to the files.
        place.edit_inode(ino, |node| *node = NodeBlock::ZERO);
        place.code(&["check", "--repair"], &[], 1);
        place.sound();
        assert!(names(&place, dir) == before, "{dir}");
        // And it is used like any other.
        place.ok(&["mv"], &[&format!("{dir}/file 7777"), "/moved"]);
        place.sound();
        if dir == "/" {
            continue;
        }
        fs::remove_file(place.path("image.f2fs-backup")).unwrap();
        // Nobody knows the inode any more.
        place.edit_inode(ino, |node| *node = NodeBlock::ZERO);
        place.edit_inode(place.ino("/home"), |node| {
            let mut entries = DentryViewMut::inline(node.inode_mut().inline_data_mut(features));
            let slots: Vec<usize> = entries
                .as_view()
                .entries()
                .flatten()
                .filter(|entry| entry.ino.0 == ino)
                .map(|entry| entry.slot)
                .collect();
            slots.into_iter().for_each(|slot| drop(entries.remove(slot)));
            // One bit alone would be put back, by the checksum.
            node.inode_mut().i_mtime_nsec = 77_777.into();
        });
        place.code(&["check", "--repair"], &[], 1);
        place.sound();
        assert_eq!(names(&place, "/lost+found").len(), MANY - 1);
    }
}

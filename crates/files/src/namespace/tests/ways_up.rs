//! Directories whose `..` leads elsewhere than to where they have their name.

use super::*;

/// Lets the `..` of a directory name another one.
fn point(fs: &FileSystem, path: &str, above: &str) {
    let [inode, above] = [path, above].map(|path| fs.core.inode(fs.metadata(path).unwrap().ino).unwrap());
    let redirected =
        fs.core.change(|op| fs.namespace().redirect_entry(op, &inode, Name::PARENT, above.ino, FileKind::Directory));
    assert!(redirected.unwrap());
}

#[test]
fn a_directory_that_belongs_elsewhere_is_neither_removed_nor_replaced() {
    let fs = open(FsyncMode::Posix);
    for path in ["/a", "/b", "/c", "/a/d"] {
        fs.create_dir(path, 0o755).unwrap();
    }
    for above in ["/b", "/a/d"] {
        point(&fs, "/a/d", above);
        assert!(fs.remove_dir("/a/d").unwrap_err().is_corruption());
        assert!(fs.rename("/c", "/a/d", RenameMode::Replace).unwrap_err().is_corruption());
        assert!(fs.exists("/a/d").unwrap() && fs.exists("/c").unwrap());
    }
    point(&fs, "/a/d", "/a");
    fs.rename("/c", "/a/d", RenameMode::Replace).unwrap();
    fs.remove_dir("/a/d").unwrap();
}

/// Whoever removes it would wait for itself.
#[test]
fn a_directory_in_itself_is_not_removed() {
    let fs = open(FsyncMode::Posix);
    fs.create_dir("/d", 0o755).unwrap();
    let inode = fs.core.inode(fs.metadata("/d").unwrap().ino).unwrap();
    let name = Name::new(b"self").unwrap();
    fs.core.change(|op| fs.namespace().add_entry(op, &inode, name, inode.ino, FileKind::Directory)).unwrap();
    point(&fs, "/d", "/d");
    assert!(fs.remove_dir("/d/self").unwrap_err().is_corruption());
    assert!(fs.exists("/d/self").unwrap());
}

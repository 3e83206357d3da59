//! Changes in many places of the tree that [`everything`](super::everything) makes.

use super::{NodeKind, Op, Scale};

/// The script that changes the tree. Runs once, on what [`everything`](super::everything) made with the same scale.
#[must_use]
pub fn changes(scale: Scale) -> Vec<Op> {
    let mut ops = Vec::new();
    contents(&mut ops);
    names(&mut ops);
    attributes(&mut ops);
    large_directory(&mut ops, scale.many);
    ops
}

fn write(ops: &mut Vec<Op>, path: &str, offset: u64, length: u64) {
    let seed = 1_000_000 + ops.len() as u64;
    ops.push(Op::Write { path: path.into(), offset, length, seed });
}

fn create(ops: &mut Vec<Op>, path: &str, length: u64) {
    ops.push(Op::Create { path: path.into(), mode: 0o600 });
    if length > 0 {
        write(ops, path, 0, length);
    }
}

fn rename(ops: &mut Vec<Op>, from: &str, to: &str) {
    ops.push(Op::Rename { from: from.into(), to: to.into() });
}

/// Appends, overwrites, truncates.
fn contents(ops: &mut Vec<Op>) {
    write(ops, "/sizes/0", 0, 10);
    write(ops, "/sizes/100", 100, 200);
    write(ops, "/sizes/3488", 3488, 1);
    write(ops, "/sizes/4096", 4096, 70_000);
    write(ops, "/sizes/1000003", 500_000, 4096);
    write(ops, "/sizes/65536", 65_536, 5 << 20);
    for (path, size) in [
        ("/sizes/3000", 0),
        ("/sizes/8192", 100),
        ("/sizes/stretched", 900),
        ("/sizes/shrunk", 20_000),
        ("/sparse/points", 4096 * 874),
        ("/sparse/hole-only", 4097),
    ] {
        ops.push(Op::Truncate { path: path.into(), size });
    }
    write(ops, "/sparse/large", (16 << 20) + 5, 100_000);
}

/// New, moved and removed names.
fn names(ops: &mut Vec<Op>) {
    ops.push(Op::Mkdir { path: b"/changed".to_vec(), mode: 0o750 });
    for index in 0..200_u64 {
        create(ops, &format!("/changed/new{index}"), index * 53 % 9000);
    }
    ops.push(Op::Symlink { path: b"/changed/symlink".to_vec(), target: b"new0".to_vec() });
    ops.push(Op::Mknod { path: b"/changed/socket".to_vec(), kind: NodeKind::Socket, mode: 0o644 });
    rename(ops, "/links/a", "/changed/a");
    rename(ops, "/parent/after/child", "/child");
    rename(ops, "/deleted/0", "/deleted/3");
    rename(ops, "/empty", "/changed/empty");
    rename(ops, "/sizes/grown", "/changed/grown");
    ops.push(Op::Link { existing: b"/changed/grown".to_vec(), path: b"/sizes/grown-again".to_vec() });
    for index in 0..20 {
        ops.push(Op::Unlink { path: format!("/links/b/{index}-0").into_bytes() });
    }
    for path in ["/special/socket", "/special/block", "/links/long4000", "/links/short", "/sizes/overwritten"] {
        ops.push(Op::Unlink { path: path.into() });
    }
    ops.push(Op::Rmdir { path: b"/parent/after".to_vec() });
    for index in (6..600).step_by(6) {
        ops.push(Op::Unlink { path: format!("/deleted/{index}").into_bytes() });
    }
}

fn attributes(ops: &mut Vec<Op>) {
    let mut set = |path: &str, name: &str, length: usize| {
        ops.push(Op::SetXattr { path: path.into(), name: name.into(), value: vec![length as u8; length] });
    };
    set("/xattrs/inline", "user.small", 21);
    set("/xattrs/inline", "user.too-large-for-the-inode", 1500);
    set("/xattrs/node", "user.large", 5);
    set("/changed/new1", "user.new", 33);
    set("/names", "trusted.names", 300);
    for (path, name) in [
        ("/xattrs/many", "user.attribute-0"),
        ("/xattrs/many", "user.attribute-59"),
        ("/xattrs/empty-value", "user.empty"),
        ("/xattrs/directory", "user.on-directory"),
    ] {
        ops.push(Op::RemoveXattr { path: path.into(), name: name.into() });
    }
    ops.push(Op::Chown { path: b"/sizes/100".to_vec(), uid: 12, gid: 34 });
    ops.push(Op::Chmod { path: b"/sizes/100".to_vec(), mode: 0o4511 });
    ops.push(Op::Chmod { path: b"/names".to_vec(), mode: 0o700 });
}

/// Creates, removes and renames inside the large directory.
fn large_directory(ops: &mut Vec<Op>, count: u32) {
    for index in (1..count).step_by(97) {
        let path = format!("/many/entry-{index:05}");
        match index % 3 {
            0 => ops.push(Op::Unlink { path: path.into() }),
            1 => rename(ops, &path, &format!("/many/renamed-{index}")),
            _ => rename(ops, &path, &format!("/changed/from-many-{index}")),
        }
    }
    for index in 0..count / 100 {
        create(ops, &format!("/many/added-{index}"), 0);
    }
}

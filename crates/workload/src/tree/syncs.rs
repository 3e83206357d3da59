//! Changes of the tree that [`everything`](super::everything) makes, with syncs of files between them.

use super::{Op, Scale};

/// Files that are new.
const NEW: u64 = 150;

#[derive(Default)]
struct Script(Vec<Op>);

impl Script {
    fn write(&mut self, path: &str, offset: u64, length: u64) {
        let seed = 2_000_000 + self.0.len() as u64;
        self.0.push(Op::Write { path: path.into(), offset, length, seed });
    }

    fn write_durably(&mut self, path: &str, offset: u64, length: u64) {
        let seed = 3_000_000 + self.0.len() as u64;
        self.0.push(Op::WriteDurable { path: path.into(), offset, length, seed });
    }

    fn sync(&mut self, path: &str) {
        self.0.push(Op::Fsync { path: path.into() });
    }

    fn create(&mut self, path: &str, length: u64) {
        self.0.push(Op::Create { path: path.into(), mode: 0o640 });
        if length > 0 {
            self.write(path, 0, length);
        }
    }

    fn xattr(&mut self, path: &str, name: &str, length: usize) {
        let value = (0..length).map(|at| (at * 7 % 251) as u8).collect();
        self.0.push(Op::SetXattr { path: path.into(), name: name.into(), value });
    }
}

/// The script that changes and syncs files. Runs once, on what [`everything`](super::everything) made. Its first sync
/// is one that F2FS answers with a checkpoint; the last changes are not synced.
#[must_use]
pub fn syncs(_scale: Scale) -> Vec<Op> {
    let mut script = Script::default();
    script.0.push(Op::Rename { from: b"/sizes/3000".to_vec(), to: b"/sizes/renamed".to_vec() });
    script.sync("/sizes/renamed");
    old_files(&mut script);
    new_files(&mut script);
    // Not synced.
    script.write("/sizes/0", 0, 5000);
    script.create("/not-synced", 9000);
    script.0.push(Op::Unlink { path: b"/sizes/3488".to_vec() });
    script.0
}

fn old_files(script: &mut Script) {
    for (path, offset, length) in [
        ("/sizes/100", 100, 200),
        ("/sizes/4096", 4096, 70_000),
        ("/sizes/1000003", 500_000, 4096),
        ("/sizes/65536", 65_536, 5 << 20),
        ("/sparse/large", (16 << 20) + 5, 100_000),
        ("/sizes/renamed", 0, 20),
    ] {
        script.write(path, offset, length);
        script.sync(path);
    }
    for (path, offset, length) in [
        ("/sizes/4096", 4000, 10),               // within what stands there
        ("/sizes/1000003", 1_000_003, 300_000),  // behind the end
        ("/sparse/large", (20 << 20) + 7, 9000), // a node of its own
    ] {
        script.write_durably(path, offset, length);
    }
    script.0.push(Op::Truncate { path: b"/sizes/8192".to_vec(), size: 100 });
    script.sync("/sizes/8192");
    let path = "/sizes/65536";
    script.xattr(path, "user.small", 20);
    script.xattr(path, "user.large", 3000);
    script.0.push(Op::Chown { path: path.into(), uid: 12, gid: 34 });
    script.0.push(Op::Chmod { path: path.into(), mode: 0o604 });
    script.sync(path);
    script.write(path, 100_000, 10);
    script.sync(path);
}

fn new_files(script: &mut Script) {
    let path = |index: u64| if index.is_multiple_of(3) { format!("/sizes/new{index}") } else { format!("/new{index}") };
    for index in 0..NEW {
        script.create(&path(index), index * 977 % 30_000);
        if index.is_multiple_of(10) {
            script.xattr(&path(index), "user.name", 100);
        }
        script.sync(&path(index));
    }
    // Twice, with more in between; and gone and made again.
    for index in (0..NEW).step_by(4) {
        script.write(&path(index), 20_000 * (index % 5), 6000);
        script.sync(&path(index));
    }
    for index in (1..NEW).step_by(8) {
        script.0.push(Op::Unlink { path: path(index).into_bytes() });
        script.create(&path(index), 5000);
        script.sync(&path(index));
    }
    script.create("/new-large", 9 << 20);
    script.sync("/new-large");
    script.write("/new-large", 5 << 20, 10_000);
    script.sync("/new-large");
    for at in 0..20 {
        script.write_durably("/new-large", at * 700_001, 5000);
        script.create(&format!("/new-log{at}"), 0);
        script.write_durably(&format!("/new-log{at}"), 4096 * at, 3000 * at + 1);
    }
}

//! The enumeration: that of ACE (Mohan et al., "Finding Crash-Consistency Bugs with Bounded Black-Box Crash Testing",
//! OSDI 2018). Every sequence of so many operations over a bounded set of files and of parameters. Each is followed by
//! nothing, an `fsync` of its file, or a checkpoint; the last one always by one of the two.

use super::Workload;
use crate::base::Base;
use crate::op::Op;
use crate::tree::Tree;

/// The operations of the enumeration.
#[must_use]
pub fn alphabet() -> Vec<Op> {
    [
        "create /A/new",
        "create /new",
        "mkdir /A/newdir",
        "symlink /A/sym 20",
        "symlink /A/long 200",
        "link /A/foo /A/hard",
        "link /A/foo /B/hard2",
        "link /A/new /B/hard3",
        "rename /A/foo /A/foo2",
        "rename /A/foo /B/foo2",
        "rename /A/foo /B/bar",
        "rename /A/bar /A/foo",
        "rename /A/deep /B/deep",
        "rename /A/new /B/bar",
        "rename /A/new /A/new2",
        "exchange /A/foo /B/baz",
        "exchange /A/bar /B/soft",
        "unlink /A/foo",
        "unlink /A/bar",
        "unlink /B/hard",
        "unlink /A/new",
        "orphan /A/foo",
        "rmdir /A/deep",
        "write /A/foo 0 4096",
        "write /A/foo 8192 5000",
        "write /A/foo 40960 100",
        "write /A/bar 200 300",
        "write /A/bar 3000 6000",
        "write /A/new 0 6000",
        "write /B/baz 4096 4096",
        "durable /A/foo 4096 4096",
        "durable /B/baz 30000 5000",
        "truncate /A/foo 0",
        "truncate /A/foo 5000",
        "truncate /A/foo 20000",
        "truncate /B/baz 1",
        "reserve /A/foo 16384 9000",
        "allocate /A/foo 16384 9000",
        "allocate /A/bar 0 9000",
        "setxattr /A/foo user.y 30",
        "setxattr /A/foo user.long 3000",
        "setxattr /A/new user.y 30",
        "removexattr /A/foo user.x",
        "chmod /A/foo 600",
        "chown /A/foo 1000 1001",
        "utime /A/foo 86400",
        "chmod /A/deep 1700",
    ]
    .iter()
    .filter_map(|text| text.parse().ok())
    .collect()
}

/// All sequences of `length` operations that fit the tree of `base`, each with what makes it durable.
#[must_use]
pub fn sequences(base: &Base, length: usize) -> Vec<Workload> {
    let mut done: Vec<(Vec<Op>, Tree)> = vec![(Vec::new(), base.tree.clone())];
    let alphabet = alphabet();
    let mut all = Vec::new();
    for step in 0..length {
        let mut next = Vec::new();
        for (ops, tree) in &done {
            for op in alphabet.iter().filter(|op| op.fits(tree)) {
                let mut after = tree.clone();
                // Numbers that no inode of the base has.
                op.apply(&mut after, 0, 1_000_000 + step as u32);
                // Without a subject, some other file: an fsync of it must not take the operation along, or may.
                let subject = op.subject().filter(|path| Op::Sync((*path).to_owned()).fits(&after));
                let other = ["/B/bar", "/B/baz"].into_iter().find(|path| after.names.contains_key(*path));
                let sync = subject.or(other).map(|path| Op::Sync(path.to_owned())).filter(|sync| sync.fits(&after));
                let mut durable = vec![Some(Op::Checkpoint)];
                durable.extend(sync.map(Some));
                if step + 1 < length {
                    durable.push(None);
                }
                for last in durable {
                    let ops = ops.iter().cloned().chain([op.clone()]).chain(last).collect();
                    // There are a million sequences of three: nobody asks for the trees of the longest.
                    if step + 1 < length {
                        next.push((ops, after.clone()));
                    } else {
                        all.push(Workload::Sequence(base.kind, ops));
                    }
                }
            }
        }
        done = next;
    }
    all
}

//! Workload drivers that the benches, examples and the command of f2fs share.
//!
//! * [`ageing`]: a volume filled and overwritten for many times its size, with unclean stops.
//! * [`calibrate`](mod@calibrate): the costs of writes of each size on a device.
//! * [`copy`]: trees in and out of a volume, for `f2fs put` and `f2fs get`.
//! * [`fxmark`]: the metadata and block workloads of FxMark; `f2fs bench fxmark` runs them.
//! * [`manifest`]: a whole tree as text, one line per path; `f2fs manifest` prints it, of an image or of a directory.
//! * [`partial_gc`]: a long write into an aged volume, with each way of treating the valid blocks there.
//! * [`pmem`]: transfers on mapped persistent memory, beside bare copies and other devices.
//! * [`quickstart`]: a whole life of a volume, from format to check, with rates; the example of that name runs it.
//! * [`reads`]: reads of one file from many threads; `f2fs bench read` runs them.
//! * [`report`]: the machine that a number was taken on, percentiles, and charts.
//! * [`shell`]: names as a shell takes them back.
//! * [`varmail`]: a mail server's files, each synced twice, on models of devices or on real ones; `f2fs bench varmail`
//!   runs it.
//! * [`tree`]: scripts of file system operations that make and change trees of every kind of file, to be run alike by
//!   the kernel and by the library.
#![forbid(unsafe_code)]

pub mod ageing;
pub mod calibrate;
pub mod copy;
pub mod fxmark;
pub mod manifest;
mod one_processor;
pub mod partial_gc;
pub mod pmem;
pub mod quickstart;
pub mod reads;
pub mod report;
pub mod shell;
pub mod tree;
pub mod varmail;

/// A directory that has a second name: in a whole volume it has one, so a walk that meets it twice is in a loop.
fn second_name() -> f2fs_files::FsError {
    let what = "names of a directory";
    f2fs::format::Corruption::Range { what, found: 2, min: 1, max: 1 }.into()
}

/// The path of a name in a directory. Nothing as the directory: the name itself.
fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = directory.to_vec();
    if !matches!(path.last(), None | Some(b'/')) {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// The example of this crate's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

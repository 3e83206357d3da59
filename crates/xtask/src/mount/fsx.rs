//! fsx: random operations on one file, whose content is compared after each.

use std::process::Command;
use std::time::Instant;

use super::volume::{How, Mounted};
use super::{Bench, installed};
use crate::{Result, process};

const VERSION: &str = "0.3.2";

/// A way to run it: a name, the kernel's cache, and whether mappings are read and written more often than
/// files.
const WAYS: [(&str, &str, bool); 4] = [
    ("through", "cache=through", false),
    ("writeback", "cache=writeback", false),
    ("none", "cache=none", false),
    ("mapped", "cache=through", true),
];

/// Operations of one run of the program. It leaves the mapping of each `invalidate` behind, so that a long run becomes
/// slower and slower: 230,000 operations took 50 minutes beside other work, and left 47,000 mappings of one file.
const OF_A_RUN: u64 = 10_000;

/// The server's own page cache, beside each of them.
const PAGE_CACHES: [&str; 2] = ["0", "64M"];

pub(crate) fn run(bench: &Bench, operations: u64, seed: u64) -> Result<()> {
    let program = installed("fsx", VERSION)?;
    for page_cache in PAGE_CACHES {
        for (name, options, mapped) in WAYS {
            let configuration = bench.images.join(format!("fsx-{name}.toml"));
            fs_err::write(&configuration, self::configuration(mapped))?;
            let mounted = Mounted::new(bench, &format!("fsx-{name}"), "256M", How { options, page_cache })?;
            let begun = Instant::now();
            let mut left = operations;
            for run in 0.. {
                let these = left.min(OF_A_RUN);
                let mut command = Command::new(&program);
                command.args(["-q", "-S", &seed.wrapping_add(run).to_string(), "-N", &these.to_string(), "-f"]);
                command.arg(&configuration);
                // Its files of a failure go beside the images.
                process::output(command.arg("-P").arg(&bench.images).arg(mounted.dir.join("f")))?;
                left -= these;
                if left == 0 {
                    break;
                }
                if (run + 1).is_multiple_of(10) {
                    println!("fsx, {name}, page cache {page_cache}: {} of {operations} operations", operations - left);
                }
            }
            mounted.judge()?;
            let took = begun.elapsed().as_secs_f64();
            println!(
                "fsx {VERSION}, {name}, page cache {page_cache}: {operations} operations from seed {seed} on in {took:.0} s"
            );
        }
    }
    library(operations, seed)
}

/// The same kind of operations on the library itself, without a mount.
fn library(operations: u64, seed: u64) -> Result<()> {
    let begun = Instant::now();
    let mut test = process::cargo(["test", "--quiet", "--package", "f2fs-files", "--test", "fsx"]);
    test.args(["--", "--nocapture"]);
    test.env("F2FS_FSX_OPERATIONS", operations.to_string()).env("F2FS_FSX_SEED", seed.to_string());
    process::run(&mut test)?;
    let took = begun.elapsed().as_secs_f64();
    println!("fsx, the library, three page caches: {operations} operations each from seed {seed} in {took:.0} s");
    Ok(())
}

fn configuration(mapped: bool) -> String {
    let (file, mapping) = if mapped { (3, 30) } else { (10, 5) };
    format!(
        "flen = 262144\n[opsize]\nmax = 65536\n[weights]\nclose_open = 1.0\nread = {file}.0\nwrite = {file}.0\n\
         mapread = {mapping}.0\nmapwrite = {mapping}.0\ntruncate = 2.0\ninvalidate = 1.0\nfsync = 0.2\nfdatasync = 0.2\n\
         posix_fallocate = 1.0\npunch_hole = 1.0\nsendfile = 1.0\nposix_fadvise = 1.0\ncopy_file_range = 1.0\n"
    )
}

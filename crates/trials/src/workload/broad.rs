//! Large directories: names that come and go in blocks of several levels of the hash table, and directories that grow.

use crate::base::BaseKind;
use crate::workload::Workload;

/// Names that are made one after the other, to reach several blocks or the next level.
const MANY: usize = 12;

/// The workloads: each changes large directories, and makes files in them durable.
#[must_use]
pub fn broad() -> Vec<Workload> {
    // Takes 25 slots of a block.
    let long = "x".repeat(200);
    let mut texts = Vec::new();
    for dir in ["/D", "/E", "/F"] {
        let many: Vec<String> = (0..MANY).map(|at| format!("create {dir}/n{at}")).collect();
        let many = many.join("; ");
        let few: Vec<String> = (0..MANY).map(|at| format!("unlink {dir}/l{}", 2 + at * 10)).collect();
        let few = few.join("; ");
        texts.extend([
            format!("create {dir}/new; sync {dir}/new"),
            format!("create {dir}/{long}; sync {dir}/{long}"),
            format!("{many}; sync {dir}/n{}", MANY - 1),
            format!("{many}; checkpoint; create {dir}/new; sync {dir}/new"),
            format!("{few}; sync {dir}/f1"),
            format!("{few}; checkpoint; {many}; sync {dir}/n3"),
            format!("create {dir}/new; write {dir}/new 0 5000; sync {dir}/new; unlink {dir}/new; create {dir}/new2; sync {dir}/new2"),
            format!("unlink {dir}/f0; sync {dir}/f4"),
            format!("unlink {dir}/f3; create {dir}/f3; sync {dir}/f3"),
            format!("rename {dir}/f0 {dir}/g0; sync {dir}/g0"),
            format!("rename {dir}/f4 {dir}/f1; sync {dir}/f1"),
            format!("rename {dir}/f2 /A/moved; sync /A/moved"),
            format!("rename /A/foo {dir}/foo; sync {dir}/foo"),
            format!("rename /A/foo {dir}/f3; sync {dir}/f3"),
            format!("rename {dir}/f1 {dir}/g1; checkpoint; create {dir}/new; sync {dir}/new"),
            format!("exchange {dir}/f0 {dir}/f4; sync {dir}/f0"),
            format!("exchange {dir}/f0 /B/bar; write {dir}/f0 0 100; sync {dir}/f0"),
            format!("mkdir {dir}/sub; create {dir}/sub/x; sync {dir}/sub/x; unlink {dir}/sub/x; rmdir {dir}/sub; checkpoint"),
            format!("rename {dir} /A/moved; sync /A/moved/f1"),
            format!("link {dir}/f1 {dir}/h1; sync {dir}/h1; unlink {dir}/f1; checkpoint"),
            format!("write {dir}/f0 0 9000; rename {dir}/f1 {dir}/g1; sync {dir}/f0"),
            format!("chmod {dir} 700; create {dir}/new; sync {dir}/new"),
        ]);
    }
    texts.iter().filter_map(|text| format!("{}: {text}", BaseKind::Broad.name()).parse().ok()).collect()
}

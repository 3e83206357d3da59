//! Cache lines that operations write, counted in the counting half of f2fs-sync.
//!
//! ```text
//! cargo xtask counting --table
//! ```
//!
//! Two threads do each operation, in turns and on objects of their own. `lines`: distinct lines written per operation.
//! `shared`: those that the other thread writes as well, in some operation of its own. `global`: those that at least a
//! quarter of both threads' operations write; below the table each is named by where it is written. Other lines that both
//! write are those of stripes (which meet by chance) and of batches (now and then); `--all` names them, too.
//!
//! What is not counted: memory that is written under a lock, and the allocator's own.

#[cfg(f2fs_counting)]
fn main() {
    use f2fs_benches::cache_lines::CASES;

    let all = std::env::args().any(|arg| arg == "--all");
    println!("{:<46} {:>7} {:>7} {:>7}", "operation", "lines", "shared", "global");
    let mut named = Vec::new();
    for case in CASES {
        let footprint = (case.measure)();
        let global = footprint.global().count();
        println!("{:<46} {:>7.1} {:>7.1} {global:>7}", case.name, footprint.lines, footprint.shared);
        let shown = if all { footprint.common.len() } else { global };
        named.extend(footprint.common.into_iter().take(shown).map(|common| (case.name, common)));
    }
    let mut last = "";
    let mut lines = named.into_iter().peekable();
    while let Some((name, common)) = lines.next() {
        if name != last {
            println!("\n{name}");
            last = name;
        }
        // Lines of one kind are told once, with the shares of the one that is written most.
        let mut alike = 1;
        while lines.next_if(|(other, next)| *other == name && next.sites == common.sites).is_some() {
            alike += 1;
        }
        println!("  {alike} in {:.2} and {:.2} of the operations", common.share[0], common.share[1]);
        for site in common.sites {
            println!("      {site}");
        }
    }
}

#[cfg(not(f2fs_counting))]
fn main() {
    println!("cache_lines needs the counting half: cargo xtask counting --table");
}

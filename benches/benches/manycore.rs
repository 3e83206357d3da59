//! Workloads on one and two threads of this machine, and on machines that are played, with up to 128 cores: the latter
//! are predictions, not measurements.
//!
//! ```text
//! cargo xtask manycore --workload mwul --policy kernel-scan --machine paper --cores 1,15,120 --lines
//! cargo xtask manycore --validate
//! cargo bench -p f2fs-benches --bench manycore -- --measure --workload drbl,counter
//! ```
//!
//! docs/SCALING.md says what is modelled, what is left out, and with what it was compared. The half of `f2fs-sync` that
//! plays a machine is no half to measure in: `cargo xtask manycore --validate` builds the bench in both.

#[cfg(not(f2fs_manycore))]
fn main() -> std::process::ExitCode {
    match measured::main() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(f2fs_manycore)]
fn main() {
    played::main();
}

#[cfg(not(f2fs_manycore))]
mod measured {
    use std::fs;
    use std::path::PathBuf;

    use clap::Parser;
    use f2fs_benches::arguments::ByCargo;
    use f2fs_benches::scaling::real::{Rate, Volumes, measure, memory};
    use f2fs_benches::scaling::{Subject, Workload, hardware};
    use f2fs_nat::Policy;

    #[derive(Debug, Parser)]
    struct Args {
        /// Measure workloads on this machine. What is predicted is played: cargo xtask manycore.
        #[arg(long)]
        measure: bool,
        /// Measure what the processors of this machine cost: lines, system calls, computing.
        #[arg(long)]
        hardware: bool,
        /// All of them without it, but for the tree.
        #[arg(long, value_delimiter = ',')]
        workload: Vec<String>,
        /// sharded, clue, kernel-scan.
        #[arg(long, value_delimiter = ',', default_value = "sharded")]
        policy: Vec<Policy>,
        /// Names are changed under one lock for the directory, as in Linux.
        #[arg(long)]
        whole_directory: bool,
        /// Numbers of threads; one is measured in any case. Takes 6 GiB of memory, and 2 GiB for each of the most.
        #[arg(long, value_delimiter = ',', default_value = "1,2")]
        threads: Vec<usize>,
        /// Measurements of each, of which the best counts.
        #[arg(long, default_value_t = 1)]
        rounds: usize,
        /// Slices of 4 ms, of which the fastest tenth counts.
        #[arg(long, default_value_t = 60)]
        slices: usize,
        /// Comma separated values, in this file.
        #[arg(long)]
        csv: Option<PathBuf>,
        #[command(flatten)]
        by_cargo: ByCargo,
    }

    pub(super) fn main() -> std::io::Result<()> {
        let mut args = Args::parse();
        if !args.measure && !args.hardware {
            println!("cargo xtask manycore plays workloads; --measure and --hardware measure this machine");
        }
        args.threads.retain(|threads| *threads > 1);
        args.threads.insert(0, 1);
        if args.hardware {
            hardware::measure(&args.threads).print();
        }
        if !args.measure {
            return Ok(());
        }
        let most = args.threads.iter().copied().max().unwrap_or(1);
        let (needed, there) = (memory(most), available()?);
        // The rest is for caches of files, and for the system.
        if needed > there / 10 * 9 {
            let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
            let what = format!(
                "devices for {most} threads take {:.0} GiB of memory, and {:.1} GiB are available: give fewer --threads",
                gib(needed),
                gib(there)
            );
            return Err(std::io::Error::new(std::io::ErrorKind::OutOfMemory, what));
        }
        workloads(&args)
    }

    /// Bytes of memory that this machine could give now.
    fn available() -> std::io::Result<u64> {
        let all = fs::read_to_string("/proc/meminfo")?;
        let line = all.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.map(|kib| kib << 10).ok_or_else(|| std::io::Error::other("/proc/meminfo does not say what is available"))
    }

    /// The best of so many measurements, in turn with one volume for all and with one for each thread.
    fn both(args: &Args, subject: &Subject, threads: usize) -> (Rate, Rate) {
        let mut best = [Rate { best: 0.0, median: 0.0 }; 2];
        for _ in 0..args.rounds.max(1) {
            for (best, volumes) in best.iter_mut().zip([Volumes::Shared, Volumes::Apart]) {
                // One thread has one volume in any case.
                if volumes == Volumes::Shared || threads > 1 {
                    let rate = measure(subject, volumes, threads, args.slices);
                    *best = Rate { best: best.best.max(rate.best), median: best.median.max(rate.median) };
                }
            }
        }
        let [shared, apart] = best;
        (shared, if threads > 1 { apart } else { shared })
    }

    fn workloads(args: &Args) -> std::io::Result<()> {
        let wanted =
            |workload: &Workload| args.workload.is_empty() || args.workload.iter().any(|name| name == workload.name());
        let mut csv = String::from("workload,policy,directory,threads,shared,shared_median,apart,apart_median\n");
        println!("operations a second: one volume for all threads, and one for each\n");
        println!(
            "{:<11} {:<12} {:>7} {:>12} {:>12} {:>6} {:>12} {:>6} {:>15}",
            "workload", "policy", "threads", "shared", "median", "by one", "apart", "by one", "shared by apart"
        );
        for workload in Workload::real().filter(wanted) {
            for policy in &args.policy {
                let subject =
                    Subject { workload, policy: *policy, whole_directory: args.whole_directory, volume: None };
                let directory = if args.whole_directory { "whole" } else { "bucket" };
                let mut one = f64::NAN;
                for threads in &args.threads {
                    let (shared, apart) = both(args, &subject, *threads);
                    if *threads == 1 {
                        one = shared.best;
                    }
                    println!(
                        "{:<11} {:<12} {threads:>7} {:>12.0} {:>12.0} {:>6.2} {:>12.0} {:>6.2} {:>15.2}",
                        workload.name(),
                        policy.to_string(),
                        shared.best,
                        shared.median,
                        shared.best / one,
                        apart.best,
                        apart.best / one,
                        shared.best / apart.best
                    );
                    csv += &format!(
                        "{},{policy},{directory},{threads},{:.0},{:.0},{:.0},{:.0}\n",
                        workload.name(),
                        shared.best,
                        shared.median,
                        apart.best,
                        apart.median
                    );
                }
                if let Some(file) = &args.csv {
                    fs::write(file, &csv)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(f2fs_manycore)]
mod played {
    use std::path::PathBuf;

    use clap::Parser;
    use f2fs_benches::arguments::ByCargo;
    use f2fs_benches::manycore::{Curve, Subject, Workload, measure, pause, svg, validate};
    use f2fs_nat::Policy;
    use f2fs_sync::manycore::{Hot, Machine};

    #[derive(Debug, Parser)]
    struct Args {
        /// Compare with what was measured elsewhere.
        #[arg(long)]
        validate: bool,
        /// With --validate: machines, papers or all.
        #[arg(long, default_value = "all")]
        against: String,
        /// With --validate: what --measure wrote on this machine.
        #[arg(long)]
        measured: Option<PathBuf>,
        /// mwul, mwum, mwcl, mwcm, mwrl, mwrm, mrpl, mrpm, mrph, mrdl, mrdm, drbl, drbm, drbh, dwol, dwom, dwal, dwtl,
        /// dwsl, dwsj, nids, nids-short, tree, counter, padded, spin, mutex, readers; without it, all but the last five.
        #[arg(long, value_delimiter = ',')]
        workload: Vec<String>,
        /// sharded, clue or kernel-scan.
        #[arg(long, default_value = "sharded")]
        policy: Policy,
        /// Names are changed under one lock for the directory, as in Linux.
        #[arg(long)]
        whole_directory: bool,
        /// Gigabytes of the volume [default: 16 GiB].
        #[arg(long)]
        volume: Option<usize>,
        /// paper, epyc, xeon16 or this.
        #[arg(long, default_value = "epyc")]
        machine: String,
        /// Numbers of cores, at most those of the machine [default: 1, 2, 8, 16, 32, 64, 128 as far as it has them].
        #[arg(long, value_delimiter = ',')]
        cores: Vec<usize>,
        /// Operations of each core; without it, as many as take 2 ms, between 200 and 4000.
        #[arg(long)]
        operations: Option<u64>,
        /// A checkpoint of so many new inodes, beside operations of all other cores: how long those wait.
        #[arg(long)]
        pause: Option<u64>,
        /// Each point with the costs of lines and system calls halved and doubled as well.
        #[arg(long)]
        band: bool,
        /// Comma separated values.
        #[arg(long)]
        csv: bool,
        /// A picture of the curves, in this file.
        #[arg(long)]
        svg: Option<PathBuf>,
        /// The most expensive lines, with their place in the source.
        #[arg(long)]
        lines: bool,
        #[command(flatten)]
        by_cargo: ByCargo,
    }

    /// The numbers of cores that are played if none are asked for.
    const CORES: [usize; 7] = [1, 2, 8, 16, 32, 64, 128];

    fn fail(what: &str) -> ! {
        eprintln!("error: {what}");
        std::process::exit(2)
    }

    pub(super) fn main() {
        let mut args = Args::parse();
        if args.validate {
            let measured = args.measured.map(|file| {
                std::fs::read_to_string(&file).unwrap_or_else(|error| fail(&format!("{}: {error}", file.display())))
            });
            let Some(against) = validate::Against::named(&args.against) else {
                fail("--against machines, papers or all")
            };
            validate::report(against, measured.as_deref());
            return;
        }
        let Some(machine) = Machine::named(&args.machine) else { fail("machines: paper, epyc, xeon16, this") };
        let most = machine.cores();
        if args.cores.is_empty() {
            args.cores = CORES.into_iter().filter(|cores| *cores <= most).collect();
        }
        if let Some(wrong) = args.cores.iter().find(|cores| !(1..=most).contains(*cores)) {
            fail(&format!("--cores {wrong}: the machine {} has 1 to {most}", args.machine));
        }
        if let Some(operations) = args.operations.filter(|operations| !(10..=10_000_000).contains(operations)) {
            fail(&format!("--operations {operations}: 10 to 10000000 for each core are possible"));
        }
        if let Some(inodes) = args.pause {
            show_pauses(&machine, &args.cores, inodes, args.lines);
            return;
        }
        let workloads: Vec<Workload> = if args.workload.is_empty() {
            Workload::of_files().collect()
        } else {
            let named = args.workload.iter().map(|name| Workload::named(name));
            named.map(|workload| workload.unwrap_or_else(|| fail("no such workload; --help names all"))).collect()
        };
        if args.csv {
            println!("machine,workload,policy,cores,rate,ratio,cheap,dear,work,lines,locks,device");
        } else {
            println!("modelled: {}\n", machine.source);
            println!(
                "{:<11} {:>5} {:>12} {:>8} {:>17}  {:>6} {:>6} {:>6} {:>6}",
                "workload", "cores", "operations/s", "ratio", "half, double cost", "work %", "lines", "locks", "device"
            );
        }
        let mut curves: Vec<(String, Curve)> = Vec::new();
        for workload in workloads {
            let volume = args.volume.map(|gb| gb * 1_000_000_000);
            let subject = Subject { workload, policy: args.policy, whole_directory: args.whole_directory, volume };
            let curve =
                measure(&subject, &machine, &args.cores, args.operations.unwrap_or_else(|| workload.laps()), args.band);
            for point in &curve.points {
                let (rate, spent) = (point.outcome.rate(), point.outcome.spent);
                let shares = [spent.work, spent.lines, spent.locks, spent.device].map(|part| spent.percent(part));
                let [work, lines, locks, device] = shares;
                if args.csv {
                    let (cheap, dear) = point
                        .band
                        .map_or_else(Default::default, |(cheap, dear)| (format!("{cheap:.3}"), format!("{dear:.3}")));
                    println!(
                        "{},{},{},{},{rate:.0},{:.3},{cheap},{dear},{work:.1},{lines:.1},{locks:.1},{device:.1}",
                        machine.name,
                        workload.name(),
                        args.policy,
                        point.cores,
                        point.ratio
                    );
                } else {
                    let band = point.band.map_or_else(String::new, |(cheap, dear)| format!("{cheap:.1} {dear:.1}"));
                    println!(
                        "{:<11} {:>5} {rate:>12.0} {:>8.2} {band:>17}  {work:>6.1} {lines:>6.1} {locks:>6.1} {device:>6.1}",
                        workload.name(),
                        point.cores,
                        point.ratio
                    );
                }
            }
            if args.lines
                && let Some(last) = curve.points.last()
            {
                show(
                    &format!("{}, {} cores: places", workload.name(), last.cores),
                    &last.outcome.places,
                    last.outcome.laps,
                );
                show("lines", &last.outcome.lines, last.outcome.laps);
                show("locks that are waited for", &last.outcome.waits, last.outcome.laps);
            }
            curves.push((workload.name().to_owned(), curve));
        }
        if let Some(file) = args.svg {
            let title = format!("Rate over that of one core, modelled: {}, {}", machine.name, args.policy);
            if let Err(error) = std::fs::write(&file, svg::draw(&title, &curves)) {
                fail(&format!("{}: {error}", file.display()));
            }
        }
    }

    fn show_pauses(machine: &Machine, cores: &[usize], inodes: u64, lines: bool) {
        println!("modelled: {}\n", machine.source);
        println!("cores, checkpoint ms; operations, median, 99.9 %, longest us: alone and during");
        for cores in cores {
            let paused = pause::play(machine, *cores, inodes);
            print!("{cores:>5} {:>9.1}", paused.checkpoint as f64 / 1e6);
            for pause::Waits { count, median, high, longest } in [&paused.alone, &paused.during] {
                print!("  {count:>9} {:>7.1} {:>9.1} {:>9.1}", median / 1e3, high / 1e3, longest / 1e3);
            }
            println!();
            if lines {
                show("places", &paused.outcome.places, paused.outcome.laps);
                show("locks that are waited for", &paused.outcome.waits, paused.outcome.laps);
            }
        }
    }

    fn show(title: &str, hot: &[Hot], laps: u64) {
        println!("\n{title}: transfers (of locks: waits) and nanoseconds for each operation");
        for hot in hot.iter().take(12) {
            let each = |number: u64| number as f64 / laps.max(1) as f64;
            println!("  {:>8.3} {:>9.1}  {}", each(hot.transfers), each(hot.cost) / 1000.0, hot.site);
        }
        println!();
    }
}

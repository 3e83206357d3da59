//! Comparisons with what was measured: the two papers on machines of eight sockets, and two threads of this machine.

use f2fs_nat::Policy;
use f2fs_sync::manycore::Machine;
use f2fs_workload::reads::PUBLISHED;

use super::{Subject, Workload, measure, measure_at, reads};

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The compared quantity.
    pub what: String,
    /// The measurement.
    pub measured: f64,
    /// The model's prediction.
    pub modelled: f64,
    /// The same with costs of lines and system calls halved and doubled.
    pub band: (f64, f64),
    /// The measured value over the modelled one, or the other way round, may be this.
    pub allowed: f64,
}

impl Row {
    /// Whether both are as near as allowed.
    #[must_use]
    pub fn agrees(&self) -> bool {
        let ratio = self.modelled / self.measured;
        ratio.max(1.0 / ratio) <= self.allowed
    }
}

/// Reads of one file through one tree of extent states under one lock, on the paper's machine.
#[must_use]
pub fn tree(jobs: &[usize], operations: u64) -> Vec<Row> {
    let subject = Subject::new(Workload::Tree);
    let curve = measure(&subject, &Machine::paper(), jobs, operations, true);
    let told = |jobs: usize| PUBLISHED.iter().find(|(told, ..)| *told == jobs);
    let mut rows = Vec::new();
    for point in &curve.points {
        let Some((_, rate, share)) = told(point.cores) else { continue };
        let modelled = point.outcome.rate() / 1000.0;
        let (cheap, dear) = point.band.unwrap_or((point.ratio, point.ratio));
        let scale = modelled / point.ratio;
        rows.push(Row {
            what: format!("tree, {} jobs, thousand reads/s", point.cores),
            measured: *rate,
            modelled,
            band: (cheap * scale, dear * scale),
            allowed: if point.cores <= 30 { 1.1 } else { 1.5 },
        });
        let spent = point.outcome.spent;
        let locks = spent.percent(spent.locks);
        rows.push(Row {
            what: format!("tree, {} jobs, % of time in locks", point.cores),
            measured: share + 1.0,
            modelled: locks + 1.0,
            band: (f64::NAN, f64::NAN),
            allowed: if *share > 10.0 { (share + 10.0) / share } else { 10.0 },
        });
    }
    rows
}

/// Thousand reads a second through the tree in other settings than those of [`tree`]: how many pages were read before,
/// and whether the jobs fill one socket after the other.
#[must_use]
pub fn tree_settings(jobs: usize, operations: u64) -> Vec<(String, f64)> {
    let machine = Machine::paper();
    let pace = Subject::new(Workload::Tree).pace(operations.max(200));
    let (spread, packed) = (machine.spread(jobs), (0..jobs).collect::<Vec<_>>());
    let settings =
        [(0, &spread), (reads::EARLIER / 4, &spread), (reads::EARLIER * 4, &spread), (reads::EARLIER, &packed)];
    settings
        .into_iter()
        .map(|(earlier, cores)| {
            let outcome = reads::play_after(earlier, &machine, &pace, cores, operations);
            let place = if *cores == spread { "" } else { ", sockets filled in turn" };
            (format!("{earlier} pages read before{place}"), outcome.rate() / 1000.0)
        })
        .collect()
}

/// Bytes of the paper's device.
const PAPERS_VOLUME: usize = 250_000_000_000;

fn unlinks(workload: Workload, volume: Option<usize>) -> Subject {
    let whole_directory = workload == Workload::Mwum;
    Subject { workload, policy: Policy::KernelScan, whole_directory, volume }
}

/// The policies against each other, on the paper's machine: `clue` over `kernel-scan` at so many cores, with a volume of
/// so many bytes.
#[must_use]
pub fn policies(workload: Workload, told: f64, cores: usize, operations: u64, volume: Option<usize>) -> Row {
    let base = unlinks(workload, volume);
    let rate = |policy, machine: &Machine| {
        let subject = base.with(policy);
        subject.play(machine, &subject.pace(operations.max(100)), cores, operations).rate()
    };
    let over = |machine: &Machine| rate(Policy::CLUE, machine) / rate(Policy::KernelScan, machine);
    let machine = Machine::paper();
    Row {
        what: format!("{}, {cores} cores, clue over kernel-scan{}", workload.name(), size(volume)),
        measured: told,
        modelled: over(&machine),
        band: (over(&machine.with_costs(50)), over(&machine.with_costs(200))),
        allowed: 1.3,
    }
}

fn size(volume: Option<usize>) -> String {
    volume.map_or_else(String::new, |bytes| format!(", {} GB", bytes / 1_000_000_000))
}

/// Microseconds of an unlink on one core of the paper's machine, by policy. With a shared directory all of it but the
/// way to the directory happens under the directory's lock.
#[must_use]
pub fn unlink_times(volume: Option<usize>, operations: u64) -> [(Policy, f64); 3] {
    [Policy::KernelScan, Policy::CLUE, Policy::Sharded].map(|policy| {
        let subject = unlinks(Workload::Mwum, volume).with(policy);
        let pace = subject.pace(operations.max(100));
        (policy, 1e6 / subject.play(&Machine::paper(), &pace, 1, operations).rate())
    })
}

/// A line that `--measure` wrote.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    subject: Subject,
    threads: usize,
    /// Operations a second with one volume for all threads.
    shared: f64,
    /// With one for each.
    apart: f64,
}

impl Measured {
    fn of(line: &str) -> Option<Measured> {
        let fields: Vec<&str> = line.split(',').collect();
        let [workload, policy, directory, threads, shared, _, apart, _] = fields[..] else { return None };
        let workload = Workload::named(workload)?;
        let policy = policy.parse().ok()?;
        let subject = Subject { workload, policy, whole_directory: directory == "whole", volume: None };
        Some(Measured {
            subject,
            threads: threads.parse().ok()?,
            shared: shared.parse().ok()?,
            apart: apart.parse().ok()?,
        })
    }
}

/// Threads of a machine that share a volume, relative to as many that have one each, times their number: what they lose
/// by sharing is what the model is about. What slows threads down that share nothing (clocks, two threads on a core,
/// memory) is in both. `allowed`: how far apart measured and modelled may be.
#[must_use]
pub fn threads(machine: &Machine, csv: &str, allowed: f64) -> Vec<Row> {
    let measured: Vec<Measured> = csv.lines().filter_map(Measured::of).collect();
    let mut rows = Vec::new();
    for one in measured.iter().filter(|line| line.threads == 1) {
        let Subject { workload, .. } = one.subject;
        let of_it: Vec<&Measured> =
            measured.iter().filter(|line| line.subject == one.subject && line.threads > 1).collect();
        let cores: Vec<usize> = of_it.iter().map(|line| line.threads).collect();
        let laps = workload.laps();
        let pace = one.subject.pace_on(machine, (1e9 / one.shared) as u64, laps.max(200));
        let curve = measure_at(&one.subject, machine, &pace, &cores, laps, true);
        for (line, point) in of_it.into_iter().zip(&curve.points) {
            rows.push(Row {
                what: format!("{}, {} threads", workload.name(), line.threads),
                measured: line.threads as f64 * line.shared / line.apart,
                modelled: point.ratio,
                band: point.band.unwrap_or((point.ratio, point.ratio)),
                allowed,
            });
        }
    }
    rows
}

fn print(title: &str, rows: impl IntoIterator<Item = Row>) {
    println!("{title:<44} {:>9} {:>9} {:>19}  agrees", "measured", "modelled", "half, double cost");
    for row in rows {
        let Row { what, measured, modelled, band: (cheap, dear), .. } = &row;
        let verdict = if row.agrees() { "yes" } else { "no" };
        println!("{what:<44} {measured:>9.2} {modelled:>9.2} {cheap:>9.2} {dear:>9.2}  {verdict}");
    }
    println!();
}

/// Sixteen threads of a machine that was lent once.
const XEON16: &str = include_str!("../../measured/xeon16.csv");

/// What the model is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// Threads of real machines.
    Machines,
    /// The papers.
    Papers,
    /// Both.
    All,
}

impl Against {
    /// By its name in commands.
    #[must_use]
    pub fn named(name: &str) -> Option<Against> {
        match name {
            "machines" => Some(Against::Machines),
            "papers" => Some(Against::Papers),
            "all" => Some(Against::All),
            _ => None,
        }
    }
}

/// Prints comparisons; with those of this machine, if it was measured.
pub fn report(against: Against, measured: Option<&str>) {
    if against != Against::Papers {
        machines(measured);
    }
    if against != Against::Machines {
        papers();
    }
}

fn machines(measured: Option<&str>) {
    if let Some(csv) = measured {
        print("this machine, threads sharing a volume", threads(&Machine::this(), csv, 1.15));
    }
    print("xeon16, threads sharing a volume", threads(&Machine::xeon16(), XEON16, 1.2));
}

fn papers() {
    let jobs = PUBLISHED.map(|(jobs, ..)| jobs);
    let rows = tree(&jobs, 100).into_iter();
    print("paper's machine, 8 x 15 cores, reads", rows);
    for jobs in [20, 50, 120] {
        let settings = tree_settings(jobs, 100);
        let settings: Vec<String> = settings.iter().map(|(what, rate)| format!("{what} {rate:.1}")).collect();
        println!("tree, {jobs} jobs, thousand reads/s: {}", settings.join("; "));
    }
    println!();
    let volumes = [None, Some(PAPERS_VOLUME)];
    let rows = volumes.into_iter().flat_map(|volume| {
        [(Workload::Mwul, 15.0), (Workload::Mwum, 3.0)]
            .map(|(workload, told)| policies(workload, told, 120, 40, volume))
    });
    print("paper's machine, unlinks", rows);
    for volume in volumes {
        let times = unlink_times(volume, 100).map(|(policy, time)| format!("{policy} {time:.1}"));
        println!("an unlink in a shared directory, one core, us{}: {}", size(volume), times.join(", "));
    }
}

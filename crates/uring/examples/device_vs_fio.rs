//! Compares the device with fio on the same file, in alternating rounds of one run.
//!
//! ```text
//! cargo run --release -p f2fs-uring --example device_vs_fio -- [--dir DIR] [--mib 1024] [--seconds 2] [--rounds 5] [--only NAME] [--csv FILE]
//! cargo run --release -p f2fs-uring --example device_vs_fio -- --device /dev/ng0n1 [--io-poll yes] [--sq-poll yes] ...
//! ```
//!
//! With `--device` it measures a block device or an NVMe namespace, **whose content is lost**, beside fio's engine
//! `io_uring` or `io_uring_cmd`: reads and writes of 4 KiB at random places, at depths of 1, 32 and 128, by one thread
//! and by four. `--fio WORDS` says how fio is started, `--io-poll` and `--sq-poll` have both sides poll.
//!
//! Each round runs fio (`--direct=1`; `--ioengine=psync` beside calls, `io_uring` beside queues) and this crate one
//! after the other, in every second round this crate first; the ratio of a round is ours by fio's. The table shows the
//! medians, and the least and greatest ratio. Processor time a request (user and system, of the process) is the measure
//! that a busy machine disturbs least; fio's includes its statistics, and ours the choice of addresses.
//!
//! Lines marked "own buffers" use the buffers of the queue, which are registered with the ring; lines marked fixedbufs
//! compare fio with itself, to show what registering gains.
#![allow(clippy::unwrap_used, reason = "a failed measurement has nothing better to do")]

use std::{
    error::Error,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use f2fs_device::{AlignedBuf, BLOCK_SIZE, BlockDevice, DeviceError, Op, Request};
use f2fs_device_test::Random;
use f2fs_uring::{Direct, Engine, NvmeDevice, OpenOptions, UringDevice};

struct Args {
    dir: PathBuf,
    mib: u64,
    seconds: f64,
    rounds: usize,
    csv: Option<PathBuf>,
    /// Only workloads whose name contains this.
    only: String,
    /// Measured instead of a file.
    device: Option<PathBuf>,
    /// Both sides look for completions themselves.
    io_poll: bool,
    /// Both sides have a thread of the kernel submit.
    sq_poll: bool,
    /// The words that start fio.
    fio: Vec<String>,
}

#[derive(Clone, Copy)]
struct Workload {
    name: &'static str,
    fio: &'static str,
    op: Op,
    random: bool,
    blocks: usize,
    depth: usize,
    threads: usize,
    /// How this crate runs it.
    ours: Ours,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ours {
    /// One call after the other.
    Calls,
    /// A queue.
    Queue,
    /// A queue with buffers of its own; the baseline is fio without.
    QueueBuffers,
    /// Not at all: fio with registered buffers instead.
    FioFixed,
}

/// The result of one run.
#[derive(Clone, Copy)]
struct Measure {
    per_second: f64,
    /// Microseconds of processor time a request.
    cpu: f64,
}

const WORKLOADS: [Workload; 14] = {
    const fn new(name: &'static str, fio: &'static str, op: Op, blocks: usize, depth: usize, ours: Ours) -> Workload {
        let random = blocks == 1;
        Workload { name, fio, op, random, blocks, depth, threads: 1, ours }
    }
    [
        new("sequential read 2 MiB, calls", "read", Op::Read, 512, 1, Ours::Calls),
        new("sequential read 2 MiB, queue", "read", Op::Read, 512, 8, Ours::Queue),
        new("sequential write 2 MiB, calls", "write", Op::Write, 512, 1, Ours::Calls),
        new("sequential write 2 MiB, queue", "write", Op::Write, 512, 8, Ours::Queue),
        new("random read 4 KiB, calls", "randread", Op::Read, 1, 1, Ours::Calls),
        new("random write 4 KiB, calls", "randwrite", Op::Write, 1, 1, Ours::Calls),
        new("random read 4 KiB, queue", "randread", Op::Read, 1, 32, Ours::Queue),
        new("random write 4 KiB, queue", "randwrite", Op::Write, 1, 32, Ours::Queue),
        new("sequential read 2 MiB, own buffers", "read", Op::Read, 512, 8, Ours::QueueBuffers),
        new("sequential write 2 MiB, own buffers", "write", Op::Write, 512, 8, Ours::QueueBuffers),
        new("random read 4 KiB, own buffers", "randread", Op::Read, 1, 32, Ours::QueueBuffers),
        new("random read 4 KiB, fixedbufs", "randread", Op::Read, 1, 32, Ours::FioFixed),
        new("sequential read 2 MiB, fixedbufs", "read", Op::Read, 512, 8, Ours::FioFixed),
        new("sequential write 2 MiB, fixedbufs", "write", Op::Write, 512, 8, Ours::FioFixed),
    ]
};

/// The measurements on a device.
fn on_device() -> Vec<Workload> {
    let one = |(name, fio, op), depth, threads| Workload {
        name,
        fio,
        op,
        random: true,
        blocks: 1,
        depth,
        threads,
        ours: Ours::Queue,
    };
    let mut all = Vec::new();
    for kind in
        [("random read 4 KiB, queue", "randread", Op::Read), ("random write 4 KiB, queue", "randwrite", Op::Write)]
    {
        for threads in [1, 4] {
            all.extend([1, 32, 128].map(|depth| one(kind, depth, threads)));
        }
    }
    all
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = args()?;
    let version = start(&args).arg("--version").output().map_err(|error| format!("fio is needed: {error}"))?;
    let machine = machine(String::from_utf8_lossy(&version.stdout).trim());
    if let Some(path) = &args.device {
        let idle = args.sq_poll.then_some(Duration::from_millis(100));
        let options = OpenOptions::new().engine(Engine::IoUring).io_poll(args.io_poll).sq_poll(idle);
        let device: Box<dyn BlockDevice> = Box::new(f2fs_uring::open(path, options)?);
        return compare(&args, &*device, path, &machine, &on_device());
    }
    let path = args.dir.join(format!("device_vs_fio.{}", std::process::id()));
    let options = OpenOptions::new().engine(Engine::IoUring).direct(Direct::Required);
    let result = UringDevice::create(&path, args.mib << 20, options)
        .map_err(Into::into)
        .and_then(|device| compare(&args, &*device, &path, &machine, &WORKLOADS));
    fs::remove_file(&path).ok();
    result
}

fn compare(
    args: &Args,
    device: &dyn BlockDevice,
    path: &Path,
    machine: &str,
    workloads: &[Workload],
) -> Result<(), Box<dyn Error>> {
    for start in (0..device.info().blocks / 512 * 512).step_by(512) {
        device.write(start, AlignedBuf::from_bytes(&vec![0x5a; 512 * BLOCK_SIZE]))?; // no holes
    }
    device.flush()?;
    println!("{machine}");
    println!("{}; {} rounds of {} s each", device.info().description, args.rounds, args.seconds);
    println!(
        "{:36} {:>7} {:>5} {:>9} {:>9} {:>6} {:>14} {:>9} {:>9}",
        "", "", "", "fio", "ours", "", "least..", "fio", "ours"
    );
    println!(
        "{:36} {:>7} {:>5} {:>9} {:>9} {:>6} {:>14} {:>9} {:>9}",
        "", "threads", "depth", "/s", "/s", "ratio", "greatest", "cpu us", "cpu us"
    );
    let mut csv = args.csv.as_ref().map(fs::File::create).transpose()?;
    if let Some(csv) = &mut csv {
        writeln!(csv, "# {machine}\nworkload,threads,depth,round,fio_per_s,ours_per_s,fio_cpu_us,ours_cpu_us")?;
    }
    for workload in workloads.iter().copied().filter(|workload| workload.name.contains(&args.only)) {
        let mut rounds = Vec::new();
        for round in 0..args.rounds {
            let baseline = || fio(args, path, workload, false);
            let ours = || match workload.ours {
                Ours::Calls => Ok(calls(device, workload, args.seconds)?),
                Ours::Queue | Ours::QueueBuffers => Ok(queues(device, workload, args.seconds)?),
                Ours::FioFixed => fio(args, path, workload, true),
            };
            let (baseline, ours) = if round % 2 == 0 {
                let baseline = baseline()?;
                (baseline, ours()?)
            } else {
                let ours = ours()?;
                (baseline()?, ours)
            };
            if let Some(csv) = &mut csv {
                let (name, depth) = (workload.name.replace(',', ""), workload.depth);
                write!(
                    csv,
                    "{name},{},{depth},{round},{:.1},{:.1}",
                    workload.threads, baseline.per_second, ours.per_second
                )?;
                writeln!(csv, ",{:.2},{:.2}", baseline.cpu, ours.cpu)?;
            }
            rounds.push((baseline, ours));
        }
        let sorted = |pick: fn(&(Measure, Measure)) -> f64| {
            let mut values: Vec<f64> = rounds.iter().map(pick).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let median = |pick| sorted(pick)[rounds.len() / 2];
        let ratios = sorted(|(fio, ours)| ours.per_second / fio.per_second * 100.0);
        println!(
            "{:36} {:>7} {:>5} {:>9} {:>9} {:>5.0}% {:>14} {:>9.2} {:>9.2}",
            workload.name,
            workload.threads,
            workload.depth,
            rate(workload, median(|(fio, _)| fio.per_second)),
            rate(workload, median(|(_, ours)| ours.per_second)),
            ratios[rounds.len() / 2],
            format!("{:.0}..{:.0}%", ratios[0], ratios[rounds.len() - 1]),
            median(|(fio, _)| fio.cpu),
            median(|(_, ours)| ours.cpu),
        );
    }
    Ok(())
}

/// Requests a second as people read them.
fn rate(workload: Workload, per_second: f64) -> String {
    match workload.blocks {
        1 => format!("{per_second:.0}"),
        blocks => format!("{:.0} MB", per_second * (blocks * BLOCK_SIZE) as f64 / 1e6),
    }
}

/// fio, without its job.
fn start(args: &Args) -> Command {
    let mut command = Command::new(&args.fio[0]);
    command.args(&args.fio[1..]);
    command
}

/// The job of fio.
fn fio(args: &Args, path: &Path, workload: Workload, fixed: bool) -> Result<Measure, Box<dyn Error>> {
    let flag = |name: &str, on: bool| on.then(|| format!("--{name}=1"));
    let output = start(args)
        .args(["--name=baseline", "--time_based", "--output-format=json", "--thread", "--group_reporting"])
        .args(["--norandommap", "--randrepeat=0"])
        .args(match workload.ours {
            Ours::Calls => vec!["--ioengine=psync".to_owned()],
            _ if NvmeDevice::is_at(path) => vec!["--ioengine=io_uring_cmd".to_owned(), "--cmd_type=nvme".to_owned()],
            _ => vec!["--ioengine=io_uring".to_owned(), format!("--fixedbufs={}", u8::from(fixed))],
        })
        // Commands have no page cache, and fio refuses the word for them.
        .args(flag("direct", !NvmeDevice::is_at(path)))
        .args(flag("hipri", args.io_poll))
        .args(flag("sqthread_poll", args.sq_poll))
        .arg(format!("--numjobs={}", workload.threads))
        .arg(format!("--filename={}", path.display()))
        .arg(format!("--rw={}", workload.fio))
        .arg(format!("--bs={}", workload.blocks * BLOCK_SIZE))
        .arg(format!("--iodepth={}", workload.depth))
        .args(args.device.is_none().then(|| format!("--size={}m", args.mib)))
        .arg(format!("--runtime={}ms", (args.seconds * 1000.0) as u64))
        .output()
        .map_err(|error| format!("fio is needed: {error}"))?;
    if !output.status.success() {
        return Err(format!("fio: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let job = &report["jobs"][0];
    let number = |value: &serde_json::Value| value.as_f64().ok_or("fio's report lacks a number");
    let side = if workload.op == Op::Read { &job["read"] } else { &job["write"] };
    let (requests, runtime) = (number(&side["total_ios"])?, number(&job["job_runtime"])? * 1000.0);
    let busy = (number(&job["usr_cpu"])? + number(&job["sys_cpu"])?) / 100.0;
    Ok(Measure { per_second: number(&side["iops"])?, cpu: busy * runtime / requests })
}

/// Times our own runs.
struct Clock {
    begin: Instant,
    cpu: f64,
}

impl Clock {
    fn start() -> Self {
        Self { begin: Instant::now(), cpu: cpu_seconds() }
    }

    fn stop(&self, requests: u64) -> Measure {
        let requests = requests as f64;
        let cpu = (cpu_seconds() - self.cpu) * 1e6 / requests;
        Measure { per_second: requests / self.begin.elapsed().as_secs_f64(), cpu }
    }
}

/// Processor time of this process in seconds.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The addresses of a workload.
struct Addresses {
    workload: Workload,
    places: u64,
    next: u64,
}

impl Addresses {
    fn new(device: &dyn BlockDevice, workload: Workload, seed: u64) -> Self {
        Self { workload, places: device.info().blocks / workload.blocks as u64, next: seed << 40 }
    }

    fn next(&mut self) -> u64 {
        self.next = self.next.wrapping_add(1);
        let place = if self.workload.random { Random::new(self.next).next() } else { self.next };
        place % self.places * self.workload.blocks as u64
    }
}

fn calls(device: &dyn BlockDevice, workload: Workload, seconds: f64) -> Result<Measure, Box<dyn Error>> {
    let mut addresses = Addresses::new(device, workload, 0);
    let mut buf = AlignedBuf::new(workload.blocks);
    let (clock, mut done) = (Clock::start(), 0_u64);
    while clock.begin.elapsed() < Duration::from_secs_f64(seconds) {
        for _ in 0..if workload.random { 16 } else { 1 } {
            match workload.op {
                Op::Read => device.read_into(addresses.next(), &mut buf)?,
                _ => device.write_from(addresses.next(), &mut buf)?,
            }
            done += 1;
        }
    }
    Ok(clock.stop(done))
}

fn queues(device: &dyn BlockDevice, workload: Workload, seconds: f64) -> Result<Measure, Box<dyn Error>> {
    let clock = Clock::start();
    let done = std::thread::scope(|scope| {
        let run = |thread| scope.spawn(move || queue(device, workload, thread, seconds));
        let threads: Vec<_> = (0..workload.threads as u64).map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<Result<u64, DeviceError>>()
    })?;
    Ok(clock.stop(done))
}

/// The requests of one thread.
fn queue(device: &dyn BlockDevice, workload: Workload, thread: u64, seconds: f64) -> Result<u64, DeviceError> {
    let mut addresses = Addresses::new(device, workload, thread);
    let mut queue = device.queue(workload.depth);
    let bufs = match workload.ours {
        Ours::QueueBuffers => queue.buffers(workload.depth, workload.blocks),
        _ => (0..workload.depth).map(|_| AlignedBuf::new(workload.blocks)).collect(),
    };
    for buf in bufs {
        queue.push(Request::vectored(workload.op, addresses.next(), vec![buf]));
    }
    let (begin, mut done) = (Instant::now(), 0_u64);
    while let Some(completion) = queue.next_completion() {
        completion.result?;
        done += 1;
        if done % 16 != 0 || begin.elapsed() < Duration::from_secs_f64(seconds) {
            queue.push(Request { start: addresses.next(), ..completion.request });
        } else {
            break;
        }
    }
    Ok(done)
}

fn machine(fio: &str) -> String {
    let field = |file: &str, key: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned();
        line.rsplit(':').next().unwrap_or_default().trim().to_owned()
    };
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{}, {cpus} CPUs, Linux {}, {fio}", field("/proc/cpuinfo", "model name"), kernel.trim())
}

fn args() -> Result<Args, Box<dyn Error>> {
    let mut args = Args {
        dir: std::env::temp_dir(),
        mib: 1024,
        seconds: 2.0,
        rounds: 5,
        csv: None,
        only: String::new(),
        device: None,
        io_poll: false,
        sq_poll: false,
        fio: vec!["fio".into()],
    };
    let mut rest = std::env::args().skip(1);
    while let Some(name) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--dir" => args.dir = value.into(),
            "--mib" => args.mib = value.parse()?,
            "--seconds" => args.seconds = value.parse()?,
            "--rounds" => args.rounds = value.parse()?,
            "--only" => args.only = value,
            "--device" => args.device = Some(value.into()),
            "--io-poll" => args.io_poll = value == "yes",
            "--sq-poll" => args.sq_poll = value == "yes",
            "--fio" => args.fio = value.split_whitespace().map(str::to_owned).collect(),
            "--csv" => args.csv = Some(value.into()),
            _ => return Err(format!("unknown option {name}").into()),
        }
    }
    if args.rounds == 0 || args.mib < 2 || args.fio.is_empty() {
        return Err("at least one round and 2 MiB".into());
    }
    Ok(args)
}

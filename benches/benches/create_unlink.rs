//! Creating and unlinking empty files on the memory device, in private directories and in one shared one.
//!
//! ```text
//! cargo bench -p f2fs-benches --bench create_unlink
//! ```
//!
//! Fixed work: each thread creates [`FILES`] files, or unlinks them in the order in which they were made; a sample is
//! the time from the first thread's start to the last one's end, with full path names resolved each time. The variants:
//! `bucket` is the library as it is; `whole` locks the whole directory for each change, as the kernel's VFS does, and
//! is the baseline for the shared directory. With more threads than processors the numbers show behaviour under
//! oversubscription, not scaling. `F2FS_BENCH_THREADS` chooses other thread counts. `target/create_unlink.csv` has a
//! line for each sample.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, RwLock};
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use f2fs::device::MemoryDevice;
use f2fs::volume::format::{FormatOptions, format};
use f2fs::{DirectoryLock, FileSystem, Options};
use f2fs_benches::report::Csv;
use f2fs_benches::workers::{Team, thread_counts};

/// Files of a thread in a sample: 30 ms of unlinking at least, so that the skew of the start does not count.
const FILES: u64 = 15_000;

fn threads() -> Vec<usize> {
    if std::env::var_os("F2FS_BENCH_THREADS").is_some() { thread_counts() } else { vec![1, 2, 4, 8] }
}

/// A volume on which `threads` can create their files.
fn volume(threads: usize, lock: DirectoryLock) -> FileSystem {
    let bytes = (128 << 20) + threads as u64 * FILES * (12 << 10);
    let device = Arc::new(MemoryDevice::new(bytes / 4096));
    format(&*device, &FormatOptions::default()).unwrap();
    let fs = FileSystem::open(device, Options::new().directory_lock(lock)).unwrap();
    for thread in 0..threads {
        fs.create_dir(format!("/private-{thread}"), 0o755).unwrap();
    }
    fs.create_dir("/shared", 0o755).unwrap();
    fs
}

fn path(shared: bool, thread: usize, file: u64) -> String {
    if shared {
        format!("/shared/u_sh_file_rm-{thread}-{file}.dat")
    } else {
        format!("/private-{thread}/u_file_rm-{file}.dat")
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut csv = Csv::create("create_unlink", "operation,place,lock,threads,per_s,fastest_by_slowest").unwrap();
    for (operation, unlink) in [("create", false), ("unlink", true)] {
        for (place, shared) in [("private", false), ("shared", true)] {
            let mut group = criterion.benchmark_group(format!("{operation}/{place}"));
            group.sample_size(10).sampling_mode(SamplingMode::Flat);
            group.warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(2));
            for (variant, lock) in [("bucket", DirectoryLock::Bucket), ("whole", DirectoryLock::Whole)] {
                for threads in threads() {
                    group.throughput(Throughput::Elements(threads as u64 * FILES));
                    let current = RwLock::new(None::<FileSystem>);
                    // Rounds alternate: create, unlink, on a new volume each time.
                    let work = |thread: usize, first: u64| {
                        let fs = current.read().unwrap().clone().unwrap();
                        for file in 0..FILES {
                            let path = path(shared, thread, file);
                            if first == 0 {
                                fs.create_file(path, 0o644).unwrap();
                            } else {
                                fs.remove_file(path).unwrap();
                            }
                        }
                    };
                    Team::with(threads, work, |team| {
                        group.bench_function(BenchmarkId::new(variant, threads), |bencher| {
                            bencher.iter_custom(|samples| {
                                let mut sum = Duration::ZERO;
                                for _ in 0..samples {
                                    *current.write().unwrap() = Some(volume(threads, lock));
                                    let rounds = [team.round(0), team.round(1)];
                                    let round = rounds[usize::from(unlink)];
                                    let rate = threads as f64 * FILES as f64 / round.elapsed.as_secs_f64();
                                    let share = round.slowest_share;
                                    let line = format!("{operation},{place},{variant},{threads},{rate:.0},{share:.2}");
                                    csv.line(&line).unwrap();
                                    sum += round.elapsed;
                                }
                                sum
                            });
                        });
                    });
                }
            }
            group.finish();
        }
    }
    criterion.final_summary();
}

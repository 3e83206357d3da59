//! The threads of a measurement.
//!
//! # Locking rules
//!
//! One lock, of the start line: threads wait there until all of them have their buffers. Until the end they share the
//! volume and nothing of the driver. See `StartLine`.

use std::time::{Duration, Instant};

use f2fs::device::AlignedBuf;
use f2fs::{File, ReadSlice};

use super::error::ReadsError;
use super::files::{Volume, stamp};
use super::measured::Measured;
use super::setting::{BLOCK, Places, Setting, Sharing};
use crate::fxmark::StartLine;
use crate::report::Latencies;

/// The result of one thread.
struct Work {
    start: Instant,
    end: Instant,
    latencies: Latencies,
}

/// Starts and awaits the threads.
pub(super) fn race(volume: &Volume, setting: &Setting) -> Result<Measured, ReadsError> {
    let before = waits(volume);
    let line = StartLine::new();
    let work = std::thread::scope(|scope| {
        let mut workers = Vec::with_capacity(setting.threads);
        let mut refused = None;
        for thread in 0..setting.threads {
            let arrival = line.worker();
            let begun = std::thread::Builder::new().name(format!("reads-{thread}")).spawn_scoped(scope, move || {
                let room = Room::new(setting, thread);
                arrival.arrive().then(|| read(volume, setting, thread, room)).transpose()
            });
            match begun {
                Ok(worker) => workers.push(worker),
                Err(source) => {
                    // Its arrival was dropped with the closure, so nobody waits for it.
                    refused = Some(ReadsError::Thread { thread, source });
                    break;
                }
            }
        }
        let all = line.all_ready(workers.len() + usize::from(refused.is_some()));
        line.release(all);
        let mut work = Vec::with_capacity(workers.len());
        for worker in workers {
            work.push(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        refused.map_or(Ok(work), Err)
    })?;
    let work: Vec<Work> = work.into_iter().filter_map(Result::transpose).collect::<Result<_, _>>()?;
    let after = waits(volume);

    let times = || work.iter().map(|work| work.end - work.start);
    let first = work.iter().map(|work| work.start).min();
    let last = work.iter().map(|work| work.end).max();
    let mut latencies = Latencies::new();
    work.iter().for_each(|work| latencies.merge(&work.latencies));
    let ratio = |a: Duration, b: Duration| if b.is_zero() { 0.0 } else { a.as_secs_f64() / b.as_secs_f64() };
    Ok(Measured {
        setting: *setting,
        elapsed: first.zip(last).map_or(Duration::ZERO, |(first, last)| last - first),
        slowest_share: ratio(times().min().unwrap_or_default(), times().max().unwrap_or_default()),
        lock_share: ratio(after.0.saturating_sub(before.0), times().sum()),
        lock_waits: after.1 - before.1,
        latencies,
    })
}

/// The time that was waited for ranges, and how often, since the files were opened.
fn waits(volume: &Volume) -> (Duration, u64) {
    let waits = volume.files.iter().map(File::lock_waits);
    waits.fold((Duration::ZERO, 0), |(time, count), waits| (time + waits.waited, count + waits.waits))
}

/// What a thread fills. It is there before the start, and each page of it was written to: the kernel has nothing to do
/// for it in the time that is measured.
struct Room {
    latencies: Latencies,
    bytes: Vec<u8>,
}

impl Room {
    fn new(setting: &Setting, thread: usize) -> Room {
        let bytes = if setting.depth == 1 { 0 } else { setting.buffer_bytes_of(thread) };
        // Zeros would come from the kernel with the first use.
        Room { latencies: Latencies::new(), bytes: vec![0xff; bytes as usize] }
    }
}

fn read(volume: &Volume, setting: &Setting, thread: usize, mut room: Room) -> Result<Work, ReadsError> {
    let number = match setting.sharing {
        Sharing::Shared => 0,
        Sharing::Private => thread % volume.files.len(),
    };
    let (file, places) = (&volume.files[number], Places::new(setting, thread, volume.blocks));
    let count = setting.share(thread);
    let start = Instant::now();
    if setting.depth == 1 {
        one_by_one(file, number, places, count, &mut room.latencies)?;
    } else {
        batched(file, number, places, (setting.depth, count), &mut room)?;
    }
    Ok(Work { start, end: Instant::now(), latencies: room.latencies })
}

fn one_by_one(
    file: &File,
    number: usize,
    mut places: Places,
    count: u64,
    latencies: &mut Latencies,
) -> Result<(), ReadsError> {
    let mut buf = AlignedBuf::new(1);
    for _ in 0..count {
        let block = places.next();
        let start = Instant::now();
        let bytes = file.read_into(&mut buf, block * BLOCK).map_err(ReadsError::volume("read"))?;
        latencies.record(start.elapsed());
        compare(number, block, buf.as_bytes(), bytes)?;
    }
    Ok(())
}

fn batched(
    file: &File,
    number: usize,
    mut places: Places,
    (depth, count): (usize, u64),
    room: &mut Room,
) -> Result<(), ReadsError> {
    let mut left = count;
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        let bufs = room.bytes.chunks_exact_mut(BLOCK as usize).take(most);
        let mut reads: Vec<_> = bufs.map(|buf| ReadSlice::new(places.next() * BLOCK, buf)).collect();
        let start = Instant::now();
        file.read_many(depth, &mut reads).map_err(ReadsError::volume("read"))?;
        // So many reads, `depth` at a time: each took depth / reads of the call, in the mean.
        let each = start.elapsed().mul_f64(depth.min(reads.len()) as f64 / reads.len() as f64);
        for read in &reads {
            room.latencies.record(each);
            compare(number, read.offset / BLOCK, read.buf, read.read)?;
        }
        left -= reads.len() as u64;
    }
    Ok(())
}

/// Whether the block is the one that was asked for.
fn compare(file: usize, block: u64, buf: &[u8], bytes: usize) -> Result<(), ReadsError> {
    let expected = stamp(file, block);
    let found = buf.first_chunk().map_or(0, |first| u64::from_le_bytes(*first));
    if found == expected && bytes as u64 == BLOCK {
        return Ok(());
    }
    Err(ReadsError::Content { file, block, expected, found, bytes })
}

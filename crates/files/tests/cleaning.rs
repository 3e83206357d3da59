//! A volume that is full of holes: the cleaner makes room, and nothing is lost.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use f2fs_device::{BlockDevice, MemoryDevice, Operation};
use f2fs_device_test::{FaultDevice, FaultRule, Random, TimingDevice, bytes};
use f2fs_files::{CleanerOptions, File, FileSystem, Options, Pace, Temperature, WriteHint};
use f2fs_format::LogType;
use f2fs_volume::format::{FormatOptions, format};
use f2fs_volume::{AgeThreshold, Allocation, CostModel, VictimPolicy, VolumeOptions};

fn pattern(file: u32, round: u32) -> Vec<u8> {
    bytes(4096, u64::from(file) << 32 | u64::from(round))
}

#[test]
fn scattered_overwrites_at_ninety_per_cent() {
    let device = Arc::new(MemoryDevice::new((96 << 20) >> 12));
    format(&*device, &FormatOptions::default()).unwrap();
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let stat = fs.statfs();
    // One large file takes nine tenths of the space, so that blocks run out and not inodes.
    let blocks = ((stat.user_blocks - stat.valid_blocks) * 9 / 10) as u32;
    let file = fs.create_file("/large", 0o644).unwrap();
    let mut rounds = vec![0u32; blocks as usize];
    for block in 0..blocks {
        assert_eq!(file.write_at(&pattern(block, 0), u64::from(block) * 4096).unwrap(), 4096);
    }
    // Every block is overwritten about three times, here and there: no segment is ever wholly free by itself.
    let mut random = Random::new(1);
    for step in 0..3 * blocks {
        let block = random.below(blocks as usize) as u32;
        rounds[block as usize] += 1;
        let data = pattern(block, rounds[block as usize]);
        let written = file.write_at(&data, u64::from(block) * 4096);
        assert!(matches!(written, Ok(4096)), "step {step}: {written:?}, {:?}", fs.statfs());
    }
    drop(file);
    fs.close().unwrap();

    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    device.save(&image).unwrap();
    f2fs_oracle::assert_clean(&image);
    let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
    let file = fs.open_file("/large").unwrap();
    let mut data = vec![0; 4096];
    for block in 0..blocks {
        file.read_at(&mut data, u64::from(block) * 4096).unwrap();
        assert!(data == pattern(block, rounds[block as usize]), "block {block}");
    }
}

/// While nothing can be read no section can be emptied. Their holes are there for the logs all the same, and they are
/// emptied when they can be read.
#[test]
fn sections_that_could_not_be_read_are_used_and_emptied_later() {
    let device = Arc::new(MemoryDevice::new((64 << 20) >> 12));
    format(&*device, &FormatOptions::default()).unwrap();
    let faulty = Arc::new(FaultDevice::new(device.clone()));
    let fs = FileSystem::open(faulty.clone(), Options::new()).unwrap();
    let stat = fs.statfs();
    let blocks = ((stat.user_blocks - stat.valid_blocks) * 9 / 10) as u32;
    let file = fs.create_file("/large", 0o644).unwrap();
    let mut random = Random::new(1);
    let mut written = 0;
    let mut write = |block: u32| {
        written += 1;
        let result = file.write_at(&pattern(block, written), u64::from(block) * 4096);
        assert!(matches!(result, Ok(4096)), "{block} after {written}: {result:?}, {:?}", fs.statfs());
    };
    (0..blocks).for_each(&mut write);
    for round in 0..6 {
        for _ in 0..blocks / 4 {
            write(random.below(blocks as usize) as u32);
        }
        faulty.arm(FaultRule::on([Operation::Read]).for_good());
        let tried = (0..40).map(|_| fs.clean_step(Pace::Urgent)).filter(Result::is_err).count();
        let _ = fs.clean();
        faulty.disarm();
        assert!(tried > 0, "{round}: nothing was read");
    }
    (0..blocks).for_each(&mut write);
    fs.close().unwrap();
    assert_clean(&device);
}

#[test]
fn small_files_fill_the_volume_again_and_again() {
    let device = Arc::new(MemoryDevice::new((80 << 20) >> 12));
    format(&*device, &FormatOptions::default()).unwrap();
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    fs.create_dir("/d", 0o755).unwrap();
    let mut counts = Vec::new();
    for round in 0..6u32 {
        let mut made = 0;
        loop {
            let result = fs
                .create_file(format!("/d/{round}-{made}"), 0o644)
                .and_then(|file| file.write_at(&pattern(made, round), 0).map(|_| ()));
            match result {
                Ok(()) => made += 1,
                Err(error) if error.is_no_space() => break,
                Err(error) => panic!("round {round}, file {made}: {error}"),
            }
        }
        counts.push(made);
        // The half-made file that hit the end may or may not be there.
        for entry in fs.read_dir("/d").unwrap().map(Result::unwrap) {
            let name = String::from_utf8(entry.name).unwrap();
            let number: u32 = name.split('-').next_back().unwrap().parse().unwrap();
            if !number.is_multiple_of(3) || round % 2 == 1 {
                fs.remove_file(format!("/d/{name}")).unwrap();
            }
        }
        fs.checkpoint().unwrap();
    }
    // All is deleted after every second round: as much fits again.
    assert!(counts[2] + 64 >= counts[0] && counts[4] + 64 >= counts[0], "{counts:?}");
    fs.close().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    device.save(&image).unwrap();
    f2fs_oracle::assert_clean(&image);
}

fn assert_clean(device: &MemoryDevice) {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    device.save(&image).unwrap();
    f2fs_oracle::assert_clean(&image);
}

/// Four writers overwrite, cut and grow their files, three threads empty sections all the while, one of them among
/// blocks of the same age, and one writes checkpoints.
#[test]
fn sections_are_emptied_under_running_operations() {
    const FILES: u32 = 4;
    let device = Arc::new(MemoryDevice::new((160 << 20) >> 12));
    format(&*device, &FormatOptions::default()).unwrap();
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let stat = fs.statfs();
    let blocks = ((stat.user_blocks - stat.valid_blocks) * 6 / 10) as u32 / FILES;
    let stop = AtomicBool::new(false);
    let rounds: Vec<Vec<Option<u32>>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..FILES)
            .map(|number| {
                let fs = &fs;
                scope.spawn(move || {
                    let file = fs.create_file(format!("/{number}"), 0o644).unwrap();
                    let mut rounds = vec![Some(0); blocks as usize];
                    for block in 0..blocks {
                        file.write_at(&pattern(block + number, 0), u64::from(block) * 4096).unwrap();
                    }
                    let mut random = Random::new(u64::from(number) + 1);
                    for step in 1..=2 * blocks {
                        let block = random.below(blocks as usize) as u32;
                        file.write_at(&pattern(block + number, step), u64::from(block) * 4096).unwrap();
                        rounds[block as usize] = Some(step);
                        if step % 2000 == 0 {
                            // The last tenth goes, and comes back as a hole.
                            let keep = blocks * 9 / 10;
                            file.set_len(u64::from(keep) * 4096).unwrap();
                            file.set_len(u64::from(blocks) * 4096).unwrap();
                            rounds[keep as usize..].fill(None);
                        }
                    }
                    rounds
                })
            })
            .collect();
        let by_age = VictimPolicy::AgeThreshold(AgeThreshold::default().threshold(0));
        let cleaners: Vec<_> = [VictimPolicy::Greedy, VictimPolicy::CostBenefit, by_age]
            .into_iter()
            .map(|policy| {
                let (fs, stop) = (&fs, &stop);
                scope.spawn(move || {
                    let mut steps = 0;
                    while !stop.load(Ordering::Relaxed) {
                        match fs.clean_step_by(policy).unwrap() {
                            Some(_) => steps += 1,
                            None => std::thread::yield_now(),
                        }
                    }
                    steps
                })
            })
            .collect();
        let checkpoints = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                fs.checkpoint().unwrap();
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let rounds = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        stop.store(true, Ordering::Relaxed);
        checkpoints.join().unwrap();
        let steps: u32 = cleaners.into_iter().map(|cleaner| cleaner.join().unwrap()).sum();
        assert!(steps > 20, "{steps} steps");
        rounds
    });
    let written = fs.write_stat();
    assert!(written.moved_data_blocks > 0 && written.victims > 10, "{written:?}");
    println!("{written:?}");
    let check = |fs: &FileSystem| {
        for (number, rounds) in (0..).zip(&rounds) {
            let file = fs.open_file(format!("/{number}")).unwrap();
            let mut data = vec![0; 4096];
            for (block, round) in (0..).zip(rounds) {
                file.read_at(&mut data, u64::from(block) * 4096).unwrap();
                let wanted = round.map_or_else(|| vec![0; 4096], |round| pattern(block + number, round));
                assert!(data == wanted, "file {number}, block {block}");
            }
        }
    };
    check(&fs);
    fs.close().unwrap();
    assert_clean(&device);
    check(&FileSystem::open(device, Options::new().read_only(true)).unwrap());
}

/// A volume with a file of so many blocks, of which three of four stand elsewhere than at first: old segments are nearly
/// empty.
fn thinned() -> (Arc<MemoryDevice>, FileSystem, File, u32) {
    let device = Arc::new(MemoryDevice::new((128 << 20) >> 12));
    format(&*device, &FormatOptions::default()).unwrap();
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    let blocks = fs.statfs().user_blocks as u32 / 2;
    for block in 0..blocks {
        file.write_at(&pattern(block, 0), u64::from(block) * 4096).unwrap();
    }
    for block in (0..blocks).filter(|block| block % 4 != 0) {
        file.write_at(&pattern(block, 1), u64::from(block) * 4096).unwrap();
    }
    fs.checkpoint().unwrap();
    (device, fs, file, blocks)
}

/// At the mark it cleans without being told so, until more segments are free; above the mark it waits.
#[test]
fn the_background_cleaner_heeds_its_mark() {
    let (_device, fs, _file, _) = thinned();
    let options =
        CleanerOptions::default().interval(Duration::from_secs(3600)).urgent_interval(Duration::from_millis(1));
    let mark = fs.statfs().free_segments;
    let cleaner = fs.start_cleaner(options.low_mark(mark)).unwrap();
    let begin = Instant::now();
    while fs.statfs().free_segments <= mark {
        assert!(cleaner.failed().is_none() && begin.elapsed() < Duration::from_secs(60), "it does nothing");
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(cleaner);
    let cleaner = fs.start_cleaner(options.low_mark(fs.statfs().free_segments - 1)).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!((cleaner.steps(), cleaner.failed()), (0, None));
}

/// The thread makes room that operations then need not make.
#[test]
fn the_background_cleaner_makes_room_and_stops() {
    let (device, fs, file, blocks) = thinned();
    let before = fs.statfs().free_segments;
    let cleaner = fs.start_cleaner(CleanerOptions::default().interval(Duration::from_millis(1))).unwrap();
    cleaner.urge();
    for _ in 0..2000 {
        if fs.statfs().free_segments > before + 8 || cleaner.failed().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(cleaner.failed(), None);
    assert!(cleaner.steps() > 0);
    drop(cleaner);
    assert!(fs.statfs().free_segments > before, "{:?}", fs.statfs());
    assert!(fs.clean_step(Pace::Idle).is_ok());
    let mut data = vec![0; 4096];
    for block in 0..blocks {
        file.read_at(&mut data, u64::from(block) * 4096).unwrap();
        assert!(data == pattern(block, u32::from(block % 4 != 0)), "block {block}");
    }
    drop(file);
    fs.close().unwrap();
    assert_clean(&device);
}

/// Holes everywhere, then a long write: the same bytes whatever is done about what lies in its way, and fewer requests
/// where something is done.
#[test]
fn long_writes_into_holes() {
    let mut requests = Vec::new();
    for name in ["ssr", "partial", "selective-greedy", "selective-optimal", "selective-optimal+27"] {
        // Dear requests, cheap blocks.
        let model = CostModel::sata_ssd();
        let memory = Arc::new(MemoryDevice::new((96 << 20) >> 12));
        format(&*memory, &FormatOptions::default()).unwrap();
        let costs = model.clone();
        let device = Arc::new(TimingDevice::new(memory.clone(), move |blocks| costs.seconds(blocks as f64)));
        let allocation = name.parse::<Allocation>().unwrap().on(model);
        let volume = VolumeOptions::new().allocation(allocation).lanes(1);
        let fs = FileSystem::open(device.clone(), Options::new().volume(volume)).unwrap();
        let file = fs.create_file("/old", 0o644).unwrap();
        let gone = fs.create_file("/gone", 0o644).unwrap();
        let stat = fs.statfs();
        let half = ((stat.user_blocks - stat.valid_blocks) * 47 / 100) as u32;
        // Two files in turns of some blocks; one of them goes, and leaves holes in the other's segments.
        let mut random = Random::new(9);
        let (mut kept, mut dropped) = (0, 0);
        while kept < half && dropped < half {
            for _ in 0..1 + random.below(5) {
                file.write_at(&pattern(kept, 0), u64::from(kept) * 4096).unwrap();
                kept += 1;
            }
            for _ in 0..1 + random.below(5) {
                gone.write_at(&pattern(dropped, 5), u64::from(dropped) * 4096).unwrap();
                dropped += 1;
            }
        }
        drop(gone);
        fs.remove_file("/gone").unwrap();
        fs.checkpoint().unwrap();
        assert!(fs.volume().writes_into_holes(), "{name}: {:?}", fs.statfs());
        let before = (device.stat(), fs.write_stat());
        let new = fs.create_file("/new", 0o644).unwrap();
        let long = dropped / 2;
        for chunk in (0..long).step_by(256) {
            let data: Vec<u8> = (chunk..(chunk + 256).min(long)).flat_map(|block| pattern(block, 77)).collect();
            new.write_at(&data, u64::from(chunk) * 4096).unwrap();
        }
        let written = fs.write_stat();
        requests.push((name, written.user_requests - before.1.user_requests, device.stat().since(&before.0).time()));
        if name != "ssr" {
            assert!(written.rewritten_blocks + written.precleaned_blocks > 0, "{name}: {written:?}");
        }
        let mut data = vec![0; 4096];
        for block in 0..kept {
            file.read_at(&mut data, u64::from(block) * 4096).unwrap();
            assert!(data == pattern(block, 0), "{name}: block {block}");
        }
        for block in 0..long {
            new.read_at(&mut data, u64::from(block) * 4096).unwrap();
            assert!(data == pattern(block, 77), "{name}: new block {block}");
        }
        // No segment that was cleared for writes is lost to them.
        let mut end = u64::from(long) * 4096;
        while let Ok(more) = new.write_at(&pattern(0, 78), end) {
            end += more as u64;
        }
        let stat = fs.statfs();
        assert!(stat.user_blocks - stat.valid_blocks <= 2, "{name}: {stat:?}");
        drop((file, new));
        fs.close().unwrap();
        assert_clean(&memory);
    }
    println!("{requests:?}");
    let ssr = requests[0];
    for (name, count, time) in &requests[1..] {
        // Bounded, only the best runs are rewritten.
        let share = if name.contains('+') { 3 } else { 2 };
        assert!(*count * share < ssr.1 * (share - 1), "{name}: {count} requests, {} without", ssr.1);
        assert!(*time < ssr.2, "{name}: {time:?}, {:?} without", ssr.2);
    }
}

#[test]
fn data_goes_where_its_temperature_says() {
    let device = Arc::new(MemoryDevice::new((1 << 30) >> 12));
    let mut options = FormatOptions::default();
    options.cold_extensions = vec!["iso".into()];
    options.hot_extensions = vec!["db".into()];
    format(&*device, &options).unwrap();
    let fs = FileSystem::open(device.clone(), Options::new().volume(VolumeOptions::new().lanes(1))).unwrap();
    // Where the data of each file stands.
    let log_of = |fs: &FileSystem, path: &str, hint: WriteHint, mark: Option<Temperature>| {
        let file = fs.create_file(path, 0o644).unwrap();
        file.set_write_hint(hint);
        if let Some(mark) = mark {
            file.set_temperature(mark).unwrap();
            assert_eq!(file.temperature(), mark);
        }
        let before: Vec<u32> = LogType::ALL.iter().map(|log| used(fs, *log)).collect();
        file.write_at(&[1; 8192], 0).unwrap();
        let grown: Vec<LogType> =
            LogType::ALL.into_iter().filter(|log| used(fs, *log) != before[log.index()]).collect();
        let [log] = grown[..] else { panic!("{path}: {grown:?}") };
        log
    };
    assert_eq!(log_of(&fs, "/plain", WriteHint::NotSet, None), LogType::WarmData);
    assert_eq!(log_of(&fs, "/disk.ISO", WriteHint::NotSet, None), LogType::ColdData);
    assert_eq!(log_of(&fs, "/mail.db", WriteHint::NotSet, None), LogType::HotData);
    assert_eq!(log_of(&fs, "/short", WriteHint::Short, None), LogType::HotData);
    assert_eq!(log_of(&fs, "/for-ever", WriteHint::Extreme, None), LogType::ColdData);
    assert_eq!(log_of(&fs, "/marked", WriteHint::Short, Some(Temperature::Cold)), LogType::ColdData);
    assert_eq!(log_of(&fs, "/other.db", WriteHint::Medium, Some(Temperature::Warm)), LogType::WarmData);
    // A file that was written already: what it gets from now on.
    let file = fs.open_file("/plain").unwrap();
    for (mark, log) in [(Temperature::Cold, LogType::ColdData), (Temperature::Hot, LogType::HotData)] {
        file.set_temperature(mark).unwrap();
        let before = used(&fs, log);
        file.write_at(&[2; 8192], file.size()).unwrap();
        assert_eq!(used(&fs, log), before + 2, "{mark:?}");
    }
    drop(file);
    fs.close().unwrap();
    assert_clean(&device);
    assert!(device.info().supports_discard);
}

/// Valid blocks in the segments of a log.
fn used(fs: &FileSystem, log: LogType) -> u32 {
    let segments = fs.volume().geometry().main_segments;
    (0..segments)
        .map(|number| fs.volume().segment(f2fs_format::SegmentNo(number)).unwrap())
        .filter(|info| info.log == log)
        .map(|info| info.valid)
        .sum()
}

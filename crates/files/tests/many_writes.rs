//! Many writes of one file in one call: what single ones do, on a volume that gets full, and to a device that fails.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;

use f2fs_device::Operation;
use f2fs_device_test::{Random, bytes};
use f2fs_files::{File, FileSystem, FsError, Options, ReadSlice, WriteSlice};
use f2fs_test_kit::volumes::{assert_clean, formatted};
use f2fs_volume::format::FormatOptions;

const BLOCK: usize = 4096;

#[test]
fn many_writes_do_what_single_ones_do() {
    let device = formatted(200, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let mut random = Random::new(3);
    for (number, depth) in [0, 1, 2, 7, 64].into_iter().enumerate() {
        let one = fs.create_file(format!("/one-{number}"), 0o644).unwrap();
        let many = fs.create_file(format!("/many-{number}"), 0o644).unwrap();
        for batch in 0..6 {
            let longest = if batch == 0 { 100 } else { 30_000 };
            let mut data: Vec<(u64, Vec<u8>)> = (0..40)
                .map(|_| {
                    let offset = random.below(if batch == 0 { 2000 } else { 5 << 20 }) as u64;
                    (offset, bytes(random.below(longest), random.next()))
                })
                .collect();
            if batch == 3 {
                data.push((123_456, bytes(5 << 20, 9)));
                data.push((77, bytes(4096, 8)));
            }
            let mut writes: Vec<_> = data.iter().map(|(offset, buf)| WriteSlice::new(*offset, buf)).collect();
            many.write_many(depth, &mut writes).unwrap();
            assert!(writes.iter().all(|write| write.written == write.buf.len()));
            for (offset, buf) in &data {
                assert_eq!(one.write_at(buf, *offset).unwrap(), buf.len());
            }
            assert_eq!(one.size(), many.size());
            let (mut a, mut b) = (vec![1; one.size() as usize], vec![2; one.size() as usize]);
            assert_eq!(one.read_at(&mut a, 0).unwrap(), a.len());
            assert_eq!(many.read_at(&mut b, 0).unwrap(), b.len());
            assert!(a == b, "depth {depth}, batch {batch}");
        }
        let too_far = [WriteSlice::new(0, b"x"), WriteSlice::new(u64::MAX - 1, b"xyz")];
        assert!(many.write_many(depth, &mut { too_far }).is_err());
    }
    fs.close().unwrap();
    assert_clean(&device);
}

/// At the greatest size of a file: what fits of a piece is written, and what was written until an error stays.
#[test]
fn many_writes_at_the_greatest_size_do_what_single_ones_do() {
    let device = formatted(200, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let found = fs.create_file("/limit", 0o644).unwrap();
    let Err(FsError::FileTooLarge { limit, .. }) = found.write_at(b"x", u64::MAX) else { panic!("no limit") };
    let buf = bytes(3 * BLOCK, 1);
    let sets: [&[u64]; 5] = [
        &[limit - 5, 0],
        &[0, u64::MAX - 3, 50],
        &[0, 9000, limit, 50],
        &[limit - 5, 20_000, limit - 1, 40_000],
        &[limit],
    ];
    for (number, offsets) in sets.into_iter().enumerate() {
        for depth in [1, 8] {
            let one = fs.create_file(format!("/one-{number}-{depth}"), 0o644).unwrap();
            let many = fs.create_file(format!("/many-{number}-{depth}"), 0o644).unwrap();
            let mut writes: Vec<_> = offsets.iter().map(|offset| WriteSlice::new(*offset, &buf)).collect();
            let result = many.write_many(depth, &mut writes);
            let mut failed = None;
            let mut singles = vec![0; offsets.len()];
            for (offset, written) in offsets.iter().zip(&mut singles) {
                match one.write_at(&buf, *offset) {
                    Ok(bytes) => *written = bytes,
                    Err(error) => {
                        failed = Some(error.to_string());
                        break;
                    }
                }
            }
            assert_eq!(result.err().map(|error| error.to_string()), failed, "{offsets:?}");
            assert_eq!(writes.iter().map(|write| write.written).collect::<Vec<_>>(), singles, "{offsets:?}");
            assert_eq!(one.size(), many.size(), "{offsets:?}");
            for write in &writes {
                let (mut a, mut b) = (vec![0; write.written], vec![1; write.written]);
                assert_eq!(one.read_at(&mut a, write.offset).unwrap(), write.written);
                assert_eq!(many.read_at(&mut b, write.offset).unwrap(), write.written);
                assert!(a == b, "{offsets:?}");
            }
        }
    }
    fs.close().unwrap();
    assert_clean(&device);
}

/// A volume without room for all of a batch: what is said to be written is, and the rest is as before.
#[test]
fn many_writes_into_a_volume_that_gets_full() {
    let device = formatted(56, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(&[1; BLOCK], 0).unwrap();
    let data: Vec<Vec<u8>> = (0..4000).map(|n| bytes(if n % 500 == 0 { 900_000 } else { 6000 }, n)).collect();
    let offset = |n: usize| (n as u64 * 1_000_003) % (1 << 32);
    let mut writes: Vec<_> = data.iter().enumerate().map(|(n, data)| WriteSlice::new(offset(n), data)).collect();
    let error = file.write_many(32, &mut writes).unwrap_err();
    assert!(error.is_no_space(), "{error}");
    let whole = writes.iter().take_while(|write| write.written == write.buf.len()).count();
    assert!(whole > 100 && whole < 4000, "{whole}");
    assert!(
        writes[whole + 1..].iter().all(|write| write.written == 0),
        "nothing is written behind the first that failed"
    );
    let check = |file: &File| {
        for write in &writes {
            let mut read = vec![0; write.written];
            assert_eq!(file.read_at(&mut read, write.offset).unwrap(), write.written);
            assert!(read == write.buf[..write.written]);
        }
    };
    check(&file);
    drop(file);
    fs.close().unwrap();
    assert_clean(&device);
    let fs = FileSystem::open(device, Options::new()).unwrap();
    check(&fs.open_file("/file").unwrap());
}

/// The n-th request fails, for every n of a batch: what is said to be written is, other blocks are as before, none is
/// lost.
#[test]
fn many_writes_to_a_device_that_fails() {
    use f2fs_device_test::{FaultDevice, FaultRule};
    let inner = formatted(64, &FormatOptions::default());
    let device = Arc::new(FaultDevice::new(inner.clone()));
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    const BLOCKS: usize = 600;
    let mut wanted = bytes(BLOCKS * BLOCK, 1);
    file.write_at(&wanted, 0).unwrap();
    let used = fs.statfs().valid_blocks;
    let (mut failed, mut random) = (0, Random::new(5));
    for n in 0..60 {
        let data: Vec<Vec<u8>> = (0..40).map(|k| bytes(1 + random.below(9000), n * 100 + k)).collect();
        let mut writes: Vec<_> =
            data.iter().map(|data| WriteSlice::new(random.below((BLOCKS - 3) * BLOCK) as u64, data)).collect();
        device.arm(FaultRule::on_all().after(n));
        let result = file.write_many(8, &mut writes);
        device.disarm();
        failed += u64::from(result.is_err());
        for write in &writes {
            assert!(write.written == write.buf.len() || result.is_err());
            let at = write.offset as usize;
            wanted[at..at + write.written].copy_from_slice(&write.buf[..write.written]);
        }
        // A long write that fails in the middle: what the size or the count says is there.
        device.arm(FaultRule::on([Operation::Write]).after(n / 4));
        let long = bytes(5 << 20, n);
        let result = file.write_at(&long, (BLOCKS * BLOCK) as u64);
        device.disarm();
        let grown = file.size() as usize - BLOCKS * BLOCK;
        let written = result.unwrap_or(grown);
        assert_eq!(written, grown);
        let mut read = vec![0; grown];
        assert_eq!(file.read_at(&mut read, (BLOCKS * BLOCK) as u64).unwrap(), grown);
        assert!(read == long[..grown], "{n}");
        file.set_len((BLOCKS * BLOCK) as u64).unwrap();
        // Reads that fail say so, and leave nothing locked.
        device.arm(FaultRule::on([Operation::Read]).after(n % 3));
        let mut bufs = [[0; BLOCK]; 20];
        let mut reads: Vec<_> =
            bufs.iter_mut().map(|buf| ReadSlice::new((random.below(BLOCKS) * BLOCK) as u64, buf)).collect();
        assert!(file.read_many(4, &mut reads).is_err());
        device.disarm();
        let mut all = vec![0; wanted.len() + 1];
        assert_eq!(file.read_at(&mut all, 0).unwrap(), wanted.len());
        assert!(all[..wanted.len()] == wanted, "{n}");
        assert_eq!(fs.statfs().valid_blocks, used, "{n}");
    }
    assert!(failed > 10, "{failed}");
    drop(file);
    fs.close().unwrap();
    assert_clean(&inner);
}

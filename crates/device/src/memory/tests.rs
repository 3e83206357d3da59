//! Devices in memory: transfers across chunks, sparse parts, snapshots, sizes, files.

use super::*;
use crate::DeviceErrorKind;

#[test]
fn transfers_cross_chunks_and_sparse_parts_read_as_zeros() {
    let device = MemoryDevice::new(3 * CHUNK + 5);
    let data: Vec<u8> = (0..70 * BLOCK_SIZE).map(|i| (i / 7) as u8).collect();
    device.write_slice(CHUNK - 3, &data).unwrap();
    assert_eq!(device.allocated_bytes(), 3 * CHUNK * BLOCK_SIZE as u64);
    assert_eq!(device.read(CHUNK - 3, 70).unwrap().as_bytes(), data);
    assert_eq!(device.read(3 * CHUNK + 4, 1).unwrap().block(0), &[0; BLOCK_SIZE]);
    let beyond = DeviceErrorKind::OutOfRange { device_blocks: 3 * CHUNK + 5 };
    assert_eq!(device.read(3 * CHUNK + 4, 2).unwrap_err().kind, beyond);
    let mut two = AlignedBuf::new(2);
    for start in [3 * CHUNK + 4, u64::MAX] {
        assert_eq!(device.write_from(start, &mut two).unwrap_err().kind, beyond);
    }
}

#[test]
fn vectored_requests_follow_each_other() {
    let device = MemoryDevice::new(200);
    let bufs = [1_u8, 2, 3].map(|byte| AlignedBuf::from_bytes(&vec![byte; byte as usize * BLOCK_SIZE]));
    let write = Request::vectored(Op::Write, 61, bufs.to_vec()).with_tag(9);
    let done = device.submit(vec![write]).wait();
    assert_eq!((done.len(), done[0].request.tag, &done[0].result), (1, 9, &Ok(())));
    let read = device.read(61, 6).unwrap();
    assert_eq!((0..6).map(|i| read.block(i)[0]).collect::<Vec<_>>(), [1, 2, 2, 3, 3, 3]);
}

#[test]
fn discard_frees_whole_chunks_and_zeroes_parts() {
    let device = MemoryDevice::from_bytes(&vec![5; 3 * CHUNK as usize * BLOCK_SIZE]);
    device.discard(CHUNK - 1, CHUNK + 2).unwrap();
    assert_eq!(device.allocated_bytes(), 2 * CHUNK * BLOCK_SIZE as u64);
    let bytes = device.to_bytes();
    let block = |i: u64| bytes[i as usize * BLOCK_SIZE];
    assert_eq!([block(CHUNK - 2), block(CHUNK - 1), block(2 * CHUNK), block(2 * CHUNK + 1)], [5, 0, 0, 5]);
}

#[test]
fn snapshots_are_independent() {
    let device = MemoryDevice::new(CHUNK);
    device.write_slice(1, b"old").unwrap();
    let snapshot = device.snapshot();
    device.write_slice(1, b"new").unwrap();
    snapshot.write_slice(2, b"own").unwrap();
    assert_eq!(&snapshot.read(1, 1).unwrap().as_bytes()[..3], b"old");
    assert_eq!(&device.read(1, 1).unwrap().as_bytes()[..3], b"new");
    assert_eq!(device.read(2, 1).unwrap().as_bytes()[0], 0);
}

#[test]
fn small_chunks_hold_the_same() {
    let device = MemoryDevice::new(3 * CHUNK + 5);
    device.write_slice(CHUNK - 3, &[7; 6 * BLOCK_SIZE]).unwrap();
    device.write_slice(3 * CHUNK + 4, b"end").unwrap();
    let small = device.rechunked(4);
    assert_eq!(small.to_bytes(), device.to_bytes());
    assert_eq!(small.allocated_bytes(), 3 * 4 * BLOCK_SIZE as u64);
    let copy = small.snapshot();
    copy.discard(CHUNK - 4, 6).unwrap();
    assert_eq!(copy.read(CHUNK + 2, 1).unwrap().as_bytes()[0], 7);
    assert_eq!(copy.read(CHUNK + 1, 1).unwrap().as_bytes()[0], 0);
    assert_eq!(small.read(CHUNK + 1, 1).unwrap().as_bytes()[0], 7);
}

#[test]
fn a_large_sparse_device_is_cheap() {
    let device = MemoryDevice::new(64 << 18);
    device.write_slice((64 << 18) - 1, b"end").unwrap();
    assert_eq!(device.info().bytes(), 64 << 30);
    assert_eq!(device.allocated_bytes(), CHUNK * BLOCK_SIZE as u64);
    assert_eq!(&device.read((64 << 18) - 1, 1).unwrap().as_bytes()[..3], b"end");
}

#[test]
fn huge_sparse_devices_are_as_cheap_and_have_a_limit() {
    for (blocks, chunk) in [(100 << 28, CHUNK), (MemoryDevice::MAX_BLOCKS, CHUNK), (MemoryDevice::MAX_BLOCKS, 4)] {
        let device = MemoryDevice::with_chunks(blocks, chunk);
        assert!(device.groups.len() as u64 <= MAX_GROUPS);
        for at in [0, blocks / 3, blocks - 1] {
            device.write_slice(at, &at.to_le_bytes()).unwrap();
            assert_eq!(device.read(at, 1).unwrap().as_bytes()[..8], at.to_le_bytes());
        }
        assert_eq!(device.read(blocks / 3 + 1, 1).unwrap().block(0), &[0; BLOCK_SIZE]);
        device.discard(blocks / 3, 1).unwrap();
        assert_eq!(device.block(blocks / 3).0, [0; BLOCK_SIZE]);
    }
    for blocks in [MemoryDevice::MAX_BLOCKS + 1, u64::MAX / BLOCK_SIZE as u64, u64::MAX] {
        let expected = MemoryError::TooLarge { blocks, max: MemoryDevice::MAX_BLOCKS };
        assert_eq!(MemoryDevice::try_new(blocks).unwrap_err(), expected);
    }
}

#[test]
fn files_round_trip_sparsely() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    let device = MemoryDevice::new(16 * CHUNK + 3);
    device.write_slice(16 * CHUNK + 2, b"tail").unwrap();
    device.save(&path).unwrap();
    let meta = std::fs::metadata(&path).unwrap();
    assert_eq!(meta.len(), device.info().bytes());
    assert!(std::os::unix::fs::MetadataExt::blocks(&meta) * 512 < meta.len() / 4);
    let loaded = MemoryDevice::load(&path).unwrap();
    assert_eq!(loaded.to_bytes(), device.to_bytes());
    assert_eq!(loaded.allocated_bytes(), CHUNK * BLOCK_SIZE as u64);
}

#[test]
fn read_only_devices_refuse_writes_but_not_flushes() {
    let device = MemoryDevice::new(4).read_only();
    assert_eq!(device.write_slice(0, b"x").unwrap_err().kind, DeviceErrorKind::ReadOnly);
    device.flush().unwrap();
}

//! Every start, length, depth and size that a caller can hand in, at the ends of what its type holds: a result or an
//! error, no panic, and no memory by what was asked for.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::{AlignedBuf, BlockDevice, DeviceErrorKind, Request};
use f2fs_uring::{Engine, OpenError, OpenOptions, UringDevice};

const BLOCKS: u64 = 64;

const SIZES: [u64; 13] = [
    0,
    1,
    63,
    64,
    65,
    4095,
    u32::MAX as u64,
    u32::MAX as u64 + 1,
    (1 << 52) - 1,
    1 << 52,
    i64::MAX as u64,
    u64::MAX - 1,
    u64::MAX,
];

#[test]
fn starts_lengths_and_depths() {
    let dir = tempfile::tempdir().unwrap();
    for engine in [Engine::Auto, Engine::Syscalls] {
        let path = dir.path().join(format!("{engine:?}"));
        let device = UringDevice::create(path, BLOCKS * 4096, OpenOptions::new().engine(engine)).unwrap();
        let inside = |start: u64, blocks: u64| start.checked_add(blocks).is_some_and(|end| end <= BLOCKS);
        for start in SIZES {
            for blocks in SIZES {
                let what = format!("{engine:?}, {blocks} from {start}");
                match device.read(start, blocks as usize) {
                    Ok(read) => assert!(inside(start, blocks) && read.blocks() as u64 == blocks, "{what}"),
                    Err(error) => {
                        assert!(!inside(start, blocks), "{what}: {error}");
                        assert!(matches!(error.kind, DeviceErrorKind::OutOfRange { .. }), "{what}: {error}");
                    }
                }
                match device.discard(start, blocks) {
                    Ok(()) => assert!(inside(start, blocks), "{what}"),
                    Err(error) => assert!(
                        !inside(start, blocks) || matches!(error.kind, DeviceErrorKind::Unsupported),
                        "{what}: {error}"
                    ),
                }
            }
            for blocks in [0, 1, BLOCKS, BLOCKS + 1] {
                let what = format!("{engine:?}, {blocks} at {start}");
                let buf = || AlignedBuf::new(blocks as usize);
                assert_eq!(device.write(start, buf()).is_ok(), inside(start, blocks), "{what}");
                assert_eq!(device.write_fua(start, buf()).is_ok(), inside(start, blocks), "{what}");
                assert_eq!(device.read_into(start, &mut buf()).is_ok(), inside(start, blocks), "{what}");
            }
        }
        for depth in SIZES.map(|depth| depth as usize) {
            let mut queue = device.queue(depth);
            assert!(queue.depth() >= 1);
            for size in SIZES {
                // More buffers than a ring takes, and buffers of nothing.
                assert!(queue.buffers(size as usize % 20_000, 0).iter().all(AlignedBuf::is_empty));
                queue.push(Request::read(size, AlignedBuf::new(1)));
                queue.push(Request::discard(size, size));
            }
            assert_eq!(std::iter::from_fn(|| queue.next_completion()).count(), 2 * SIZES.len(), "{depth}");
        }
        device.flush().unwrap();
    }
}

#[test]
fn sizes_of_files() {
    let dir = tempfile::tempdir().unwrap();
    for bytes in SIZES {
        let path = dir.path().join(bytes.to_string());
        match UringDevice::create(&path, bytes, OpenOptions::new()) {
            Ok(device) => {
                assert!(bytes >= 4096 && device.info().blocks == bytes / 4096, "{bytes}");
                assert!(device.read(bytes / 4096, 1).is_err(), "{bytes}");
            }
            Err(OpenError::TooSmall { .. }) => assert!(bytes < 4096 && !path.exists(), "{bytes}"),
            Err(OpenError::Io { .. }) => assert!(bytes > 1 << 40 && !path.exists(), "{bytes}"),
            Err(other) => panic!("{bytes}: {other}"),
        }
    }
}

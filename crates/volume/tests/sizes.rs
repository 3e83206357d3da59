//! Every size, count and number that a caller can hand in, at the ends of what its type holds: an answer or an error,
//! no panic, and no memory or threads by what was asked for.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::num::NonZeroUsize;
use std::sync::Arc;

use f2fs_check::{CheckOptions, check};
use f2fs_device::{AlignedBuf, MemoryDevice};
use f2fs_format::{BlockAddr, Nid, SegmentNo};
use f2fs_volume::format::{FormatOptions, format};
use f2fs_volume::{Allocation, NewNode, Reason, Volume, VolumeOptions};

const SIZES: [u64; 12] =
    [0, 1, 2, 511, 512, 513, 4096, u32::MAX as u64 - 1, u32::MAX as u64, i64::MAX as u64, u64::MAX - 1, u64::MAX];

fn formatted() -> Arc<MemoryDevice> {
    let device = MemoryDevice::new((64 << 20) >> 12);
    format(&device, &FormatOptions::default()).unwrap();
    Arc::new(device)
}

fn assert_consistent(device: &MemoryDevice, what: &str) {
    let report = check(device, &CheckOptions::default()).unwrap();
    assert!(report.is_consistent() && report.complete, "{what}: {report}");
}

/// Every size that can be formatted can be opened and written to.
#[test]
fn formats() {
    let base = FormatOptions::default;
    let mut all = Vec::new();
    for size in SIZES {
        let small = size as u32;
        all.push((format!("sections {size}"), base().with_sections(small, 1)));
        all.push((format!("zones {size}"), base().with_sections(1, small)));
        all.push((format!("both {size}"), base().with_sections(small, small)));
        let mut options = [base(), base(), base(), base()];
        options[0].sector_size = Some(small);
        options[1].checkpoint_version = Some(size);
        options[2].time = Some(size);
        options[3].root_owner = (small, small);
        for (name, options) in ["sector", "version", "time", "owner"].into_iter().zip(options) {
            all.push((format!("{name} {size}"), options));
        }
    }
    for percent in [0.0, -1.0, 1e-300, 0.5, 99.999, 100.0, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        let mut options = base();
        options.overprovision = Some(percent);
        all.push((format!("overprovision {percent}"), options));
    }
    let mut made = 0;
    for (what, options) in all {
        let device = Arc::new(MemoryDevice::new((64 << 20) >> 12));
        if format(&*device, &options).is_err() {
            continue;
        }
        made += 1;
        let volume =
            Volume::open(device.clone(), &VolumeOptions::new()).unwrap_or_else(|error| panic!("{what}: {error}"));
        for _ in 0..3 {
            volume.checkpoints().write(Reason::Sync).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        volume.close().unwrap();
        assert_consistent(&device, &what);
    }
    assert!(made > 20, "{made} of them are possible");
    for blocks in [0, 1, 2, 512, 9 * 512, 10 * 512, 19 * 512] {
        let _ = format(&MemoryDevice::new(blocks), &base());
    }
}

#[test]
fn options() {
    for size in SIZES {
        let device = formatted();
        let mut options = VolumeOptions::new()
            .node_cache(NonZeroUsize::new(size as usize).unwrap_or(NonZeroUsize::MIN))
            .dirty_nodes(size)
            .lanes(size as usize);
        for share in [size as f64, f64::NAN, f64::INFINITY, -1.0] {
            options.allocation = Allocation::default().at_most(share);
            // Fields are set without the builder, too.
            options.lanes = size as usize;
            let volume = Volume::open(device.clone(), &options).unwrap();
            volume.checkpoints().write(Reason::Sync).unwrap();
            volume.close().unwrap();
        }
        assert_consistent(&device, &format!("{size}"));
    }
}

#[test]
fn threads_of_a_check() {
    let device = formatted();
    for threads in SIZES {
        let options = CheckOptions::new().threads(threads as usize);
        assert!(check(&*device, &options).unwrap().is_clean(), "{threads}");
    }
}

#[test]
fn numbers_and_addresses() {
    let device = formatted();
    let volume = Volume::open(device.clone(), &VolumeOptions::new()).unwrap();
    let before = volume.stat();
    for size in SIZES {
        let (nid, addr) = (Nid(size as u32), BlockAddr(size as u32));
        let inside = volume.geometry().in_main(addr);
        let op = volume.begin().unwrap();
        let room = before.user_blocks - before.valid_blocks;
        assert_eq!(volume.data().has_room(size), size <= room, "{size}");
        assert_eq!(volume.data().reserve(&op, size).is_ok(), size <= room, "{size}");
        if size <= room {
            volume.data().unreserve(&op, size);
        }
        let root = nid == volume.geometry().root_ino;
        assert!(root || volume.nodes().get(nid).is_err(), "{nid}");
        volume.nodes().prefetch(&[nid, nid]);
        let _ =
            (volume.moves(nid), volume.is_orphan(nid), volume.nodes().version(nid), volume.nodes().is_on_device(nid));
        assert!(!volume.remove_orphan(&op, nid), "{nid}");
        assert!(!volume.data().is_in_use(addr).unwrap() || inside, "{addr}");
        assert!(volume.data().read(nid, addr, &mut AlignedBuf::new(1)).is_err() || inside, "{addr}");
        assert!(volume.data().read(nid, addr, &mut AlignedBuf::new(0)).is_err() || inside, "{addr}");
        assert!(volume.segment(SegmentNo(size as u32)).is_err() || size < 1000, "{size}");
        volume.balance().add_dirty_dentries(size);
        volume.balance().sub_dirty_dentries(size);
        drop(op);
        let _ = volume.nids().hold(size.max(volume.nids().allocatable().unwrap()));
    }
    // A node's place in its file may be any number.
    let op = volume.begin().unwrap();
    for offset in SIZES.map(|size| size as u32) {
        let node = volume.nodes().create(&op, NewNode { ino: None, offset, directory: false });
        if let Ok(node) = node {
            volume.nodes().remove(&op, &node).unwrap();
        }
    }
    drop(op);
    let after = volume.stat();
    assert_eq!((after.valid_blocks, after.valid_nodes), (before.valid_blocks, before.valid_nodes));
    volume.close().unwrap();
    assert_consistent(&device, "numbers");
}

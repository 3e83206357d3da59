//! Opening a node address table of 16 million NIDs, two thirds of them bound, on the memory device.
//!
//! `lazy`: until the table is open and the first NID is allocated; the goal is under 50 ms. `eager`: until all of it is
//! in memory, on all processors, as NIDs per second. `checkpoint`: flushing a change in every block, with the copying
//! of blocks, without writing them.
//!
//! Measured (two virtual Intel Xeon processors, tests running beside it; lowest and highest of a sample's means): lazy
//! 3.3 to 7.6 ms, eager 24.7 to 34.3 million NIDs a second, checkpoint 245 to 425 ms; 9.61 bytes of memory a NID with
//! all of them cached.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput};
use f2fs::device::{AlignedBuf, BlockDevice, MemoryDevice};
use f2fs_benches::report::machine;
use f2fs_format::nat::NatBlock;
use f2fs_format::{BlockAddr, Nid};
use f2fs_nat::{Nat, NatConfig, NatSource, SourceError};

const PER_BLOCK: u32 = Nat::ENTRIES_PER_BLOCK as u32;
const BLOCKS: u32 = 16_000_000_u32.div_ceil(PER_BLOCK);

/// Both copies of block n stand at 2 n and 2 n + 1.
struct OnDevice(MemoryDevice);

impl OnDevice {
    fn new() -> OnDevice {
        let device = MemoryDevice::new(2 * u64::from(BLOCKS));
        let mut block = NatBlock::ZERO;
        for index in 0..BLOCKS {
            for (place, entry) in block.entries.iter_mut().enumerate() {
                let nid = index * PER_BLOCK + place as u32;
                if nid >= 3 && !nid.is_multiple_of(3) {
                    entry.ino = nid.into();
                    entry.block_addr = nid.into();
                }
            }
            device.write(2 * u64::from(index), AlignedBuf::from_bytes(block.as_block())).unwrap();
        }
        OnDevice(device)
    }
}

impl NatSource for OnDevice {
    fn read_nat_block(&self, index: u32, second: bool) -> Result<Box<NatBlock>, SourceError> {
        let buf = self.0.read(2 * u64::from(index) + u64::from(second), 1)?;
        Ok(Box::new(*NatBlock::read(buf.block(0))))
    }
}

fn open(source: &Arc<OnDevice>) -> Nat {
    let bound = u64::from(BLOCKS) * u64::from(PER_BLOCK) / 3 * 2;
    let config = NatConfig::new(BLOCKS).valid_nodes(bound);
    Nat::new(config, source.clone(), vec![0; BLOCKS as usize / 8 + 1], &[]).unwrap()
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    println!("{}", machine());
    println!("{:.2} bytes of memory per NID with all of them cached", Nat::bytes_per_nid());
    let source = Arc::new(OnDevice::new());
    let mut group = criterion.benchmark_group("nid_open");
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
    group.bench_function("lazy", |bencher| {
        bencher.iter_with_large_drop(|| {
            let nat = open(&source);
            assert!(nat.allocate().unwrap().is_some());
            nat
        });
    });
    group.throughput(Throughput::Elements(u64::from(BLOCKS) * u64::from(PER_BLOCK)));
    group.bench_function("eager", |bencher| {
        bencher.iter_with_large_drop(|| {
            let nat = open(&source);
            nat.load_all(8, &|_| {}).unwrap();
            nat
        });
    });
    group.throughput(Throughput::Elements(u64::from(BLOCKS)));
    group.bench_function("checkpoint", |bencher| {
        let dirty = || {
            let nat = open(&source);
            for block in 0..BLOCKS {
                let nid =
                    Nid(block * PER_BLOCK
                        + (1..4).find(|place| !(block * PER_BLOCK + place).is_multiple_of(3)).unwrap());
                if nid.0 >= 3 {
                    nat.bind(nid, nid, BlockAddr(7)).unwrap();
                }
            }
            nat
        };
        bencher.iter_batched(
            dirty,
            |nat| {
                let flush = nat.begin_checkpoint(38).unwrap();
                nat.end_checkpoint();
                (nat, flush)
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
    criterion.final_summary();
}

//! Many reads at once give what single reads give: across holes, ends, inline files, and in any order.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use f2fs_device::MemoryDevice;
use f2fs_files::{File, FileSystem, Options, ReadSlice};

fn compare(file: &File, depth: usize, wanted: &[(u64, usize)]) {
    let mut many: Vec<Vec<u8>> = wanted.iter().map(|(_, len)| vec![0xee; *len]).collect();
    let mut reads: Vec<_> =
        wanted.iter().zip(&mut many).map(|((offset, _), buf)| ReadSlice::new(*offset, buf)).collect();
    file.read_many(depth, &mut reads).unwrap();
    let counts: Vec<usize> = reads.iter().map(|read| read.read).collect();
    for (((offset, len), many), count) in wanted.iter().zip(&many).zip(counts) {
        let mut one = vec![0xee; *len];
        assert_eq!(file.read_at(&mut one, *offset).unwrap(), count, "{len} bytes at {offset}");
        assert!(one == *many, "{len} bytes at {offset}, depth {depth}");
    }
}

#[test]
fn many_reads_give_what_single_ones_give() {
    let device = Arc::new(MemoryDevice::new(32 * 1024));
    f2fs_volume::format::format(&*device, &Default::default()).unwrap();
    let fs = FileSystem::open(device, Options::new()).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    let wanted = [(0, 10), (0, 5000), (4095, 2), (3 << 20, 3 << 20), (5_000_000, 100_000), (1 << 40, 7), (9, 0)];
    compare(&file, 4, &wanted); // empty
    file.write_at(&[1; 300], 0).unwrap();
    compare(&file, 4, &wanted); // inline
    let data: Vec<u8> = (0..3_000_000_u32).map(|i| ((i * 7) >> 5) as u8).collect();
    file.write_at(&data, 0).unwrap();
    file.write_at(&data, 4_500_001).unwrap(); // behind a hole, and not on a block border
    file.write_at(&[9; 4096], 70_000).unwrap(); // out of line with its neighbours
    let scattered: Vec<_> = (0..500_u64).map(|i| (i * 1_234_577 % 7_600_000, (i as usize * 37) % 9000)).collect();
    for depth in [0, 1, 3, 64] {
        compare(&file, depth, &wanted);
        compare(&file, depth, &scattered);
    }
}

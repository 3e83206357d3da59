use f2fs_device_test::Random;
use f2fs_format::summary::Summary;

use super::*;

/// Around the first block that has its slot in a node of its own.
const FIRST: u64 = 915;
const BLOCKS: u64 = 24;

/// Pieces of any size in any order of writes, whichever way their requests go: the file has the bytes, and what stood
/// around them.
#[test]
fn a_file_has_what_was_written_to_it() {
    let bench = Bench::new();
    let mut random = Random::new(7);
    let mut model = vec![0; (BLOCKS * BLOCK_BYTES) as usize];
    let base = FIRST * BLOCK_BYTES;
    let (mut size, mut present) = (0, [false; BLOCKS as usize]);
    for round in 0..120 {
        // Pieces that have no block in common.
        let mut pieces = Vec::new();
        let mut at = random.below(10 * BLOCK);
        while at < model.len() && pieces.len() < 3 {
            let len = if random.below(2) == 0 { random.below(3 * BLOCK) } else { random.below(3) * BLOCK };
            let offset = if random.below(2) == 0 { at / BLOCK * BLOCK } else { at };
            let len = len.clamp(1, model.len() - offset);
            let fill: Vec<u8> = (0..len).map(|byte| (round + byte / 16) as u8).collect();
            pieces.push((offset, fill));
            at = (offset + len).next_multiple_of(BLOCK) + random.below(4 * BLOCK);
        }
        let next = [Next::Other, Next::Land, Next::Sync][random.below(3)];
        let op = bench.volume.begin().unwrap();
        let target = Target { inode: &bench.file, size, log: LogType::WarmData };
        let those: Vec<_> = pieces.iter().map(|(at, buf)| Piece { offset: base + *at as u64, buf }).collect();
        let flight = Flight::begin(&op, target, &those, next).unwrap();
        let (last, buf) = pieces.last().unwrap();
        assert_eq!(flight.end(), base + (last + buf.len()) as u64);
        size = size.max(flight.end());
        let mut named = Vec::new();
        flight.land(&op, &bench.file, |block, addr| named.push((block, addr)), |raw| raw.i_size = size.into()).unwrap();
        drop(op);
        let mut expected = Vec::new();
        for (at, buf) in &pieces {
            model[*at..at + buf.len()].copy_from_slice(buf);
            let blocks = at / BLOCK..=(at + buf.len() - 1) / BLOCK;
            expected.extend(blocks.map(|block| FIRST + block as u64));
        }
        for (block, addr) in &named {
            assert_eq!(bench.address(*block), *addr);
            present[(block - FIRST) as usize] = true;
        }
        assert_eq!(named.into_iter().map(|(block, _)| block).collect::<Vec<_>>(), expected);
        for (block, bytes) in model.chunks(BLOCK).enumerate() {
            assert!(bench.read(FIRST + block as u64) == bytes, "round {round}, block {block}");
        }
        let data = present.iter().filter(|there| **there).count() as u64;
        let nodes = u64::from(present.iter().zip(FIRST..).any(|(there, block)| *there && block >= 923));
        assert!((1 + data..=1 + data + nodes).contains(&bench.state(0..0).3), "round {round}");
    }
    assert_eq!(bench.file.read().inode().i_size.get(), size);
    let (_, counted, in_segments, _) = bench.state(0..0);
    // Two nodes of the file wait for their places.
    assert_eq!(counted, in_segments + 2);
}

/// In whatever parts the blocks of a write are taken: one after the other, with the old content around the ends.
#[test]
fn the_blocks_of_a_write_come_in_their_order() {
    let recycler = f2fs_device::Recycler::new();
    let mut random = Random::new(9);
    for _ in 0..300 {
        let (mut offset, mut bufs) = (random.below(3 * BLOCK), Vec::new());
        for _ in 0..=random.below(3) {
            let len = [1 + random.below(2 * BLOCK), (1 + random.below(40)) * BLOCK][random.below(2)];
            offset = if random.below(2) == 0 { offset.next_multiple_of(BLOCK) } else { offset };
            bufs.push((offset, (0..len).map(|byte| (byte / 7) as u8).collect::<Vec<_>>()));
            offset = (offset + len).next_multiple_of(BLOCK) + random.below(2 * BLOCK);
        }
        let pieces: Vec<_> = bufs.iter().map(|(offset, buf)| Piece { offset: *offset as u64, buf }).collect();
        let (mut edges, mut expected) = (Vec::new(), Vec::new());
        for Piece { offset, buf } in &pieces {
            let (from, to) = (*offset as usize, *offset as usize + buf.len());
            for block in from / BLOCK..to.div_ceil(BLOCK) {
                let mut content = vec![0xee; BLOCK];
                let part = from.max(block * BLOCK)..to.min((block + 1) * BLOCK);
                content[part.start - block * BLOCK..part.end - block * BLOCK]
                    .copy_from_slice(&buf[part.start - from..part.end - from]);
                if part.len() < BLOCK {
                    edges.push(source::Edge { block: block as u64, data: AlignedBuf::from_bytes(&content) });
                }
                expected.extend(content);
            }
        }
        let mut source = source::Source::new(&pieces, &edges);
        let mut found = Vec::new();
        while found.len() < expected.len() {
            let left = (expected.len() - found.len()) / BLOCK;
            let blocks = 1 + random.below(left.min(20));
            found.extend_from_slice(source.take(blocks, &recycler).as_bytes());
        }
        assert!(found == expected);
    }
}

#[test]
fn what_stands_behind_the_end_is_not_kept() {
    let bench = Bench::new();
    bench.write(0, 2, 0xff);
    let op = bench.volume.begin().unwrap();
    // The file ends at byte 100 of its first block by now.
    let target = Target { inode: &bench.file, size: 100, log: LogType::WarmData };
    let pieces = [Piece { offset: 200, buf: &[7; 10] }, Piece { offset: 4096 + 50, buf: &[7; 10] }];
    let flight = Flight::begin(&op, target, &pieces, Next::Land).unwrap();
    flight.land(&op, &bench.file, |_, _| {}, |_| {}).unwrap();
    let expected = |filled: usize, from: usize| {
        let mut block = vec![0; BLOCK];
        block[..filled].fill(0xff);
        block[from..from + 10].fill(7);
        block
    };
    assert!(bench.read(0) == expected(100, 200) && bench.read(1) == expected(0, 50));
}

/// A request at a time while the next one is put together, so that both are at work; short ones wait for others.
#[test]
fn requests_have_a_size_and_short_ones_may_wait() {
    let bench = Bench::new();
    for (next, blocks, at_once, in_all) in [
        (Next::Other, 300, 3, 3),
        (Next::Other, 1, 1, 1),
        (Next::Land, 128, 0, 1),
        (Next::Land, 129, 2, 2),
        (Next::Sync, 16, 0, 1),
        (Next::Sync, 17, 1, 1),
    ] {
        // In a segment of its own, so that the blocks follow each other.
        let op = bench.volume.begin().unwrap();
        let (segment, offset) =
            bench.volume.geometry().locate(bench.volume.segments.next_block(LogType::WarmData)).unwrap();
        if offset != 0 {
            bench.begin(&op, 2000, 512 - offset as usize, 1, Next::Other).abandon(&op).unwrap();
            assert_ne!(
                bench.volume.segments.next_block(LogType::WarmData),
                bench.volume.geometry().block_at(segment, offset)
            );
        }
        let (before, stat) = (bench.recorded.counts().writes, bench.volume.stat());
        let reads = bench.recorded.counts().reads;
        let flight = bench.begin(&op, 0, blocks, 5, next);
        assert_eq!(bench.recorded.counts().reads, reads, "what was there does not matter");
        assert_eq!(bench.recorded.counts().writes - before, at_once, "{next:?}, {blocks} blocks");
        flight.land(&op, &bench.file, |_, _| {}, |_| {}).unwrap();
        assert_eq!(bench.recorded.counts().writes - before, in_all, "{next:?}, {blocks} blocks");
        assert_eq!(bench.fills(0..blocks as u64), vec![5; blocks]);
        let after = bench.volume.stat();
        assert_eq!(after.data_blocks_written - stat.data_blocks_written, blocks as u64);
        assert_eq!(after.written.user_blocks - stat.written.user_blocks, blocks as u64);
        assert_eq!(after.written.user_requests - stat.written.user_requests, in_all);
    }
}

/// Blocks that stand between those of a write are written once more, so that all of it is one request.
#[test]
fn neighbours_are_rewritten_in_the_same_request() {
    let bench = Bench::new();
    bench.write(0, 3, 1);
    let before = bench.state(0..6);
    let rewrites = [bench.address(1), bench.address(2)];
    assert_eq!(rewrites[1], rewrites[0].offset(1));
    let rewrites = [Run { addr: rewrites[0], len: 2 }];
    let op = bench.volume.begin().unwrap();
    let summaries: Vec<_> = (3..5).map(|slot| Summary::new(bench.file.nid(), 0, slot)).collect();
    let begin = || {
        let mut flight = Flight::new(1);
        flight.new_blocks = 2;
        flight.places.push(Place { node: bench.file.clone(), first: 3, len: 2, block: 3 });
        assert!(flight.take(&op, LogType::WarmData, &summaries).unwrap().is_empty());
        flight
    };
    let data = || AlignedBuf::from_bytes(&[7; 2 * BLOCK]);
    let mut flight = begin();
    bench.device.arm(FaultRule::on([Operation::Read]));
    assert!(matches!(flight.send_all(&op, &rewrites, data()), Err(VolumeError::Device(_))));
    drop(flight);
    assert_eq!(bench.state(0..6), before);
    // They go on where those that were given up stood.
    bench.write(0, 3, 1);
    let rewrites = [Run { addr: bench.address(1), len: 2 }];
    let stat = bench.volume.stat().written;
    let (writes, blocks) = (bench.recorded.counts().writes, bench.recorded.counts().blocks_written);
    let mut flight = begin();
    flight.send_all(&op, &rewrites, data()).unwrap();
    flight.land(&op, &bench.file, |_, _| {}, |_| {}).unwrap();
    let counts = bench.recorded.counts();
    assert_eq!((counts.writes - writes, counts.blocks_written - blocks), (1, 4));
    assert_eq!(bench.fills(0..5), [1, 1, 1, 7, 7]);
    let after = bench.volume.stat().written;
    assert_eq!((after.rewritten_blocks - stat.rewritten_blocks, after.user_requests - stat.user_requests), (2, 1));
}

/// The last free segments are for checkpoints, and for what users have dirty.
#[test]
fn users_leave_room_for_what_is_dirty() {
    let bench = Bench::new();
    bench.volume.segments.manager().unwrap().set_pressure(1 << 20, 0);
    let before = bench.state(0..0);
    let blocks = 700;
    let begin = |op: &Op<'_>| {
        let slots = (0..blocks).map(|index| Slot { node: bench.file.clone(), index });
        Flight::begin_blocks(op, LogType::WarmData, slots, AlignedBuf::new(blocks), blocks as u64)
    };
    let refused = begin(&bench.volume.begin().unwrap()).unwrap_err();
    assert!(matches!(refused, VolumeError::Segment(_)) && refused.is_no_space(), "{refused}");
    assert_eq!(bench.state(0..0), before);
    let op = Op::within_checkpoint(&bench.volume);
    begin(&op).unwrap().abandon(&op).unwrap();
    assert_eq!(bench.state(0..0), before);
}

#[test]
fn a_write_that_finds_no_room_takes_none() {
    let bench = Bench::new();
    bench.write(0, 1, 1);
    let before = bench.state(0..3);
    let op = bench.volume.begin().unwrap();
    let stat = bench.volume.stat();
    let room = stat.user_blocks - stat.valid_blocks;
    bench.volume.data().reserve(&op, room - 1).unwrap();
    let target = Target { inode: &bench.file, size: 4096, log: LogType::WarmData };
    let piece = Piece { offset: 0, buf: &[2; 3 * BLOCK] };
    let refused = Flight::begin(&op, target, &[piece], Next::Land).unwrap_err();
    assert!(matches!(refused, VolumeError::NoSpace { wanted: 2, available: 1 }), "{refused}");
    bench.volume.data().unreserve(&op, room - 1);
    assert_eq!(bench.state(0..3), before);
}

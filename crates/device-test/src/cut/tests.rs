//! Cuts of small logs whose blocks are letters.

use std::collections::HashSet;

use super::*;
use f2fs_device::{AlignedBuf, BlockDevice, Request, Ticket};

use crate::{Random, RecordingDevice};

fn text(device: &MemoryDevice) -> String {
    device.to_bytes().chunks(4096).map(|block| if block[0] == 0 { '.' } else { char::from(block[0]) }).collect()
}

fn images(log: &crate::CrashLog, plan: CutPlan) -> Vec<Vec<String>> {
    let mut replay = log.replay();
    let mut all = Vec::new();
    let mut before = 0;
    loop {
        let end = replay.epoch_end();
        let cuts = plan.cuts(&replay, end, || 5);
        all.push(cuts.iter().map(|cut| text(&replay.cut(cut, before).0)).collect());
        before = replay.advanced_to(replay.epoch_behind(end), before);
        if replay.position() >= log.events().len() && replay.epoch_end() <= replay.position() {
            break all;
        }
    }
}

const WHOLE: CutPlan = CutPlan { exhaustive: 12, sampled: 0, tears: 0 };

#[test]
fn an_epoch_ends_at_a_flush_and_behind_a_durable_write() {
    let device = RecordingDevice::new(MemoryDevice::new(4));
    device.write_slice(0, b"a").unwrap();
    device.write_slice(1, b"b").unwrap();
    device.flush().unwrap();
    device.write_slice(2, b"c").unwrap();
    device.write_fua(3, AlignedBuf::from_bytes(b"d")).unwrap();
    device.write_slice(0, b"e").unwrap();
    let found = images(&device.log(), WHOLE);
    assert_eq!(found[0], ["....", "a...", "ab..", ".b.."]);
    assert_eq!(found[1], ["ab..", "abc.", "abcd", "ab.d"]);
    // The durable write is certain now, the one before it is not.
    assert_eq!(found[2], ["ab.d", "abcd", "ebcd", "eb.d"]);
    assert_eq!(found.len(), 3);
}

#[test]
fn cuts_of_a_position_lose_what_no_flush_covered() {
    let device = RecordingDevice::new(MemoryDevice::new(4));
    device.write_slice(0, b"a").unwrap();
    device.flush().unwrap();
    device.write_slice(1, b"b").unwrap();
    device.write_fua(2, AlignedBuf::from_bytes(b"c")).unwrap();
    device.write_slice(3, b"d").unwrap();
    let log = device.log();
    let at = |position: usize| {
        let mut replay = log.replay();
        replay.advance_to(position);
        let cuts = WHOLE.cuts(&replay, position, || 5);
        cuts.iter().map(|cut| text(&replay.cut(cut, 0).0)).collect::<Vec<_>>()
    };
    assert_eq!(at(1), ["....", "a..."], "before its flush");
    assert_eq!(at(2), ["a..."]);
    assert_eq!(at(3), ["a...", "ab.."]);
    assert_eq!(at(4), ["a.c.", "abc."], "a durable write whose completion was seen is not lost");
}

#[test]
fn requests_are_torn_at_sectors() {
    let device = RecordingDevice::new(MemoryDevice::from_bytes(&[b'o'; 3 * 4096]));
    device.write(0, AlignedBuf::from_bytes(&[b'n'; 2 * 4096])).unwrap();
    let log = device.log();
    let replay = log.replay();
    let cuts = CutPlan { exhaustive: 12, sampled: 0, tears: 99 }.cuts(&replay, 1, || 1);
    let torn: Vec<usize> = cuts[2..]
        .iter()
        .map(|cut| replay.cut(cut, 0).0.to_bytes().iter().take_while(|byte| **byte == b'n').count())
        .collect();
    assert_eq!(torn, (1..16).map(|sector| sector * 512).collect::<Vec<_>>());
    let blocks = Cut { start: 0, end: 1, whole: Vec::new(), torn: Some((0, Tear::Blocks(2))), late: None };
    assert_eq!(text(&replay.cut(&blocks, 0).0), "ono");
}

/// Everything that some cut of the end of the log leaves.
fn left(device: &RecordingDevice, tears: usize) -> HashSet<Vec<u8>> {
    let log = device.log();
    let mut replay = log.replay();
    loop {
        let end = replay.epoch_end();
        let next = replay.epoch_behind(end);
        if next >= log.events().len() {
            replay.advance_to(next);
            let cuts = CutPlan { tears, ..WHOLE }.cuts(&replay, next, || 5);
            for cut in &cuts {
                assert_eq!(cut.to_string().parse::<Cut>().as_ref(), Ok(cut));
            }
            return cuts.iter().map(|cut| replay.cut(cut, 0).0.to_bytes()).collect();
        }
        replay.advance_to(next);
    }
}

#[test]
fn of_two_writes_in_flight_either_is_the_last() {
    let write = |at, byte| Request::write(at, AlignedBuf::from_bytes(&[byte; 4096]));
    let texts = |all: HashSet<Vec<u8>>| {
        let text = |bytes: &Vec<u8>| {
            match (bytes[0], bytes[4095]) {
                (first, last) if first == last => {
                    if first == 0 {
                        "."
                    } else {
                        std::str::from_utf8(&bytes[..1]).unwrap()
                    }
                }
                _ => "torn",
            }
            .to_owned()
        };
        let mut texts: Vec<String> = all.iter().map(text).collect();
        texts.sort();
        texts.dedup();
        texts
    };
    let device = || RecordingDevice::new(MemoryDevice::new(1));
    // One after the other: the second is the last.
    let waited = device();
    drop(waited.submit(vec![write(0, b'a')]).wait());
    drop(waited.submit(vec![write(0, b'b')]).wait());
    waited.flush().unwrap();
    assert_eq!(texts(left(&waited, 0)), ["b"]);
    // Together: either, also behind the flush that covers both; but not once another came behind both.
    let together = device();
    let first = together.submit(vec![write(0, b'a')]);
    let second = together.submit(vec![write(0, b'b')]);
    assert_eq!(texts(left(&together, 0)), [".", "a", "b"]);
    assert_eq!(texts(left(&together, 3)), [".", "a", "b", "torn"]);
    drop((first.wait(), second.wait()));
    together.flush().unwrap();
    assert_eq!(texts(left(&together, 0)), ["a", "b"]);
    together.write(0, AlignedBuf::from_bytes(&[b'c'; 4096])).unwrap();
    together.flush().unwrap();
    assert_eq!(texts(left(&together, 0)), ["c"]);
    // A discard that nobody waits for is in flight forever.
    let forgotten = device();
    drop(forgotten.submit(vec![Request::discard(0, 1)]));
    forgotten.write(0, AlignedBuf::from_bytes(&[b'd'; 4096])).unwrap();
    forgotten.flush().unwrap();
    assert_eq!(texts(left(&forgotten, 0)), [".", "d"]);
}

#[test]
fn two_writes_in_flight_are_torn_into_each_other() {
    let device = RecordingDevice::new(MemoryDevice::new(1));
    let tickets =
        [b'a', b'b'].map(|byte| device.submit(vec![Request::write(0, AlignedBuf::from_bytes(&[byte; 4096]))]));
    let mixed: HashSet<(u8, u8)> = left(&device, 99).iter().map(|bytes| (bytes[0], bytes[4095])).collect();
    assert!(mixed.contains(&(b'a', b'b')) && mixed.contains(&(b'b', b'a')), "{mixed:?}");
    drop(tickets.map(Ticket::wait));
}

#[test]
fn many_requests_are_sampled() {
    let device = RecordingDevice::new(MemoryDevice::new(64));
    let writes = (0..40).map(|at| Request::write(at, AlignedBuf::from_bytes(b"x"))).collect();
    drop(device.submit(writes).wait());
    let log = device.log();
    let mut random = Random::new(1);
    let cuts = CutPlan { exhaustive: 12, sampled: 100, tears: 0 }.cuts(&log.replay(), 40, || random.next());
    assert!(cuts.len() > 41 + 78 && cuts.len() <= 41 + 78 + 100, "{}", cuts.len());
}

#[test]
fn equal_contents_have_equal_fingerprints_and_names_lead_back() {
    let device = RecordingDevice::new(MemoryDevice::new(4));
    device.write_slice(0, b"a").unwrap();
    device.flush().unwrap();
    device.write_slice(0, b"b").unwrap();
    device.write_slice(1, b"a").unwrap();
    device.flush().unwrap();
    device.write_slice(0, b"a").unwrap();
    device.discard(1, 1).unwrap();
    device.flush().unwrap();
    let log = device.log();
    let mut replay = log.replay();
    let mut before = 0;
    let (mut contents, mut prints) = (HashSet::new(), HashSet::new());
    for _ in 0..3 {
        let end = replay.epoch_end();
        for cut in CutPlan::default().cuts(&replay, end, || 9) {
            let (image, print) = replay.cut(&cut, before);
            assert_eq!(contents.insert(image.to_bytes()), prints.insert(print), "{cut}");
            assert_eq!(cut.to_string().parse::<Cut>().unwrap(), cut);
        }
        before = replay.advanced_to(replay.epoch_behind(end), before);
    }
    assert_eq!(contents.len(), 5, "a, b., .a and ba, and none of it");
    assert!(contents.contains(&log.image_at(2, |_, _| false).to_bytes()));
    for wrong in ["", "1-2", "1-2:x", "1-2:1/3q4", "1:2"] {
        assert!(wrong.parse::<Cut>().is_err(), "{wrong}");
    }
}

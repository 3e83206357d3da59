//! The store is cut off at every write, and opened again.

use f2fs_device_test::{Event, FaultDevice, FaultRule, RecordingDevice};

use super::*;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn contents(store: &Store) -> Contents {
    store.keys.keys().map(|key| (key.clone(), store.get(key).unwrap().unwrap())).collect()
}

#[test]
fn a_life_with_a_crash() {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(blocks_for(16)));
    run("memory", &device, &mut Vec::new()).unwrap();
}

/// Writes, deletions and checkpoints on a small store that has to be cleaned again and again, and what it held at each
/// checkpoint that was complete, with the position in the log.
fn recorded() -> (f2fs_device_test::CrashLog, Vec<(usize, Contents)>) {
    let device = MemoryDevice::new(blocks_for(10));
    Store::format(&device).unwrap();
    let device = Arc::new(RecordingDevice::new(device));
    let mut store = Store::open(device.clone()).unwrap();
    // Between keys that change again and again some stay, so that no segment becomes free by itself.
    let key =
        |n: u32| if n % 15 == 7 { format!("stays {}", n % 3000) } else { format!("key {}", n * 13 % 100) }.into_bytes();
    for n in 0..1400 {
        store.put(&key(n), &n.to_le_bytes()).unwrap();
    }
    store.checkpoint().unwrap();
    device.restart();
    let mut model = contents(&store);
    let mut states = vec![(0, model.clone())];
    let (mut full, mut moved) = (0, 0);
    for n in 1400..2400 {
        let (at, sequence) = (device.position(), store.sequence);
        store.put(&key(n), &n.to_le_bytes()).unwrap();
        if store.sequence != sequence {
            // Checkpoints before the write that asked for them: no key changes by these, nor by cleaning.
            full += 1;
            assert!(device.position() > at + 2);
            states.push((device.position() - 1, model.clone()));
        }
        model.insert(key(n), n.to_le_bytes().to_vec());
        if n % 9 == 0 {
            assert_eq!(store.delete(&key(n / 3)).unwrap(), model.remove(&key(n / 3)).is_some());
        }
        if n % 600 == 0 {
            moved += u32::from(store.clean().unwrap());
        }
        if n % 17 == 0 {
            store.checkpoint().unwrap();
            states.push((device.position(), model.clone()));
        }
        assert_eq!(store.keys.len(), model.len());
    }
    assert!(full > 0 && moved > 0, "full {full} times, {moved} segments emptied beside that");
    (device.log(), states)
}

#[test]
fn every_write_may_be_the_last() {
    let (log, states) = recorded();
    let (mut replay, mut cuts) = (log.replay(), 0);
    loop {
        let position = replay.position();
        // The last checkpoint that was complete, and the next one, which may be there as well.
        let done = states.iter().rposition(|(at, _)| *at <= position).unwrap();
        let allowed = &states[done..states.len().min(done + 2)];
        // Of what no flush came before: all of it, nothing, every other write, and the later half.
        let half = position - replay.volatile().len() / 2;
        let survivors: [&dyn Fn(usize, u64) -> bool; 4] =
            [&|_, _| true, &|_, _| false, &|index, block| (index as u64 + block).is_multiple_of(2), &|index, _| {
                index >= half
            }];
        for survives in survivors {
            let image = replay.image(0, survives);
            let again: Arc<dyn BlockDevice> = Arc::new(image);
            let mut store = Store::open(again.clone()).unwrap_or_else(|error| panic!("cut at {position}: {error}"));
            let found = contents(&store);
            assert!(allowed.iter().any(|(_, state)| *state == found), "cut at {position}: another content");
            cuts += 1;
            if cuts % 16 == 0 {
                // It goes on from there.
                store.put(b"behind the cut", b"here").unwrap();
                store.clean().unwrap();
                store.checkpoint().unwrap();
                let store = Store::open(again).unwrap();
                assert_eq!(store.get(b"behind the cut").unwrap().as_deref(), Some(&b"here"[..]));
                assert_eq!(store.keys.len(), found.len() + 1);
            }
        }
        let Some(event) = replay.advance() else { break };
        assert!(matches!(event, Event::Write { .. } | Event::Flush));
    }
    assert!(cuts > 4000, "{cuts}");
}

#[test]
fn a_full_store_says_so_and_a_failed_write_changes_nothing() {
    let faulty = Arc::new(FaultDevice::new(Arc::new(MemoryDevice::new(blocks_for(16)))));
    Store::format(&*faulty).unwrap();
    let mut store = Store::open(faulty.clone()).unwrap();
    store.put(b"a", b"one").unwrap();
    faulty.arm(FaultRule::on([f2fs::device::Operation::Write]).for_good());
    assert!(store.put(b"a", b"two").is_err() && store.put(b"b", b"two").is_err());
    faulty.disarm();
    assert_eq!(store.get(b"a").unwrap().as_deref(), Some(&b"one"[..]));
    assert_eq!((store.keys.len(), store.segments.valid_blocks()), (1, 1));
    assert!(store.put(&[7; 3000], &[7; 1085]).unwrap_err().to_string().contains("at most 4084"));

    let mut stored = 1;
    let error = loop {
        match store.put(format!("key {stored}").as_bytes(), &[7; 4000]) {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(is_full(&*error), "{error}");
    assert!(stored > 3000, "{stored}");
    // Deleting needs no space, and gives it back.
    for n in 1..1500 {
        assert!(store.delete(format!("key {n}").as_bytes()).unwrap());
    }
    store.put(b"again", b"room").unwrap();
    store.checkpoint().unwrap();
    let store = Store::open(faulty).unwrap();
    assert_eq!(store.keys.len(), stored - 1499 + 1);
}

#[test]
fn what_cannot_be_is_told_in_words_and_first() {
    let arguments = Arguments { image: Some("/nonexist/x".into()) };
    let mut out = Vec::new();
    let error = lives(&arguments, &mut out).unwrap_err().to_string();
    assert!(error.contains("/nonexist/x") && error.contains("No such file"), "{error}");
    assert_eq!(out, b"");
    let full = &mut std::fs::File::options().write(true).open("/dev/full").unwrap();
    assert!(lives(&Arguments { image: None }, full).is_err());
    for wrong in [["embed_allocator", "a", "b"], ["embed_allocator", "--none", "b"]] {
        assert!(Arguments::try_parse_from(wrong).is_err());
    }
}

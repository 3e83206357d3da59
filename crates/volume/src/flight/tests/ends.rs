use f2fs_device::DeviceErrorKind;

use super::*;

const WAYS: [Next; 3] = [Next::Other, Next::Land, Next::Sync];

#[test]
fn a_write_that_fails_leaves_everything_as_it_was() {
    let bench = Bench::new();
    bench.write(2, 2, 1);
    let before = bench.state(0..5);
    for next in WAYS {
        let op = bench.volume.begin().unwrap();
        bench.device.arm(FaultRule::on([Operation::Write]));
        let flight = bench.begin(&op, 1, 4, 9, next);
        let failed = flight.land(&op, &bench.file, |_, _| panic!("named"), |_| panic!("changed")).unwrap_err();
        assert!(matches!(failed, VolumeError::Device(_)), "{failed}");
        assert_eq!((bench.state(0..5), bench.fills(0..5)), (before.clone(), vec![0, 0, 1, 1, 0]), "{next:?}");
        bench.device.arm(FaultRule::on([Operation::Write]));
        let flight = bench.begin(&op, 2, 2, 9, next);
        assert!(flight.land_slots(&op, |_, _| panic!("named")).is_err());
        bench.device.arm(FaultRule::on([Operation::Write]));
        let flight = bench.begin(&op, 2, 2, 9, next);
        let from = [bench.address(2), bench.address(3)];
        assert!(flight.land_unchanged(&op, &from).is_err());
        bench.begin(&op, 1, 4, 9, next).abandon(&op).unwrap();
        assert_eq!(bench.state(0..5), before, "{next:?}");
    }
}

/// Whichever of its requests it is, and also if nobody says what became of it.
#[test]
fn each_request_of_a_write_has_to_arrive() {
    let bench = Bench::new();
    bench.write(0, 1, 1);
    let before = bench.state(0..300);
    for request in 0..3 {
        for fault in [Fault::Error(5), Fault::Unanswered] {
            let op = bench.volume.begin().unwrap();
            bench.device.arm(FaultRule::on([Operation::Write]).after(request).fault(fault));
            let flight = bench.begin(&op, 0, 300, 9, Next::Other);
            let failed = flight.land(&op, &bench.file, |_, _| panic!("named"), |_| panic!("changed")).unwrap_err();
            let VolumeError::Device(failed) = failed else { panic!("{failed}") };
            assert_eq!(failed.kind == DeviceErrorKind::Lost, fault == Fault::Unanswered, "{failed}");
            assert_eq!(bench.state(0..300), before, "request {request}, {fault:?}");
            bench.device.disarm();
        }
    }
}

#[test]
fn the_inode_changes_with_its_slots_or_if_it_has_to() {
    let bench = Bench::new();
    // Blocks with slots in a node of their own.
    bench.write(1000, 2, 1);
    bench.volume.checkpoints().write(crate::Reason::Sync).unwrap();
    let is_dirty = || bench.file.page.is_unsynced();
    let land = |block: u64, blocks: usize, changes: bool| {
        let op = bench.volume.begin().unwrap();
        let flight = bench.begin(&op, block, blocks, 2, Next::Land);
        let mut changed = false;
        flight.land_if(&op, &bench.file, |_, _| {}, || changes, |_| changed = true).unwrap();
        changed
    };
    assert!(!land(1000, 2, false) && !is_dirty(), "it may stay as it is");
    assert!(land(1000, 1, true) && is_dirty());
    bench.volume.checkpoints().write(crate::Reason::Sync).unwrap();
    assert!(land(1001, 2, false) && is_dirty(), "the file has a block more");
    bench.volume.checkpoints().write(crate::Reason::Sync).unwrap();
    assert!(land(0, 1, false), "its own slots");
    assert!(land(0, 1, false));
    // A new node, and the blocks 0 and 1000 to 1002.
    assert_eq!(bench.file.read().inode().i_blocks.get(), 1 + 1 + 4);
}

#[test]
fn what_was_overwritten_is_free() {
    let bench = Bench::new();
    bench.write(0, 2, 1);
    let (old, before) = ([bench.address(0), bench.address(1)], bench.state(0..0));
    bench.write(0, 1, 2);
    let op = bench.volume.begin().unwrap();
    let mut named = Vec::new();
    bench.begin(&op, 1, 1, 3, Next::Land).land_slots(&op, |block, addr| named.push((block, addr))).unwrap();
    drop(op);
    assert_eq!(named, [(1, bench.address(1))]);
    assert_eq!((bench.state(0..0), bench.fills(0..2)), (before, vec![2, 3]));
    assert!(old.iter().all(|addr| !bench.volume.data().is_in_use(*addr).unwrap()));
}

/// Who copies blocks without keeping others away names only what still is where it was copied from.
#[test]
fn copies_of_what_changed_meanwhile_are_dropped() {
    let bench = Bench::new();
    bench.write(0, 3, 1);
    let from: Vec<_> = (0..3).map(|block| bench.address(block)).collect();
    let before = bench.state(0..0);
    let op = bench.volume.begin().unwrap();
    let copies = bench.begin(&op, 0, 3, 9, Next::Other);
    bench.begin(&op, 1, 1, 2, Next::Land).land_slots(&op, |_, _| {}).unwrap();
    copies.land_unchanged(&op, &from).unwrap();
    drop(op);
    assert_eq!((bench.fills(0..3), bench.state(0..0)), (vec![9, 2, 9], before));
    assert!(from.iter().all(|addr| !bench.volume.data().is_in_use(*addr).unwrap()));
}

/// As they come from a page cache: slots that follow each other, others, and those of several nodes.
#[test]
fn blocks_go_to_the_slots_they_were_begun_for() {
    let bench = Bench::new();
    let other = new_inode(&bench.volume);
    let before = bench.state(0..0).1;
    let op = bench.volume.begin().unwrap();
    let places = [(&bench.file, 3), (&bench.file, 4), (&bench.file, 6), (&other, 7), (&bench.file, 5)];
    let mut data = AlignedBuf::new(places.len());
    (0..places.len()).for_each(|at| data.block_mut(at).fill(10 + at as u8));
    let slots = places.iter().map(|(node, index)| Slot { node: (*node).clone(), index: *index });
    let flight = Flight::begin_blocks(&op, LogType::WarmData, slots.clone(), data, 5).unwrap();
    assert_eq!(flight.places.len(), 4);
    let mut named = Vec::new();
    flight.land_slots(&op, |number, addr| named.push((number, addr))).unwrap();
    let slots: Vec<_> = slots.map(|slot| slot.get(&bench.volume)).collect();
    assert_eq!(named, (0..).zip(slots.iter().copied()).collect::<Vec<_>>());
    for (at, addr) in slots.iter().enumerate() {
        let mut data = AlignedBuf::new(1);
        bench.volume.data().read(bench.file.nid(), *addr, &mut data).unwrap();
        assert_eq!(data.as_bytes()[5], 10 + at as u8);
        let owner = bench.volume.recovery().owner_of(*addr).unwrap().unwrap();
        assert_eq!((owner.nid.get(), usize::from(owner.ofs_in_node.get())), (places[at].0.nid().0, places[at].1));
    }
    assert_eq!(bench.state(0..0).1, before + 5);
}

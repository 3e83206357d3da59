//! A model of the stamp.
#![cfg(loom)]

// mutant: stamp_moves_before_change, killed by: what_moved_is_not_believed

use f2fs_sync::{Arc, RwLock, Stamp, model, thread};

#[test]
fn what_moved_is_not_believed() {
    model::exhaustive("what_moved_is_not_believed", || {
        // A name that stands in place 0, then in place 1.
        let shared = Arc::new((RwLock::new(0), Stamp::new()));
        let remembered = shared.1.seen();
        let other = Arc::clone(&shared);
        let mover = thread::spawn(move || {
            let mut place = other.0.write();
            other.1.invalidate();
            *place = 1;
        });
        let (place, stamp) = &*shared;
        let (now, seen) = {
            let place = place.read();
            (*place, stamp.seen())
        };
        // Who saw it in its new place must not find it in the old one.
        assert!(now == 0 || !stamp.holds(remembered), "the name is in two places");
        mover.join().expect("the thread does not panic");
        assert!(!stamp.holds(remembered));
        // A look-up that came meanwhile holds only if it is still true.
        assert!(!stamp.holds(seen) || now == *place.read());
    });
}

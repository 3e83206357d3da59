//! Workloads on the played machine, at a small size: what must stop the scaling does, and what must not does not.
#![cfg(f2fs_manycore)]

use f2fs_benches::manycore::{Subject, Workload, measure};
use f2fs_nat::Policy;
use f2fs_sync::manycore::Machine;

#[test]
fn one_list_of_free_ids_stops_the_scaling_and_shards_do_not() {
    let machine = Machine::epyc();
    let ratio = |policy| {
        let subject = Subject::new(Workload::Nids).with(policy);
        measure(&subject, &machine, &[16], 100, false).points[0].clone()
    };
    let (listed, sharded) = (ratio(Policy::KernelScan), ratio(Policy::Sharded));
    assert!(listed.ratio < 2.0, "{listed:?}");
    assert!(sharded.ratio > 12.0, "{sharded:?}");
    let worst = listed.outcome.places.first().expect("lines move");
    assert!(worst.site.file.contains("crates/nat/src/"), "{worst:?}");
}

#[test]
fn reads_through_one_tree_stop_below_the_device() {
    let subject = Subject::new(Workload::Tree);
    let curve = measure(&subject, &Machine::paper(), &[5, 60], 40, false);
    let five = curve.ratio(5).expect("it was asked for");
    assert!((4.5..=5.1).contains(&five), "{five}");
    let rate = curve.points[1].outcome.rate();
    assert!(rate < 400_000.0, "{rate}");
}

/// What keeps the cores apart in each of these, left out, is to be seen.
#[test]
fn workloads_scale() {
    for (workload, least) in [(Workload::Mwul, 24.0), (Workload::Nids, 24.0), (Workload::Dwol, 24.0)] {
        let curve = measure(&Subject::new(workload), &Machine::epyc(), &[32], 300, false);
        let ratio = curve.points[0].ratio;
        assert!(ratio > least, "{} does not scale: {ratio:.1} on 32 cores", workload.name());
    }
}

#[test]
fn known_faults_stop_the_scaling() {
    let faults = ["budget_give_takes_the_lock", "nat_one_lane", "segment_one_head"];
    f2fs_sync::assert_found("workloads_scale", &faults, "does not scale");
}

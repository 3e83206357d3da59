//! Workloads in which a violation was found once.

use super::*;
use crate::base::{Base, BaseKind};
use crate::workload::Workload;

/// Looks at states of workloads on a base, uses all of them, and crashes one in `again` of them again.
fn explored(kind: BaseKind, again: usize, quota: usize, workloads: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    let base = Base::new(kind)?;
    let contents = Contents::default();
    for text in workloads {
        let workload: Workload = text.parse()?;
        let recording = workload.run(&base)?;
        let cuts = CutPlan::default();
        let plan = Plan { cuts, quota, used: 1, again, again_quota: 40, fsck: 0, whole: true };
        let mut explorer = Explorer::new(plan, Random::new(7), base.print(), &contents);
        let result =
            explorer.explore(&recording).map_err(|violation| format!("{:?}: {}", violation.cuts, violation.what));
        assert_eq!(result, Ok(()), "{text}");
        assert!(explorer.tally.states > 1, "{text}: {:?}", explorer.tally);
    }
    Ok(())
}

#[test]
fn what_was_reserved_behind_the_end_is_not_the_size() -> Result<(), Box<dyn std::error::Error>> {
    explored(BaseKind::Plain, 1000, 60, &["plain: reserve /A/foo 16384 9000; truncate /A/foo 20000; sync /A/foo"])
}

#[test]
fn no_chain_leads_to_nodes_of_an_earlier_crash() -> Result<(), Box<dyn std::error::Error>> {
    explored(
        BaseKind::Plain,
        1,
        60,
        &[
            "plain: checkpoint; setxattr /A/foo user.long 3000; sync /A/foo",
            "plain: truncate /B/baz 1; checkpoint; setxattr /A/foo user.long 3000; sync /A/foo",
        ],
    )
}

#[test]
fn what_the_cleaner_moved_is_not_lost_by_a_torn_sync() -> Result<(), Box<dyn std::error::Error>> {
    explored(
        BaseKind::Full,
        1000,
        150,
        &["full: checkpoint; clean; clean; write /A/foo 0 100; sync /A/foo; clean; truncate /B/baz 100; sync /B/baz"],
    )
}

#[test]
fn a_durable_write_that_made_room_with_a_checkpoint_may_be_torn() -> Result<(), Box<dyn std::error::Error>> {
    let base = Base::new(BaseKind::Full)?;
    let recording = "random full 2487944479".parse::<Workload>()?.run(&base)?;
    let torn = |step: &crate::record::Step| step.fsynced.is_some() && step.op.to_string().starts_with("durable");
    assert!(
        recording.lanes[0].steps.iter().any(|step| torn(step) && step.events == (6, 22)),
        "the workload is another"
    );
    let contents = Contents::default();
    let plan = Plan { cuts: CutPlan::default(), quota: 1, used: 1, again: 1, again_quota: 1, fsck: 0, whole: true };
    let mut explorer = Explorer::new(plan, Random::new(7), base.print(), &contents);
    let result = explorer.repeat(&recording, &["15-21:15,16,18,19,20/17s475".parse()?]);
    assert_eq!(result.map_err(|violation| violation.what), Ok(()));
    Ok(())
}

#[test]
fn inline_data_that_moves_to_a_block_is_not_lost_by_a_torn_sync() -> Result<(), Box<dyn std::error::Error>> {
    explored(
        BaseKind::Plain,
        1000,
        60,
        &[
            "plain: rename /A/bar /A/foo; checkpoint; reserve /A/foo 16384 9000; sync /A/foo",
            "plain: rename /A/bar /A/foo; sync /A/foo; reserve /A/foo 16384 9000; sync /A/foo",
        ],
    )
}

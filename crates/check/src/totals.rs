//! Totals that must agree once everything reachable was reached.

use super::Phase;
use super::error::CheckError;
use super::finding::{FindingKind, Place};
use super::pack::Pack;
use super::subject::Subject;
use super::zones::Zones;

/// Compares what was reached with the tables and with the checkpoint. Returns the free segments.
pub(super) fn check(subject: &Subject<'_>, pack: &Pack, zones: &Zones) -> Result<u64, CheckError> {
    let findings = subject.findings;
    let steps = 4;
    subject.report_progress(Phase::Totals, 0, steps);
    let (nat_nodes, nat_inodes) = subject.nat.check(subject.geometry, findings);
    subject.nat.check_reached(&subject.nodes, findings);
    subject.report_progress(Phase::Totals, 1, steps);
    let sums = subject.sit.check(&subject.summaries.log_segments(), (zones, subject.geometry), findings);
    subject.sit.check_reached(&subject.blocks, subject.geometry, findings);
    subject.report_progress(Phase::Totals, 2, steps);
    subject.summaries.check_types(subject)?;
    subject.report_progress(Phase::Totals, 3, steps);
    subject.check_links();

    let counts = subject.counts(sums.free_segments);
    let header = pack.header();
    let place = Place::Pack(pack.index);
    let expect = |what, expected: u64, found: u64| {
        findings.expect(FindingKind::Counts, &place, what, expected, found);
    };
    let nodes = header.valid_node_count.get().into();
    let inodes = header.valid_inode_count.get().into();
    expect("valid_block_count, by the blocks reached", counts.blocks, header.valid_block_count.get());
    expect("valid_node_count, by the nodes reached", counts.nodes, nodes);
    expect("valid_node_count, by the nat", nat_nodes, nodes);
    expect("valid_node_count, by the sit", sums.node_blocks, nodes);
    expect("valid_inode_count, by the inodes reached", counts.inodes, inodes);
    expect("valid_inode_count, by the nat", nat_inodes, inodes);
    let free = u64::from(header.free_segment_count.get());
    // As Linux counts them, or else as mkfs.f2fs does.
    if zones.are_known() && free != sums.free_segments - sums.doubtful_segments {
        expect("free_segment_count", sums.free_segments, free);
    }
    let in_sit = sums.blocks + counts.reserved_blocks;
    expect("valid_block_count, by the sit", in_sit, header.valid_block_count.get());
    subject.report_progress(Phase::Totals, steps, steps);
    Ok(sums.free_segments)
}

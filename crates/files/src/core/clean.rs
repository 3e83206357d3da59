//! Cleaning of the volume, by an operation that needs room.

use f2fs_volume::{CleanReport, CleanStep, Reason, VictimPolicy, VolumeError};

use super::Core;
use crate::FsError;

/// Sections emptied between two checkpoints at most: what is moved becomes free only then.
pub(crate) const CLEANED_AT_ONCE: u32 = 16;

impl Core {
    /// Makes free segments: with operations running as far as that goes, alone for the rest. Several threads may be
    /// here, each with victims of its own.
    #[cfg_attr(feature = "tracing", tracing::instrument(level = "info", name = "clean", skip_all, ret, err))]
    pub(crate) fn clean(&self) -> Result<CleanReport, FsError> {
        // Also where there is nothing to gain, a volume that was stopped says so.
        drop(self.volume.begin()?);
        let goal = self.volume.balance().cleaning_goal();
        let mut report = self.clean_beside(VictimPolicy::Greedy, goal)?;
        if report.victims > 0 || self.volume.stat().prefree_segments > 0 {
            self.checkpoint(Reason::Sync)?;
            report.checkpoints += 1;
        }
        report.free_segments = self.volume.stat().free_segments;
        if report.free_segments >= goal {
            return Ok(report);
        }
        let alone = self.volume.cleaning().clean_until(goal, |op| self.write_above(op))?;
        report.victims += alone.victims;
        report.data_blocks += alone.data_blocks;
        report.node_blocks += alone.node_blocks;
        report.checkpoints += alone.checkpoints;
        report.free_segments = alone.free_segments;
        Ok(report)
    }

    /// Empties sections beside operations until `goal` segments are free or will be with the next checkpoint, one batch
    /// at most.
    fn clean_beside(&self, policy: VictimPolicy, goal: u32) -> Result<CleanReport, FsError> {
        let mut report = CleanReport::default();
        let mut gained = 0;
        for _ in 0..CLEANED_AT_ONCE {
            let stat = self.volume.stat();
            if stat.free_segments + stat.prefree_segments + gained >= goal {
                break;
            }
            let Some(step) = self.clean_step(policy)? else { break };
            report.data_blocks += step.data_blocks;
            report.node_blocks += step.node_blocks;
            if step.segments == 0 {
                break;
            }
            report.victims += 1;
            // Sections of data are prefree at once and counted above; those of nodes follow with the checkpoint.
            gained += if step.node_blocks > 0 { step.segments } else { 0 };
        }
        Ok(report)
    }

    /// Empties a section beside operations. Sections that cannot be read are passed over, unless they are many.
    pub(crate) fn clean_step(&self, policy: VictimPolicy) -> Result<Option<CleanStep>, FsError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.volume.cleaning().step(policy) {
                // The next one has another victim.
                Err(VolumeError::Device(_)) if tries < CLEANED_AT_ONCE => {}
                step => return Ok(step?),
            }
        }
    }

    /// Moves blocks out of the way of writes to come, and makes their places usable.
    pub(crate) fn preclean(&self) -> Result<(), FsError> {
        if self.volume.cleaning().preclean()? > 0 {
            self.checkpoint(Reason::Sync)?;
        }
        Ok(())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use f2fs_device::{BlockDevice, MemoryDevice, Operation, ZoneLayout, ZonedDevice};
    use f2fs_device_test::{FaultDevice, FaultRule, Random};
    use f2fs_format::SegmentNo;
    use f2fs_format::feature::Features;
    use f2fs_sync::PlainArc;
    use f2fs_volume::format::{FormatOptions, format};
    use f2fs_volume::{Allocation, CostModel, Trim, VictimPolicy, VolumeOptions};

    use crate::samples::formatted;
    use crate::{FileSystem, FsError, Options};

    /// Free sections with which no more are emptied beside others.
    const LEFT: u32 = 14;

    /// Segments that were cleared for writes are nobody's until a checkpoint, and the logs' from then on.
    #[test]
    fn a_checkpoint_gives_cleared_segments_to_the_logs() {
        let device = formatted(32 * 1024);
        let volume = VolumeOptions::new().allocation(Allocation::partial(CostModel::sata_ssd())).lanes(1);
        let fs = FileSystem::open(device, Options::new().volume(volume)).unwrap();
        // Holes of eight blocks, and between them one block that is worth moving.
        let (kept, gone) = (fs.create_file("/kept", 0o644).unwrap(), fs.create_file("/gone", 0o644).unwrap());
        for round in 0..600 {
            kept.write_at(&[1; 4096], round * 4096).unwrap();
            gone.write_at(&[2; 8 * 4096], round * 8 * 4096).unwrap();
        }
        drop(gone);
        fs.remove_file("/gone").unwrap();
        fs.checkpoint().unwrap();
        let cleared = || {
            let segments = 0..fs.volume().geometry().main_segments;
            segments.filter(|segment| fs.volume().segment(SegmentNo(*segment)).unwrap().victim).count()
        };
        assert!(fs.core.volume.cleaning().preclean().unwrap() > 0, "nothing was moved");
        assert!(cleared() > 0, "no segment was cleared");
        fs.checkpoint().unwrap();
        assert_eq!(cleared(), 0, "segments that are nobody's");
    }

    /// What a cleaning moves dirties nodes, whose old places are holes that only its next round can use: it goes on after
    /// a round that takes more than it gives.
    #[test]
    fn a_cleaning_goes_on_after_a_round_that_gains_nothing() {
        let memory = MemoryDevice::new(128 << 8);
        let device = PlainArc::new(ZonedDevice::new(memory, ZoneLayout::new(512).with_conventional(8)).unwrap());
        format(&*device, &FormatOptions::default().with_features(Features::BLKZONED)).unwrap();
        let fs = FileSystem::open(device, Options::new().volume(VolumeOptions::new().lanes(1))).unwrap();
        let mut files = Vec::new();
        while (fs.statfs().valid_blocks + 3) * 100 <= fs.statfs().user_blocks * 96 {
            let file = fs.create_file(format!("/{}", files.len()), 0o644).unwrap();
            file.write_at(&[1; 8192], 0).unwrap();
            files.push(file);
        }
        let mut random = Random::new(1);
        for _ in 0..10_000 {
            files[random.below(files.len())].write_at(&[2; 4096], random.below_u64(2) * 4096).unwrap();
        }
        fs.checkpoint().unwrap();
        let before = fs.core.volume.stat();
        let report = fs.core.volume.cleaning().clean_until::<FsError>(before.free_segments + 4, |_| Ok(())).unwrap();
        assert!(report.free_segments >= before.free_segments + 4, "{before:?}, {report:?}");
    }

    /// A volume that is full of holes: one block in eight is kept, so that no segment is free by itself, and each is worth
    /// emptying.
    fn thinned(device: PlainArc<dyn BlockDevice>, options: &FormatOptions) -> FileSystem {
        format(&*device, options).unwrap();
        let fs = FileSystem::open(device, Options::new().volume(VolumeOptions::new().lanes(1))).unwrap();
        thin_data(&fs);
        fs
    }

    /// Few blocks of data are left in all segments.
    fn thin_data(fs: &FileSystem) {
        let (kept, gone) = (fs.create_file("/kept", 0o644).unwrap(), fs.create_file("/gone", 0o644).unwrap());
        let stat = fs.statfs();
        let rounds = (stat.user_blocks - stat.valid_blocks) / 9;
        for round in 0..rounds {
            kept.write_at(&[1; 4096], round * 4096).unwrap();
            gone.write_at(&[2; 7 * 4096], round * 7 * 4096).unwrap();
        }
        drop(gone);
        fs.remove_file("/gone").unwrap();
        fs.checkpoint().unwrap();
    }

    #[test]
    fn a_report_counts_what_was_moved() {
        let fs = thinned(PlainArc::new(MemoryDevice::new(32 * 1024)), &FormatOptions::default());
        let before = fs.write_stat();
        let goal = fs.statfs().free_segments + 5;
        let report = fs.core.clean_beside(VictimPolicy::Greedy, goal).unwrap();
        let after = fs.write_stat();
        assert!(report.data_blocks > 0, "{report:?}");
        assert_eq!(report.data_blocks, after.moved_data_blocks - before.moved_data_blocks);
        assert_eq!(report.node_blocks, after.moved_node_blocks - before.moved_node_blocks);
        assert_eq!(report.victims, after.victims - before.victims);
        // As much as it was asked for, and no more.
        let stat = fs.statfs();
        assert_eq!(stat.free_segments + stat.prefree_segments, goal);
    }

    /// Operations that run short of segments clean beside others, and need not be alone for it. On zones they do: no log
    /// writes into holes there.
    #[test]
    fn a_cleaning_beside_others_is_enough() {
        let memory = MemoryDevice::new(128 << 8);
        let device = PlainArc::new(ZonedDevice::new(memory, ZoneLayout::new(512).with_conventional(8)).unwrap());
        let fs = thinned(device, &FormatOptions::default().with_features(Features::BLKZONED));
        let goal = fs.core.volume.balance().cleaning_goal();
        // In one operation: the next one would clean before it begins.
        let segments = (fs.statfs().free_segments + 1).saturating_sub(goal);
        fs.create_file("/more", 0o644).unwrap().append(&vec![3; (segments as usize) << 21]).unwrap();
        let before = fs.write_stat();
        assert!(fs.statfs().free_segments < goal && before.victims == 0, "{goal} {:?}", fs.statfs());
        let report = fs.clean().unwrap();
        let written = fs.write_stat().minus(&before);
        assert_eq!((written.cleanings_alone, written.checkpoints), (0, 1), "{report:?}");
        assert_eq!((report.victims, report.data_blocks), (written.victims, written.moved_data_blocks));
        assert_eq!(report.checkpoints, 1);
        assert_eq!(report.free_segments, fs.statfs().free_segments);
        assert!(report.free_segments >= goal, "{goal}: {report:?}");
    }

    /// A checkpoint is written for what it frees, and for nothing else.
    #[test]
    fn a_cleaning_with_nothing_to_move_writes_a_checkpoint_only_if_segments_wait_for_it() {
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device, Options::new()).unwrap();
        fs.create_file("/large", 0o644).unwrap().write_at(&vec![7; 6 << 20], 0).unwrap();
        fs.checkpoint().unwrap();
        for waiting in [false, true] {
            if waiting {
                fs.remove_file("/large").unwrap();
            }
            let (before, stat) = (fs.write_stat(), fs.statfs());
            assert!(stat.free_segments >= fs.core.volume.balance().cleaning_goal());
            assert_eq!(stat.prefree_segments > 0, waiting);
            let report = fs.clean().unwrap();
            let written = fs.write_stat().minus(&before);
            assert_eq!((report.victims, report.checkpoints), (0, u64::from(waiting)));
            assert_eq!((written.checkpoints, written.cleanings_alone), (u64::from(waiting), 0));
            assert_eq!(report.free_segments, fs.statfs().free_segments);
            assert_eq!(fs.statfs().prefree_segments, 0);
        }
    }

    /// Runs are moved out of the way, and a checkpoint makes their places usable; where nothing is moved it is not
    /// written.
    #[test]
    fn what_was_cleared_for_writes_is_theirs_after_a_checkpoint() {
        for allocation in [Allocation::partial(CostModel::sata_ssd()), Allocation::default()] {
            let device = formatted(32 * 1024);
            let moves = allocation != Allocation::default();
            let volume = VolumeOptions::new().allocation(allocation).lanes(1);
            let fs = FileSystem::open(device, Options::new().volume(volume)).unwrap();
            let (kept, gone) = (fs.create_file("/kept", 0o644).unwrap(), fs.create_file("/gone", 0o644).unwrap());
            for round in 0..600 {
                kept.write_at(&[1; 4096], round * 4096).unwrap();
                gone.write_at(&[2; 8 * 4096], round * 8 * 4096).unwrap();
            }
            drop(gone);
            fs.remove_file("/gone").unwrap();
            fs.checkpoint().unwrap();
            let before = fs.write_stat();
            fs.core.preclean().unwrap();
            let written = fs.write_stat().minus(&before);
            assert_eq!((written.precleaned_blocks > 0, written.checkpoints), (moves, u64::from(moves)));
        }
    }

    /// Few nodes are left in many segments.
    fn thin_nodes(fs: &FileSystem) {
        let name = |number: u32| format!("/{number}");
        (0..3000).for_each(|number| drop(fs.create_file(name(number), 0o644).unwrap()));
        fs.checkpoint().unwrap();
        (0..3000).filter(|number| number % 30 != 0).for_each(|number| fs.remove_file(name(number)).unwrap());
        fs.checkpoint().unwrap();
    }

    /// What is left in a section of nodes moves with the checkpoint: until then the section counts as gained.
    #[test]
    fn sections_of_nodes_count_before_they_are_free() {
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device, Options::new().volume(VolumeOptions::new().lanes(1))).unwrap();
        thin_nodes(&fs);
        let (before, stat) = (fs.write_stat(), fs.statfs());
        let report =
            fs.core.clean_beside(VictimPolicy::Greedy, stat.free_segments + stat.prefree_segments + 3).unwrap();
        let written = fs.write_stat().minus(&before);
        assert_eq!((report.victims, report.data_blocks), (3, 0), "{report:?}");
        assert!(report.node_blocks > 0 && report.node_blocks == written.moved_node_blocks, "{report:?}");
    }

    /// A section that cannot be read is passed over beside others, too.
    #[test]
    fn a_step_passes_over_what_cannot_be_read() {
        let device = PlainArc::new(FaultDevice::new(PlainArc::new(MemoryDevice::new(32 * 1024))));
        let fs = thinned(device.clone(), &FormatOptions::default());
        device.arm(FaultRule::on([Operation::Read]).after(1));
        let step = fs.core.clean_step(VictimPolicy::Greedy).unwrap().unwrap();
        assert_eq!(device.faults(), 1);
        assert!(step.segments > 0 && step.data_blocks > 0, "{step:?}");
        device.disarm();
        device.arm(FaultRule::on([Operation::Read]).for_good());
        assert!(fs.core.clean_step(VictimPolicy::Greedy).is_err(), "they are many");
    }

    /// Nodes that cannot be read keep their data where it is: their section is no victim that was emptied.
    #[test]
    fn a_section_that_cannot_be_emptied_counts_for_nothing() {
        let memory = PlainArc::new(MemoryDevice::new(32 * 1024));
        let fs = thinned(memory.clone(), &FormatOptions::default());
        let kept = fs.metadata("/kept").unwrap().ino;
        fs.close().unwrap();
        drop(fs);
        for at in 0..memory.info().blocks {
            let node = *f2fs_format::node::NodeBlock::read(memory.read(at, 1).unwrap().block(0));
            if node.ino() == kept {
                memory.write_slice(at, &[0; 4096]).unwrap();
            }
        }
        let fs = FileSystem::open(memory, Options::new().volume(VolumeOptions::new().lanes(1))).unwrap();
        let before = fs.write_stat();
        let report = fs.core.clean_beside(VictimPolicy::Greedy, fs.statfs().free_segments + 5).unwrap();
        let written = fs.write_stat().minus(&before);
        assert_eq!((report.victims, report.data_blocks), (written.victims, written.moved_data_blocks), "{report:?}");
        assert!(report.victims < 5, "all could be emptied");
    }

    /// Where there is no room to clean beside others, it is done alone, and reported as if there had been.
    #[test]
    fn a_cleaning_that_has_to_be_alone_is_reported_like_another() {
        let memory = MemoryDevice::new(128 << 8);
        let device = PlainArc::new(ZonedDevice::new(memory, ZoneLayout::new(512).with_conventional(8)).unwrap());
        format(&*device, &FormatOptions::default().with_features(Features::BLKZONED)).unwrap();
        let fs = FileSystem::open(device, Options::new().volume(VolumeOptions::new().lanes(1))).unwrap();
        thin_nodes(&fs);
        thin_data(&fs);
        let goal = fs.core.volume.balance().cleaning_goal();
        // In one operation: the next one would clean before it begins.
        let more = fs.statfs().free_segments - LEFT;
        fs.create_file("/more", 0o644).unwrap().append(&vec![3; (more as usize) << 21]).unwrap();
        let before = fs.write_stat();
        assert!(fs.statfs().free_segments < goal && before.victims == 0, "{goal} {:?}", fs.statfs());
        let report = fs.clean().unwrap();
        let written = fs.write_stat().minus(&before);
        assert_eq!(written.cleanings_alone, 1, "{report:?}");
        assert!(report.victims > 0 && report.node_blocks > 0, "{report:?}");
        assert_eq!((report.victims, report.checkpoints), (written.victims, written.checkpoints));
        assert_eq!((report.data_blocks, report.node_blocks), (written.moved_data_blocks, written.moved_node_blocks));
        assert_eq!(report.free_segments, fs.statfs().free_segments);
    }

    /// Sections that cannot be read are passed over, and are as they were afterwards.
    #[test]
    fn a_cleaning_alone_passes_over_what_cannot_be_read() {
        let device = PlainArc::new(FaultDevice::new(PlainArc::new(MemoryDevice::new(32 * 1024))));
        let fs = thinned(device.clone(), &FormatOptions::default());
        let (before, goal) = (fs.write_stat(), fs.statfs().free_segments + 5);
        device.arm(FaultRule::on([Operation::Read]).after(3));
        let report = fs.core.volume.cleaning().clean_until::<FsError>(goal, |op| fs.core.write_above(op)).unwrap();
        assert_eq!(device.faults(), 1);
        device.disarm();
        let written = fs.write_stat().minus(&before);
        assert_eq!((report.victims, report.data_blocks), (written.victims, written.moved_data_blocks));
        assert_eq!((report.checkpoints, written.cleanings_alone), (written.checkpoints, 1));
        assert_eq!(report.free_segments, fs.statfs().free_segments);
        assert!(report.free_segments >= goal, "{goal}: {report:?}");
        let mut segments = 0..fs.volume().geometry().main_segments;
        let victim = segments.find(|segment| fs.volume().segment(SegmentNo(*segment)).unwrap().victim);
        assert_eq!(victim, None, "nobody writes to it any more");
    }

    /// What was removed since the last checkpoint is in that: a power cut brings it back.
    #[test]
    fn what_the_last_checkpoint_needs_is_not_given_back() {
        let device = formatted((128 << 20) >> 12);
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        let kept = vec![7; 6 << 20];
        fs.create_file("/kept", 0o644).unwrap().write_at(&kept, 0).unwrap();
        fs.checkpoint().unwrap();
        fs.remove_file("/kept").unwrap();
        assert!(fs.statfs().prefree_segments > 0);
        let until = SegmentNo(fs.core.volume.geometry().main_segments);
        let (mut next, mut blocks) = (Some(SegmentNo(0)), 0);
        while let Some(from) = next {
            let step = fs.core.volume.trim(Trim::new(from, until)).unwrap();
            (next, blocks) = (step.next, blocks + step.blocks);
        }
        assert_eq!(blocks, u64::from(fs.statfs().free_segments) * 512);
        let cut = FileSystem::open(PlainArc::new(device.snapshot()), Options::new().read_only(true)).unwrap();
        let mut found = vec![0; kept.len()];
        cut.open_file("/kept").unwrap().read_at(&mut found, 0).unwrap();
        assert!(found == kept);
    }
}

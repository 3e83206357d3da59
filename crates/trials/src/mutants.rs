//! Faults in the production code that the explorer must find, each by the class of workloads that reaches it.
//!
//! They are switched like those of the loom models, by `f2fs_sync::mutant`, but in a build with the feature `mutants`:
//! without it (and without loom) the switch is the constant `false`, and costs nothing.

use crate::campaign::Class;

/// Its name, its fault, and the workloads that find it.
pub const MUTANTS: &[(&str, &str, Class)] = &[
    ("checkpoint_flush", "no flush between a pack and the block that makes it valid", Class::Ace1),
    ("checkpoint_fua_left_out", "the block that makes a pack valid is written as any other", Class::Ace1),
    ("sync_flush", "no flush after the nodes of a sync", Class::Ace1),
    (
        "sync_inode_behind_flush",
        "the last inode of a sync goes off behind its flush, with what a later sync sends",
        Class::Ace1,
    ),
    ("recovery_restores_owner", "roll-forward leaves mode and owner as the checkpoint has them", Class::Ace1),
    (
        "recovery_restores_modified",
        "roll-forward leaves the time of the last change as the checkpoint has it",
        Class::Ace1,
    ),
    ("sync_mode_left_out", "a synced inode has the permissions of a new file", Class::Ace1),
    ("sync_owner_left_out", "a synced inode has the owner of a new file", Class::Ace1),
    ("sync_times_left_out", "a synced inode has the times of its last change for those that were set", Class::Ace1),
    ("sync_inline_xattrs_left_out", "a synced inode has none of its extended attributes", Class::Ace1),
    ("sync_xattr_node_left_out", "a sync leaves out the node of extended attributes", Class::Ace1),
    ("sync_forgets_arrivals", "no wait for data that goes off with a sync", Class::Deep),
    ("sync_direct_node_left_out", "a sync writes the inode and no other node", Class::Deep),
    (
        "name_taken_of_several_not_noted",
        "a new file is synced under a name that a checkpoint has for a file which lives on under another",
        Class::Names,
    ),
    (
        "recovery_keeps_punched_blocks",
        "roll-forward leaves blocks that a synced node does not name any more",
        Class::Holes,
    ),
    ("sync_mark", "no mark on the inode of a synced file", Class::Ace1),
    ("segment_block_reused_early", "segments without valid blocks are free before the next checkpoint", Class::Full),
    ("segment_ssr_over_checkpointed", "freed blocks are filled again before the next checkpoint", Class::Tight),
    (
        "checkpoint_waits_for_discards",
        "nobody waits for the discards of a checkpoint before the logs write there",
        Class::Full,
    ),
    ("cleaner_slot_left_out", "the slot of a moved block names the old place, which is free", Class::Cleaning),
    ("preclean_slot_left_out", "the same where partial cleaning moves blocks", Class::Tight),
    ("cleaner_flush_left_out", "no flush of moved blocks before synced nodes name them", Class::Cleaning),
    (
        "directory_later_blocks_left_out",
        "a checkpoint writes the first changed block of a directory only",
        Class::Broad,
    ),
    ("directory_depth_left_out", "a checkpoint does not write how many levels a directory has", Class::Broad),
    ("write_ignores_overlap", "a write does not wait for another to the same blocks", Class::Shared),
    ("create_without_its_stripe", "a name is made without its lock", Class::Shared),
    ("journal_flush_of_data", "a record is written before the data that it names is durable", Class::Journaled),
    (
        "journal_taken_back_before_checkpoint",
        "the space of records is taken back before the checkpoint is durable that holds what they say",
        Class::Journaled,
    ),
    (
        "journal_checkpoint_announced",
        "a journal does not know of the checkpoint that is being written",
        Class::Journaled,
    ),
    ("journal_name_not_noted", "a record of names leaves out the names that changed", Class::Journaled),
    ("recovery_links_not_counted", "names come back from a journal without their links", Class::Journaled),
    ("journal_data_left_out", "a record does not hold the data that its nodes name", Class::Absorbed),
    ("journal_data_not_restored", "the data of records does not come back", Class::Absorbed),
    ("journal_large_data_unflushed", "more data than a record takes is not flushed", Class::Absorbed),
    (
        "zones_reset_before_the_checkpoint",
        "zones without valid blocks are reset before the checkpoint that frees them is durable",
        Class::Zoned,
    ),
    (
        "zones_log_off_its_pointer_stays",
        "a log whose zone was written behind the checkpoint stays where the checkpoint has it",
        Class::Zoned,
    ),
    ("zones_written_free_zone_is_kept", "a free zone that was written is not reset at an opening", Class::Zoned),
    ("zones_without_summaries", "roll-forward has no summaries of segments that lanes left", Class::Zoned),
    ("journaled_node_left_out", "a checkpoint leaves out nodes that are in the journal", Class::Journaled),
];

/// Faults in the device of persistent memory, which the states by lines must find ([`crate::lines`]).
pub const OF_LINES: &[(&str, &str)] = &[
    ("pmem_write_without_order", "the last line of a block goes with the others"),
    ("pmem_last_line_not_written_back", "the last line of a block stays in the cache"),
    ("pmem_write_without_fence", "no fence at the end of a write"),
];

/// Faults in the journal, which joint states must find ([`crate::joint`]).
pub const OF_JOINT: &[(&str, &str)] = &[
    ("journal_fence_left_out", "no fence behind a record"),
    (
        "journal_taken_back_before_checkpoint",
        "the space of records is taken back before the checkpoint is durable that holds what they say",
    ),
    ("journal_last_grain_uncovered", "the checksum of a record does not cover its last line"),
    ("journal_flush_of_data", "a record is written before the data that it names is durable"),
    ("journal_change_not_laid_over", "a node comes back from a journal without what changed in it"),
];

/// Faults that storms must find, which meet them by chance ([`crate::storm`]).
pub const OF_STORM: &[(&str, &str)] = &[
    ("sync_mark", "no mark on the inode of a synced file"),
    ("cleaner_slot_left_out", "the slot of a moved block names the old place, which is free"),
    ("write_ignores_overlap", "a write does not wait for those of the same blocks"),
    ("append_end_seen_before_its_lock", "an append goes to where the end was before it had the lock"),
    ("cut_without_its_lock", "a cut does not wait for those who write behind it"),
];

//! Free sections: how many there must be for a checkpoint to succeed whatever is dirty.
//!
//! A checkpoint writes every dirty node and directory block to a new place before anything is freed, and so does
//! cleaning. If user data took the last section, neither could run, and nothing would ever become free. Hence three
//! thresholds:
//!
//! ```text
//!  free sections
//!    many     |  logs begin new segments
//!             +-- dirty + 2 x reserved ------ need_ssr: logs take segments with holes where they can
//!             +-- dirty + reserved ---------- enough_free_sections: the owner cleans before it goes on
//!             +-- dirty + user_floor -------- user data finds no space
//!             +-- dirty --------------------- the cleaner finds no space
//!     0       +------------------------------ checkpoints: what is dirty fits by then
//! ```

use f2fs_format::LogType;
use f2fs_sync::atomic::Ordering;

use crate::{Class, SegmentManager};

impl SegmentManager {
    /// Says how many dirty blocks a checkpoint would have to write now: node blocks (inodes included), and directory
    /// blocks. Sections for them are kept free of user data, and they bring SSR on earlier.
    pub fn set_pressure(&self, dirty_nodes: u32, dirty_dents: u32) {
        // Every operation reads both: their line is written only if something is new.
        for (count, dirty) in [(&self.pressure.dirty_nodes, dirty_nodes), (&self.pressure.dirty_dents, dirty_dents)] {
            if count.load(Ordering::Relaxed) != dirty {
                count.store(dirty, Ordering::Relaxed);
            }
        }
    }

    fn sections_for(&self, blocks: u32) -> u32 {
        blocks.div_ceil(self.section_blocks())
    }

    /// Sections that a checkpoint needs in the worst case (the upper bound of `__get_secs_required`): each dirty dentry
    /// block may dirty a node of its own.
    #[must_use]
    pub fn dirty_sections(&self) -> u32 {
        let (nodes, dents) = (self.pressure.nodes(), self.pressure.dents());
        self.sections_for(nodes.saturating_add(dents)) + self.sections_for(dents)
    }

    /// Sections that a class of caller must leave free.
    #[must_use]
    pub fn floor(&self, class: Class) -> u32 {
        match class {
            Class::User => self.dirty_sections().saturating_add(self.pressure.user_floor),
            Class::Cleaner => self.dirty_sections(),
            Class::Checkpoint => 0,
        }
    }

    /// Whether so many sections are free beyond what users must leave free.
    #[must_use]
    pub fn is_roomy(&self, sections: u32) -> bool {
        self.free_sections() >= self.floor(Class::User).saturating_add(sections)
    }

    /// Sections kept back for cleaning.
    #[must_use]
    pub fn reserved_sections(&self) -> u32 {
        self.reserved_segments / self.geometry.segs_per_sec
    }

    /// Whether free sections are so few that logs should take segments with holes (`f2fs_need_SSR`).
    #[must_use]
    pub fn need_ssr(&self) -> bool {
        let nodes = u64::from(self.sections_for(self.pressure.nodes()));
        let dents = u64::from(self.sections_for(self.pressure.dents()));
        // The kernel's min_ssr_sections is the reserve once more.
        u64::from(self.free_sections()) <= nodes + 2 * dents + 2 * u64::from(self.reserved_sections())
    }

    /// Whether there is room for what is dirty, for `needed` further sections and for the reserve, once `freed`
    /// sections that are on their way have become free (`has_enough_free_secs`). If not, the owner cleans, or writes a
    /// checkpoint to get at its prefree segments, before it lets an operation make more dirty.
    #[must_use]
    pub fn enough_free_sections(&self, freed: u32, needed: u32) -> bool {
        let (nodes, dents) = (self.pressure.nodes(), self.pressure.dents());
        let nodes = nodes.saturating_add(dents);
        let blocks = self.section_blocks();
        let free = u64::from(self.free_sections()) + u64::from(freed);
        let fixed = u64::from(needed) + u64::from(self.reserved_sections());
        if free > u64::from(nodes.div_ceil(blocks)) + u64::from(dents.div_ceil(blocks)) + fixed {
            return true;
        }
        if free <= u64::from(nodes / blocks) + u64::from(dents / blocks) + fixed {
            return false;
        }
        // In between it depends on whether the odd blocks fit into the sections where the logs stand.
        self.logs_hold(nodes % blocks, dents % blocks)
    }

    /// Whether each node log's section has room for `nodes` blocks, and the hot-data log's for `dents`
    /// (`has_curseg_enough_space`).
    fn logs_hold(&self, nodes: u32, dents: u32) -> bool {
        LogType::ALL.into_iter().all(|log| {
            let wanted = match log {
                LogType::HotData => dents,
                log if log.is_node() => nodes,
                _ => 0,
            };
            if wanted == 0 {
                return true;
            }
            let per_section = self.geometry.segs_per_sec;
            let first = self.head(log).segment.0 / per_section * per_section;
            let segments = (first..first + per_section).map(f2fs_format::SegmentNo);
            let taken: u32 = segments.map(|segment| u32::from(self.states.find(segment).state().taken)).sum();
            wanted <= self.section_blocks().saturating_sub(taken)
        })
    }
}

//! Consecutive blocks, and where a call that takes some notes them.

use f2fs_format::BlockAddr;

use crate::head::{AllocType, Head};
use crate::map::BlockMap;
use crate::plan::{Choice, Layout, Planner};

/// Consecutive blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// The first block.
    pub addr: BlockAddr,
    /// How many.
    pub len: u32,
}

/// Where a call's blocks are noted.
pub(crate) struct Sink<'a> {
    runs: &'a mut Vec<Run>,
    /// Runs of earlier calls.
    first: usize,
    /// Chooses the runs in between that are rewritten, and where they are noted.
    selective: Option<(&'a Planner, &'a mut Vec<Run>)>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(runs: &'a mut Vec<Run>) -> Sink<'a> {
        Sink { first: runs.len(), runs, selective: None }
    }

    pub(crate) fn selective(runs: &'a mut Vec<Run>, planner: &'a Planner, rewrites: &'a mut Vec<Run>) -> Sink<'a> {
        Sink { first: runs.len(), runs, selective: Some((planner, rewrites)) }
    }

    /// Appends a run, or lengthens the last one of this call, unless they are to stay apart.
    pub(crate) fn push(&mut self, run: Run, apart: bool) {
        if let Some(last) = self.runs[self.first..].last_mut()
            && !apart
            && last.addr.offset(last.len) == run.addr
        {
            last.len += run.len;
            return;
        }
        self.runs.push(run);
    }

    /// The choice for each run in front of a log in its segment, as far as `count` blocks reach.
    pub(crate) fn choices(&self, head: &Head, taken: &BlockMap, count: usize) -> Vec<Choice> {
        match &self.selective {
            Some((planner, _)) if head.alloc == AllocType::Ssr && head.settled => {
                let mut layout = Layout::new();
                layout.push_segment(taken, head.next);
                planner.plan_paid(&layout, (count as u64).min(layout.room()) as u32)
            }
            _ => Vec::new(),
        }
    }

    pub(crate) fn rewrite(&mut self, run: Run) {
        if let Some((_, rewrites)) = &mut self.selective {
            rewrites.push(run);
        }
    }
}

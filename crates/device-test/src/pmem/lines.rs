//! All lines of a region: those that are certain as blocks of memory, the others with their stores.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use f2fs_device::{AlignedBuf, BLOCK_SIZE, BlockDevice, MemoryDevice};
use f2fs_pmem::{LINE, WORD, split_lines};

use super::cut::PowerCut;
use super::line::Line;

/// Blocks that states share and copy at a time.
const CHUNK: u64 = 4;

/// Lines in a block of the memory that holds their content.
const LINES: usize = BLOCK_SIZE / LINE;

/// The lines, and what may have reached the media of each.
#[derive(Debug)]
pub(super) struct Lines {
    /// The lines that are certain.
    certain: MemoryDevice,
    /// Lines with stores that are not.
    open: BTreeMap<usize, Line>,
    /// Which of them a thread's fence concerns.
    of_thread: HashMap<u32, BTreeSet<usize>>,
}

/// A new memory for so many bytes.
pub(super) fn memory(bytes: usize) -> MemoryDevice {
    MemoryDevice::with_chunks(bytes.div_ceil(BLOCK_SIZE) as u64, CHUNK)
}

/// Changes the lines (numbers in ascending order, each once) of a memory.
pub(super) fn change<'a, T: 'a>(
    memory: &MemoryDevice,
    lines: impl Iterator<Item = (usize, T)>,
    mut change: impl FnMut(usize, T, &mut [u8; LINE]),
) {
    let mut loaded: Option<(u64, AlignedBuf)> = None;
    for (line, with) in lines {
        let at = (line / LINES) as u64;
        if loaded.as_ref().is_none_or(|(block, _)| *block != at) {
            put(memory, loaded.take());
            loaded = memory.read(at, 1).ok().map(|buf| (at, buf));
        }
        let content =
            loaded.as_mut().and_then(|(_, buf)| buf.as_bytes_mut().as_chunks_mut::<LINE>().0.get_mut(line % LINES));
        if let Some(content) = content {
            change(line, with, content);
        }
    }
    put(memory, loaded);
}

fn put(memory: &MemoryDevice, block: Option<(u64, AlignedBuf)>) {
    if let Some((at, buf)) = block {
        // The memory has the block: it was read from there.
        let _ = memory.write(at, buf);
    }
}

impl Lines {
    pub(super) fn new(certain: MemoryDevice) -> Lines {
        Lines { certain, open: BTreeMap::new(), of_thread: HashMap::new() }
    }

    /// A store; `past_cache`: it does not go through the cache, as far as whole lines go.
    pub(super) fn store(&mut self, thread: u32, offset: usize, bytes: &[u8], past_cache: bool) {
        let range = offset..offset + bytes.len();
        if !past_cache {
            return self.words(thread, &range, offset, bytes, false);
        }
        let [before, whole, behind] = split_lines(&range);
        for part in [before, behind] {
            self.words(thread, &part, offset, bytes, false);
            self.write_back(thread, &f2fs_pmem::lines(&part));
        }
        self.words(thread, &whole, offset, bytes, true);
    }

    fn words(&mut self, thread: u32, range: &Range<usize>, offset: usize, bytes: &[u8], past_cache: bool) {
        let mut at = range.start;
        while at < range.end {
            let whole = at.is_multiple_of(WORD) && range.end - at >= WORD;
            let len = if whole { WORD } else { 1 };
            let line = self.open.entry(at / LINE).or_default();
            line.store(at % LINE, &bytes[at - offset..at - offset + len], past_cache.then_some(thread));
            if past_cache {
                self.of_thread.entry(thread).or_default().insert(at / LINE);
            }
            at += len;
        }
    }

    pub(super) fn write_back(&mut self, thread: u32, lines: &Range<usize>) {
        for (number, line) in self.open.range_mut(lines.clone()) {
            line.write_back(thread);
            self.of_thread.entry(thread).or_default().insert(*number);
        }
    }

    pub(super) fn fence(&mut self, thread: u32) {
        let Some(concerned) = self.of_thread.remove(&thread) else { return };
        let mut settled = Vec::new();
        let open = &mut self.open;
        change(&self.certain, concerned.into_iter().map(|number| (number, ())), |number, (), content| {
            if let Some(line) = open.get_mut(&number) {
                line.fence(thread);
                if line.settle(content) {
                    settled.push(number);
                }
            }
        });
        for number in settled {
            self.open.remove(&number);
        }
    }

    /// The bytes of a range, as loads see them.
    pub(super) fn load(&self, offset: usize, into: &mut [u8]) {
        let range = offset..offset + into.len();
        for block in offset / BLOCK_SIZE..range.end.div_ceil(BLOCK_SIZE) {
            let Ok(mut buf) = self.certain.read(block as u64, 1) else { continue };
            let first = block * LINES;
            for (number, line) in self.open.range(first..first + LINES) {
                if let Some(content) = buf.as_bytes_mut().as_chunks_mut::<LINE>().0.get_mut(number - first) {
                    line.apply_all(content);
                }
            }
            let here = range.start.max(block * BLOCK_SIZE)..range.end.min((block + 1) * BLOCK_SIZE);
            let from = &buf.as_bytes()[here.start - block * BLOCK_SIZE..here.end - block * BLOCK_SIZE];
            into[here.start - offset..here.end - offset].copy_from_slice(from);
        }
    }

    pub(super) fn cut(&self) -> PowerCut {
        let uncertain = self.open.iter().filter(|(_, line)| line.is_uncertain());
        // A certain store to a line may stand behind an uncertain one, so that it is not in the memory yet.
        let behind = self.open.iter().filter(|(_, line)| !line.is_uncertain());
        let certain = self.certain.snapshot();
        change(&certain, behind.map(|(number, line)| (*number, line)), |_, line, content| line.apply_all(content));
        PowerCut::new(certain, uncertain.map(|(number, line)| (*number, line.clone())).collect())
    }
}

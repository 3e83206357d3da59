//! Data blocks of a volume: reserving, writing, reading, freeing them.

use f2fs_device::{AlignedBuf, BlockDevice, Op as DeviceOp, Recycler, Request};
use f2fs_format::summary::Summary;
use f2fs_format::{BlockAddr, Corruption, LogType, Nid, SegmentNo};
use f2fs_segment::{Class, Run};
use f2fs_sync::atomic::Ordering;

use crate::blocks::read_each;
use crate::relocate::Company;
use crate::write_stat::Count;
use crate::{Op, Volume, VolumeError};

impl Volume {
    /// Reserves data blocks: the count goes up, no address is chosen.
    ///
    /// # Errors
    /// [`VolumeError::NoSpace`]; nothing is reserved then.
    pub fn reserve(&self, _op: &Op<'_>, blocks: u64) -> Result<(), VolumeError> {
        self.space.take_blocks(blocks)
    }

    /// Whether so many blocks could be reserved at this moment.
    #[must_use]
    pub fn has_room(&self, blocks: u64) -> bool {
        let room = self.space.take_blocks(blocks).is_ok();
        if room {
            self.space.give_blocks(blocks);
        }
        room
    }

    /// Gives reserved blocks back.
    pub fn unreserve(&self, _op: &Op<'_>, blocks: u64) {
        self.space.give_blocks(blocks);
    }

    /// Writes blocks to new places of a log, and waits for the device. `data` has as many blocks as there are `summaries`;
    /// space for them must be reserved. The caller puts the addresses into their slots with
    /// [`replace_blocks`](Self::replace_blocks), which frees the old ones.
    ///
    /// # Errors
    /// [`VolumeError::Segment`] when no segment is free, [`VolumeError::Device`]; the blocks are free again then.
    pub fn write_data(
        &self,
        op: &Op<'_>,
        log: LogType,
        summaries: &[Summary],
        data: AlignedBuf,
    ) -> Result<Vec<Run>, VolumeError> {
        let mut runs = Vec::new();
        let rewrites = self.allocate_data(op, log, summaries, &mut runs)?;
        let written = self.join_requests(op, &runs, &rewrites, data).and_then(|requests| {
            requests.iter().for_each(|request| self.count_request(request));
            self.send(requests)
        });
        self.keep_or_free(written, &runs)?;
        Ok(runs)
    }

    /// Takes blocks of a log for data, one for each summary and in their order, and appends where they are to `runs`; space for
    /// them must be reserved. The caller writes them, and puts their addresses into their slots, within `op`; or returns
    /// them with [`return_data`](Self::return_data). Gives the runs between them that should be rewritten in the same
    /// requests, by [`join_requests`](Self::join_requests); leaving that out costs requests, nothing else.
    ///
    /// # Errors
    /// [`VolumeError::Segment`] when no segment is free; nothing is taken then.
    pub fn allocate_data(
        &self,
        op: &Op<'_>,
        log: LogType,
        summaries: &[Summary],
        runs: &mut Vec<Run>,
    ) -> Result<Vec<Run>, VolumeError> {
        let class = if op.gate.is_some() { Class::User } else { Class::Checkpoint };
        let mut rewrites = Vec::new();
        match &self.planner {
            // Only where logs write into holes is there anything to choose.
            Some(planner) if !log.is_node() && summaries.len() > 1 && self.writes_into_holes() => {
                let now = self.clock.now();
                self.segments.manager()?.allocate_selective(
                    class,
                    log,
                    summaries,
                    now,
                    planner,
                    runs,
                    &mut rewrites,
                )?;
            }
            _ => {
                let lane = self.lanes.slot_index();
                self.segments.manager()?.allocate_on(lane, class, log, summaries, self.clock.now(), runs)?;
            }
        }
        let blocks = summaries.len() as u64;
        self.blocks_written.add(blocks);
        self.written.add(Count::UserBlocks, blocks);
        if self.planner.is_some() && class == Class::User {
            self.note_request(blocks);
        }
        Ok(rewrites)
    }

    /// Requests that write `data` to `runs`, and what stands in `rewrites` once more to where it stands: neighbours are one
    /// request. All of [`allocate_data`](Self::allocate_data), whose operation must still be held when they are done.
    ///
    /// What is rewritten was written before the last durable checkpoint and is not written by anybody else: its place is
    /// taken, even if it is freed meanwhile, until a checkpoint, which waits for this operation.
    ///
    /// # Errors
    /// [`VolumeError::Device`] if the old blocks cannot be read.
    pub fn join_requests(
        &self,
        _op: &Op<'_>,
        runs: &[Run],
        rewrites: &[Run],
        data: AlignedBuf,
    ) -> Result<Vec<Request>, VolumeError> {
        if rewrites.is_empty() {
            return Ok(split_by_runs(&self.recycler, runs, data));
        }
        let addrs: Vec<BlockAddr> =
            rewrites.iter().flat_map(|run| (0..run.len).map(|at| run.addr.offset(at))).collect();
        let mut old = self.recycler.take_stale(addrs.len());
        read_each::<VolumeError>(&*self.device, &addrs, |index, block| {
            old.block_mut(index).copy_from_slice(block);
            Ok(())
        })?;
        self.written.add(Count::Rewritten, addrs.len() as u64);
        Ok(join(&self.recycler, (runs, &data), (rewrites, &old)))
    }

    /// Counts a request that writes data for a user.
    pub fn count_request(&self, request: &Request) {
        self.written.user_request(request.blocks());
    }

    /// Returns blocks of [`allocate_data`](Self::allocate_data) that no slot speaks of. Their reservation stays.
    ///
    /// # Errors
    /// [`VolumeError::Segment`] if the SIT says that they were not in use.
    pub fn return_data(&self, _op: &Op<'_>, runs: &[Run]) -> Result<(), VolumeError> {
        let now = self.clock.now();
        runs.iter().try_for_each(|run| self.segments.invalidate_run(*run, now))
    }

    /// Keeps the mean length of requests, each weighted by its blocks, and what is left of the segments cleared for them.
    fn note_request(&self, blocks: u64) {
        const WEIGHT: u64 = 4096;
        let blocks = blocks.min(WEIGHT);
        // Lost updates of concurrent writers change a mean, nothing else.
        let mean = self.request_blocks.load(Ordering::Relaxed);
        let next = (mean * (WEIGHT - blocks) + blocks * blocks).div_ceil(WEIGHT);
        self.request_blocks.store(next, Ordering::Relaxed);
        if self.writes_into_holes() {
            self.stock.fetch_sub(blocks as i64, Ordering::Relaxed);
        }
    }

    /// Writes blocks moved out of a segment to new places: of the cold log, in its holes where free segments are few; or, if
    /// they are to stay among those of their age, in the holes of such segments.
    pub(crate) fn write_moved(
        &self,
        from: SegmentNo,
        company: Company,
        summaries: &[Summary],
        data: AlignedBuf,
    ) -> Result<Vec<Run>, VolumeError> {
        let now = self.clock.now();
        let mut runs = Vec::new();
        match company {
            Company::Cold => {
                self.segments.manager()?.allocate_as(Class::Cleaner, LogType::ColdData, summaries, now, &mut runs)?;
            }
            Company::SameAge => {
                let merged = self.segments.manager()?.allocate_aged(from, summaries, now, &mut runs)?;
                self.written.add(Count::MergedData, merged as u64);
            }
        }
        let requests = split_by_runs(&self.recycler, &runs, data);
        self.written.add(Count::MoveRequests, requests.len() as u64);
        self.blocks_written.add(summaries.len() as u64);
        let written = self.send(requests);
        self.keep_or_free(written, &runs)?;
        Ok(runs)
    }

    /// Runs requests and waits for all of them.
    fn send(&self, requests: Vec<Request>) -> Result<(), VolumeError> {
        let mut failed = None;
        for completion in self.device.submit(requests).wait() {
            if let Err(error) = completion.result {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Frees blocks again that were not written.
    fn keep_or_free(&self, written: Result<(), VolumeError>, runs: &[Run]) -> Result<(), VolumeError> {
        if written.is_err() {
            let now = self.clock.now();
            for run in runs {
                self.segments.invalidate_run(*run, now)?;
            }
        }
        written
    }

    /// Puts new addresses into the slots of a node from `first` on, and frees what they held: the blocks that were overwritten
    /// or moved since the caller looked. Reservations stay.
    ///
    /// # Errors
    /// [`VolumeError::Segment`] if the SIT says that an old block was not in use.
    pub fn replace_blocks(
        &self,
        op: &Op<'_>,
        node: &crate::Node,
        first: usize,
        fresh: &[BlockAddr],
    ) -> Result<(), VolumeError> {
        let now = self.clock.now();
        Ok(self.segments.manager()?.overwrite_slots(|| node.write(op), first, fresh, self.features(), now)?)
    }

    /// Takes a block out of use because its data stands elsewhere now. Its reservation stays.
    ///
    /// # Errors
    /// [`VolumeError::Segment`] if the SIT says that it was not in use.
    pub fn invalidate(&self, _op: &Op<'_>, addr: BlockAddr) -> Result<(), VolumeError> {
        if addr.is_real() {
            self.segments.invalidate_run(Run { addr, len: 1 }, self.clock.now())?;
        }
        Ok(())
    }

    /// Takes consecutive blocks out of use, each as [`invalidate`](Self::invalidate) does.
    ///
    /// # Errors
    /// As there.
    pub fn invalidate_run(&self, _op: &Op<'_>, run: Run) -> Result<(), VolumeError> {
        self.segments.invalidate_run(run, self.clock.now())
    }

    /// Frees what an address slot held: block and reservation. A hole is nothing, `NEW_ADDR` only a reservation.
    ///
    /// # Errors
    /// [`VolumeError::Segment`] if the SIT says that it was not in use.
    pub fn free_block(&self, op: &Op<'_>, addr: BlockAddr) -> Result<(), VolumeError> {
        if addr.is_null() {
            return Ok(());
        }
        self.invalidate(op, addr)?;
        self.space.give_blocks(1);
        Ok(())
    }

    /// The version of a node's NAT entry, which goes into the summaries of the blocks that the node points to.
    ///
    /// # Errors
    /// [`VolumeError::Nat`].
    pub fn node_version(&self, nid: Nid) -> Result<u8, VolumeError> {
        Ok(self.nat.get(nid)?.version)
    }

    /// Whether a node was written since it was made. True as well if the NAT cannot tell.
    #[must_use]
    pub fn is_on_device(&self, nid: Nid) -> bool {
        !self.nat.get(nid).is_ok_and(|entry| !entry.addr.is_real())
    }

    /// Whether the SIT says that a block is in use. A volume that is open for reading may have to read the block of the SIT.
    ///
    /// # Errors
    /// [`VolumeError::Device`].
    pub fn is_in_use(&self, addr: BlockAddr) -> Result<bool, VolumeError> {
        self.segments.is_valid(addr)
    }

    /// Reads data blocks that follow each other on the device.
    ///
    /// # Errors
    /// [`VolumeError::Corrupt`] for blocks outside the main area (`nid`: whose slot named them), [`VolumeError::Device`].
    pub fn read_data(&self, nid: Nid, addr: BlockAddr, buf: &mut AlignedBuf) -> Result<(), VolumeError> {
        let last = addr.offset((buf.blocks() as u32).saturating_sub(1));
        if !self.geometry.in_main(addr) || !self.geometry.in_main(last) || last < addr {
            return Err(Corruption::Address { what: "data address", nid, addr }.into());
        }
        Ok(self.device.read_into(u64::from(addr.0), buf)?)
    }
}

/// Requests for new and rewritten runs together: what follows each other on the device is one request, up to a segment.
fn join(recycler: &Recycler, fresh: (&[Run], &AlignedBuf), old: (&[Run], &AlignedBuf)) -> Vec<Request> {
    // Each run with the bytes that belong there.
    let mut parts: Vec<(Run, &[u8])> = Vec::with_capacity(fresh.0.len() + old.0.len());
    for (runs, data) in [fresh, old] {
        let mut rest = data.as_bytes();
        for run in runs {
            let (part, tail) = rest.split_at((run.len as usize * f2fs_format::BLOCK_SIZE).min(rest.len()));
            rest = tail;
            parts.push((*run, part));
        }
    }
    parts.sort_unstable_by_key(|(run, _)| run.addr);
    let follows = |(before, _): &(Run, &[u8]), (run, _): &(Run, &[u8])| before.addr.offset(before.len) == run.addr;
    parts
        .chunk_by(follows)
        .map(|piece| {
            let blocks: u32 = piece.iter().map(|(run, _)| run.len).sum();
            let mut buf = recycler.take_stale(blocks as usize);
            let mut at = 0;
            for (_, bytes) in piece {
                buf.as_bytes_mut()[at..at + bytes.len()].copy_from_slice(bytes);
                at += bytes.len();
            }
            Request::write(u64::from(piece[0].0.addr.0), buf)
        })
        .collect()
}

/// One request a run. A single run takes the buffer as it is.
fn split_by_runs(recycler: &Recycler, runs: &[Run], data: AlignedBuf) -> Vec<Request> {
    if let [run] = runs {
        return vec![Request::vectored(DeviceOp::Write, u64::from(run.addr.0), vec![data])];
    }
    let mut rest = data.as_bytes();
    runs.iter()
        .map(|run| {
            let (part, tail) = rest.split_at((run.len as usize * f2fs_format::BLOCK_SIZE).min(rest.len()));
            rest = tail;
            let mut buf = recycler.take_stale(part.len() / f2fs_format::BLOCK_SIZE);
            buf.as_bytes_mut().copy_from_slice(part);
            Request::write(u64::from(run.addr.0), buf)
        })
        .collect()
}

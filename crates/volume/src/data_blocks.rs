//! Data blocks of a volume: reserving, writing, reading, freeing them.

use f2fs_device::{AlignedBuf, BlockDevice, Op as DeviceOp, Recycler, Request};
use f2fs_format::summary::Summary;
use f2fs_format::{BlockAddr, Corruption, LogType, Nid};
use f2fs_segment::{Class, Run};

use crate::{Op, Volume, VolumeError};

impl Volume {
    /// Reserves data blocks: the count goes up, no address is chosen.
    ///
    /// # Errors
    /// [`VolumeError::NoSpace`]; nothing is reserved then.
    pub fn reserve(&self, _op: &Op<'_>, blocks: u64) -> Result<(), VolumeError> {
        self.space.take_blocks(blocks)
    }

    /// Gives reserved blocks back.
    pub fn unreserve(&self, _op: &Op<'_>, blocks: u64) {
        self.space.give_blocks(blocks);
    }

    /// Writes blocks to new places of a log, and waits for the device. `data` has as many blocks as there are `summaries`;
    /// space for them must be reserved. The caller puts the addresses into their slots and then invalidates the old ones.
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
        let class = if op.gate.is_some() { Class::User } else { Class::Checkpoint };
        self.write_as(class, log, summaries, data)
    }

    /// Takes blocks of a log for data, one for each summary and in their order, and appends where they are to `runs`; space for
    /// them must be reserved. The caller writes them, and puts their addresses into their slots, within `op`; or returns
    /// them with [`return_data`](Self::return_data).
    ///
    /// # Errors
    /// [`VolumeError::Segment`] when no segment is free; nothing is taken then.
    pub fn allocate_data(
        &self,
        op: &Op<'_>,
        log: LogType,
        summaries: &[Summary],
        runs: &mut Vec<Run>,
    ) -> Result<(), VolumeError> {
        let class = if op.gate.is_some() { Class::User } else { Class::Checkpoint };
        self.segments.allocate_as(class, log, summaries, self.clock.now(), runs)?;
        self.blocks_written.add(summaries.len() as i64);
        Ok(())
    }

    /// Returns blocks of [`allocate_data`](Self::allocate_data) that no slot speaks of. Their reservation stays.
    ///
    /// # Errors
    /// [`VolumeError::Segment`] if the SIT says that they were not in use.
    pub fn return_data(&self, _op: &Op<'_>, runs: &[Run]) -> Result<(), VolumeError> {
        let now = self.clock.now();
        runs.iter().try_for_each(|run| Ok(self.segments.invalidate_run(*run, now)?))
    }

    pub(crate) fn write_as(
        &self,
        class: Class,
        log: LogType,
        summaries: &[Summary],
        data: AlignedBuf,
    ) -> Result<Vec<Run>, VolumeError> {
        let now = self.clock.now();
        let mut runs = Vec::new();
        self.segments.allocate_as(class, log, summaries, now, &mut runs)?;
        let requests = split_by_runs(&self.recycler, &runs, data);
        let mut failed = None;
        for completion in self.device.submit(requests).wait() {
            if let Err(error) = completion.result {
                failed.get_or_insert(error);
            }
        }
        self.blocks_written.add(summaries.len() as i64);
        if let Some(error) = failed {
            for run in &runs {
                for index in 0..run.len {
                    self.segments.invalidate(run.addr.offset(index), now)?;
                }
            }
            return Err(error.into());
        }
        Ok(runs)
    }

    /// Takes a block out of use because its data stands elsewhere now. Its reservation stays.
    ///
    /// # Errors
    /// [`VolumeError::Segment`] if the SIT says that it was not in use.
    pub fn invalidate(&self, _op: &Op<'_>, addr: BlockAddr) -> Result<(), VolumeError> {
        if addr.is_real() {
            self.segments.invalidate(addr, self.clock.now())?;
        }
        Ok(())
    }

    /// Takes consecutive blocks out of use, each as [`invalidate`](Self::invalidate) does.
    ///
    /// # Errors
    /// As there.
    pub fn invalidate_run(&self, _op: &Op<'_>, run: Run) -> Result<(), VolumeError> {
        Ok(self.segments.invalidate_run(run, self.clock.now())?)
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

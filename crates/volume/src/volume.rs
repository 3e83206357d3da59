//! An open volume.

use core::fmt;

use f2fs_device::{AlignedBuf, BlockDevice, Op as DeviceOp, Request};
use f2fs_format::feature::Features;
use f2fs_format::node::NodeBlock;
use f2fs_format::summary::Summary;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{BlockAddr, Corruption, Geometry, LogType, Nid, inode};
use f2fs_nat::Nat;
use f2fs_segment::{Class, Run, SegmentManager};
use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::{Arc, Gate, GateGuard, Mutex, OnceLock};

use crate::checkpoint::CheckpointState;
use crate::clock::Clock;
use crate::node::{Node, NodePage};
use crate::node_store::NodeStore;
use crate::orphans::Orphans;
use crate::space::Space;
use crate::{VolumeError, VolumeStat};

/// An open F2FS volume: nodes, blocks, checkpoints. Share it between threads in an [`Arc`].
///
/// The crate documentation has the locking model.
pub struct Volume {
    pub(crate) device: Arc<dyn BlockDevice>,
    pub(crate) superblock: SuperBlock,
    pub(crate) geometry: Geometry,
    pub(crate) read_only: bool,
    pub(crate) gate: Gate,
    pub(crate) nat: Nat,
    pub(crate) segments: SegmentManager,
    pub(crate) store: NodeStore,
    pub(crate) space: Space,
    pub(crate) orphans: Orphans,
    /// Taken by the checkpoint only, after the gate was closed.
    pub(crate) state: Mutex<CheckpointState>,
    /// The version that node footers carry: that of the last durable checkpoint.
    pub(crate) footer_version: AtomicU64,
    pub(crate) stopped: OnceLock<String>,
    pub(crate) checksum_seed: u32,
    pub(crate) clock: Clock,
    /// Dirty nodes at which [`needs_checkpoint`](Volume::needs_checkpoint) says yes.
    pub(crate) dirty_limit: u64,
    pub(crate) blocks_written: AtomicU64,
    /// Directory blocks that wait for the checkpoint.
    pub(crate) dirty_dentries: AtomicU64,
    /// Blocks in use when cleaning last gained nothing: it is not tried again before there are fewer.
    pub(crate) futile: AtomicU64,
    pub(crate) damage: Damage,
}

/// What was found damaged when the volume was opened, and not needed because its copy is good.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Which superblock is in use: the one in block 0 or in block 1.
    pub superblock_copy: u32,
    /// What is wrong with the other superblock.
    pub superblock: Option<Corruption>,
    /// What is wrong with the other checkpoint pack.
    pub pack: Option<Corruption>,
}

impl fmt::Debug for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Volume")
            .field("device", &self.device)
            .field("geometry", &self.geometry)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}

/// The right to change a volume: as long as one is held, no checkpoint runs.
///
/// Hold it for one operation, not longer, and never begin a second one on the same thread meanwhile: a checkpoint that
/// waits for the first would keep the second out for good.
pub struct Op<'a> {
    pub(crate) volume: &'a Volume,
    /// `None` within a checkpoint, where the gate is closed by its runner.
    gate: Option<GateGuard<'a>>,
}

impl fmt::Debug for Op<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Op").finish_non_exhaustive()
    }
}

impl<'a> Op<'a> {
    pub(crate) fn within_checkpoint(volume: &'a Volume) -> Op<'a> {
        Op { volume, gate: None }
    }

    /// The volume that this operation changes.
    #[must_use]
    pub fn volume(&self) -> &'a Volume {
        self.volume
    }
}

/// Keeps checkpoints (and so the cleaner) away while blocks are read.
#[derive(Debug)]
pub struct ReadOp<'a> {
    _gate: GateGuard<'a>,
}

/// What a volume needs before the next operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// A checkpoint: many dirty nodes, or segments that wait for one to become free.
    Checkpoint,
    /// A cleaning ([`Volume::clean_with`]): few free segments, and none that only wait.
    Cleaning,
}

/// Free sections beyond the floor at which something is done.
const MARGIN: u32 = 2;

/// What a new node is to be.
#[derive(Clone, Copy, Debug)]
pub struct NewNode {
    /// The inode that it belongs to; `None` for a new inode.
    pub ino: Option<Nid>,
    /// Its offset in the file's node tree (the footer's).
    pub offset: u32,
    /// Whether it belongs to a directory: its blocks then go to the hot node log.
    pub directory: bool,
}

impl Volume {
    /// The device under the volume.
    #[must_use]
    pub fn device(&self) -> &Arc<dyn BlockDevice> {
        &self.device
    }

    /// The areas of the volume.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The features of the volume.
    #[must_use]
    pub fn features(&self) -> Features {
        self.geometry.features
    }

    /// The superblock as it was read.
    #[must_use]
    pub fn superblock(&self) -> &SuperBlock {
        &self.superblock
    }

    /// Whether the volume was opened for reading.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// What the last durable checkpoint says.
    #[must_use]
    pub fn last_checkpoint(&self) -> f2fs_format::checkpoint::Checkpoint {
        self.state.lock().checkpoint.clone()
    }

    /// What was found damaged at opening, and not needed.
    #[must_use]
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    pub(crate) fn store(&self) -> &NodeStore {
        &self.store
    }

    /// Begins an operation that changes the volume. Waits while a checkpoint runs.
    ///
    /// # Errors
    /// [`VolumeError::ReadOnly`], [`VolumeError::Stopped`].
    pub fn begin(&self) -> Result<Op<'_>, VolumeError> {
        self.check_writable()?;
        let gate = self.gate.enter();
        Ok(Op { volume: self, gate: Some(gate) })
    }

    /// Begins an operation that reads blocks by their addresses.
    #[must_use]
    pub fn begin_read(&self) -> ReadOp<'_> {
        ReadOp { _gate: self.gate.enter() }
    }

    pub(crate) fn check_writable(&self) -> Result<(), VolumeError> {
        if self.read_only {
            return Err(VolumeError::ReadOnly);
        }
        match self.stopped.get() {
            None => Ok(()),
            Some(reason) => Err(VolumeError::Stopped { reason: reason.clone() }),
        }
    }

    /// Refuses all further changes: the state in memory can no longer be trusted to become a checkpoint.
    pub(crate) fn stop(&self, error: &VolumeError) {
        let _ = self.stopped.set(error.to_string());
    }

    /// The reason why the volume refuses changes, if an error stopped it.
    #[must_use]
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.get().map(String::as_str)
    }

    // ---- nodes ----

    /// The node with this NID, from memory or from the device.
    ///
    /// # Errors
    /// [`VolumeError::Corrupt`] if the NID is free or out of range, or the block is not that node.
    pub fn node(&self, nid: Nid) -> Result<Node, VolumeError> {
        if let Some(page) = self.store.get(nid) {
            return Ok(Node { page });
        }
        let entry = self.nat.get(nid)?;
        if !self.geometry.in_main(entry.addr) {
            let error = Corruption::Address { what: "NAT entry", nid, addr: entry.addr };
            return Err(error.into());
        }
        let buf = self.device.read(u64::from(entry.addr.0), 1)?;
        let block = Box::new(*NodeBlock::read(buf.block(0)));
        self.verify_node(nid, entry.ino, entry.addr, &block)?;
        Ok(Node { page: self.store.insert(NodePage::new(block)) })
    }

    /// Reads many nodes at once into the cache: those that are not there yet, in one batch. Errors are left to
    /// [`node`](Self::node).
    pub fn prefetch(&self, nids: &[Nid]) {
        let wanted: Vec<(Nid, f2fs_nat::NatEntry)> = nids
            .iter()
            .filter(|nid| self.store.get(**nid).is_none())
            .filter_map(|nid| self.nat.get(*nid).ok().map(|entry| (*nid, entry)))
            .filter(|(_, entry)| self.geometry.in_main(entry.addr))
            .collect();
        for chunk in wanted.chunks(256) {
            let requests =
                chunk.iter().map(|(_, entry)| Request::read(u64::from(entry.addr.0), AlignedBuf::new(1))).collect();
            for ((nid, entry), completion) in chunk.iter().zip(self.device.submit(requests).wait()) {
                let Ok(buf) = completion.into_buf() else { continue };
                let block = Box::new(*NodeBlock::read(buf.block(0)));
                if self.verify_node(*nid, entry.ino, entry.addr, &block).is_ok() {
                    self.store.insert(NodePage::new(block));
                }
            }
        }
    }

    fn verify_node(&self, nid: Nid, ino: Nid, addr: BlockAddr, block: &NodeBlock) -> Result<(), VolumeError> {
        let wrong = |what, expected: u64, found: u64| {
            Err(VolumeError::Corrupt(Corruption::Node { nid, addr, what, expected, found }))
        };
        if block.nid() != nid {
            return wrong("nid in the footer", nid.0.into(), block.nid().0.into());
        }
        if block.ino() != ino {
            return wrong("ino in the footer", ino.0.into(), block.ino().0.into());
        }
        if block.is_inode() && inode::has_checksum(block.inode(), self.features()) {
            let found = block.inode().extra().map_or(0, |extra| extra.i_inode_checksum.get());
            let expected = inode::checksum(block, self.checksum_seed);
            if found != expected {
                return wrong("inode checksum", expected.into(), found.into());
            }
        }
        Ok(())
    }

    /// Makes a node: takes a NID and a block, and puts a zeroed node with its footer into the cache.
    ///
    /// # Errors
    /// [`VolumeError::NoSpace`], [`VolumeError::NoNids`]; nothing is taken then.
    pub fn new_node(&self, op: &Op<'_>, new: NewNode) -> Result<Node, VolumeError> {
        self.space.take_node()?;
        let nid = match self.nat.allocate() {
            Ok(Some(nid)) => nid,
            Ok(None) => {
                self.space.give_node();
                return Err(VolumeError::NoNids { used: self.space.nodes(), limit: self.space.node_limit() });
            }
            Err(error) => {
                self.space.give_node();
                return Err(error.into());
            }
        };
        let ino = new.ino.unwrap_or(nid);
        if let Err(error) = self.nat.bind(nid, ino, BlockAddr::NEW) {
            self.nat.cancel(nid);
            self.space.give_node();
            return Err(error.into());
        }
        if new.ino.is_none() {
            self.space.add_inode();
        }
        let mut block = NodeBlock::new_box();
        block.footer.nid = nid.into();
        block.footer.ino = ino.into();
        block.footer.set_node_offset(new.offset);
        block.footer.set_mark(f2fs_format::node::mark::COLD, !new.directory);
        let node = Node { page: self.store.insert(NodePage::new(block)) };
        drop(node.write(op));
        Ok(node)
    }

    /// Frees a node: its NID and its block can be used again after the next checkpoint.
    ///
    /// # Errors
    /// [`VolumeError::Nat`], [`VolumeError::Segment`] if NAT or SIT say that it was free already.
    pub fn remove_node(&self, _op: &Op<'_>, node: &Node) -> Result<(), VolumeError> {
        let old = self.nat.free(node.nid())?;
        self.store.remove(&node.page);
        if node.nid() == node.ino() {
            self.space.drop_inode();
        }
        self.space.give_node();
        if old.addr.is_real() {
            self.segments.invalidate(old.addr, self.clock.now())?;
        }
        Ok(())
    }

    // ---- data blocks ----

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
        let requests = split_by_runs(&runs, data);
        let mut failed = None;
        for completion in self.device.submit(requests).wait() {
            if let Err(error) = completion.result {
                failed.get_or_insert(error);
            }
        }
        self.blocks_written.fetch_add(summaries.len() as u64, Ordering::Relaxed);
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

    // ---- orphans ----

    /// Records an inode without links that is still open. It is freed at the next open if this process ends before.
    ///
    /// # Errors
    /// [`VolumeError::TooManyOrphans`].
    pub fn add_orphan(&self, _op: &Op<'_>, ino: Nid) -> Result<(), VolumeError> {
        self.orphans.add(ino)
    }

    /// Forgets an orphan: it was freed, or got a link.
    pub fn remove_orphan(&self, _op: &Op<'_>, ino: Nid) -> bool {
        self.orphans.remove(ino)
    }

    /// The orphans, sorted.
    #[must_use]
    pub fn orphans(&self) -> Vec<Nid> {
        self.orphans.list()
    }

    // ---- life ----

    /// Makes a new, empty volume of the whole device. The same as [`format::format`](crate::format::format).
    ///
    /// # Errors
    /// As there.
    pub fn format(
        device: &dyn BlockDevice,
        options: &crate::format::FormatOptions,
    ) -> Result<crate::format::FormatReport, crate::format::FormatVolumeError> {
        crate::format::format(device, options)
    }

    /// Writes the last checkpoint of a volume that nothing lies on, marks the volume as cleanly closed, and refuses all
    /// further changes. Does nothing for a volume that was opened for reading.
    ///
    /// # Errors
    /// As [`checkpoint_with`](Self::checkpoint_with).
    pub fn close(&self) -> Result<(), VolumeError> {
        if !self.read_only {
            self.checkpoint(crate::Reason::Unmount)?;
            self.seal();
        }
        Ok(())
    }

    // ---- state ----

    /// What should be done before the next operation. Cheap; ask it before each one, with nothing locked.
    #[must_use]
    pub fn need(&self, hint: Nid) -> Need {
        if self.store.is_crowded(hint, self.dirty_limit) && self.store.dirty() > self.dirty_limit {
            return Need::Checkpoint;
        }
        // What is dirty must always fit into free segments, or the next checkpoint cannot be written.
        if self.segments.free_sections() > self.segments.floor(Class::User) + MARGIN {
            return Need::Nothing;
        }
        if self.segments.dirty_sections() > MARGIN || self.segments.prefree_segments() > 0 {
            return Need::Checkpoint;
        }
        if self.cleaning_may_help() { Need::Cleaning } else { Need::Nothing }
    }

    /// Free segments that a cleaning should aim at.
    #[must_use]
    pub fn cleaning_goal(&self) -> u32 {
        let floor = (self.segments.floor(Class::User) + 2 * MARGIN) * self.geometry.segs_per_sec;
        floor.max(self.segments.reserved_segments())
    }

    /// Whether a checkpoint or a cleaning would make room for an operation that found none.
    #[must_use]
    pub fn reclaim_may_help(&self) -> bool {
        self.segments.prefree_segments() > 0 || self.store.dirty() > 0 || self.cleaning_may_help()
    }

    fn cleaning_may_help(&self) -> bool {
        self.space.blocks() < self.futile.load(Ordering::Relaxed)
    }

    /// Counts directory blocks that wait for the checkpoint.
    pub fn add_dirty_dentries(&self, blocks: u64) {
        self.dirty_dentries.fetch_add(blocks, Ordering::Relaxed);
        self.update_pressure();
    }

    /// Counts directory blocks that were written.
    pub fn sub_dirty_dentries(&self, blocks: u64) {
        let _ = self
            .dirty_dentries
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| Some(count.saturating_sub(blocks)));
    }

    /// Tells the segment manager how many blocks the next checkpoint has to write.
    pub(crate) fn update_pressure(&self) {
        let nodes = self.store.dirty().min(u64::from(u32::MAX)) as u32;
        let dentries = self.dirty_dentries.load(Ordering::Relaxed).min(u64::from(u32::MAX)) as u32;
        self.segments.set_pressure(nodes, dentries);
    }

    /// Refuses all further changes: the volume was closed.
    pub fn seal(&self) {
        let _ = self.stopped.set("it was closed".into());
    }

    /// Counts and sizes, as `statfs` wants them, and more.
    #[must_use]
    pub fn stat(&self) -> VolumeStat {
        VolumeStat {
            user_blocks: self.space.block_limit(),
            valid_blocks: self.space.blocks(),
            max_nodes: self.space.node_limit(),
            valid_nodes: self.space.nodes(),
            valid_inodes: self.space.inodes(),
            free_segments: self.segments.free_segments(),
            prefree_segments: self.segments.prefree_segments(),
            dirty_nodes: self.store.dirty(),
            cached_nodes: self.store.len() as u64,
            free_nids: self.space.node_limit().saturating_sub(self.space.nodes()),
            data_blocks_written: self.blocks_written.load(Ordering::Relaxed),
        }
    }

    /// Seconds since the volume was first used, as segments' modification times count them.
    #[must_use]
    pub fn elapsed(&self) -> u64 {
        self.clock.now()
    }
}

/// One request a run. A single run takes the buffer as it is.
fn split_by_runs(runs: &[Run], data: AlignedBuf) -> Vec<Request> {
    if let [run] = runs {
        return vec![Request::vectored(DeviceOp::Write, u64::from(run.addr.0), vec![data])];
    }
    let mut rest = data.as_bytes();
    runs.iter()
        .map(|run| {
            let (part, tail) = rest.split_at((run.len as usize * f2fs_format::BLOCK_SIZE).min(rest.len()));
            rest = tail;
            Request::write(u64::from(run.addr.0), AlignedBuf::from_bytes(part))
        })
        .collect()
}

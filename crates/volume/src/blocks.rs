//! Moving blocks: contiguous ones become one request, many requests one batch.

use f2fs_device::{AlignedBuf, BlockDevice, DeviceError, Op, Request};
use f2fs_format::{BlockAddr, RawBlock};

/// Blocks in one request at most: a segment.
const MAX_REQUEST_BLOCKS: usize = 512;
/// Blocks in one batch at most: bounds the memory that a long read or write takes (16 MiB).
const MAX_BATCH_BLOCKS: usize = 4096;

/// Reads one block.
pub(crate) fn read_block(device: &dyn BlockDevice, addr: BlockAddr) -> Result<AlignedBuf, DeviceError> {
    device.read(u64::from(addr.0), 1)
}

/// Reads blocks anywhere, in the order of `addrs`, and hands each to `visit` with its index.
///
/// Neighbours in `addrs` that are neighbours on the device are read together.
pub(crate) fn read_each<E: From<DeviceError>>(
    device: &dyn BlockDevice,
    addrs: &[BlockAddr],
    mut visit: impl FnMut(usize, &RawBlock) -> Result<(), E>,
) -> Result<(), E> {
    let mut done = 0;
    for batch in addrs.chunks(MAX_BATCH_BLOCKS) {
        let requests =
            runs(batch).map(|(start, len)| Request::read(u64::from(start.0), AlignedBuf::new(len))).collect::<Vec<_>>();
        for ((_, len), completion) in runs(batch).zip(device.execute_all(requests)?) {
            let buf = completion.checked(len as u64).into_buf()?;
            for index in 0..buf.blocks() {
                visit(done, buf.block(index))?;
                done += 1;
            }
        }
    }
    Ok(())
}

/// Splits addresses into contiguous runs of at most [`MAX_REQUEST_BLOCKS`].
fn runs(addrs: &[BlockAddr]) -> impl Iterator<Item = (BlockAddr, usize)> + '_ {
    let mut rest = addrs;
    core::iter::from_fn(move || {
        let first = *rest.first()?;
        let len = rest
            .iter()
            .enumerate()
            .take(MAX_REQUEST_BLOCKS)
            .take_while(|(index, addr)| addr.0 == first.0.wrapping_add(*index as u32))
            .count();
        rest = &rest[len..];
        Some((first, len))
    })
}

/// Blocks on their way to the device. A pushed block may be written at any time from then on; [`finish`](Self::finish)
/// waits for all of it.
pub(crate) struct WriteBatch<'a> {
    device: &'a dyn BlockDevice,
    pending: Vec<(BlockAddr, AlignedBuf)>,
    /// Blocks in `pending`.
    waiting: usize,
    /// The first block that was pushed by itself.
    first: Option<BlockAddr>,
    requests: u64,
    blocks: u64,
    /// Whether the device is flushed before blocks are written.
    flushes: bool,
    /// Where zones may begin: no request goes on behind a block that is this one modulo a segment.
    edge: Option<u64>,
}

impl<'a> WriteBatch<'a> {
    pub(crate) fn new(device: &'a dyn BlockDevice) -> Self {
        WriteBatch {
            device,
            pending: Vec::new(),
            waiting: 0,
            first: None,
            requests: 0,
            blocks: 0,
            flushes: false,
            edge: None,
        }
    }

    /// No request goes from one segment of the main area into the next, which may be in another zone.
    pub(crate) fn within_segments(mut self, main: BlockAddr) -> Self {
        self.edge = Some(u64::from(main.0) % MAX_REQUEST_BLOCKS as u64);
        self
    }

    /// From now on blocks are written behind a flush of the device: whatever pushed blocks name is durable before them.
    pub(crate) fn follow_flushes(&mut self) {
        self.flushes = true;
    }

    /// Adds one block.
    pub(crate) fn push(&mut self, addr: BlockAddr, block: &RawBlock) -> Result<(), DeviceError> {
        self.first.get_or_insert(addr);
        self.add(addr, AlignedBuf::from_bytes(block))
    }

    /// The first block that was [pushed](Self::push), written or not.
    pub(crate) fn first(&self) -> Option<BlockAddr> {
        self.first
    }

    /// Adds a request that writes.
    pub(crate) fn push_request(&mut self, request: Request) -> Result<(), DeviceError> {
        let mut at = BlockAddr(request.start as u32);
        for buf in request.bufs {
            let next = at.offset(buf.blocks() as u32);
            self.add(at, buf)?;
            at = next;
        }
        Ok(())
    }

    fn is_edge(&self, block: u64) -> bool {
        self.edge.is_some_and(|edge| block % MAX_REQUEST_BLOCKS as u64 == edge)
    }

    fn add(&mut self, addr: BlockAddr, buf: AlignedBuf) -> Result<(), DeviceError> {
        self.waiting += buf.blocks();
        self.pending.push((addr, buf));
        if self.waiting >= MAX_BATCH_BLOCKS { self.write_out() } else { Ok(()) }
    }

    /// Writes what is left; returns requests and blocks written in all.
    pub(crate) fn finish(mut self) -> Result<(u64, u64), DeviceError> {
        self.write_out()?;
        Ok((self.requests, self.blocks))
    }

    /// Writes the pushed blocks, and waits for them.
    pub(crate) fn write_out(&mut self) -> Result<(), DeviceError> {
        if self.flushes && !self.pending.is_empty() {
            self.device.flush()?;
        }
        let mut pending = core::mem::take(&mut self.pending);
        self.blocks += core::mem::take(&mut self.waiting) as u64;
        if let [(addr, buf)] = &mut *pending {
            // Many syncs write one node: a device may do that without a request.
            self.requests += 1;
            return self.device.write_from(u64::from(addr.0), buf);
        }
        pending.sort_by_key(|(addr, _)| *addr);
        let mut requests: Vec<Request> = Vec::new();
        // Where the last of them ends, and its length.
        let (mut end, mut len) = (0, 0);
        for (addr, buf) in pending {
            let (start, blocks) = (u64::from(addr.0), buf.blocks());
            match requests.last_mut() {
                Some(last) if end == start && len + blocks <= MAX_REQUEST_BLOCKS && !self.is_edge(start) => {
                    last.bufs.push(buf);
                    len += blocks;
                }
                _ => {
                    requests.push(Request::vectored(Op::Write, start, vec![buf]));
                    len = blocks;
                }
            }
            end = start + blocks as u64;
        }
        self.requests += requests.len() as u64;
        if let [_] = &*requests {
            // Waiting for one request is less work than for a batch.
            return requests.pop().map_or(Ok(()), |request| self.device.execute(request).result);
        }
        self.device.execute_all(requests)?.into_iter().try_for_each(|completion| completion.result)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use f2fs_device::{DeviceErrorKind, MemoryDevice};
    use f2fs_device_test::{Fault, FaultDevice, FaultRule, TimingDevice};
    use f2fs_sync::PlainArc;

    use super::*;

    fn device() -> (PlainArc<MemoryDevice>, TimingDevice<PlainArc<MemoryDevice>>) {
        let memory = PlainArc::new(MemoryDevice::new(3 * MAX_BATCH_BLOCKS as u64));
        (memory.clone(), TimingDevice::new(memory, |_| 0.0))
    }

    fn block(addr: u32) -> RawBlock {
        let mut block = [0; 4096];
        block[..4].copy_from_slice(&addr.to_le_bytes());
        block
    }

    /// More than a batch, ascending and not.
    #[test]
    fn blocks_are_read_in_the_order_of_their_addresses() {
        let (memory, device) = device();
        for addr in 0..3 * MAX_BATCH_BLOCKS as u32 {
            memory.write_slice(addr.into(), &block(addr)).unwrap();
        }
        let ascending = 700..2 * MAX_BATCH_BLOCKS as u32 + 1000;
        let addrs: Vec<BlockAddr> = ascending.clone().chain(ascending.rev().step_by(3)).map(BlockAddr).collect();
        let mut seen = Vec::new();
        let visit = |index: usize, found: &RawBlock| -> Result<(), DeviceError> {
            assert!(*found == block(addrs[index].0), "{index}");
            seen.push(index);
            Ok(())
        };
        read_each(&device, &addrs, visit).unwrap();
        assert!(seen.into_iter().eq(0..addrs.len()));
    }

    /// In whatever order they are pushed: a request a run, of a segment at most, and none beyond where a zone may begin.
    #[test]
    fn pushed_blocks_that_are_neighbours_are_one_request() {
        // The main area begins 100 blocks behind the start of a segment.
        for (main, requests) in [(None, 3), (Some(BlockAddr(100)), 4)] {
            let (memory, device) = device();
            let mut batch = WriteBatch::new(&device);
            if let Some(main) = main {
                batch = batch.within_segments(main);
            }
            // A segment and a half, and a block elsewhere.
            let addrs: Vec<u32> = (1000..1000 + 768).chain([5000]).collect();
            addrs.iter().rev().for_each(|addr| batch.push(BlockAddr(*addr), &block(*addr)).unwrap());
            assert_eq!(batch.finish().unwrap(), (requests, 769), "{main:?}");
            assert_eq!(device.stat().writes.requests, requests);
            for addr in addrs {
                assert!(*memory.read(addr.into(), 1).unwrap().block(0) == block(addr), "{addr}");
            }
        }
    }

    /// Blocks are not taken for those of requests that were answered.
    #[test]
    fn blocks_that_nobody_answers_for_are_an_error() {
        let memory = PlainArc::new(MemoryDevice::new(100));
        let addrs: Vec<BlockAddr> = [3, 5, 9].map(BlockAddr).to_vec();
        for addr in &addrs {
            memory.write_slice(u64::from(addr.0), &block(addr.0)).unwrap();
        }
        for lost in 0..4 {
            let device = FaultDevice::new(memory.clone());
            device.arm(FaultRule::on_all().after(lost).fault(Fault::Unanswered));
            let read = read_each(&device, &addrs, |index, bytes| {
                assert_eq!(*bytes, block(addrs[index].0));
                Ok::<(), DeviceError>(())
            });
            match read {
                Ok(()) => assert_eq!(device.faults(), 0),
                Err(error) => assert_eq!((error.kind, device.faults()), (DeviceErrorKind::Lost, 1)),
            }
        }
    }

    /// Of a request with several buffers each goes on where the one before ended.
    #[test]
    fn a_request_of_several_buffers_is_written_as_a_whole() {
        let (memory, device) = device();
        let mut batch = WriteBatch::new(&device);
        assert_eq!(batch.first(), None);
        let buf = |first: u32, len: u32| {
            let mut buf = AlignedBuf::new(0);
            (first..first + len).for_each(|addr| buf.push(&block(addr)));
            buf
        };
        batch.push_request(Request::vectored(Op::Write, 40, vec![buf(40, 3), buf(43, 1), buf(44, 2)])).unwrap();
        assert_eq!(batch.first(), None, "none was pushed by itself");
        batch.push(BlockAddr(90), &block(90)).unwrap();
        batch.push(BlockAddr(80), &block(80)).unwrap();
        assert_eq!(batch.first(), Some(BlockAddr(90)));
        batch.write_out().unwrap();
        batch.push(BlockAddr(81), &block(81)).unwrap();
        assert_eq!(batch.first(), Some(BlockAddr(90)));
        assert_eq!(batch.finish().unwrap(), (4, 9));
        for addr in (40..46).chain([80, 81, 90]) {
            assert!(*memory.read(addr.into(), 1).unwrap().block(0) == block(addr), "{addr}");
        }
        assert_eq!(device.stat().writes.requests, 4);
    }

    /// What waits in front of a flush is durable before what is pushed behind it.
    #[test]
    fn a_batch_that_follows_flushes_has_one_for_each_write() {
        let memory = PlainArc::new(MemoryDevice::new(100));
        let device = FaultDevice::new(memory);
        let mut batch = WriteBatch::new(&device);
        batch.follow_flushes();
        batch.write_out().unwrap();
        assert_eq!(device.operations(), 0, "there is nothing to write");
        batch.push(BlockAddr(7), &block(7)).unwrap();
        batch.write_out().unwrap();
        assert_eq!(device.operations(), 2);
        device.arm(FaultRule::on([f2fs_device::Operation::Flush]));
        batch.push(BlockAddr(8), &block(8)).unwrap();
        assert!(batch.finish().is_err());
    }

    /// A run is a segment at most, and so is a request that is written.
    #[test]
    fn requests_are_no_longer_than_a_segment() {
        for (blocks, requests) in [(1, 1), (512, 1), (513, 2), (1024, 2), (1025, 3)] {
            let (_, device) = device();
            let mut batch = WriteBatch::new(&device);
            (0..blocks).for_each(|addr| batch.push(BlockAddr(addr), &block(addr)).unwrap());
            assert_eq!(batch.finish().unwrap(), (requests, blocks.into()));
            let addrs: Vec<BlockAddr> = (0..blocks).map(BlockAddr).collect();
            assert_eq!(runs(&addrs).count() as u64, requests);
        }
        // Segments of a main area that begins at block 100.
        for (first, requests) in [(500, 1), (600, 2), (612, 1)] {
            let (_, device) = device();
            let mut batch = WriteBatch::new(&device).within_segments(BlockAddr(100));
            (first..first + 30).for_each(|addr| batch.push(BlockAddr(addr), &block(addr)).unwrap());
            assert_eq!(batch.finish().unwrap(), (requests, 30), "{first}");
        }
    }
}

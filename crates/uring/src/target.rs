//! An open file or block device: its facts, its lock, its flush gate, and transfers by plain system calls.
//!
//! Locking rules: none of its own; [`FlushGate`] serialises flushes. All calls are positioned, so threads share the
//! descriptor.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use f2fs_device::{
    AlignedBuf, BLOCK_SIZE, DeviceError, DeviceErrorKind, DeviceInfo, FlushGate, Op, Operation, Request, Zone,
    ZoneChange, ZoneError,
};
use rustix::{
    fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, SeekFrom, StatxFlags},
    io::{Errno, IoSlice, IoSliceMut, ReadWriteFlags},
};

use crate::{
    Direct, OpenError, OpenOptions, below, discard,
    lock::until_free,
    progress::{Landing, Progress},
    sysfs, zones,
};

/// Vectors that one call takes (`IOV_MAX`).
pub(crate) const MAX_VECTORS: usize = 1024;

/// The file system whose direct transfers are copies all the same.
const TMPFS_MAGIC: i64 = 0x0102_1994;

#[derive(Debug)]
pub(crate) struct Target {
    fd: OwnedFd,
    /// The file below a loop device, locked.
    below: Option<OwnedFd>,
    info: DeviceInfo,
    block_device: bool,
    direct: bool,
    /// A ring would hand each request to a worker thread, only for a copy in memory.
    copies: bool,
    /// Queues look for completions themselves.
    polls: bool,
    /// The number of the block device.
    rdev: u64,
    gate: FlushGate,
}

impl Target {
    /// Creates a sparse file of `bytes` bytes that must not exist yet, and opens it.
    pub(crate) fn create(path: &Path, bytes: u64, options: OpenOptions) -> Result<Self, OpenError> {
        if bytes < BLOCK_SIZE as u64 {
            return Err(OpenError::TooSmall { path: path.into(), bytes });
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::from_raw_mode(0o666)).map_err(failed(path, "open"))?;
        rustix::fs::ftruncate(&fd, bytes).map_err(|error| {
            // It was made here a moment ago: O_EXCL says so.
            let _ = rustix::fs::unlink(path);
            failed(path, "ftruncate")(error)
        })?;
        Self::from_fd(path, fd, options)
    }

    pub(crate) fn open(path: &Path, options: OpenOptions) -> Result<Self, OpenError> {
        let stat = rustix::fs::stat(path).map_err(failed(path, "stat"))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if !kind.is_file() && !kind.is_block_device() {
            // Before the open, which would wait at a pipe.
            return Err(OpenError::NotADevice { path: path.into(), kind: kind_name(kind) });
        }
        if kind.is_block_device() && !options.read_only && sysfs::is_read_only(stat.st_rdev) {
            // Root may open it for writing all the same.
            return Err(OpenError::ReadOnly { path: path.into() });
        }
        // O_EXCL without O_CREAT claims a block device, against mounts too.
        let claim = if kind.is_block_device() && !options.read_only { OFlags::EXCL } else { OFlags::empty() };
        let access = if options.read_only { OFlags::RDONLY } else { OFlags::RDWR };
        let flags = access | claim | OFlags::CLOEXEC;
        let fd = until_free(path, ("open", Errno::BUSY), kind.is_block_device(), options.patience, || {
            rustix::fs::open(path, flags, Mode::empty())
        })?;
        Self::from_fd(path, fd, options)
    }

    fn from_fd(path: &Path, fd: OwnedFd, options: OpenOptions) -> Result<Self, OpenError> {
        let stat = rustix::fs::fstat(&fd).map_err(failed(path, "fstat"))?;
        let (block_device, bytes) = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => (false, stat.st_size.unsigned_abs()),
            FileType::BlockDevice => (true, rustix::fs::seek(&fd, SeekFrom::End(0)).map_err(failed(path, "lseek"))?),
            other => return Err(OpenError::NotADevice { path: path.into(), kind: kind_name(other) }),
        };
        if bytes < BLOCK_SIZE as u64 {
            return Err(OpenError::TooSmall { path: path.into(), bytes });
        }
        lock(path, &fd, options, block_device)?;
        if !block_device && !options.read_only {
            below::refuse_mounted(path)?;
        }
        let below = if block_device { below::lock(stat.st_rdev, options.read_only, options.patience)? } else { None };

        let mut info = DeviceInfo::new(bytes / BLOCK_SIZE as u64, "");
        info.read_only = options.read_only;
        if block_device {
            let zones = zones::limits(stat.st_rdev);
            info.zones = zones.map_err(|source| OpenError::Zones { path: path.into(), source })?;
        }
        let writes_zones = info.zones.is_some() && !options.read_only;
        let wanted = if writes_zones && options.direct == Direct::Off { Direct::Auto } else { options.direct };
        let direct = match go_direct(path, fd.as_fd(), wanted, block_device, &mut info) {
            Ok(()) => true,
            Err(reason) if options.direct == Direct::Required => {
                return Err(OpenError::DirectRefused { path: path.into(), reason });
            }
            Err(reason) => {
                info.description = format!("buffered: {reason}");
                false
            }
        };
        if direct {
            info.description = "O_DIRECT".into();
        }
        info.optimal_io =
            u32::try_from(stat.st_blksize).unwrap_or(0).next_multiple_of(BLOCK_SIZE as u32).max(BLOCK_SIZE as u32);
        info.supports_discard = !options.read_only && discard::supported(fd.as_fd(), block_device, stat.st_rdev, bytes);
        if info.zones.is_some() {
            info.supports_discard = false;
        }
        if writes_zones && !direct {
            // The page cache writes back in an order of its own.
            let reason = "zones are written in their order, which the page cache does not keep".into();
            return Err(OpenError::DirectRefused { path: path.into(), reason });
        }
        let copies = block_device && direct && is_copied_by_caller(fd.as_fd(), stat.st_rdev);
        let (polls, rdev) = (options.polling.completions, stat.st_rdev);
        Ok(Self { fd, below, info, block_device, direct, copies, polls, rdev, gate: FlushGate::new() })
    }

    /// Completes the description: `engine`, how the file was opened, `path`.
    pub(crate) fn describe(&mut self, engine: &str, path: &Path) {
        self.info.description = format!("{engine}, {}, {}", self.info.description, path.display());
    }

    pub(crate) fn info(&self) -> &DeviceInfo {
        &self.info
    }

    pub(crate) fn is_direct(&self) -> bool {
        self.direct
    }

    /// Whether the device is memory that the calling thread copies to and from by itself, so that a ring gains nothing.
    pub(crate) fn copies(&self) -> bool {
        self.copies
    }

    /// Whether the device has queues that are polled.
    pub(crate) fn can_poll(&self) -> bool {
        self.block_device && self.direct && sysfs::queue_limit(self.rdev, "io_poll") == Some(1)
    }

    /// The files that have to stay locked as long as there are requests; that of the device is the first.
    pub(crate) fn locked(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(&self.fd).chain(&self.below).map(AsFd::as_fd)
    }

    /// The file for plain reads, and for plain writes as long as they are admitted.
    pub(crate) fn file(&self, operation: Operation) -> Option<BorrowedFd<'_>> {
        let can = match operation {
            Operation::Read => true,
            // Zones want them in order.
            Operation::Write => self.info.zones.is_none() && self.admit_blocks(operation, 0, 0).is_ok(),
            _ => false,
        };
        can.then_some(self.fd.as_fd())
    }

    /// Checks a request against size, abilities and poison.
    pub(crate) fn admit(&self, request: &Request) -> Result<(), DeviceError> {
        if matches!(request.op, Op::Discard { .. }) {
            self.info.check(request)?;
        }
        self.admit_blocks(request.op.operation(), request.start, request.blocks())
    }

    /// Checks what a request does, without the request.
    #[inline]
    pub(crate) fn admit_blocks(&self, operation: Operation, start: u64, blocks: u64) -> Result<(), DeviceError> {
        self.info.check_operation(operation, start, blocks)?;
        if operation.changes() {
            self.gate.check().map_err(|kind| DeviceError::new(operation, start, blocks, kind))?;
        }
        Ok(())
    }

    /// Whether this request has to go through [`run`](Self::run) even where there is a ring: a discard of a block
    /// device is an ioctl, and a durable write to the page cache must share the flush gate, because its fsync might be
    /// the one that the kernel tells of another write's loss. A ring that is polled takes plain transfers only.
    pub(crate) fn needs_syscalls(&self, op: Op) -> bool {
        match op {
            Op::Read | Op::Write => false,
            Op::WriteFua => !self.direct || self.polls,
            Op::Discard { .. } => self.block_device || self.polls,
        }
    }

    pub(crate) fn flush(&self) -> Result<(), DeviceError> {
        if self.info.read_only {
            return Ok(());
        }
        self.gate.flush(|| match rustix::fs::fdatasync(&self.fd) {
            Ok(()) => Ok(()),
            Err(errno) => Err(DeviceErrorKind::from_errno(errno.raw_os_error())),
        })
    }

    pub(crate) fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        let Some(limits) = self.info.zones else { return Ok(Vec::new()) };
        let failed = |kind| DeviceError::new(Operation::ReportZones, start, 0, kind);
        zones::report(self.fd.as_fd(), limits, self.info.blocks, start, count).map_err(failed)
    }

    pub(crate) fn change_zone(&self, start: u64, change: ZoneChange) -> Result<(), DeviceError> {
        self.admit_blocks(Operation::ChangeZone, start, 0)?;
        let failed = |kind| DeviceError::new(Operation::ChangeZone, start, 0, kind);
        let zone = self.report_zones(start, 1)?.pop().ok_or_else(|| failed(DeviceErrorKind::Unsupported))?;
        if zone.start != start {
            return Err(failed(ZoneError::NotAStart { zone: zone.number, start: zone.start }.into()));
        }
        zones::change(self.fd.as_fd(), start, zone.blocks, change).map_err(failed)
    }

    /// Turns the reason why an admitted request failed into its error; a durable write's failure poisons the device.
    pub(crate) fn failed(&self, request: &Request, kind: DeviceErrorKind) -> DeviceError {
        let kind = self.explain(request.start, request.blocks(), kind);
        if request.op == Op::WriteFua {
            self.gate.poison(&kind);
        }
        request.error(kind)
    }

    /// The reason why an admitted request to these blocks failed, in better words where the block device became smaller
    /// meanwhile: the kernel then tells a writer that there is no space left, and a reader that the file ended.
    #[cold]
    pub(crate) fn explain(&self, start: u64, blocks: u64, kind: DeviceErrorKind) -> DeviceErrorKind {
        if !self.block_device {
            return kind;
        }
        match rustix::fs::seek(&self.fd, SeekFrom::End(0)).map(|bytes| bytes / BLOCK_SIZE as u64) {
            Ok(now) if start + blocks > now => DeviceErrorKind::Shrunk { blocks: now, opened: self.info.blocks },
            _ => kind,
        }
    }

    /// Runs an admitted request by system calls.
    pub(crate) fn run(&self, request: &mut Request) -> Result<(), DeviceError> {
        self.transfer_all(request).map_err(|kind| self.failed(request, kind))?;
        if request.op == Op::WriteFua && !self.direct {
            self.flush().map_err(|error| request.error(error.kind))?;
        }
        Ok(())
    }

    fn transfer_all(&self, request: &mut Request) -> Result<(), DeviceErrorKind> {
        if let Op::Discard { blocks } = request.op {
            let block = BLOCK_SIZE as u64;
            return discard::run(self.fd.as_fd(), self.block_device, request.start * block, blocks * block);
        }
        let offset = request.start * BLOCK_SIZE as u64;
        match (request.op, &mut request.bufs[..]) {
            (Op::Read, [buf]) => self.read_bytes(offset, buf.as_bytes_mut()),
            (Op::Write, [buf]) => self.write_bytes(offset, buf.as_bytes()),
            _ => complete(request.blocks() as usize * BLOCK_SIZE, |done| self.transfer(request, done)),
        }
    }

    /// Reads whole blocks within the device from byte `offset` on, by as many system calls as it takes; usually one.
    #[inline]
    pub(crate) fn read_bytes(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceErrorKind> {
        let len = bytes.len();
        complete(len, |done| rustix::io::pread(&self.fd, &mut bytes[done..], offset + done as u64))
    }

    /// Writes whole blocks, in the same way.
    #[inline]
    pub(crate) fn write_bytes(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceErrorKind> {
        complete(bytes.len(), |done| rustix::io::pwrite(&self.fd, &bytes[done..], offset + done as u64))
    }

    /// One system call for the rest of the request after `done` bytes.
    fn transfer(&self, request: &mut Request, done: usize) -> rustix::io::Result<usize> {
        let offset = request.start * BLOCK_SIZE as u64 + done as u64;
        match (request.op, &mut request.bufs[..]) {
            (Op::Read, bufs) => {
                let rests = bufs.iter_mut().scan(done, |skip, buf| Some(rest_mut(buf, skip)));
                let mut vectors: Vec<_> =
                    rests.filter(|rest| !rest.is_empty()).take(MAX_VECTORS).map(IoSliceMut::new).collect();
                rustix::io::preadv(&self.fd, &mut vectors, offset)
            }
            (op, bufs) => {
                let durable = op == Op::WriteFua && self.direct;
                let rests = bufs.iter().scan(done, |skip, buf| Some(rest(buf, skip)));
                let vectors: Vec<_> =
                    rests.filter(|rest| !rest.is_empty()).take(MAX_VECTORS).map(IoSlice::new).collect();
                self.write_vectors(&vectors, offset, durable)
            }
        }
    }

    fn write_vectors(&self, vectors: &[IoSlice<'_>], offset: u64, durable: bool) -> rustix::io::Result<usize> {
        if durable {
            rustix::io::pwritev2(&self.fd, vectors, offset, ReadWriteFlags::DSYNC)
        } else {
            rustix::io::pwritev(&self.fd, vectors, offset)
        }
    }
}

/// Transfers `len` bytes by calls that are told how many of them are done.
#[inline]
fn complete(len: usize, mut call: impl FnMut(usize) -> rustix::io::Result<usize>) -> Result<(), DeviceErrorKind> {
    let mut progress = Progress::of(len);
    if len == 0 {
        return Ok(());
    }
    loop {
        let answer = call(progress.done() as usize).map_err(Errno::raw_os_error);
        if let Landing::Finished(result) = progress.land(answer) {
            return result;
        }
    }
}

/// The rest of `buf` after `skip` bytes, which are counted down.
fn rest<'b>(buf: &'b AlignedBuf, skip: &mut usize) -> &'b [u8] {
    let skipped = (*skip).min(buf.len());
    *skip -= skipped;
    &buf.as_bytes()[skipped..]
}

/// The same to write to.
fn rest_mut<'b>(buf: &'b mut AlignedBuf, skip: &mut usize) -> &'b mut [u8] {
    let skipped = (*skip).min(buf.len());
    *skip -= skipped;
    &mut buf.as_bytes_mut()[skipped..]
}

impl Drop for Target {
    fn drop(&mut self) {
        // The kernel may hold a reference to the file for a while after a ring is closed; the lock must not live as
        // long.
        for fd in self.locked() {
            let _ = rustix::fs::flock(fd, FlockOperation::Unlock);
        }
    }
}

/// Whether the device is persistent memory and takes no request on the condition that nobody waits. Then `io_uring` has
/// worker threads copy, one request after the other, and two changes of threads cost more than the copy.
fn is_copied_by_caller(fd: BorrowedFd<'_>, rdev: u64) -> bool {
    let mut block = AlignedBuf::new(1);
    let mut vectors = [IoSliceMut::new(block.as_bytes_mut())];
    sysfs::queue_limit(rdev, "dax") == Some(1)
        && rustix::io::preadv2(fd, &mut vectors, 0, ReadWriteFlags::NOWAIT) == Err(Errno::OPNOTSUPP)
}

fn failed(path: &Path, call: &'static str) -> impl Fn(Errno) -> OpenError {
    let path = PathBuf::from(path);
    move |errno| OpenError::Io { path: path.clone(), call, source: errno.into() }
}

fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "directory",
        FileType::CharacterDevice => "character device",
        FileType::Fifo => "pipe",
        FileType::Socket => "socket",
        _ => "special file",
    }
}

/// Takes the lock that lets in one writer or many readers, in this process and others.
fn lock(path: &Path, fd: &OwnedFd, options: OpenOptions, block_device: bool) -> Result<(), OpenError> {
    let operation = match options.read_only {
        true => FlockOperation::NonBlockingLockShared,
        false => FlockOperation::NonBlockingLockExclusive,
    };
    until_free(path, ("flock", Errno::WOULDBLOCK), block_device, options.patience, || rustix::fs::flock(fd, operation))
}

/// Switches to direct transfers and enters the alignment in `info`, or says why not.
fn go_direct(
    path: &Path,
    fd: BorrowedFd<'_>,
    direct: Direct,
    block_device: bool,
    info: &mut DeviceInfo,
) -> Result<(), String> {
    let sector = if block_device { rustix::fs::ioctl_blksszget(fd).ok() } else { None };
    info.logical_sector = sector.unwrap_or(info.logical_sector);
    if direct == Direct::Off {
        return Err("as asked".into());
    }
    if !block_device && rustix::fs::fstatfs(fd).is_ok_and(|fs| fs.f_type == TMPFS_MAGIC) {
        return Err("tmpfs has no direct transfers".into());
    }
    // statx says more than BLKSSZGET: the memory alignment too, and 0 for "not on this file".
    let (memory, offset) = match rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) {
        Ok(statx) if StatxFlags::from_bits_retain(statx.stx_mask).contains(StatxFlags::DIOALIGN) => {
            (statx.stx_dio_mem_align, statx.stx_dio_offset_align)
        }
        _ => (sector.unwrap_or(BLOCK_SIZE as u32), sector.unwrap_or(BLOCK_SIZE as u32)),
    };
    if memory == 0 || offset == 0 {
        return Err("the file system has no direct transfers for this file".into());
    }
    if memory > BLOCK_SIZE as u32 || offset > BLOCK_SIZE as u32 {
        return Err(format!("direct transfers need an alignment of {memory} (memory) and {offset} (offset) bytes"));
    }
    let flags = rustix::fs::fcntl_getfl(fd).map_err(|errno| format!("F_GETFL: {errno}"))?;
    rustix::fs::fcntl_setfl(fd, flags | OFlags::DIRECT).map_err(|errno| format!("O_DIRECT: {errno}"))?;
    // A file system may take the flag and refuse the transfer.
    let mut block = AlignedBuf::new(1);
    if let Err(errno) = rustix::io::pread(fd, block.as_bytes_mut(), 0) {
        if errno != Errno::INVAL {
            return Err(format!("reading {}: {errno}", path.display()));
        }
        rustix::fs::fcntl_setfl(fd, flags).map_err(|errno| format!("F_SETFL: {errno}"))?;
        return Err("the file system takes O_DIRECT but refuses the transfer".into());
    }
    info.dma_alignment = memory;
    if sector.is_none() {
        info.logical_sector = offset;
    }
    Ok(())
}

//! The `io_uring` back end of f2fs for regular files and block devices.
//!
//! [`UringDevice`] is a [`BlockDevice`](f2fs_device::BlockDevice): it opens a file or block device with `O_DIRECT`,
//! locks it against other writers, and carries requests through `io_uring`, or through `preadv` and `pwritev` where
//! rings are forbidden. `info().description` says which, and why.
//!
//! ```
//! use f2fs_device::{AlignedBuf, BlockDevice, Request};
//! use f2fs_uring::{OpenOptions, UringDevice};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("image");
//! let device = UringDevice::create(&path, 64 << 20, OpenOptions::new())?;
//! println!("{}", device.info().description); // such as: io_uring, O_DIRECT, /path/image
//!
//! // One batch, one entry into the kernel.
//! let batch = (0..64).map(|i| Request::write(i, AlignedBuf::from_bytes(&[i as u8]))).collect();
//! for completion in device.submit(batch).wait() {
//!     completion.result?;
//! }
//! device.flush()?;
//! assert_eq!(device.read(63, 1)?.as_bytes()[0], 63);
//! # Ok(())
//! # }
//! ```
//!
//! # How requests travel
//!
//! | Call | Ring | Kernel entries |
//! |---|---|---|
//! | `execute`, `read_into`, `write`, ... | none: `pread`, `pwrite`, `RWF_DSYNC` | 1 |
//! | `submit`, then a ticket | the thread's slot | 1 for the batch, 1 for each wait that has to sleep |
//! | `queue(depth)` | one of its own, which the thread keeps for its next queue | 1 for each round of completions |
//! | `flush` | none: `fdatasync`, shared by threads that wait for one | 1 |
//! | discard of a block device | none: `BLKDISCARD` | 1 |
//!
//! *Single requests.* A thread that waits for the one request it makes gains nothing from a ring: it enters the kernel
//! once either way, and the ring adds work to complete it. Where a device cannot take requests without waiting,
//! `io_uring` hands each to a worker thread, which costs two changes of threads and, when processors are busy, waits
//! for the scheduler: in an emulated machine a read of 4 KiB of persistent memory took 115 us through a ring and 12 us
//! as a call. Persistent memory is such a device, and a transfer is a copy there, so there batches and queues are calls
//! too (unless [`Engine::IoUring`] is asked for).
//!
//! *Slots.* A thread that submits batches uses the ring of its slot, one of 64, each made when it is first used.
//! Threads share a ring only when there are more threads than slots. There is no thread of our own: a waiting thread
//! takes completions for all threads on that ring, and hands that duty on when it leaves
//! ([`Handover`](f2fs_device::Handover)).
//!
//! *Ownership.* A request's buffers are in the ring's table until the kernel is done with them; a ticket holds only
//! names. Dropping a ticket leaves the request to itself. Dropping the last of device, tickets and queues waits for the
//! requests in flight. A request whose ticket was dropped may be held (finished, or its rest after a short transfer)
//! until its slot is used again or the device is dropped.
//!
//! *Short transfers* are continued where they stopped; where nothing more comes (the file was truncated) the error is
//! [`ShortTransfer`](f2fs_device::DeviceErrorKind::ShortTransfer). Requests that the kernel gives back untried
//! (`EINTR`, `EAGAIN`, and `ECANCELED` after the exit of the thread that submitted it) is submitted again.
//!
//! *Refused rings.* Whether rings can be entered is tried when a device is opened. Where the kernel refuses that later,
//! because the process put on a filter of system calls (`seccomp`) after the open, or closed the ring's descriptor
//! behind the back of this crate, that ring is never entered again:
//!
//! | A request that is then | goes on |
//! |---|---|
//! | new, or not yet taken by the kernel | by system calls |
//! | taken by the kernel, of a batch | as before: its completion comes by itself, and is waited for 10 s |
//! | taken by the kernel, of a queue | for 1 s, in which the device can finish it; nobody can ask whether it did |
//! | a read without a completion until then | by system calls, to other memory |
//! | a write or discard without one | as the error [`Unanswered`](f2fs_device::DeviceErrorKind::Unanswered), which poisons the device if the write was a durable one |
//!
//! The kernel may still use the memory of a request without a completion, so it is never used again, nor freed; the
//! request comes back with other memory of the same size. Errors of entering that pass (`EINTR`, `EAGAIN`, `EBUSY`,
//! `ENOMEM`) are no refusal. `info().description` goes on to say how the device was opened.
//!
//! *NVMe commands.* [`NvmeDevice`] has the same rings with larger entries, which carry commands of NVMe
//! (`IORING_OP_URING_CMD`), and an ioctl for one command at a time. [`open()`] takes it for the character device of a
//! namespace, such as `/dev/ng0n1`, and [`UringDevice`] for the rest.
//!
//! *Durability.* A flush is `fdatasync`; flushes of a device never overlap, because the kernel tells only one of two
//! overlapping ones of a lost write. A durable write is `RWF_DSYNC`, or, through the page cache, a write and a flush. A
//! failed flush or durable write poisons the device.
//!
//! *Registered memory.* Each ring has the file registered. Registered buffers pay for large transfers only (below), and
//! only a queue has them: [`IoQueue::buffers`](f2fs_device::IoQueue::buffers) gives buffers that it need not pin for
//! each transfer, as far as `RLIMIT_MEMLOCK` allows, and plain ones beyond.
//!
//! # Measured
//!
//! Against fio on the same file in alternating rounds: `cargo run --release -p f2fs-uring --example device_vs_fio`. AMD
//! EPYC, 2 CPUs (shared with other work, load average 10, hence the spread), Linux 6.18.44, ext4 on virtio, fio-3.33
//! `--direct=1` (`--ioengine=psync` beside calls, `io_uring` beside queues), 7 rounds of 1 s (calls: 7 to 9 rounds of
//! 0.5 s); medians, and the least and greatest ratio of a round.
//!
//! | Workload | Depth | fio | this crate | ratio (spread) | processor time a request, fio / ours |
//! |---|---|---|---|---|---|
//! | read 2 MiB, sequential, calls | 1 | 738 MB/s | 856 MB/s | 108 % (96..133) | 192 / 199 us |
//! | read 2 MiB, sequential, queue | 8 | 1096 MB/s | 1143 MB/s | 104 % (83..111) | 129 / 127 us |
//! | write 2 MiB, sequential, calls | 1 | 2922 MB/s | 3477 MB/s | 99 % (61..170) | 132 / 122 us |
//! | write 2 MiB, sequential, queue | 8 | 2060 MB/s | 2144 MB/s | 105 % (99..111) | 132 / 80 us |
//! | read 4 KiB, random, calls | 1 | 10888 /s | 10012 /s | 96 % (88..110) | 20.5 / 19.7 us |
//! | write 4 KiB, random, calls | 1 | 11740 /s | 12983 /s | 102 % (68..156) | 21.3 / 20.6 us |
//! | read 4 KiB, random, queue | 32 | 49574 /s | 50978 /s | 104 % (95..110) | 5.2 / 4.0 us |
//! | write 4 KiB, random, queue | 32 | 30336 /s | 29387 /s | 100 % (49..152) | 7.9 / 7.4 us |
//! | write 2 MiB, sequential, queue's own buffers | 8 | 2160 MB/s | 2603 MB/s | 114 % (107..123) | 124 / 40 us |
//! | read 2 MiB, sequential, queue's own buffers | 8 | 1040 MB/s | 1124 MB/s | 109 % (101..111) | 125 / 47 us |
//! | read 4 KiB, random, queue's own buffers | 32 | 49027 /s | 51250 /s | 108 % (89..111) | 5.3 / 3.7 us |
//!
//! So registering saves 60 % of the processor time of a 2 MiB transfer (pinning 512 pages) and hardly anything of a 4
//! KiB one; fio with and without `--fixedbufs` shows the same. Not measured: fast NVMe devices, and more than two
//! processors.
//!
//! # Locks between openers
//!
//! One writer or many readers, across processes and within one: `flock` on the open file, and `O_EXCL` on block devices
//! that are opened for writing, which also keeps out mounts. (Tools that take no lock, such as mkfs.f2fs on a file, are
//! not kept out.) A lock that udev holds on a block device for a moment is waited for, half a second at most. Who lives
//! and has the file open is named by [`OpenError::AlreadyOpen`], at once.
//!
//! *After a crash.* The kernel finishes the requests of a process that died after the process is gone, and takes its
//! rings down some time later. The lock is that long: a lock that ended with the process would let the next one write
//! while the last writes of the dead are still on their way. So [`UringDevice::open`] waits for the dead, as long as
//! [`OpenOptions::patience`] says. Measured by `tests/died.rs` (a process killed with 128 and more writes of 64 KiB in
//! flight, 100 times in a row; 2 processors shared with other work, Linux 6.18.44, ext4 on virtio): median 51 ms, p90
//! 85 ms, at most 193 ms on a file; 57, 87 and 383 ms on a loop device on it.
//!
//! *What an embedder must know.* The lock is on the inode, so other names of a file (links of both kinds) make no
//! difference. A child that was forked without an `exec` has its parent's open file, and keeps the lock when the parent
//! dies. A loop device locks the file below it as well, so that the two have one writer, and a file that is mounted by
//! way of one is refused ([`OpenError::Mounted`]); one that is mounted later is not seen, nor a loop device on a part of
//! the file beside another one on the same part. Not kept apart are two readers, or a reader and a writer, of a disk and
//! its partition; two writers of these are, by the claim of `O_EXCL`. In another PID namespace processes cannot be told
//! dead from alive, so that one that lives is waited for as well. Within a process a volume claims the [`UringDevice`]
//! that it is opened on ([`BlockDevice::claims`](f2fs_device::BlockDevice::claims)), so that a device given to two
//! volumes is refused to the second.
//!
//! # After a fork
//!
//! A child that was forked must not use, nor drop, a device that was opened before, nor a volume or file system on one.
//! Its rings are not mapped in the child: a batch or a queue ends it with SIGSEGV. A lock that another thread held at
//! the fork is never released there. And two processes that write to one volume damage it. So the child calls `exec` or
//! `_exit`, as [`Command`](std::process::Command) does, or opens something else (the rings that its thread has kept are not used there). The file's lock stays as long as the
//! child has the file open (above); `exec` closes it.
//!
//! # Alignment
//!
//! Asked of `statx` (`STATX_DIOALIGN`, Linux 6.1), else of `BLKSSZGET`. All transfers are whole blocks of 4096 bytes to
//! memory aligned to 4096, so anything up to that suits. Where a file system refuses `O_DIRECT`, or merely pretends
//! (tmpfs), transfers go through the page cache.
//!
//! # Locking model
//!
//! | Lock | Protects | Held during |
//! |---|---|---|
//! | a slot's handover | its table of requests, the user side of its ring | entering requests and taking completions; a kernel entry only to continue short transfers; transfers only of requests that a refused ring left |
//! | a queue's pool | the registered memory that is at home | taking or bringing back one buffer |
//! | the flush gate | poison and the turn to flush | bookkeeping; taken inside a handover when a durable write failed |
//!
//! # Unsafe code
//!
//! This crate is an unsafe leaf: pushing entries that point into memory (`table.rs`), the shared view of a ring's
//! queues (`table.rs`), a raw kernel entry (`ring.rs`), ioctls (`discard.rs`, `zones.rs`, `nvme/command.rs`), commands
//! on memory of a request (`nvme/namespace.rs`), registering buffers (`pool.rs`), and `Send` for the vectors of a
//! request (`flight.rs`). Each says why it is sound; they rest on one rule: a request stays in its table from before
//! its entry is pushed until its completion was seen, or it was taken back from a queue that the kernel never looks at
//! again, or its memory was given up for good.

mod below;
mod carrier;
mod device;
mod discard;
mod door;
mod entries;
mod flight;
mod lock;
mod nvme;
mod options;
mod pool;
mod progress;
mod queue;
#[cfg(test)]
mod rehearsal;
mod ring;
mod slot;
mod spare;
mod sysfs;
mod table;
mod target;
mod thread_ring;
mod traffic;
mod twice;
mod zones;

pub use device::UringDevice;
pub use lock::Holder;
pub use nvme::{NvmeDevice, open};
use options::Polling;
pub use options::{Direct, Engine, OpenError, OpenOptions};
pub use twice::each_once;

/// The example of this crate's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

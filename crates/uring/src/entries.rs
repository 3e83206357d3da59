//! The entries of a file or block device on a ring.

use std::cell::Cell;
use std::os::fd::{AsRawFd, RawFd};
use std::thread::LocalKey;

use f2fs_device::{BLOCK_SIZE, DeviceError, DeviceErrorKind, Op, Request};
use io_uring::{cqueue, opcode, squeue, types};

use crate::carrier::Carrier;
use crate::flight::{Flight, Memory};
use crate::spare::Kept;
use crate::{discard, progress::Landing, target::Target};

/// Bytes that one entry asks for at most: below the kernel's limit for one transfer (2 GiB less a page).
const MAX_BYTES: usize = 1 << 30;

/// The file of the device, the first that each ring has registered.
const FILE: types::Fixed = types::Fixed(0);

/// `RWF_DSYNC` of `<linux/fs.h>`.
const RWF_DSYNC: i32 = 2;

thread_local! {
    /// The ring of the thread's last queue, idle and without a file.
    static SPARE: Kept<squeue::Entry, cqueue::Entry> = const { Cell::new(None) };
}

impl Carrier for Target {
    type Entry = squeue::Entry;
    type Answer = cqueue::Entry;
    const OPERATIONS: &'static [u8] = &[
        opcode::Read::CODE,
        opcode::Write::CODE,
        opcode::Readv::CODE,
        opcode::Writev::CODE,
        opcode::ReadFixed::CODE,
        opcode::WriteFixed::CODE,
        opcode::Fallocate::CODE,
    ];

    fn files(&self) -> Vec<RawFd> {
        self.locked().map(|fd| fd.as_raw_fd()).collect()
    }

    fn admit(&self, request: &Request) -> Result<(), DeviceError> {
        Target::admit(self, request)
    }

    fn needs_call(&self, op: Op) -> bool {
        self.needs_syscalls(op)
    }

    fn run(&self, request: &mut Request) -> Result<(), DeviceError> {
        Target::run(self, request)
    }

    fn failed(&self, request: &Request, kind: DeviceErrorKind) -> DeviceError {
        Target::failed(self, request, kind)
    }

    fn entry(&self, flight: &mut Flight) -> squeue::Entry {
        let (op, start) = (flight.request().op, flight.request().start);
        let offset = start * BLOCK_SIZE as u64 + flight.done();
        if let Op::Discard { .. } = op {
            let mode = discard::PUNCH.bits() as i32;
            return opcode::Fallocate::new(FILE, flight.expected()).offset(offset).mode(mode).build();
        }
        let flags = if op == Op::WriteFua { RWF_DSYNC } else { 0 };
        match (flight.memory(MAX_BYTES), op) {
            (Memory::One { base, len, registered: Some(index) }, Op::Read) => {
                opcode::ReadFixed::new(FILE, base, len as u32, index).offset(offset).build()
            }
            (Memory::One { base, len, registered: Some(index) }, _) => {
                opcode::WriteFixed::new(FILE, base, len as u32, index).offset(offset).rw_flags(flags).build()
            }
            (Memory::One { base, len, registered: None }, Op::Read) => {
                opcode::Read::new(FILE, base, len as u32).offset(offset).build()
            }
            (Memory::One { base, len, registered: None }, _) => {
                opcode::Write::new(FILE, base, len as u32).offset(offset).rw_flags(flags).build()
            }
            (Memory::Many { vectors, count, .. }, Op::Read) => {
                opcode::Readv::new(FILE, vectors.cast(), count as u32).offset(offset).build()
            }
            (Memory::Many { vectors, count, .. }, _) => {
                opcode::Writev::new(FILE, vectors.cast(), count as u32).offset(offset).rw_flags(flags).build()
            }
        }
    }

    fn land(&self, flight: &mut Flight, result: i32) -> Landing {
        flight.land(usize::try_from(result).map_err(|_| -result))
    }

    fn spare() -> &'static LocalKey<Kept<squeue::Entry, cqueue::Entry>> {
        &SPARE
    }
}

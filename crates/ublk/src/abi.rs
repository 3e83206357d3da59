//! The structures and numbers of the kernel's ublk interface, as far as this crate uses them.
//!
//! Source: the kernel's `include/uapi/linux/ublk_cmd.h` and `blkzoned.h`, Linux 6.12 and 7.3. All integers are of the machine's
//! own byte order, all structures without gaps.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Sectors of 512 bytes, the kernel's unit, in a block.
pub(crate) const SECTORS: u64 = 8;

/// The number of a command as `_IOR('u', number, SIZE)` makes it.
const fn ior(number: u32, size: usize) -> u32 {
    2 << 30 | (size as u32) << 16 | (b'u' as u32) << 8 | number
}

/// The number of a command as `_IOWR('u', number, SIZE)` makes it.
const fn iowr(number: u32, size: usize) -> u32 {
    3 << 30 | (size as u32) << 16 | (b'u' as u32) << 8 | number
}

/// Commands to `/dev/ublk-control`.
pub(crate) mod control {
    use super::{ControlCommand, ior, iowr};

    const SIZE: usize = size_of::<ControlCommand>();
    pub(crate) const ADD_DEV: u32 = iowr(0x04, SIZE);
    pub(crate) const DEL_DEV: u32 = iowr(0x05, SIZE);
    pub(crate) const START_DEV: u32 = iowr(0x06, SIZE);
    pub(crate) const STOP_DEV: u32 = iowr(0x07, SIZE);
    pub(crate) const SET_PARAMS: u32 = iowr(0x08, SIZE);
    pub(crate) const GET_PARAMS: u32 = ior(0x09, SIZE);
    pub(crate) const START_USER_RECOVERY: u32 = iowr(0x10, SIZE);
    pub(crate) const END_USER_RECOVERY: u32 = iowr(0x11, SIZE);
    /// As `GET_DEV_INFO`, and asks who may know by the path of the character device.
    pub(crate) const GET_DEV_INFO2: u32 = ior(0x12, SIZE);
    pub(crate) const GET_FEATURES: u32 = ior(0x13, SIZE);
}

/// Commands to `/dev/ublkcN`.
pub(crate) mod io {
    use super::{IoCommand, iowr};

    const SIZE: usize = size_of::<IoCommand>();
    /// A tag is ready for its first request.
    pub(crate) const FETCH: u32 = iowr(0x20, SIZE);
    /// The request of a tag is over, and it is ready for the next one.
    pub(crate) const COMMIT_AND_FETCH: u32 = iowr(0x21, SIZE);
    /// The pages of a tag's request become a buffer of the ring.
    pub(crate) const REGISTER_BUFFER: u32 = iowr(0x23, SIZE);
    /// They are none any more.
    pub(crate) const UNREGISTER_BUFFER: u32 = iowr(0x24, SIZE);
}

/// Bits of [`DeviceRecord::flags`].
pub(crate) mod feature {
    pub(crate) const SUPPORT_ZERO_COPY: u64 = 1 << 0;
    pub(crate) const USER_RECOVERY: u64 = 1 << 3;
    pub(crate) const USER_RECOVERY_REISSUE: u64 = 1 << 4;
    pub(crate) const UNPRIVILEGED_DEV: u64 = 1 << 5;
    pub(crate) const USER_COPY: u64 = 1 << 7;
    pub(crate) const ZONED: u64 = 1 << 8;
    pub(crate) const AUTO_BUF_REG: u64 = 1 << 11;

    /// All features by their bits, as the kernel's documentation names them in small letters.
    pub(crate) const NAMES: [&str; 20] = [
        "zero-copy",
        "completion-in-task",
        "need-get-data",
        "user-recovery",
        "user-recovery-reissue",
        "unprivileged",
        "ioctl-encode",
        "user-copy",
        "zoned",
        "user-recovery-fail-io",
        "update-size",
        "auto-buf-reg",
        "quiesce",
        "per-io-daemon",
        "buf-reg-off-daemon",
        "batch-io",
        "integrity",
        "safe-stop-dev",
        "no-auto-part-scan",
        "shmem-zc",
    ];
}

/// Values of [`DeviceRecord::state`].
pub(crate) mod state {
    pub(crate) const DEAD: u16 = 0;
    pub(crate) const LIVE: u16 = 1;
    pub(crate) const QUIESCED: u16 = 2;
    pub(crate) const FAIL_IO: u16 = 3;
}

/// The operations in the low eight bits of [`Descriptor::op_flags`].
pub(crate) mod op {
    pub(crate) const READ: u32 = 0;
    pub(crate) const WRITE: u32 = 1;
    pub(crate) const FLUSH: u32 = 2;
    pub(crate) const DISCARD: u32 = 3;
    pub(crate) const WRITE_ZEROES: u32 = 5;
    pub(crate) const ZONE_OPEN: u32 = 10;
    pub(crate) const ZONE_CLOSE: u32 = 11;
    pub(crate) const ZONE_FINISH: u32 = 12;
    pub(crate) const ZONE_APPEND: u32 = 13;
    pub(crate) const ZONE_RESET_ALL: u32 = 14;
    pub(crate) const ZONE_RESET: u32 = 15;
    pub(crate) const REPORT_ZONES: u32 = 18;
    /// A flag: the data are durable when the request completes.
    pub(crate) const FUA: u32 = 1 << 13;
    /// A flag: the driver could not register the pages of the request by itself.
    pub(crate) const NEED_REG_BUF: u32 = 1 << 17;
}

/// Error numbers that the kernel turns into states of a request.
pub(crate) mod errno {
    pub(crate) const EIO: i32 = 5;
    pub(crate) const ENODEV: i32 = 19;
    pub(crate) const EINVAL: i32 = 22;
    pub(crate) const EROFS: i32 = 30;
    pub(crate) const EOVERFLOW: i32 = 75;
    pub(crate) const EOPNOTSUPP: i32 = 95;
    pub(crate) const ETOOMANYREFS: i32 = 109;
}

/// `struct ublksrv_ctrl_cmd`: a command to the driver.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct ControlCommand {
    pub(crate) device: u32,
    /// Always [`NO_QUEUE`](Self::NO_QUEUE) here.
    pub(crate) queue: u16,
    /// Bytes at `address`.
    pub(crate) length: u16,
    pub(crate) address: u64,
    pub(crate) data: u64,
    /// So many of these bytes are the path of the character device; the command's own memory follows.
    pub(crate) path_length: u16,
    pub(crate) pad: u16,
    pub(crate) reserved: u32,
}

impl ControlCommand {
    /// The command is about no queue.
    pub(crate) const NO_QUEUE: u16 = u16::MAX;
    /// The driver is to choose the number.
    pub(crate) const ANY_DEVICE: u32 = u32::MAX;
}

/// `struct ublksrv_ctrl_dev_info`: a device as the driver has it.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct DeviceRecord {
    pub(crate) queues: u16,
    pub(crate) depth: u16,
    pub(crate) state: u16,
    pub(crate) pad0: u16,
    /// The longest transfer (bytes).
    pub(crate) max_io_bytes: u32,
    pub(crate) number: u32,
    pub(crate) server: i32,
    pub(crate) pad1: u32,
    pub(crate) flags: u64,
    /// The server's own; the driver keeps them, and has no use for them.
    pub(crate) server_flags: u64,
    pub(crate) owner_uid: u32,
    pub(crate) owner_gid: u32,
    pub(crate) reserved: [u64; 2],
}

/// `struct ublk_params` as far as zones: the limits of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Parameters {
    pub(crate) length: u32,
    /// Which of the parts below mean something.
    pub(crate) types: u32,
    pub(crate) attributes: u32,
    pub(crate) logical_shift: u8,
    pub(crate) physical_shift: u8,
    pub(crate) optimal_shift: u8,
    pub(crate) minimal_shift: u8,
    pub(crate) max_sectors: u32,
    /// Sectors of a zone.
    pub(crate) chunk_sectors: u32,
    pub(crate) sectors: u64,
    pub(crate) virtual_boundary: u64,
    pub(crate) discard_alignment: u32,
    pub(crate) discard_granularity: u32,
    pub(crate) max_discard_sectors: u32,
    pub(crate) max_zeroes_sectors: u32,
    pub(crate) max_discard_segments: u16,
    pub(crate) discard_reserved: u16,
    /// Major and minor numbers of both devices, set by the driver.
    pub(crate) numbers: [u32; 4],
    pub(crate) max_open_zones: u32,
    pub(crate) max_active_zones: u32,
    pub(crate) max_append_sectors: u32,
    pub(crate) zoned_reserved: [u8; 20],
    pub(crate) pad: u32,
}

/// Bits of [`Parameters::types`].
pub(crate) mod part {
    pub(crate) const BASIC: u32 = 1 << 0;
    pub(crate) const DISCARD: u32 = 1 << 1;
    pub(crate) const ZONED: u32 = 1 << 3;
}

/// Bits of [`Parameters::attributes`].
pub(crate) mod attribute {
    pub(crate) const READ_ONLY: u32 = 1 << 0;
    pub(crate) const VOLATILE_CACHE: u32 = 1 << 2;
    pub(crate) const FUA: u32 = 1 << 3;
}

/// `struct ublksrv_io_desc`: a request, in memory that the driver writes and the server reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Descriptor {
    /// The operation in the low eight bits, and flags.
    pub(crate) op_flags: u32,
    /// Sectors, or zones of a report.
    pub(crate) count: u32,
    pub(crate) start_sector: u64,
    pub(crate) address: u64,
}

/// `struct ublksrv_io_cmd`: the server's message to the driver about a tag.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct IoCommand {
    pub(crate) queue: u16,
    pub(crate) tag: u16,
    pub(crate) result: i32,
    /// The memory for the tag's next request; the sector that an append went to where data move by user copy; the place
    /// among the ring's buffers where one is registered.
    pub(crate) address: u64,
}

/// The address in an entry, not in its [`IoCommand`], by which a device with `AUTO_BUF_REG` is told where among the ring's
/// buffers the pages of the tag's next request are to be. If that fails, the request comes all the same, and says so.
pub(crate) fn registration(index: u16) -> u64 {
    const FALLBACK: u64 = 1 << 16;
    u64::from(index) | FALLBACK
}

/// `struct blk_zone`: a zone in a report, in sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct ZoneRecord {
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) write_pointer: u64,
    pub(crate) kind: u8,
    pub(crate) condition: u8,
    pub(crate) non_sequential: u8,
    pub(crate) reset: u8,
    pub(crate) reserved0: [u8; 4],
    pub(crate) capacity: u64,
    pub(crate) reserved1: [u8; 24],
}

/// The most requests that a queue may have at a time.
pub(crate) const MAX_DEPTH: u16 = 4096;

/// Bytes from the descriptors of one queue to those of the next in the mapping of `/dev/ublkcN`.
pub(crate) const DESCRIPTORS_STRIDE: u64 = (MAX_DEPTH as u64 * size_of::<Descriptor>() as u64).next_multiple_of(4096);

/// Where in `/dev/ublkcN` the data of a request are read and written.
pub(crate) fn data_offset(queue: u16, tag: u16) -> u64 {
    0x8000_0000 + (u64::from(queue) << 41) + (u64::from(tag) << 25)
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn sizes_and_offsets_are_the_kernels() {
        assert_eq!(size_of::<ControlCommand>(), 32);
        assert_eq!(size_of::<DeviceRecord>(), 64);
        assert_eq!(offset_of!(DeviceRecord, flags), 24);
        assert_eq!(size_of::<Descriptor>(), 24);
        assert_eq!(size_of::<IoCommand>(), 16);
        assert_eq!(size_of::<ZoneRecord>(), 64);
        assert_eq!(offset_of!(ZoneRecord, capacity), 32);
        assert_eq!(size_of::<Parameters>(), 112);
        let offsets = [
            offset_of!(Parameters, attributes),
            offset_of!(Parameters, sectors),
            offset_of!(Parameters, discard_alignment),
            offset_of!(Parameters, numbers),
            offset_of!(Parameters, max_open_zones),
        ];
        assert_eq!(offsets, [8, 24, 40, 60, 76]);
    }

    #[test]
    fn numbers_are_the_kernels() {
        assert_eq!(control::ADD_DEV, 0xc020_7504);
        assert_eq!(control::GET_FEATURES, 0x8020_7513);
        assert_eq!(io::FETCH, 0xc010_7520);
        assert_eq!(io::COMMIT_AND_FETCH, 0xc010_7521);
        assert_eq!([io::REGISTER_BUFFER, io::UNREGISTER_BUFFER], [0xc010_7523, 0xc010_7524]);
        assert_eq!(registration(7), 0x1_0007);
        assert_eq!(DESCRIPTORS_STRIDE, 98_304);
        assert_eq!(data_offset(1, 2), 0x8000_0000 + (1 << 41) + (2 << 25));
    }
}

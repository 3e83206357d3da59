//! Domain types: numbers that must not be mixed up.

use core::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as it stands on disk.
            #[must_use]
            pub const fn get(self) -> u32 {
                self.0
            }

            /// The number as an index.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl From<zerocopy::little_endian::U32> for $name {
            fn from(raw: zerocopy::little_endian::U32) -> Self {
                $name(raw.get())
            }
        }

        impl From<$name> for zerocopy::little_endian::U32 {
            fn from(value: $name) -> Self {
                zerocopy::little_endian::U32::new(value.0)
            }
        }
    };
}

number! {
    /// A node identifier. An inode's number is its NID. 0 is "none"; 1 and 2 are reserved (node and meta inodes),
    /// 3 is the root directory.
    Nid
}

number! {
    /// The address of a 4 KiB block, counted from the start of the device.
    BlockAddr
}

number! {
    /// The number of a segment of the main area, counted from the first one there.
    SegmentNo
}

impl Nid {
    /// "No node".
    pub const NULL: Nid = Nid(0);
    /// The inode number under which the kernel keeps its node pages.
    pub const NODE: Nid = Nid(1);
    /// The inode number under which the kernel keeps its meta pages.
    pub const META: Nid = Nid(2);
    /// The root directory's usual number.
    pub const ROOT: Nid = Nid(3);

    /// Whether this is "no node".
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }
}

impl BlockAddr {
    /// "No block": a hole.
    pub const NULL: BlockAddr = BlockAddr(0);
    /// Reserved, but not written yet (`NEW_ADDR`): reads as zeros.
    pub const NEW: BlockAddr = BlockAddr(u32::MAX);
    /// The head of a compressed cluster (`COMPRESS_ADDR`).
    pub const COMPRESS: BlockAddr = BlockAddr(u32::MAX - 1);

    /// Whether this is a hole.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// Whether a block of the device is meant: not a hole, a reservation or a cluster head.
    #[must_use]
    pub const fn is_real(self) -> bool {
        self.0 != 0 && self.0 < u32::MAX - 1
    }

    /// The address `count` blocks further on.
    #[must_use]
    pub const fn offset(self, count: u32) -> BlockAddr {
        BlockAddr(self.0.wrapping_add(count))
    }
}

impl SegmentNo {
    /// "No segment" (`NULL_SEGNO`).
    pub const NULL: SegmentNo = SegmentNo(u32::MAX);
}

/// The six persistent logs, numbered as in the SIT's type field and in `alloc_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum LogType {
    /// Directory blocks.
    HotData = 0,
    /// File data.
    WarmData = 1,
    /// Data that is rarely changed: moved by the cleaner, or by hint.
    ColdData = 2,
    /// Direct nodes (inodes included) of directories.
    HotNode = 3,
    /// Direct nodes (inodes included) of everything else: the log that roll-forward follows.
    WarmNode = 4,
    /// Indirect nodes.
    ColdNode = 5,
}

impl LogType {
    /// All logs, in the order of their numbers.
    pub const ALL: [LogType; 6] = [
        LogType::HotData,
        LogType::WarmData,
        LogType::ColdData,
        LogType::HotNode,
        LogType::WarmNode,
        LogType::ColdNode,
    ];

    /// The log with this number; `None` above 5.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<LogType> {
        match number {
            0 => Some(LogType::HotData),
            1 => Some(LogType::WarmData),
            2 => Some(LogType::ColdData),
            3 => Some(LogType::HotNode),
            4 => Some(LogType::WarmNode),
            5 => Some(LogType::ColdNode),
            _ => None,
        }
    }

    /// The number as it stands on disk.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether node blocks go to this log.
    #[must_use]
    pub const fn is_node(self) -> bool {
        (self as u8) >= 3
    }

    /// The name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LogType::HotData => "hot data",
            LogType::WarmData => "warm data",
            LogType::ColdData => "cold data",
            LogType::HotNode => "hot node",
            LogType::WarmNode => "warm node",
            LogType::ColdNode => "cold node",
        }
    }
}

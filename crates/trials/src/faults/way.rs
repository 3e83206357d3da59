//! The ways in which a device fails.

use f2fs_device::{Fault, FaultRule};

const ENOSPC: i32 = 28;
/// How many blocks further a misdirected write goes.
const ASTRAY: i64 = 1031;

/// A way to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// `EIO`, once.
    Once,
    /// `EIO` from then on.
    ForGood,
    /// A transfer that stops after its first block; of a single block, with the block written.
    Short,
    /// `ENOSPC`, once.
    NoSpace,
    /// A flush that is not done, and claims success.
    FlushLost,
    /// A write that goes somewhere else, and claims success.
    Misdirected,
    /// A read with a wrong bit, which claims success.
    Flipped,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 7] =
        [Way::Once, Way::ForGood, Way::Short, Way::NoSpace, Way::FlushLost, Way::Misdirected, Way::Flipped];

    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Way::Once => "EIO once",
            Way::ForGood => "EIO for good",
            Way::Short => "short transfer",
            Way::NoSpace => "ENOSPC",
            Way::FlushLost => "flush lost",
            Way::Misdirected => "misdirected write",
            Way::Flipped => "flipped bit on read",
        }
    }

    /// Whether the device says that it failed.
    pub(super) fn is_honest(self) -> bool {
        matches!(self, Way::Once | Way::ForGood | Way::Short | Way::NoSpace)
    }

    /// Fails at number `index` of the requests that can fail so.
    pub(super) fn rule(self, index: u64) -> FaultRule {
        use f2fs_device::Operation::{Flush, Read, Write, WriteFua};
        let all = FaultRule::on_all().after(index);
        match self {
            Way::Once => all,
            Way::ForGood => all.for_good(),
            Way::Short => all.fault(Fault::Short(1)),
            Way::NoSpace => all.fault(Fault::Error(ENOSPC)),
            Way::FlushLost => FaultRule::on([Flush]).after(index).fault(Fault::Lost),
            Way::Misdirected => FaultRule::on([Write, WriteFua]).after(index).fault(Fault::Misdirected(ASTRAY)),
            Way::Flipped => FaultRule::on([Read]).after(index).fault(Fault::Flipped(index.wrapping_mul(7919))),
        }
    }
}

//! The ways in which a device fails.

use std::any::Any;
use std::panic;

use f2fs_device_test::{Fault, FaultRule};
use f2fs_sync::Arc;

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
    /// A device that panics, once.
    Panic,
    /// A flush that is not done, and claims success.
    FlushLost,
    /// A write that goes somewhere else, and claims success.
    Misdirected,
    /// A read with a wrong bit, which claims success.
    Flipped,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 8] =
        [Way::Once, Way::ForGood, Way::Short, Way::NoSpace, Way::Panic, Way::FlushLost, Way::Misdirected, Way::Flipped];

    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Way::Once => "EIO once",
            Way::ForGood => "EIO for good",
            Way::Short => "short transfer",
            Way::NoSpace => "ENOSPC",
            Way::Panic => "panic",
            Way::FlushLost => "flush lost",
            Way::Misdirected => "misdirected write",
            Way::Flipped => "flipped bit on read",
        }
    }

    /// Whether the device says that it failed, by an error or a panic.
    pub(super) fn is_honest(self) -> bool {
        matches!(self, Way::Once | Way::ForGood | Way::Short | Way::NoSpace | Way::Panic)
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
            Way::Panic => all.fault(Fault::Panic),
            Way::FlushLost => FaultRule::on([Flush]).after(index).fault(Fault::Lost),
            Way::Misdirected => FaultRule::on([Write, WriteFua]).after(index).fault(Fault::Misdirected(ASTRAY)),
            Way::Flipped => FaultRule::on([Read]).after(index).fault(Fault::Flipped(index.wrapping_mul(7919))),
        }
    }
}

/// Whether it is the panic of [`Way::Panic`].
pub(super) fn is_of_device(panic: &(dyn Any + Send)) -> bool {
    panic.downcast_ref::<String>().is_some_and(|text| text.starts_with("the device panics"))
}

/// Does something during which panics of devices, thousands of them, print nothing.
pub(super) fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let before: Arc<dyn Fn(&panic::PanicHookInfo<'_>) + Send + Sync> = panic::take_hook().into();
    let say = before.clone();
    panic::set_hook(Box::new(move |info| {
        if !is_of_device(info.payload()) {
            say(info);
        }
    }));
    let result = work();
    panic::set_hook(Box::new(move |info| before(info)));
    result
}

//! Zones that wear out, or die, when they are written to.
//!
//! Locking rules: `left` > `worn`. `left` counts changes, and is held while the zone below wears out.

use f2fs_device::{
    BlockDevice, Claims, Completion, DeviceError, DeviceInfo, KeptZones, Request, Ticket, Zone, ZoneChange, ZoneState,
};
use f2fs_sync::Mutex;

/// A device with zones, of which one wears out or dies at a chosen change: in the moment when it is to be written,
/// reset or finished. The change is refused, as each later one of this zone is. It stays so when the zones are opened
/// again.
#[derive(Debug)]
pub struct WearingZones<D> {
    zones: KeptZones<D>,
    /// Changes of zones that pass before, and the state that the zone of the next one gets.
    left: Mutex<Option<(u64, ZoneState)>>,
    worn: Mutex<Option<u32>>,
}

impl<D: BlockDevice> WearingZones<D> {
    /// After so many changes of zones, the zone of the next one becomes [`ReadOnly`](ZoneState::ReadOnly) or
    /// [`Offline`](ZoneState::Offline); another state stands for the latter.
    #[must_use]
    pub fn new(zones: KeptZones<D>, after: u64, state: ZoneState) -> Self {
        Self { zones, left: Mutex::new(Some((after, state))), worn: Mutex::new(None) }
    }

    /// The number of the zone that is worn out or dead, if it has come to that.
    #[must_use]
    pub fn worn(&self) -> Option<u32> {
        *self.worn.lock()
    }

    /// A change in the zone of a block.
    fn changes(&self, block: u64) {
        let number = match self.zones.report_zones(block, 1).unwrap_or_default()[..] {
            [zone] if zone.state != ZoneState::Conventional => zone.number,
            _ => return,
        };
        let mut left = self.left.lock();
        match &mut *left {
            Some((0, state)) => {
                // A zone that cannot be is an offline one already, and the change is refused all the same.
                let _ = match state {
                    ZoneState::ReadOnly => self.zones.wear_out(number),
                    _ => self.zones.take_offline(number),
                };
                *left = None;
                *self.worn.lock() = Some(number);
            }
            Some((after, _)) => *after -= 1,
            None => {}
        }
    }
}

impl<D: BlockDevice> BlockDevice for WearingZones<D> {
    fn info(&self) -> &DeviceInfo {
        self.zones.info()
    }

    fn claims(&self) -> &Claims {
        self.zones.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        Ticket::ready(requests.into_iter().map(|request| self.execute(request)).collect())
    }

    fn execute(&self, request: Request) -> Completion {
        if request.op.operation().changes() && request.blocks() > 0 {
            self.changes(request.start);
        }
        self.zones.execute(request)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.zones.flush()
    }

    fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        self.zones.report_zones(start, count)
    }

    fn change_zone(&self, start: u64, change: ZoneChange) -> Result<(), DeviceError> {
        self.changes(start);
        self.zones.change_zone(start, change)
    }
}

#[cfg(test)]
mod tests {
    use f2fs_device::{MemoryDevice, ZoneLayout};

    use super::*;

    #[test]
    fn the_zone_of_the_chosen_change_is_worn_out_for_good() {
        let layout = ZoneLayout::new(16).with_conventional(1);
        for state in [ZoneState::ReadOnly, ZoneState::Offline] {
            let zones = KeptZones::create(MemoryDevice::new(100), layout).unwrap();
            let device = WearingZones::new(zones, 2, state);
            device.write_slice(3, b"conventional").unwrap();
            device.write_slice(16, b"first").unwrap();
            device.write_slice(32, b"second").unwrap();
            device.write_slice(17, b"third").unwrap_err();
            device.change_zone(16, ZoneChange::Reset).unwrap_err();
            device.write_slice(33, b"fourth").unwrap();
            device.flush().unwrap();
            assert_eq!(device.worn(), Some(1));
            assert_eq!(device.report_zones(16, 1).unwrap()[0].state, state);
            assert_eq!(device.read(16, 1).is_ok(), state == ZoneState::ReadOnly);
        }
    }
}

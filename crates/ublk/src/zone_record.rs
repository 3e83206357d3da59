//! A zone as the kernel reports it.

use f2fs_device::{Zone, ZoneState};

use crate::abi::{SECTORS, ZoneRecord};

const CONVENTIONAL: u8 = 1;
const SEQUENTIAL: u8 = 2;

/// The record of a zone. Where the write pointer means nothing it is as `null_blk` has it: at the end of a full zone,
/// at the start of an offline one, and for a conventional zone behind its start by all of it.
pub(crate) fn record(zone: &Zone) -> ZoneRecord {
    let condition = match zone.state {
        ZoneState::Conventional => 0x0,
        ZoneState::Empty => 0x1,
        ZoneState::ImplicitlyOpen => 0x2,
        ZoneState::ExplicitlyOpen => 0x3,
        ZoneState::Closed => 0x4,
        ZoneState::ReadOnly => 0xd,
        ZoneState::Full => 0xe,
        ZoneState::Offline => 0xf,
    };
    let pointer = match zone.state {
        ZoneState::Full | ZoneState::Conventional => zone.start + zone.blocks,
        ZoneState::Offline => zone.start,
        _ => zone.write_pointer().unwrap_or(zone.start),
    };
    ZoneRecord {
        start: zone.start * SECTORS,
        length: zone.blocks * SECTORS,
        write_pointer: pointer * SECTORS,
        kind: if zone.state == ZoneState::Conventional { CONVENTIONAL } else { SEQUENTIAL },
        condition,
        capacity: zone.capacity * SECTORS,
        ..ZoneRecord::default()
    }
}

#[cfg(test)]
mod tests {
    use f2fs_device::{BlockDevice, MemoryDevice, ZoneLayout, ZonedDevice};

    use super::*;

    #[test]
    fn all_states() {
        let layout = ZoneLayout::new(16).with_capacity(12).with_conventional(1);
        let device = ZonedDevice::new(MemoryDevice::new(128), layout).unwrap();
        device.write_slice(32, b"x").unwrap();
        device.open(3).unwrap();
        device.write_slice(64, b"x").unwrap();
        device.close(4).unwrap();
        device.finish(5).unwrap();
        device.wear_out(6).unwrap();
        device.take_offline(7).unwrap();
        let zones: Vec<_> = device.report().map(|zone| record(&zone)).collect();
        let conditions: Vec<u8> = zones.iter().map(|zone| zone.condition).collect();
        assert_eq!(conditions, [0, 1, 2, 3, 4, 14, 13, 15]);
        assert_eq!((zones[0].kind, zones[0].capacity), (CONVENTIONAL, 128));
        assert_eq!((zones[2].start, zones[2].length, zones[2].write_pointer), (256, 128, 264));
        assert_eq!((zones[2].kind, zones[2].capacity, zones[5].write_pointer), (SEQUENTIAL, 96, 768));
    }
}

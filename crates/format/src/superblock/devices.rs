//! The devices of a volume that lies on several.
//!
//! ```text
//!  block     0        segment0_blkaddr                      first of 1           first of 2
//!            |               |  total_segments of device 0       |  total_segments of 1  |  ...
//!  device 0  [ superblocks   | segments ........................ ]
//!  device 1                                                      [ segments ............ ]
//! ```
//!
//! Source: `f2fs_scan_devices` in `fs/f2fs/super.c`.

use alloc::vec::Vec;

use super::{Device, SuperBlock};
use crate::{BLOCKS_PER_SEGMENT, Corruption};

/// Devices of a volume at most.
pub const MAX_DEVICES: usize = 8;
/// Bytes of a device's path at most; a zero follows.
pub const MAX_PATH: usize = 63;

/// A device of a volume that lies on several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeDevice {
    /// Where it was when the volume was made: a hint, not a fact.
    pub path: Vec<u8>,
    /// Blocks of it that belong to the volume.
    pub blocks: u64,
}

impl Device {
    /// An entry of the superblock.
    #[must_use]
    pub fn new(path: &[u8], segments: u32) -> Device {
        let mut entry = Device { path: [0; 64], total_segments: segments.into() };
        let bytes = path.len().min(MAX_PATH);
        entry.path[..bytes].copy_from_slice(&path[..bytes]);
        entry
    }
}

impl SuperBlock {
    /// The devices of the volume, in the order of their blocks; empty if it lies on one device.
    ///
    /// # Errors
    /// [`Corruption::Range`] for a device without segments, or if all of them together are smaller than the volume.
    pub fn devices(&self) -> Result<Vec<VolumeDevice>, Corruption> {
        let segment = u64::from(BLOCKS_PER_SEGMENT);
        let mut devices = Vec::new();
        let mut segments = 0;
        for entry in self.devs.iter().take_while(|entry| entry.path[0] != 0) {
            let own = u64::from(entry.total_segments.get());
            Corruption::check_range("superblock segments of a device", own, 1, u64::from(u32::MAX) / segment)?;
            segments += own;
            let front = if devices.is_empty() { u64::from(self.segment0_blkaddr.get()) } else { 0 };
            let path = entry.path.iter().copied().take_while(|byte| *byte != 0).collect();
            devices.push(VolumeDevice { path, blocks: front + own * segment });
        }
        if !devices.is_empty() {
            let least = self.segment_count.get().into();
            Corruption::check_range("superblock segments of all devices", segments, least, u64::MAX)?;
        }
        Ok(devices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_follow_each_other() {
        let mut sb = SuperBlock::ZERO;
        assert_eq!(sb.devices(), Ok(Vec::new()));
        (sb.segment0_blkaddr, sb.segment_count) = (512.into(), 7.into());
        sb.devs[0] = Device::new(b"/dev/a", 3);
        sb.devs[1] = Device::new(&[b'x'; 70], 4);
        // Behind an empty entry nothing counts.
        sb.devs[3] = Device::new(b"/dev/d", 9);
        let devices = sb.devices().unwrap();
        assert_eq!(devices[0], VolumeDevice { path: b"/dev/a".to_vec(), blocks: 512 + 3 * 512 });
        assert_eq!(devices[1], VolumeDevice { path: [b'x'; 63].to_vec(), blocks: 4 * 512 });
        assert_eq!(devices.len(), 2);
    }

    #[test]
    fn devices_that_cannot_be() {
        let mut sb = SuperBlock::ZERO;
        sb.segment_count = 8.into();
        sb.devs[0] = Device::new(b"a", 3);
        sb.devs[1] = Device::new(b"b", 4);
        assert!(matches!(sb.devices(), Err(Corruption::Range { found: 7, min: 8, .. })));
        for segments in [0, u32::MAX] {
            sb.devs[1].total_segments = segments.into();
            assert!(matches!(sb.devices(), Err(Corruption::Range { found, .. }) if found == u64::from(segments)));
        }
    }
}

//! The number of a device file.

/// Major and minor number of a device file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceNumber {
    /// The driver.
    pub major: u32,
    /// The device.
    pub minor: u32,
}

impl DeviceNumber {
    /// The largest numbers that an inode holds: 12 bits of the driver, 20 of the device.
    pub const MAX: DeviceNumber = DeviceNumber { major: 0xfff, minor: 0xf_ffff };

    /// As the second address word of a device inode holds it (`new_encode_dev`).
    pub(crate) fn encode(self) -> u32 {
        self.minor & 0xff | self.major << 8 | (self.minor & !0xff) << 12
    }

    /// From the two address words: the first is the old 16-bit form, used when it is not zero.
    pub(crate) fn decode(old: u32, new: u32) -> DeviceNumber {
        if old == 0 {
            DeviceNumber { major: new >> 8 & 0xfff, minor: new & 0xff | new >> 12 & 0xfff00 }
        } else {
            DeviceNumber { major: old >> 8 & 0xff, minor: old & 0xff }
        }
    }

    /// Whether an inode can hold it.
    pub(crate) fn fits(self) -> bool {
        self.major <= Self::MAX.major && self.minor <= Self::MAX.minor
    }

    /// Whether the old form can hold it (`old_valid_dev`).
    pub(crate) fn is_old(self) -> bool {
        self.major < 256 && self.minor < 256
    }
}

//! `f2fs zones`, and how zones are written.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use f2fs::device::ZoneLayout;
use f2fs::format::BLOCK_BYTES;

use crate::size::Size;

#[derive(Debug, Args)]
pub(crate) struct ZonesArgs {
    /// Make the file: SIZE:ZONE[:CAPACITY][,conventional=N][,open=N][,active=N].
    ///
    /// SIZE is that of the file, ZONE that of a zone, CAPACITY the part of a zone that can be written. `conventional`
    /// zones at the front take writes anywhere. At most `open` zones are open and `active` zones active at a time.
    #[arg(long, value_name = "ZONES")]
    pub(crate) make: Option<Zones>,
    /// Print JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
    /// File with zones, or zoned block device.
    pub(crate) image: PathBuf,
}

/// How many zones of which sizes (bytes), as `SIZE:ZONE[:CAPACITY][,conventional=N][,open=N][,active=N]` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Zones {
    pub(crate) size: u64,
    pub(crate) zone: u64,
    pub(crate) capacity: u64,
    pub(crate) conventional: u32,
    pub(crate) open: u32,
    pub(crate) active: u32,
}

impl Zones {
    /// The layout of the device.
    pub(crate) fn layout(&self) -> ZoneLayout {
        ZoneLayout::new(self.zone / BLOCK_BYTES)
            .with_capacity(self.capacity / BLOCK_BYTES)
            .with_conventional(self.conventional)
            .with_limits(self.open, self.active)
    }
}

impl FromStr for Zones {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let sizes = parts.next().unwrap_or_default().split(':').map(|size| Ok(size.parse::<Size>()?.0));
        let sizes: Vec<u64> = sizes.collect::<Result<_, String>>()?;
        let (size, zone, capacity) = match sizes[..] {
            [size, zone] => (size, zone, zone),
            [size, zone, capacity] => (size, zone, capacity),
            _ => return Err("zones are written as SIZE:ZONE or SIZE:ZONE:CAPACITY".into()),
        };
        if sizes.iter().any(|bytes| !bytes.is_multiple_of(BLOCK_BYTES)) {
            return Err("sizes of zones are multiples of 4096 bytes".into());
        }
        let mut zones = Self { size, zone, capacity, conventional: 0, open: 0, active: 0 };
        for part in parts {
            let (name, number) = part.split_once('=').ok_or_else(|| format!("{part:?} is not NAME=N"))?;
            let number = number.parse().map_err(|_| format!("{number:?} is not a number"))?;
            match name {
                "conventional" => zones.conventional = number,
                "open" => zones.open = number,
                "active" => zones.active = number,
                _ => return Err(format!("{name:?} is not one of conventional, open, active")),
            }
        }
        Ok(zones)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_read() {
        let zones: Zones = "4G:64M:48M,conventional=2,open=8".parse().unwrap();
        let expected = Zones { size: 4 << 30, zone: 64 << 20, capacity: 48 << 20, conventional: 2, open: 8, active: 0 };
        assert_eq!(zones, expected);
        assert_eq!("1G:1M".parse::<Zones>().unwrap().capacity, 1 << 20);
        for wrong in ["", "4G", "4G:1:1:1", "4G:5000", "4G:64M,open", "4G:64M,open=x", "4G:64M,shut=1"] {
            assert!(wrong.parse::<Zones>().is_err(), "{wrong}");
        }
    }
}

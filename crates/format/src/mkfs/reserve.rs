//! The part of the main area that is kept from users: the cleaner's reserve, and the overprovision.

use super::areas::Areas;

/// The share of the main area that is kept back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reserve {
    /// Percentage.
    pub(super) percent: f64,
    /// Segments for the cleaner.
    pub(super) reserved: u32,
    /// Segments that users cannot fill, those included.
    pub(super) overprovision: u32,
}

impl Reserve {
    /// `None` if nothing would be left for users.
    pub(super) fn new(areas: &Areas, percent: Option<f64>) -> Option<Reserve> {
        let percent = match percent {
            Some(percent) => percent,
            None => best_percent(areas)?,
        };
        // Conversions to integers cut off, as in C.
        let reserved = reserved(areas, percent) as u64;
        if areas.main().checked_sub(6)? < reserved {
            return None;
        }
        // Zones may hold less than the main area has segments.
        let rest = areas.usable().checked_sub(reserved)?;
        let overprovision = (rest as f64 * percent / 100.0) as u64 + reserved;
        if areas.writable_main() <= overprovision {
            return None;
        }
        Some(Reserve { percent, reserved: reserved as u32, overprovision: overprovision as u32 })
    }
}

/// Segments that the cleaner needs at this percentage: at `p` percent it may have to read 100 / p segments to free one.
fn reserved(areas: &Areas, percent: f64) -> f64 {
    // More than the segments of a section when the device ends with a part of a zone.
    let per_section = areas.usable().div_ceil(areas.sections);
    (2.0 * (100.0 / percent + 1.0) + 6.0) * per_section as f64
}

/// The percentage that leaves users most; `None` if none leaves them anything. Steps are added up as mkfs.f2fs does, so
/// that rounding errors are the same.
fn best_percent(areas: &Areas) -> Option<f64> {
    let (mut candidate, end, step) = if areas.main() < 256 { (10.0, 95.0, 5.0) } else { (0.01, 10.0, 0.01) };
    let usable = areas.usable() as f64;
    let (mut best, mut most) = (None, 0.0);
    while candidate <= end {
        let reserved = reserved(areas, candidate);
        let space = usable - reserved - (usable - reserved) * candidate / 100.0;
        if most < space {
            (best, most) = (Some(candidate), space);
        }
        candidate += step;
    }
    best
}

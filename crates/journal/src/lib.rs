//! draft
#![forbid(unsafe_code)]

mod checksum;
mod device;
mod error;
mod geometry;
mod header;
mod journal;
mod lane;
mod mark;
mod medium;
mod owner;
mod record;
mod recovered;
mod region;
mod replay;
mod scan;
mod window;

pub use device::DeviceMedium;
pub use error::Error;
pub use geometry::MOST_LANES;
pub use header::AREA;
pub use journal::{Create, Journal};
pub use mark::{Mark, Usage};
pub use medium::{Gather, LARGEST_GRAIN, Medium, MediumError, SMALLEST_GRAIN};
pub use owner::Uuid;
pub use record::{Appended, Entry, HEADER, Record};
pub use recovered::{Recovered, SharedMedium};
pub use region::RegionMedium;
pub use replay::Replay;
pub use scan::{LaneEnd, LaneReport};

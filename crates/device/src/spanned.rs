//! One device made of several, one behind the other.
//!
//! ```text
//!  blocks of the whole   0 ............ a | a ....... a+b | a+b ............ a+b+c
//!                        first device     | second        | third
//! ```
//!
//! Locking rules: none of its own but the [`FlushGate`]'s, which is held for bookkeeping only. A transfer goes to the
//! devices below on the thread that submits it.

mod batch;

use f2fs_sync::{Arc, PlainArc, share_out};

use crate::{
    BlockDevice, Claim, Claims, Completion, DeviceError, DeviceErrorKind, DeviceInfo, FlushGate, Op, Operation,
    Request, Ticket, Zone, ZoneChange,
};

/// Why devices do not become one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpanError {
    /// Without a device there is no block.
    #[error("no device was given")]
    NoDevice,
    /// A device has fewer blocks than are to be used of it.
    #[error("device {device} ({description}) has {found} blocks, not the {expected} that it should have")]
    TooShort {
        /// Which one, counted from 0.
        device: usize,
        /// The device's description of itself.
        description: String,
        /// Blocks that it has.
        found: u64,
        /// Blocks that are to be used.
        expected: u64,
    },
    /// A device stands there twice.
    #[error("device {device} ({description}) is given twice")]
    Twice {
        /// The second time, counted from 0.
        device: usize,
        /// The device's description of itself.
        description: String,
    },
    /// Somebody has one of the devices open.
    #[error("device {device} ({description}): {reason}")]
    AlreadyOpen {
        /// Which one, counted from 0.
        device: usize,
        /// The device's description of itself.
        description: String,
        /// Its holder.
        reason: crate::AlreadyOpen,
    },
    /// A device has zones of another size than one before it.
    #[error("device {device} ({description}) has zones of another size than the devices before it")]
    ZonesDiffer {
        /// Which one, counted from 0.
        device: usize,
        /// The device's description of itself.
        description: String,
    },
    /// All together have more blocks than can be counted.
    #[error("the devices have more than 2^64 blocks together")]
    TooLarge,
}

/// A device and how much of it is used.
#[derive(Debug)]
struct Part {
    device: PlainArc<dyn BlockDevice>,
    /// The number that its first block has in the whole.
    start: u64,
    /// The number behind its last block.
    end: u64,
    /// Of the whole: a failed durable write of one device closes it.
    gate: Arc<FlushGate>,
}

impl Part {
    /// An error of this device, as one of the whole.
    fn in_whole(&self, error: DeviceError) -> DeviceError {
        DeviceError { start: error.start.saturating_add(self.start), ..error }
    }

    /// The completion of a request of this device, as one of the whole.
    fn restored(start: u64, gate: &FlushGate, mut completion: Completion) -> Completion {
        completion.request.start += start;
        if let Err(error) = &mut completion.result {
            error.start += start;
            if error.operation == Operation::WriteFua {
                gate.poison(&error.kind);
            }
        }
        completion
    }
}

/// Several devices as one, one behind the other; transfers across a border are split, and flushes run side by side.
///
/// The claims are those of the first device. The others are claimed for the life of this device: for writing, unless
/// one of them is read-only.
///
/// ```
/// use f2fs_device::{BlockDevice, MemoryDevice, SpannedDevice};
/// use f2fs_sync::PlainArc;
///
/// let (first, second) = (PlainArc::new(MemoryDevice::new(64)), PlainArc::new(MemoryDevice::new(64)));
/// let device = SpannedDevice::new(vec![(first, 64), (second.clone(), 32)])?;
/// assert_eq!(device.info().blocks, 96);
/// device.write_slice(65, b"on the second one").unwrap();
/// assert_eq!(&second.read(1, 1).unwrap().as_bytes()[..13], b"on the second");
/// # Ok::<(), f2fs_device::SpanError>(())
/// ```
#[derive(Debug)]
pub struct SpannedDevice {
    info: DeviceInfo,
    parts: Vec<Part>,
    gate: Arc<FlushGate>,
    /// Of all devices but the first.
    #[expect(dead_code, reason = "held for as long as the devices are used")]
    claims: Vec<Claim>,
}

impl SpannedDevice {
    /// The first so many blocks of each device, in this order.
    ///
    /// It discards if all of them do but those with zones, which are reset instead; and it is read-only if one of them
    /// is. Its sector and its transfers are as large as the largest of them.
    ///
    /// # Errors
    /// [`SpanError`].
    pub fn new(devices: Vec<(PlainArc<dyn BlockDevice>, u64)>) -> Result<SpannedDevice, SpanError> {
        let read_only = devices.iter().any(|(device, _)| device.info().read_only);
        let gate = Arc::new(FlushGate::new());
        let (mut parts, mut claims, mut end) = (Vec::with_capacity(devices.len()), Vec::new(), 0u64);
        let mut whole: Option<DeviceInfo> = None;
        for (index, (device, blocks)) in devices.into_iter().enumerate() {
            let info = device.info();
            let description = info.description.clone();
            if info.blocks < blocks {
                return Err(SpanError::TooShort { device: index, description, found: info.blocks, expected: blocks });
            }
            if index > 0 {
                let among = |claim: &Claim| claim.is_of(device.claims());
                if claims.iter().any(among) {
                    return Err(SpanError::Twice { device: index, description });
                }
                let claim = if read_only {
                    device.claims().shared("a volume on several devices")
                } else {
                    device.claims().exclusive("a volume on several devices")
                };
                let named = |reason| SpanError::AlreadyOpen { device: index, description, reason };
                claims.push(claim.map_err(named)?);
            }
            let named = || SpanError::ZonesDiffer { device: index, description: info.description.clone() };
            whole = Some(match whole {
                Some(whole) => whole.beside(info).ok_or_else(named)?,
                None => info.clone(),
            });
            let start = end;
            end = start.checked_add(blocks).ok_or(SpanError::TooLarge)?;
            parts.push(Part { device, start, end, gate: gate.clone() });
        }
        // The first one is claimed by whoever opens a volume, not here.
        let first_again = claims.iter().position(|claim| claim.is_of(parts[0].device.claims()));
        if let Some(other) = first_again {
            let description = parts[0].device.info().description.clone();
            return Err(SpanError::Twice { device: other + 1, description });
        }
        let mut info = whole.ok_or(SpanError::NoDevice)?;
        info.blocks = end;
        let without_zones = || parts.iter().map(|part| part.device.info()).filter(|info| info.zones.is_none());
        info.supports_discard = without_zones().next().is_some() && without_zones().all(|info| info.supports_discard);
        info.parts = parts.iter().map(|part| (part.end - part.start, part.device.info().blocks)).collect();
        Ok(SpannedDevice { info, parts, gate, claims })
    }

    /// The device that has a block of the whole.
    fn part_of(&self, block: u64) -> usize {
        self.parts.partition_point(|part| part.end <= block).min(self.parts.len() - 1)
    }

    /// The only device that a request touches, if there is one.
    fn only_part(&self, request: &Request) -> Option<usize> {
        let part = self.part_of(request.start);
        (request.start + request.blocks() <= self.parts[part].end).then_some(part)
    }

    /// Whether a request may pass.
    fn admit(&self, request: &Request) -> Result<(), DeviceError> {
        self.info.check(request)?;
        if request.op != Op::Read {
            self.gate.check().map_err(|kind| request.error(kind))?;
        }
        Ok(())
    }
}

impl BlockDevice for SpannedDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn claims(&self) -> &Claims {
        self.parts[0].device.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        batch::submit(self, requests)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.gate.flush(|| {
            let parts = self.parts.len();
            share_out(parts as u32, parts, |part| self.parts[part as usize].device.flush()).map_err(|error| error.kind)
        })
    }

    fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        let mut zones: Vec<Zone> = Vec::new();
        for part in self.parts.iter().filter(|part| part.end > start) {
            let own = start.saturating_sub(part.start);
            let found = part.device.report_zones(own, count - zones.len()).map_err(|error| part.in_whole(error))?;
            let moved = |zone: Zone| Zone { start: zone.start + part.start, ..zone };
            // The part of a device that is used may end before the device.
            zones.extend(found.into_iter().map(moved).take_while(|zone| zone.start < part.end));
            if zones.len() >= count {
                break;
            }
        }
        Ok(zones)
    }

    fn change_zone(&self, start: u64, change: ZoneChange) -> Result<(), DeviceError> {
        let refused = |kind| DeviceError::new(Operation::ChangeZone, start, 0, kind);
        self.info.check_operation(Operation::ChangeZone, start, 0)?;
        self.gate.check().map_err(refused)?;
        let part = &self.parts[self.part_of(start)];
        part.device.change_zone(start - part.start, change).map_err(|error| part.in_whole(error))
    }

    fn is_immediate(&self) -> bool {
        self.parts.iter().all(|part| part.device.is_immediate())
    }

    fn flushes_at_once(&self) -> bool {
        self.parts.iter().all(|part| part.device.flushes_at_once())
    }

    fn execute(&self, mut request: Request) -> Completion {
        if let Err(error) = self.admit(&request) {
            return Completion { request, result: Err(error) };
        }
        let Some(part) = self.only_part(&request) else {
            let lost = request.error(DeviceErrorKind::Lost);
            let (op, start) = (request.op, request.start);
            let nothing = || Completion { request: Request::vectored(op, start, Vec::new()), result: Err(lost) };
            return self.submit(vec![request]).wait().pop().unwrap_or_else(nothing);
        };
        request.start -= self.parts[part].start;
        let part = &self.parts[part];
        Part::restored(part.start, &part.gate, part.device.execute(request))
    }
}

#[cfg(test)]
mod tests;

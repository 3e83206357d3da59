//! A naive model of a zoned device, and the interpreter of bytes that the property test and the fuzz target share:
//! every byte string is a layout and a sequence of commands, which the device and the model take side by side.
//!
//! The model counts what is open by looking at all zones, remembers the time of each opening, and keeps a value for
//! each block.

use f2fs_device::{
    AlignedBuf, BLOCK_SIZE, BlockDevice, DeviceErrorKind, MemoryDevice, Op, Request, ZoneError, ZoneLayout, ZoneState,
    ZonedDevice,
};

/// Choices out of bytes; zero when they are used up.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        let (byte, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        u64::from(*byte) % bound
    }
}

/// A zone of the model.
struct Zone {
    state: ZoneState,
    /// First block, first block of the next zone, and blocks that can be written.
    start: u64,
    end: u64,
    capacity: u64,
    written: u64,
    /// When a write opened it.
    opened: u64,
}

struct Model {
    layout: ZoneLayout,
    zones: Vec<Zone>,
    /// The content of each block.
    content: Vec<u8>,
    clock: u64,
}

use ZoneState::{Closed, Conventional, Empty, ExplicitlyOpen, Full, ImplicitlyOpen, Offline, ReadOnly};

impl Model {
    fn new(layout: ZoneLayout, blocks: u64) -> Model {
        let mut zones: Vec<Zone> = Vec::new();
        let mut start = 0;
        while start < blocks {
            let end = (start + layout.zone_blocks).min(blocks);
            let conventional = zones.len() < layout.conventional as usize;
            let capacity = if conventional { end - start } else { layout.capacity.min(end - start) };
            let state = if conventional { Conventional } else { Empty };
            zones.push(Zone { state, start, end, capacity, written: 0, opened: 0 });
            start = end;
        }
        Model { layout, zones, content: vec![0; blocks as usize], clock: 0 }
    }

    fn at(&self, zone: u32) -> Result<usize, ZoneError> {
        let zones = self.zones.len() as u32;
        if zone < zones { Ok(zone as usize) } else { Err(ZoneError::NoSuchZone { zone, zones }) }
    }

    fn count(&self, which: fn(ZoneState) -> bool) -> u32 {
        self.zones.iter().filter(|zone| which(zone.state)).count() as u32
    }

    /// Management of the open zone resources, as the standards call it.
    fn resources(&mut self, zone: usize) -> Result<(), ZoneError> {
        let ZoneLayout { max_open, max_active, .. } = self.layout;
        if max_active != 0 && self.zones[zone].state == Empty && self.count(ZoneState::is_active) == max_active {
            return Err(ZoneError::TooManyActive { limit: max_active });
        }
        if max_open != 0 && self.count(ZoneState::is_open) == max_open {
            let implicit = self.zones.iter_mut().filter(|zone| zone.state == ImplicitlyOpen);
            match implicit.min_by_key(|zone| zone.opened) {
                Some(oldest) => oldest.state = Closed,
                None => return Err(ZoneError::TooManyOpen { limit: max_open }),
            }
        }
        Ok(())
    }

    fn write(&mut self, zone: u32, at: Option<u64>, blocks: u64, value: u8) -> Result<u64, ZoneError> {
        let index = self.at(zone)?;
        let Zone { state, start, capacity, written, .. } = self.zones[index];
        let at = match (state, at) {
            (Conventional, Some(at)) => {
                let last = self.zones.iter().rfind(|zone| zone.state == Conventional).expect("this one at least");
                if at + blocks > last.end {
                    return Err(ZoneError::Capacity { zone, end: last.end });
                }
                self.content[at as usize..(at + blocks) as usize].fill(value);
                return Ok(at);
            }
            (Conventional | Full | ReadOnly | Offline, _) => return Err(ZoneError::State { zone, state }),
            (_, Some(at)) if at != start + written => {
                return Err(ZoneError::WritePointer { zone, write_pointer: start + written });
            }
            _ => start + written,
        };
        if at + blocks > start + capacity {
            return Err(ZoneError::Capacity { zone, end: start + capacity });
        }
        if blocks == 0 {
            return Ok(at);
        }
        if !state.is_open() {
            self.resources(index)?;
            self.clock += 1;
            (self.zones[index].state, self.zones[index].opened) = (ImplicitlyOpen, self.clock);
        }
        self.content[at as usize..(at + blocks) as usize].fill(value);
        self.zones[index].written += blocks;
        if self.zones[index].written == capacity {
            self.zones[index].state = Full;
        }
        Ok(at)
    }

    fn open(&mut self, zone: u32) -> Result<(), ZoneError> {
        let index = self.at(zone)?;
        match self.zones[index].state {
            Empty | Closed => self.resources(index)?,
            ImplicitlyOpen | ExplicitlyOpen => {}
            state => return Err(ZoneError::State { zone, state }),
        }
        self.zones[index].state = ExplicitlyOpen;
        Ok(())
    }

    fn close(&mut self, zone: u32) -> Result<(), ZoneError> {
        let index = self.at(zone)?;
        let Zone { state, written, .. } = self.zones[index];
        if !state.is_active() {
            return Err(ZoneError::State { zone, state });
        }
        self.zones[index].state = if written == 0 { Empty } else { Closed };
        Ok(())
    }

    fn finish(&mut self, zone: u32) -> Result<(), ZoneError> {
        let index = self.at(zone)?;
        match self.zones[index].state {
            Empty | Closed => self.resources(index)?,
            ImplicitlyOpen | ExplicitlyOpen | Full => {}
            state => return Err(ZoneError::State { zone, state }),
        }
        self.zones[index].state = Full;
        Ok(())
    }

    fn reset(&mut self, zone: u32) -> Result<(), ZoneError> {
        let index = self.at(zone)?;
        let zone_now = &mut self.zones[index];
        let state = zone_now.state;
        if matches!(state, Conventional | ReadOnly | Offline) {
            return Err(ZoneError::State { zone, state });
        }
        (zone_now.state, zone_now.written) = (Empty, 0);
        self.content[zone_now.start as usize..zone_now.end as usize].fill(0);
        Ok(())
    }

    fn retire(&mut self, zone: u32, to: ZoneState) -> Result<(), ZoneError> {
        let index = self.at(zone)?;
        match self.zones[index].state {
            state if state == Conventional || (state == Offline && to == ReadOnly) => {
                Err(ZoneError::State { zone, state })
            }
            _ => {
                self.zones[index].state = to;
                Ok(())
            }
        }
    }

    fn read(&self, start: u64, blocks: u64) -> Result<Vec<u8>, ZoneError> {
        let touched = self.zones.iter().enumerate().filter(|(_, zone)| zone.start < start + blocks && start < zone.end);
        for (index, zone) in touched {
            if zone.state == Offline {
                return Err(ZoneError::State { zone: index as u32, state: Offline });
            }
        }
        Ok(self.content[start as usize..(start + blocks) as usize].to_vec())
    }
}

/// Both, side by side.
struct Pair {
    model: Model,
    device: ZonedDevice<MemoryDevice>,
    /// The byte of the next write; never zero.
    value: u8,
}

/// Takes bytes for a layout and commands, and compares the device with the model after each: results, errors with their
/// numbers, the report, and what reads find.
pub(crate) fn run(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let Some(mut pair) = pair(&mut bytes) else { return };
    while !bytes.0.is_empty() {
        pair.step(&mut bytes);
        pair.compare();
    }
    pair.read(0, pair.model.content.len() as u64);
}

/// A device and its model, if the layout makes sense; if it does not, the device must say so.
fn pair(bytes: &mut Bytes<'_>) -> Option<Pair> {
    let zone_blocks = 1 + bytes.below(6);
    let capacity = bytes.below(zone_blocks + 2);
    let blocks = bytes.below(40);
    let (conventional, max_open, max_active) = (bytes.below(4) as u32, bytes.below(4) as u32, bytes.below(5) as u32);
    let layout = ZoneLayout::new(zone_blocks).with_capacity(capacity).with_conventional(conventional);
    let layout = layout.with_limits(max_open, max_active);
    let memory = MemoryDevice::new(blocks);
    // The old content of the device below is not to be seen.
    (0..blocks).for_each(|block| memory.write_slice(block, &[0xff; BLOCK_SIZE]).expect("it is in range"));
    let zones = blocks.div_ceil(zone_blocks);
    let sound = (1..=zone_blocks).contains(&capacity)
        && zones > 0
        && u64::from(conventional) <= zones
        && (max_active == 0 || max_open <= max_active);
    let device = ZonedDevice::new(memory, layout);
    assert_eq!(device.is_ok(), sound, "{layout:?}, {blocks} blocks: {:?}", device.err());
    let device = device.ok()?;
    let mut model = Model::new(layout, blocks);
    for zone in model.zones.iter().filter(|zone| zone.state == Conventional) {
        model.content[zone.start as usize..zone.end as usize].fill(0xff);
    }
    Some(Pair { model, device, value: 0 })
}

impl Pair {
    fn step(&mut self, bytes: &mut Bytes<'_>) {
        let what = bytes.below(16);
        let zone = bytes.below(self.model.zones.len() as u64 + 1) as u32;
        match what {
            0..=3 => self.write_at_pointer(zone, bytes.below(4)),
            4 => self.write(bytes.below(42), bytes.below(5)),
            5 | 6 => self.append(zone, bytes.below(4)),
            7 | 8 => assert_eq!(self.device.open(zone), self.model.open(zone)),
            9 => assert_eq!(self.device.close(zone), self.model.close(zone)),
            10 => assert_eq!(self.device.finish(zone), self.model.finish(zone)),
            11 => assert_eq!(self.device.reset(zone), self.model.reset(zone)),
            12 => self.read(bytes.below(42), bytes.below(12)),
            13 => self.batch(bytes),
            14 => self.rarely(zone, bytes.below(32)),
            _ => self.discard(bytes.below(40)),
        }
    }

    fn next_value(&mut self) -> u8 {
        self.value = self.value % 0xfe + 1;
        self.value
    }

    fn write_at_pointer(&mut self, zone: u32, blocks: u64) {
        if let Some(Zone { start, written, .. }) = self.model.zones.get(zone as usize) {
            self.write(start + written, blocks);
        }
    }

    /// A request and what the model says of it: nothing where the range is outside.
    fn writing(&mut self, start: u64, blocks: u64) -> (Request, Option<Result<u64, ZoneError>>) {
        let value = self.next_value();
        let request = Request::write(start, filled(blocks, value));
        let within = start + blocks <= self.model.content.len() as u64;
        let zone = (start / self.model.layout.zone_blocks) as u32;
        let expected = match blocks {
            0 => Ok(start),
            _ if within => self.model.write(zone, Some(start), blocks, value),
            _ => return (request, None),
        };
        (request, within.then_some(expected))
    }

    fn write(&mut self, start: u64, blocks: u64) {
        let (request, expected) = self.writing(start, blocks);
        let result = self.device.execute(request).result;
        same(result.map(|()| start).map_err(|error| error.kind), expected);
    }

    fn append(&mut self, zone: u32, blocks: u64) {
        let value = self.next_value();
        let expected = self.model.write(zone, None, blocks, value);
        let result = self.device.append(zone, filled(blocks, value));
        same(result.map_err(|error| error.kind), Some(expected));
    }

    fn read(&mut self, start: u64, blocks: u64) {
        let within = start + blocks <= self.model.content.len() as u64;
        let expected = within.then(|| if blocks == 0 { Ok(Vec::new()) } else { self.model.read(start, blocks) });
        // Over two buffers: what is not written may begin in either.
        let halves = vec![filled(blocks / 2, 0xee), filled(blocks - blocks / 2, 0xee)];
        let completion = self.device.execute(Request::vectored(Op::Read, start, halves));
        let values = completion.into_bufs().map(|bufs| bufs.iter().flat_map(values).collect());
        same(values.map_err(|error| error.kind), expected);
    }

    /// Two writes at once, which are accepted one after the other, and a discard.
    fn batch(&mut self, bytes: &mut Bytes<'_>) {
        let first = self.writing(bytes.below(42), bytes.below(4));
        let second = self.writing(first.0.start + first.0.blocks(), bytes.below(4));
        let results = self.device.submit(vec![first.0, Request::discard(0, 1), second.0]).wait();
        assert_eq!(results[1].result.as_ref().expect_err("no discards").kind, DeviceErrorKind::Unsupported);
        for (completion, expected) in [(&results[0], first.1), (&results[2], second.1)] {
            let result = completion.result.clone().map(|()| completion.request.start);
            same(result.map_err(|error| error.kind), expected);
        }
    }

    fn rarely(&mut self, zone: u32, what: u64) {
        match what {
            0 => assert_eq!(self.device.wear_out(zone), self.model.retire(zone, ReadOnly)),
            1 => assert_eq!(self.device.take_offline(zone), self.model.retire(zone, Offline)),
            2..=5 => {
                self.device.reset_all();
                (0..self.model.zones.len() as u32).for_each(|zone| _ = self.model.reset(zone));
            }
            _ => {}
        }
    }

    fn discard(&mut self, start: u64) {
        let result = self.device.discard(start, 1);
        assert!(result.is_err(), "{result:?}");
    }

    fn compare(&self) {
        assert_eq!(self.device.zones() as usize, self.model.zones.len());
        for (found, expected) in self.device.report().zip(&self.model.zones) {
            let pointless = matches!(expected.state, Conventional | Full | Offline);
            let written = (!pointless).then_some(expected.written);
            let shown = (found.start, found.start + found.blocks, found.capacity, found.state, found.written);
            assert_eq!(shown, (expected.start, expected.end, expected.capacity, expected.state, written));
        }
        let ZoneLayout { max_open, max_active, .. } = self.model.layout;
        let count = |which: fn(ZoneState) -> bool| self.device.report().filter(|zone| which(zone.state)).count() as u32;
        assert!(max_open == 0 || count(ZoneState::is_open) <= max_open);
        assert!(max_active == 0 || count(ZoneState::is_active) <= max_active);
    }
}

/// A result is what the model says; outside the device, it says nothing.
#[allow(clippy::needless_pass_by_value)] // results are made for it
fn same<T: PartialEq + std::fmt::Debug>(found: Result<T, DeviceErrorKind>, expected: Option<Result<T, ZoneError>>) {
    match expected {
        Some(expected) => assert_eq!(found, expected.map_err(DeviceErrorKind::Zone)),
        None => assert!(matches!(found, Err(DeviceErrorKind::OutOfRange { .. })), "{found:?}"),
    }
}

fn filled(blocks: u64, value: u8) -> AlignedBuf {
    let mut buf = AlignedBuf::new(blocks as usize);
    buf.as_bytes_mut().fill(value);
    buf
}

/// The value that each block of a buffer consists of.
fn values(buf: &AlignedBuf) -> Vec<u8> {
    let value = |block: &[u8]| {
        // One comparison with itself, shifted: byte by byte takes most of the time of a run.
        assert!(block[1..] == block[..block.len() - 1], "a mixed block");
        block[0]
    };
    buf.as_bytes().chunks(BLOCK_SIZE).map(value).collect()
}

//! A damaged volume, and what is done with it, out of the fuzzer's bytes.
//!
//! ```text
//! | volume 1 | damages 1 | damage ... | what is left: choices |
//!    damage, a patch: | tag 1, a multiple of four | block 2 | offset 2 | length 1 | bytes |
//!    damage, a field: | tag 1 | kind 1 | which 2 | field 1 | how 1 | number 4 |
//! ```

use crate::harness::{Change, Damage, Fault, Patch};

/// Changes of a volume at most.
const DAMAGES: u8 = 24;
/// Bytes of a patch at most.
const PATCH: u8 = 64;

/// A damaged volume, and what is done with it.
#[derive(Debug, Default)]
pub struct Input {
    /// Which of the volumes.
    pub base: u8,
    /// The damage. None: the volume is sound, and has to stay so.
    pub damage: Vec<Damage>,
    /// The operations.
    pub choices: Vec<u8>,
}

/// Takes numbers from the front.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn u8(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes([self.u8()?, self.u8()?]))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from(self.u16()?) | u32::from(self.u16()?) << 16)
    }

    fn damage(&mut self) -> Option<Damage> {
        if !self.u8()?.is_multiple_of(4) {
            let (kind, which, field, how) = (self.u8()?, self.u16()?, self.u8()?, self.u8()?);
            return Some(Damage::Change(Change { kind, which, field, how, number: self.u32()? }));
        }
        let (block, offset, len) = (self.u16()?, self.u16()?, usize::from(self.u8()? % PATCH) + 1);
        let (bytes, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        Some(Damage::Patch(Patch { block, offset, bytes: bytes.to_vec() }))
    }
}

impl Input {
    /// Reads an input from the fuzzer's bytes.
    pub fn decode(data: &[u8]) -> Option<Input> {
        let mut source = Bytes(data);
        let base = source.u8()?;
        let count = source.u8()? % (DAMAGES + 1);
        let damage = (0..count).map_while(|_| source.damage()).collect();
        Some(Input { base, damage, choices: source.0.to_vec() })
    }

    /// The same input as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.base, self.damage.len() as u8];
        for damage in &self.damage {
            match damage {
                Damage::Patch(patch) => {
                    bytes.push(0);
                    bytes.extend([patch.block, patch.offset].iter().flat_map(|number| number.to_le_bytes()));
                    bytes.push(patch.bytes.len() as u8 - 1);
                    bytes.extend_from_slice(&patch.bytes);
                }
                Damage::Change(change) => {
                    bytes.extend([1, change.kind]);
                    bytes.extend(change.which.to_le_bytes());
                    bytes.extend([change.field, change.how]);
                    bytes.extend(change.number.to_le_bytes());
                }
            }
        }
        bytes.extend_from_slice(&self.choices);
        bytes
    }

    /// Faults of the device, from the front of the choices; and the choices behind them.
    pub fn faults(&self) -> (Vec<Fault>, &[u8]) {
        let mut source = Bytes(&self.choices);
        let mut fault = || Some(Fault { on: source.u8()?, after: source.u8()?, what: source.u8()? });
        let faults = (0..2).map_while(|_| fault()).collect();
        (faults, source.0)
    }

    /// Whether the volume has no damage.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }
}

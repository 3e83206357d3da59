#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::Claims;
use f2fs_sync::atomic::{AtomicU64, Ordering};
use zerocopy::IntoBytes;

use super::*;
use crate::{Entry, Gather};

const SEED: u32 = 5;
const BYTES: u64 = 1 << 20;

/// Memory that counts what is read of it.
#[derive(Debug)]
struct Counted {
    bytes: Vec<u8>,
    read: AtomicU64,
    claims: Claims,
}

impl Medium for Counted {
    fn grain(&self) -> usize {
        64
    }

    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        self.read.fetch_add(into.len() as u64, Ordering::Relaxed);
        into.copy_from_slice(&self.bytes[offset as usize..][..into.len()]);
        Ok(())
    }

    fn write(&self, _offset: u64, _bytes: Gather<'_>) -> Result<(), MediumError> {
        unreachable!("a scan only reads")
    }

    fn persist(&self) -> Result<(), MediumError> {
        unreachable!("a scan only reads")
    }
}

/// Each grain has a header that is right, of a record that would reach over all behind it.
#[test]
fn a_journal_that_somebody_made_up_is_read_a_few_times_and_not_once_for_each_grain() {
    let ring = Ring { base: 0, bytes: BYTES, grain: 64 };
    let payload = vec![0; BYTES as usize / 2];
    let parts = [&payload[..]];
    let entry = Entry::new(&parts);
    let mut bytes = vec![0; BYTES as usize];
    for (number, grain) in bytes.chunks_exact_mut(64).enumerate().skip(1) {
        let position = number as u64 * 64;
        let header = Header::new(&entry, 1, position, number as u64, 64).sealed(SEED);
        grain[..HEADER].copy_from_slice(header.as_bytes());
    }
    let medium = Counted { bytes, read: AtomicU64::new(0), claims: Claims::new() };
    let report = scan(&medium, ring, 0, Bounds { seed: SEED, epoch: 1, stamp: 0, start: 0 });
    assert!(matches!(report.how, LaneEnd::Damaged { .. }), "{report:?}");
    assert_eq!((report.records, report.behind), (0, 0));
    let read = medium.read.load(Ordering::Relaxed);
    assert!(read <= 8 * BYTES, "{read} bytes of {BYTES}");
}

//! Requests beside those for files (`ioctl`): giving the room of free segments back, as `fstrim` asks for it.

use rustix::io::Errno;

use super::Service;
use crate::caller::Caller;

/// `FITRIM` of `linux/fs.h`, `_IOWR('X', 121, struct fstrim_range)`.
const TRIM: u32 = 0xc018_5879;

/// Linux's `struct fstrim_range`, in bytes. The answer has in `length` how much was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TrimRange {
    start: u64,
    length: u64,
    least: u64,
}

impl TrimRange {
    fn read(bytes: &[u8]) -> Option<TrimRange> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        let [start, length, least] = numbers else { return None };
        let number = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
        rest.is_empty().then(|| TrimRange { start: number(start), length: number(length), least: number(least) })
    }

    fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        let (numbers, _) = bytes.as_chunks_mut::<8>();
        for (to, number) in numbers.iter_mut().zip([self.start, self.length, self.least]) {
            *to = number.to_ne_bytes();
        }
        bytes
    }
}

impl Service {
    /// What is asked for by this command; the bytes of the answer.
    pub(crate) fn control(&self, caller: Caller, command: u32, data: &[u8]) -> Result<[u8; 24], Errno> {
        match (command, TrimRange::read(data)) {
            (TRIM, Some(range)) => Ok(self.trim(caller, range)?.to_bytes()),
            _ => Err(Errno::NOTTY),
        }
    }

    /// Root may ask for it, and who runs the server, as the image is theirs. What looks free because the SIT has lost it
    /// could be repaired; where it may have, nothing is given back.
    fn trim(&self, caller: Caller, range: TrimRange) -> Result<TrimRange, Errno> {
        if caller.uid != 0 && caller.uid != rustix::process::geteuid().as_raw() {
            return Err(Errno::PERM);
        }
        if self.0.fs().statfs().unplaced_blocks > 0 {
            return Err(Errno::OPNOTSUPP);
        }
        self.run(|volume| {
            let bytes = range.start..range.start.saturating_add(range.length);
            let blocks = volume.fs().trim_within(bytes, range.least, |_, _| {})?;
            Ok(TrimRange { length: blocks * f2fs_device::BLOCK_SIZE as u64, ..range })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_taken_apart_and_put_together() {
        let range = TrimRange { start: 1, length: u64::MAX, least: 1 << 40 };
        assert_eq!(TrimRange::read(&range.to_bytes()), Some(range));
        assert_eq!(TrimRange::read(&[0; 23]), None);
        assert_eq!(TrimRange::read(&[0; 32]), None);
        assert_eq!(TRIM, 3 << 30 | 24 << 16 | u32::from(b'X') << 8 | 121);
    }
}

//! A power cut: some image that a device with a volatile cache may be left with.

use std::io;
use std::path::Path;

use f2fs_device_test::CrashLog;

use f2fs_device_test::Random;

/// Writes what a cut leaves to `image`; returns the event at which it happens, and how many blocks are lost.
///
/// `seed` 0 cuts at the end, and loses all that was not flushed. Others cut anywhere, and keep every other block or so
/// of it.
pub(crate) fn save(log: &CrashLog, seed: u64, image: &Path) -> io::Result<(usize, u64)> {
    let mut random = Random::new(seed);
    let events = log.events().len();
    let position = if seed == 0 { events } else { random.next() as usize % (events + 1) };
    let mut lost = 0;
    let survives = |_, _| {
        let kept = seed != 0 && random.next().is_multiple_of(2);
        lost += u64::from(!kept);
        kept
    };
    let left = log.image_at(position, survives);
    left.save(image)?;
    Ok((position, lost))
}

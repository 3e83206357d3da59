//! A recording, for people.

use core::fmt;

use f2fs_device_test::Event;

use super::Recording;

/// The operations, one a line, and the requests that they sent to the device.
impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for lane in &self.lanes {
            writeln!(f, "below {}:", lane.dir)?;
            for (index, step) in lane.steps.iter().enumerate() {
                let ((begin, end), version) = (step.events, step.versions.1);
                write!(f, "{:>5}  events {begin}..{end}, ", index + 1)?;
                if self.lanes.len() > 1 {
                    write!(f, "ticks {}..{}, ", step.clock.0, step.clock.1)?;
                }
                write!(f, "checkpoint {version:#x}: {}", step.op)?;
                match step.fsynced {
                    Some(ino) => writeln!(f, " (inode {ino} is durable)")?,
                    None => writeln!(f)?,
                }
            }
        }
        writeln!(f, "events:")?;
        for (index, event) in self.log.events().iter().enumerate() {
            let (start, blocks) = event.range();
            match event {
                Event::Write { .. } => writeln!(f, "{index:>5}  write {start}+{blocks}")?,
                Event::Discard { .. } => writeln!(f, "{index:>5}  discard {start}+{blocks}")?,
                Event::FlushPart { start, blocks } => writeln!(f, "{index:>5}  flush of {start}+{blocks}")?,
                _ => writeln!(f, "{index:>5}  flush")?,
            }
        }
        Ok(())
    }
}

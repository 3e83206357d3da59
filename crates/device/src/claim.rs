//! Claims to a device: one writer has it open, or any number of readers.
//!
//! Locking rules: one lock for a device's claims, held to look and to count; nothing else is locked under it. It is
//! taken when something opens or closes, never for a transfer.
//!
//! ```text
//!           exclusive                      shared                  shared
//!  writer <----------- (nobody) ---------------------> readers --------------> readers, one more
//!     |                  ^  ^                             |
//!     +-- drop of Claim -+  +----- drop of the last Claim +
//! ```
//! There is no edge between a writer and readers: an owner that wants to change sides lets go first.

use std::fmt;

use f2fs_sync::{Arc, Mutex};

/// The claims on one device. Every [`BlockDevice`](crate::BlockDevice) has one of these and hands it out by
/// [`claims`](crate::BlockDevice::claims); a device that wraps another one hands out that one's.
///
/// A user that keeps state of a device claims it first: a volume that is open, a format, a check, a repair. Two
/// writers, or a writer and a reader, would each trust a memory of blocks that the other one changes.
///
/// The claims are those of this process. A device that other processes can open as well has to keep them out by itself.
///
/// ```
/// use f2fs_device::{BlockDevice, MemoryDevice};
///
/// let device = MemoryDevice::new(64);
/// let writer = device.claims().exclusive("a log")?;
/// let refused = device.claims().shared("a reader").unwrap_err();
/// assert_eq!(refused.to_string(), "the device is open already: by a log, for writing");
/// drop(writer);
/// device.claims().shared("a reader")?;
/// # Ok::<(), f2fs_device::AlreadyOpen>(())
/// ```
#[derive(Default)]
pub struct Claims {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    writer: Option<&'static str>,
    /// One for each claim, in the order in which they came.
    readers: Vec<&'static str>,
}

impl Claims {
    /// Nobody has the device open.
    #[must_use]
    pub fn new() -> Claims {
        Self::default()
    }

    /// Claims the device for writing, for as long as the [`Claim`] lives: nobody else has it open meanwhile. `by` says
    /// to others who that is ("a file system").
    ///
    /// # Errors
    /// [`AlreadyOpen`]: somebody has it open, for whatever.
    pub fn exclusive(&self, by: &'static str) -> Result<Claim, AlreadyOpen> {
        let mut state = self.state.lock();
        state.check_writer()?;
        if let Some(&reader) = state.readers.first() {
            return Err(AlreadyOpen { by: reader, writes: false });
        }
        state.writer = Some(by);
        Ok(Claim { state: self.state.clone(), by, writes: true })
    }

    /// Claims the device for reading, beside other readers.
    ///
    /// # Errors
    /// [`AlreadyOpen`]: somebody has it open for writing.
    pub fn shared(&self, by: &'static str) -> Result<Claim, AlreadyOpen> {
        let mut state = self.state.lock();
        state.check_writer()?;
        state.readers.push(by);
        Ok(Claim { state: self.state.clone(), by, writes: false })
    }
}

impl State {
    fn check_writer(&self) -> Result<(), AlreadyOpen> {
        self.writer.map_or(Ok(()), |by| Err(AlreadyOpen { by, writes: true }))
    }
}

impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("Claims").field("writer", &state.writer).field("readers", &state.readers.len()).finish()
    }
}

/// The right to write a device, or to rely on it while others only read. Dropping it gives the right back.
#[must_use = "dropping the claim lets others open the device"]
pub struct Claim {
    state: Arc<Mutex<State>>,
    by: &'static str,
    writes: bool,
}

impl Claim {
    /// Whether it is one of these claims, that is, on this device.
    #[must_use]
    pub fn is_of(&self, claims: &Claims) -> bool {
        Arc::ptr_eq(&self.state, &claims.state)
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("by", &self.by).field("writes", &self.writes).finish_non_exhaustive()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        if self.writes {
            state.writer = None;
        } else if let Some(index) = state.readers.iter().position(|by| *by == self.by) {
            state.readers.remove(index);
        }
    }
}

/// Somebody has the device open, in this process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the device is open already: by {by}, for {}", if *.writes { "writing" } else { "reading" })]
#[non_exhaustive]
pub struct AlreadyOpen {
    /// Who.
    pub by: &'static str,
    /// Whether for writing.
    pub writes: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_writer_or_many_readers() {
        let claims = Claims::new();
        let first = claims.shared("a").unwrap();
        let second = claims.shared("b").unwrap();
        assert_eq!(claims.exclusive("w").unwrap_err(), AlreadyOpen { by: "a", writes: false });
        drop(first);
        assert_eq!(claims.exclusive("w").unwrap_err(), AlreadyOpen { by: "b", writes: false });
        drop(second);
        // The one that came later goes first: the other one is still named.
        let (first, second) = (claims.shared("a").unwrap(), claims.shared("b").unwrap());
        drop(second);
        assert_eq!(claims.exclusive("w").unwrap_err(), AlreadyOpen { by: "a", writes: false });
        drop(first);
        let writer = claims.exclusive("w").unwrap();
        assert_eq!(claims.exclusive("v").unwrap_err(), AlreadyOpen { by: "w", writes: true });
        assert_eq!(claims.shared("r").unwrap_err(), AlreadyOpen { by: "w", writes: true });
        drop(writer);
        drop(claims.exclusive("v").unwrap());
    }

    #[test]
    fn a_claim_outlives_its_device_and_a_panic_gives_it_back() {
        let claims = Claims::new();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _claim = claims.exclusive("w").unwrap();
            panic!("with the claim held");
        }));
        assert!(panicked.is_err());
        let claim = claims.exclusive("w").unwrap();
        drop(claims);
        drop(claim);
    }
}

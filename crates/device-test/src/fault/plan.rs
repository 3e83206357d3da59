//! Faults as text.

use std::str::FromStr;

use f2fs_device::Operation;

use super::{Fault, FaultRule};

/// A text that is no [`FaultRule`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseFaultError {
    /// A word that no operation has.
    #[error("{0:?} is not one of read, write, fua, discard, flush, change, any")]
    Operation(String),
    /// A word that names neither a fault nor the time of one.
    #[error(
        "{0:?} is not one of after=N, for-good, error=NUMBER, torn=BLOCKS, short=BLOCKS, lost, misdirected=BLOCKS, flipped=BIT"
    )]
    Word(String),
    /// A value that is not a number in range.
    #[error("{word}: {value:?} is not a number in range")]
    Number {
        /// The key.
        word: String,
        /// The value that stands there.
        value: String,
    },
}

/// Reads `OPERATIONS[,after=N][,for-good][,FAULT]`.
///
/// Operations are `read`, `write`, `fua` (a durable write), `discard`, `flush`, `change` (all but reads) and `any`,
/// joined by `+`. A fault is `error=NUMBER` (of the system, such as 28 for a full device; 5 if no fault is named),
/// `torn=BLOCKS`, `short=BLOCKS`, `lost`, `misdirected=BLOCKS` (negative: backwards) or `flipped=BIT`: see [`Fault`].
/// `after=N` lets N such operations pass; `for-good` lets all others behind them fail.
///
/// ```
/// use f2fs_device_test::FaultRule;
///
/// let fourth_write_finds_no_space: FaultRule = "write,after=3,error=28".parse()?;
/// let unplugged: FaultRule = "any,after=99,for-good".parse()?;
/// let silently_lost: FaultRule = "write+fua,lost".parse()?;
/// # Ok::<(), f2fs_device_test::ParseFaultError>(())
/// ```
impl FromStr for FaultRule {
    type Err = ParseFaultError;

    fn from_str(text: &str) -> Result<FaultRule, ParseFaultError> {
        let mut words = text.split(',').map(str::trim);
        let mut operations = Vec::new();
        for name in words.next().unwrap_or_default().split('+') {
            operations.extend_from_slice(operations_named(name)?);
        }
        let mut rule = FaultRule::on(operations);
        for word in words {
            let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            rule = match (name, value) {
                ("after", Some(value)) => rule.after(number(word, value)?),
                ("for-good", None) => rule.for_good(),
                ("error", Some(value)) => {
                    let error: u16 = number(word, value)?;
                    rule.fault(Fault::Error(error.into()))
                }
                ("torn", Some(value)) => rule.fault(Fault::Torn(number(word, value)?)),
                ("short", Some(value)) => rule.fault(Fault::Short(number(word, value)?)),
                ("lost", None) => rule.fault(Fault::Lost),
                ("misdirected", Some(value)) => rule.fault(Fault::Misdirected(number(word, value)?)),
                ("flipped", Some(value)) => rule.fault(Fault::Flipped(number(word, value)?)),
                _ => return Err(ParseFaultError::Word(word.into())),
            };
        }
        Ok(rule)
    }
}

fn operations_named(name: &str) -> Result<&'static [Operation], ParseFaultError> {
    use Operation::{Discard, Flush, Read, Write, WriteFua};
    Ok(match name {
        "read" => &[Read],
        "write" => &[Write],
        "fua" => &[WriteFua],
        "discard" => &[Discard],
        "flush" => &[Flush],
        "change" => &[Write, WriteFua, Discard, Flush],
        "any" => &[Read, Write, WriteFua, Discard, Flush],
        _ => return Err(ParseFaultError::Operation(name.into())),
    })
}

fn number<N: FromStr>(word: &str, value: &str) -> Result<N, ParseFaultError> {
    let name = word.split('=').next().unwrap_or_default();
    value.parse().map_err(|_| ParseFaultError::Number { word: name.into(), value: value.into() })
}

#[cfg(test)]
mod tests {
    use f2fs_device::{BlockDevice, DeviceErrorKind, MemoryDevice};
    use f2fs_sync::PlainArc;

    use super::*;
    use crate::FaultDevice;

    fn device(rule: &str) -> FaultDevice {
        let device = FaultDevice::new(PlainArc::new(MemoryDevice::new(16)));
        device.arm(rule.parse().unwrap());
        device
    }

    #[test]
    fn rules_do_what_they_say() {
        let full = device("write,after=1,error=28");
        full.write_slice(0, b"a").unwrap();
        assert_eq!(full.write_slice(1, b"b").unwrap_err().kind, DeviceErrorKind::from_errno(28));
        full.write_slice(2, b"c").unwrap();

        let unplugged = device("any,after=2,for-good");
        unplugged.write_slice(0, b"a").unwrap();
        unplugged.read(0, 1).unwrap();
        for _ in 0..3 {
            assert_eq!(unplugged.read(0, 1).unwrap_err().kind, DeviceErrorKind::from_errno(5));
        }

        let forgetful = device("write+fua, lost");
        forgetful.write_slice(0, b"a").unwrap();
        assert_eq!(forgetful.read(0, 1).unwrap().as_bytes()[0], 0);

        let astray = device("write,misdirected=-2");
        astray.write_slice(5, b"a").unwrap();
        assert_eq!(astray.read(3, 1).unwrap().as_bytes()[0], b'a');

        let flipped = device("read,flipped=9");
        assert_eq!(flipped.read(0, 1).unwrap().as_bytes()[..2], [0, 2]);
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for (text, said) in [
            ("", "\"\" is not one of read"),
            ("wrote", "\"wrote\" is not one of read"),
            ("write+", "\"\" is not one of read"),
            ("write,", "\"\" is not one of after=N"),
            ("write,lost=1", "\"lost=1\" is not one of after=N"),
            ("write,after", "\"after\" is not one of"),
            ("write,panic", "\"panic\" is not one of"),
            ("write,after=x", "after: \"x\" is not a number in range"),
            ("write,after=18446744073709551616", "after: "),
            ("write,error=65536", "error: "),
            ("write,torn=-1", "torn: "),
        ] {
            let error = text.parse::<FaultRule>().unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}

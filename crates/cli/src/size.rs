//! Sizes as people write them.

use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let lower = text.trim().to_ascii_lowercase();
        let number = lower.trim_end_matches("ib").trim_end_matches('b');
        let (digits, shift) = match number.char_indices().last() {
            Some((at, 'k')) => (&number[..at], 10),
            Some((at, 'm')) => (&number[..at], 20),
            Some((at, 'g')) => (&number[..at], 30),
            Some((at, 't')) => (&number[..at], 40),
            _ => (number, 0),
        };
        let value: u64 = digits.trim().parse().map_err(|error| format!("{text:?}: {error}"))?;
        value.checked_mul(1 << shift).map(Size).ok_or_else(|| format!("{text:?}: more than {} bytes", u64::MAX))
    }
}

/// A number of bytes for people.
pub(crate) fn human(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        let parse = |text: &str| text.parse::<Size>().map(|size| size.0);
        assert_eq!(parse("4096"), Ok(4096));
        assert_eq!(parse("64M"), Ok(64 << 20));
        assert_eq!(parse("1GiB"), Ok(1 << 30));
        assert_eq!(parse("2 tb"), Ok(2 << 40));
        for bad in ["", "x", "-1", "1.5G", "99999999T"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert_eq!(human(1536), "1.5 KiB");
        assert_eq!(human(12), "12 B");
    }
}

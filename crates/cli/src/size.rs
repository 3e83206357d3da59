//! Sizes as people write them.

use std::str::FromStr;

/// The forms of a size, for help texts.
pub(crate) const HELP: &str = "bytes, or with K, M, G, T, P (powers of 1024): 64M, 1.5G";

/// A number of bytes, more than none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

/// A number of bytes that may be none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        match parse(text)? {
            0 => Err("a size is more than 0 bytes".into()),
            bytes => Ok(Size(bytes)),
        }
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Limit, String> {
        parse(text).map(Limit)
    }
}

/// Digits, perhaps with a fraction, perhaps with a unit: K, KB and KiB are the same, in any case. A fraction of a byte
/// that a unit leaves is dropped.
fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let number_len = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = text.split_at(number_len);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        "p" | "pb" | "pib" => 50,
        _ if text.starts_with('-') => return Err("a size is not negative".into()),
        _ if number.is_empty() => return Err(format!("not a size; it is written as {HELP}")),
        _ => return Err(format!("{:?} is not a unit; a size is written as {HELP}", unit.trim())),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let one_dot = number.len() == whole.len() || !(fraction.is_empty() || fraction.contains('.'));
    if whole.len() + fraction.len() == 0 || !one_dot {
        return Err(format!("not a size; it is written as {HELP}"));
    }
    if shift == 0 && !fraction.is_empty() {
        return Err("there is no fraction of a byte".into());
    }
    let too_large = || format!("more than {} bytes", u64::MAX);
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| too_large())? };
    // More digits than these change no byte.
    let fraction = &fraction[..fraction.len().min(20)];
    let part: u128 = if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| too_large())? };
    let part = (part << shift) / 10_u128.pow(fraction.len() as u32);
    whole.checked_mul(1 << shift).and_then(|bytes| u64::try_from(bytes + part).ok()).ok_or_else(too_large)
}

/// A number of bytes for people.
pub(crate) fn human(bytes: u64) -> String {
    let (value, unit) = scaled(bytes);
    match unit {
        None => format!("{bytes} B"),
        Some(unit) => format!("{value:.1} {unit}iB"),
    }
}

/// A number of bytes for people who have a column for it, as `ls -h` writes it: rounded up, one digit behind the point
/// below ten.
pub(crate) fn short(bytes: u64) -> String {
    let (value, unit) = scaled(bytes);
    match unit {
        None => bytes.to_string(),
        Some(unit) if value < 9.95 => format!("{:.1}{unit}", (value * 10.0).ceil() / 10.0),
        Some(unit) => format!("{:.0}{unit}", value.ceil()),
    }
}

fn scaled(bytes: u64) -> (f64, Option<char>) {
    let mut value = bytes as f64;
    let mut unit = None;
    for next in ['K', 'M', 'G', 'T', 'P', 'E'] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = Some(next);
    }
    (value, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(text: &str) -> Result<u64, String> {
        text.parse::<Size>().map(|size| size.0)
    }

    #[test]
    fn units_and_fractions() {
        for (text, bytes) in [
            ("4096", 4096),
            ("64M", 64 << 20),
            ("1GiB", 1 << 30),
            ("2 tb", 2 << 40),
            (" 3b ", 3),
            ("1.5G", 3 << 29),
            ("0.25k", 256),
            (".5K", 512),
            ("1.50", 0),
            ("0.1G", 107_374_182),
            ("15.99999999999999999999999999999999P", (16 << 50) - 1),
            ("16383P", 16383 << 50),
            ("18446744073709551615", u64::MAX),
        ] {
            match bytes {
                0 => assert!(size(text).is_err(), "{text}"),
                bytes => assert_eq!(size(text), Ok(bytes), "{text}"),
            }
        }
    }

    #[test]
    fn what_is_no_size_is_told_apart() {
        for (text, why) in [
            ("", "written as"),
            ("G", "written as"),
            ("x", "written as"),
            (".", "written as"),
            ("1.", "written as"),
            ("1..5G", "written as"),
            ("1.2.3G", "written as"),
            ("-1", "negative"),
            ("-1.5G", "negative"),
            ("0", "more than 0"),
            ("0.0G", "more than 0"),
            ("0.0001K", "more than 0"),
            ("1.5", "fraction of a byte"),
            ("1.5b", "fraction of a byte"),
            ("12Q", "\"Q\" is not a unit"),
            ("1e3", "not a unit"),
            ("1,5G", "not a unit"),
            ("+1", "written as"),
            ("16384P", "more than 18446744073709551615"),
            ("99999999T", "more than"),
            ("99999999999999999999999999999999999999999999", "more than"),
            ("340282366920938463463374607431768211455P", "more than"),
        ] {
            let error = size(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert_eq!("0".parse(), Ok(Limit(0)));
    }

    #[test]
    fn for_people() {
        for (bytes, long, columns) in [
            (0, "0 B", "0"),
            (12, "12 B", "12"),
            (1023, "1023 B", "1023"),
            (1536, "1.5 KiB", "1.5K"),
            (1537, "1.5 KiB", "1.6K"),
            (10 << 10, "10.0 KiB", "10K"),
            (10_230, "10.0 KiB", "10K"),
            (300 << 30, "300.0 GiB", "300G"),
            (u64::MAX, "16.0 EiB", "16E"),
        ] {
            assert_eq!((human(bytes).as_str(), short(bytes).as_str()), (long, columns));
        }
    }
}

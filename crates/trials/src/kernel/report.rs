//! The kernel's answers: a line for each operation, with the length of the log of writes at its end.
//!
//! ```text
//! 4608 begin            before the first
//! 13312 done 5          it was done; the inode that it made, or 0
//! 13312 refused 28      it was refused with this error
//! 99840 closed          the volume was unmounted
//! ```

use std::str::FromStr;

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Nothing was done yet.
    Begin,
    /// It was done; the inode that it made, or 0.
    Done(u32),
    /// An error of the operating system.
    Refused(i32),
    /// The volume was unmounted.
    Closed,
}

/// A line of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Bytes of the log when it was over.
    pub log: u64,
    /// How it ended.
    pub said: Said,
}

impl FromStr for Line {
    type Err = String;

    fn from_str(text: &str) -> Result<Line, String> {
        parse(text).ok_or_else(|| format!("`{text}` is not a line of a report"))
    }
}

fn parse(text: &str) -> Option<Line> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let said = match words[..] {
        [_, "begin"] => Said::Begin,
        [_, "closed"] => Said::Closed,
        [_, "done", ino] => Said::Done(ino.parse().ok()?),
        [_, "refused", errno] => Said::Refused(errno.parse().ok()?),
        _ => return None,
    };
    Some(Line { log: words[0].parse().ok()?, said })
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ", self.log)?;
        match self.said {
            Said::Begin => write!(f, "begin"),
            Said::Done(ino) => write!(f, "done {ino}"),
            Said::Refused(errno) => write!(f, "refused {errno}"),
            Said::Closed => write!(f, "closed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lead_back() {
        for text in ["512 begin", "5120 done 7", "5120 refused 28", "9000 closed"] {
            assert_eq!(text.parse::<Line>().map(|line| line.to_string()).as_deref(), Ok(text));
        }
        assert!("done".parse::<Line>().is_err() && "x begin".parse::<Line>().is_err());
    }
}

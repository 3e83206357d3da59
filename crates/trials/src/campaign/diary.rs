//! The states that campaigns looked at so far, in a file: one that takes hours may be stopped, and another goes on.
//!
//! ```text
//!   {"campaigns":2,"seconds":7200.5,"tallies":{"ace1":{..},..},"contents":4000000}\n
//!   8 bytes for each content, lowest first
//! ```

use std::collections::BTreeMap;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Class, Outcome};
use crate::contents::Contents;
use crate::explore::Tally;

/// A diary that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DiaryError {
    /// The file cannot be read or written.
    #[error("the diary {} cannot be used: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The file is something else, or only a part of one.
    #[error("{} is not a diary of campaigns: {what}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// Why not.
        what: String,
    },
}

/// The first line.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    campaigns: u64,
    seconds: f64,
    tallies: BTreeMap<Class, Tally>,
    contents: u64,
}

/// The states that campaigns looked at so far. Contents are told apart by what the volumes of this build hold: a diary
/// of another build may count one twice.
#[derive(Debug, Default)]
pub struct Diary {
    /// Where it is kept; `None`: nowhere.
    path: Option<PathBuf>,
    /// Campaigns before this one.
    pub campaigns: u64,
    /// How long they took.
    pub took: Duration,
    /// Their counts.
    pub tallies: BTreeMap<Class, Tally>,
    /// The contents that they saw, and this one sees.
    pub contents: Contents,
}

impl Diary {
    /// The diary in a file; a new one where there is none.
    ///
    /// # Errors
    /// [`DiaryError`].
    pub fn open(path: &Path) -> Result<Diary, DiaryError> {
        let other = |what: &str| DiaryError::Other { path: path.to_owned(), what: what.to_owned() };
        let mut bytes = Vec::new();
        match std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Diary { path: Some(path.to_owned()), ..Diary::default() });
            }
            Err(error) => return Err(DiaryError::Io { path: path.to_owned(), error }),
        }
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| other("it has no first line"))?;
        let head: Head = serde_json::from_slice(&bytes[..end]).map_err(|error| other(&error.to_string()))?;
        let (prints, rest) = bytes[end + 1..].as_chunks::<8>();
        if prints.len() as u64 != head.contents || !rest.is_empty() {
            return Err(other(&format!(
                "{} bytes of contents; {} contents are expected",
                bytes.len() - end - 1,
                head.contents
            )));
        }
        Ok(Diary {
            path: Some(path.to_owned()),
            campaigns: head.campaigns,
            took: Duration::try_from_secs_f64(head.seconds).map_err(|error| other(&error.to_string()))?,
            tallies: head.tallies,
            contents: prints.iter().map(|print| u64::from_le_bytes(*print)).collect(),
        })
    }

    /// Writes it down, with what this campaign looked at: all of it, or what was there stays.
    ///
    /// # Errors
    /// [`DiaryError`].
    pub fn save(&self, outcome: &Outcome) -> Result<(), DiaryError> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut prints = self.contents.prints();
        prints.sort_unstable();
        let head = Head {
            campaigns: self.campaigns + 1,
            seconds: outcome.took.as_secs_f64(),
            tallies: outcome.tallies.clone(),
            contents: prints.len() as u64,
        };
        let written = || {
            let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let mut file = tempfile::NamedTempFile::new_in(dir)?;
            let mut out = BufWriter::new(&mut file);
            serde_json::to_writer(&mut out, &head)?;
            out.write_all(b"\n")?;
            prints.iter().try_for_each(|print| out.write_all(&print.to_le_bytes()))?;
            out.flush()?;
            drop(out);
            file.as_file().sync_all()?;
            file.persist(path).map_err(|error| error.error)?;
            Ok(())
        };
        written().map_err(|error| DiaryError::Io { path: path.clone(), error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_there_again() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("diary");
        let diary = Diary::open(&path)?;
        assert_eq!((diary.campaigns, diary.contents.prints().len()), (0, 0));
        for print in [7, u64::MAX, 0] {
            assert!(diary.contents.add(print));
        }
        let tally = Tally { states: 4, distinct: 3, ..Tally::default() };
        let outcome = Outcome {
            tallies: BTreeMap::from([(Class::Ace1, tally)]),
            took: Duration::from_millis(1500),
            ..Outcome::default()
        };
        diary.save(&outcome)?;
        diary.save(&outcome)?;
        let again = Diary::open(&path)?;
        assert_eq!((again.campaigns, again.took, &again.tallies), (1, outcome.took, &outcome.tallies));
        assert!(!again.contents.add(u64::MAX) && again.contents.add(1));
        again.save(&outcome)?;
        assert_eq!(Diary::open(&path)?.campaigns, 2);
        Ok(())
    }

    #[test]
    fn other_files_and_parts_are_refused() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("diary");
        let diary = Diary::open(&path)?;
        diary.contents.add(5);
        diary.save(&Outcome::default())?;
        let whole = std::fs::read(&path)?;
        let part = &whole[..whole.len() - 1];
        for bytes in [b"".as_slice(), b"{}\n", b"{\"campaigns\":true}\n", part, &[&whole, b"x".as_slice()].concat()] {
            std::fs::write(&path, bytes)?;
            assert!(
                matches!(Diary::open(&path), Err(DiaryError::Other { .. })),
                "{:?}",
                bytes.escape_ascii().to_string()
            );
        }
        assert!(matches!(Diary::open(dir.path()), Err(DiaryError::Io { .. })));
        Ok(())
    }
}

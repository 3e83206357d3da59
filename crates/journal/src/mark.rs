//! A moment of a journal, up to which its space can be taken back.

/// A moment of a journal: the end of each lane, all at once. If a record lies before the mark, so does each that it
/// follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub(crate) journal: [u8; 16],
    pub(crate) epoch: u32,
    pub(crate) ends: Vec<u64>,
    pub(crate) stamp: u64,
}

impl Mark {
    /// The end of each lane.
    #[must_use]
    pub fn ends(&self) -> &[u64] {
        &self.ends
    }

    /// The highest stamp before it.
    #[must_use]
    pub fn stamp(&self) -> u64 {
        self.stamp
    }
}

/// How much of a journal is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of all lanes.
    pub bytes: u64,
    /// Bytes of records that were not taken back.
    pub used: u64,
    /// Bytes of the fullest lane that are used.
    pub fullest: u64,
}

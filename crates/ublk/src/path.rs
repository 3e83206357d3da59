//! The ways that data take between a request and the device, and which of them a driver is asked for. No I/O, no state.
//!
//! ```text
//!   request's pages <---- the driver, at fetch and commit -----> our memory <----> device       kernel
//!   request's pages <---- reads and writes of /dev/ublkcN -----> our memory <----> device       user
//!   request's pages <------------------------------------------------------------> file         none
//! ```
//! A device has one way for all of its life, but for *selective*, which is user copy for short requests and no copy for
//! long ones. A request that cannot go without a copy goes by user copy, so a device without copies has both features.

use std::fmt;

use crate::{
    UblkError,
    abi::{Descriptor, feature, op},
};

/// How data move between a request of the kernel and the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataPath {
    /// The driver copies between the request and memory of the server.
    Kernel,
    /// The server copies, by reading and writing the driver's file (Linux 6.5).
    User,
    /// Nobody copies: a device that is a file is read and written where the request lies (Linux 6.16).
    None,
    /// User copy for short requests, no copy for long ones (Linux 6.15).
    Selective,
}

impl fmt::Display for DataPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "kernel",
            Self::User => "user",
            Self::None => "none",
            Self::Selective => "selective",
        })
    }
}

/// The driver lends the pages of a request from its fetch to its commit.
const LENT: u64 = feature::AUTO_BUF_REG | feature::USER_COPY;
/// The driver lends them when it is asked.
const LENT_IF_ASKED: u64 = feature::SUPPORT_ZERO_COPY | feature::USER_COPY;

impl DataPath {
    /// The features that the driver is asked for.
    pub(crate) fn features(self) -> u64 {
        match self {
            Self::Kernel => 0,
            Self::User => feature::USER_COPY,
            Self::None => LENT,
            Self::Selective => LENT_IF_ASKED,
        }
    }

    /// What a device with these features has.
    pub(crate) fn of(flags: u64) -> Self {
        if flags & feature::AUTO_BUF_REG != 0 {
            Self::None
        } else if flags & feature::SUPPORT_ZERO_COPY != 0 {
            Self::Selective
        } else if flags & feature::USER_COPY != 0 {
            Self::User
        } else {
            Self::Kernel
        }
    }

    /// The way of a new device. `is_file`: its data lie in a file. `unprivileged`: it is not root's, and then the driver
    /// trusts its server with no pages.
    pub(crate) fn choose(
        asked: Option<Self>,
        features: u64,
        zoned: bool,
        is_file: bool,
        unprivileged: bool,
    ) -> Result<Self, UblkError> {
        let path = match asked {
            // The driver has no other way for zones here: their data lie in memory.
            _ if zoned => Self::User,
            Some(path) => path,
            None if is_file && !unprivileged && features & LENT == LENT => Self::None,
            None => Self::Kernel,
        };
        if unprivileged && path != Self::Kernel {
            return Err(UblkError::RootAlone);
        }
        if !is_file && matches!(path, Self::None | Self::Selective) {
            return Err(UblkError::NoFile);
        }
        let (name, since) = match path {
            Self::Kernel | Self::User => ("user copy", "6.5"),
            Self::None => ("automatic registration of buffers (data without a copy)", "6.16"),
            Self::Selective => ("data without a copy", "6.15"),
        };
        let wanted = path.features();
        if features & wanted == wanted { Ok(path) } else { Err(UblkError::TooOld { feature: name, since }) }
    }
}

/// Which requests lend their pages to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lending {
    Never,
    /// All that the driver could register.
    All,
    /// Those of so many sectors and more, when the driver is asked.
    From(u32),
}

impl Lending {
    /// On a device with these features. `border`: bytes of the shortest request that is worth asking for.
    pub(crate) fn of(flags: u64, border: u32) -> Self {
        match DataPath::of(flags) {
            DataPath::Kernel | DataPath::User => Self::Never,
            DataPath::None => Self::All,
            DataPath::Selective => Self::From(border.div_ceil(512)),
        }
    }

    /// Whether this request, which has data, lends them.
    pub(crate) fn lends(self, request: &Descriptor) -> bool {
        match self {
            Self::Never => false,
            Self::All => request.op_flags & op::NEED_REG_BUF == 0,
            Self::From(sectors) => request.count >= sectors,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u64 = u64::MAX;

    #[test]
    fn a_device_has_the_way_that_it_was_made_with() {
        for path in [DataPath::Kernel, DataPath::User, DataPath::None, DataPath::Selective] {
            assert_eq!(DataPath::of(path.features() | feature::USER_RECOVERY), path);
            let chosen = DataPath::choose(Some(path), ALL, false, true, false).unwrap();
            assert_eq!(chosen, path);
        }
    }

    #[test]
    fn without_a_wish_the_kernel_decides() {
        let choose =
            |features, is_file, unprivileged| DataPath::choose(None, features, false, is_file, unprivileged).unwrap();
        assert_eq!(choose(ALL, true, false), DataPath::None);
        // Linux 6.12 has no registration of buffers, memory has no file, and nobody but root is trusted.
        assert_eq!(choose(feature::USER_COPY | feature::SUPPORT_ZERO_COPY, true, false), DataPath::Kernel);
        assert_eq!(choose(ALL, false, false), DataPath::Kernel);
        assert_eq!(choose(ALL, true, true), DataPath::Kernel);
        let zoned = |asked| DataPath::choose(asked, ALL, true, false, false).unwrap();
        assert_eq!([zoned(None), zoned(Some(DataPath::Kernel))], [DataPath::User; 2]);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_reason() {
        let refused = |path, features, is_file, unprivileged| {
            DataPath::choose(Some(path), features, false, is_file, unprivileged).unwrap_err().to_string()
        };
        assert!(refused(DataPath::None, feature::USER_COPY, true, false).ends_with("needs Linux 6.16"));
        assert!(refused(DataPath::Selective, feature::USER_COPY, true, false).ends_with("needs Linux 6.15"));
        assert!(refused(DataPath::User, 0, true, false).ends_with("needs Linux 6.5"));
        for path in [DataPath::None, DataPath::Selective] {
            assert!(refused(path, ALL, false, false).contains("a device that is a file"));
            assert!(refused(path, ALL, true, true).contains("for root alone"));
        }
        assert!(DataPath::choose(Some(DataPath::Kernel), 0, false, true, true).is_ok());
    }

    #[test]
    fn requests_lend_by_their_size_and_by_the_drivers_word() {
        let request = |op_flags, count| Descriptor { op_flags, count, start_sector: 0, address: 0 };
        let lends = |path: DataPath, request: &Descriptor| Lending::of(path.features(), 64 << 10).lends(request);
        let (short, long) = (request(op::READ, 127), request(op::WRITE, 128));
        assert_eq!([lends(DataPath::Selective, &short), lends(DataPath::Selective, &long)], [false, true]);
        assert!(lends(DataPath::None, &short) && lends(DataPath::None, &long));
        assert!(!lends(DataPath::None, &request(op::READ | op::NEED_REG_BUF, 128)), "it could not be registered");
        assert!(!lends(DataPath::Kernel, &long) && !lends(DataPath::User, &long));
    }
}

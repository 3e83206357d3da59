//! Why an extended attribute is refused.

use core::fmt;

use rustix::io::Errno;

/// The fault of an extended attribute that was to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadAttribute {
    /// The name has more than 255 bytes, its prefix included (`ERANGE`).
    NameTooLong,
    /// The name holds a zero byte (`EINVAL`).
    ZeroByte,
    /// The name has no prefix that F2FS knows (`EOPNOTSUPP`).
    Prefix,
    /// The name is a prefix with nothing behind it (`EINVAL`).
    OnlyPrefix,
    /// The file system's own, which nobody else sets: the note of a journal (`EPERM`).
    Own,
    /// The value of an ACL's attribute is not an ACL (`EINVAL`).
    NotAnAcl,
    /// The value is longer than any that the file could hold without other attributes (`E2BIG`).
    TooLarge,
    /// The value does not fit beside the file's other attributes (`ENOSPC`).
    NoRoom,
}

impl BadAttribute {
    pub(crate) fn number(self) -> Errno {
        match self {
            BadAttribute::NameTooLong => Errno::RANGE,
            BadAttribute::ZeroByte | BadAttribute::OnlyPrefix | BadAttribute::NotAnAcl => Errno::INVAL,
            BadAttribute::Own => Errno::PERM,
            BadAttribute::Prefix => Errno::OPNOTSUPP,
            BadAttribute::TooLarge => Errno::TOOBIG,
            BadAttribute::NoRoom => Errno::NOSPC,
        }
    }
}

impl fmt::Display for BadAttribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadAttribute::NameTooLong => "a name that is too long",
            BadAttribute::ZeroByte => "a name with a zero byte",
            BadAttribute::Prefix => "a name without a known prefix",
            BadAttribute::OnlyPrefix => "a prefix without a name behind it",
            BadAttribute::Own => "a name that is the file system's own",
            BadAttribute::NotAnAcl => "not an access control list",
            BadAttribute::TooLarge => "a value that is too long",
            BadAttribute::NoRoom => "no room beside the others",
        })
    }
}

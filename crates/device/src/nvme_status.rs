//! The status of an NVMe command, as an error.

use std::fmt;

/// The status with which an NVMe device completed a command, other than success: the field of the completion, without
/// its phase bit.
///
/// It has a type and a code (NVM Express Base Specification, "Status Field"), and says whether it makes sense to try
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NvmeStatus(u16);

/// Types of status.
const GENERIC: u8 = 0;
const COMMAND: u8 = 1;
const MEDIA: u8 = 2;
const PATH: u8 = 3;

impl NvmeStatus {
    /// The status with these bits: the code in bits 0 to 7, its type in bits 8 to 10, "do not retry" in bit 14.
    #[must_use]
    pub fn new(bits: u16) -> Self {
        Self(bits & 0x7fff)
    }

    /// All bits.
    #[must_use]
    pub fn bits(self) -> u16 {
        self.0
    }

    /// The status code type: 0 generic, 1 of the command, 2 of the media, 3 of the path, 7 of the vendor.
    #[must_use]
    pub fn code_type(self) -> u8 {
        (self.0 >> 8) as u8 & 7
    }

    /// The status code.
    #[must_use]
    pub fn code(self) -> u8 {
        self.0 as u8
    }

    /// Whether the device says that the same command will fail again.
    #[must_use]
    pub fn do_not_retry(self) -> bool {
        self.0 & 1 << 14 != 0
    }

    /// Whether the command was not carried out, for a reason that passes: the namespace is not ready yet, or the device
    /// interrupted the command.
    #[must_use]
    pub fn passes(self) -> bool {
        let passing = matches!((self.code_type(), self.code()), (GENERIC, 0x21 | 0x82));
        passing && !self.do_not_retry()
    }

    /// The meaning of the code, for those that a read, a write, a flush or a deallocation may return.
    fn meaning(self) -> &'static str {
        match (self.code_type(), self.code()) {
            (GENERIC, 0x01) => "invalid opcode",
            (GENERIC, 0x02) => "invalid field",
            (GENERIC, 0x04) => "data transfer error",
            (GENERIC, 0x05) => "aborted by a loss of power",
            (GENERIC, 0x06) => "internal error",
            (GENERIC, 0x07) => "aborted by request",
            (GENERIC, 0x08) => "aborted because its queue was deleted",
            (GENERIC, 0x0b) => "invalid namespace or format",
            (GENERIC, 0x1c) => "sanitize failed",
            (GENERIC, 0x1d) => "sanitize in progress",
            (GENERIC, 0x20) => "the namespace is write-protected",
            (GENERIC, 0x21) => "interrupted",
            (GENERIC, 0x22) => "transient transport error",
            (GENERIC, 0x80) => "sector out of range",
            (GENERIC, 0x81) => "capacity exceeded",
            (GENERIC, 0x82) => "the namespace is not ready",
            (GENERIC, 0x83) => "reservation conflict: another host has the namespace",
            (COMMAND, 0x80) => "conflicting attributes",
            (COMMAND, 0x81) => "invalid protection information",
            (COMMAND, 0x82) => "a write to sectors that can only be read",
            (MEDIA, 0x80) => "write fault",
            (MEDIA, 0x81) => "unrecovered read error",
            (MEDIA, 0x82..=0x84) => "protection information does not match",
            (MEDIA, 0x85) => "compare failure",
            (MEDIA, 0x86) => "access denied",
            (MEDIA, 0x87) => "deallocated or unwritten sector",
            (PATH, 0x00) => "internal error of the path",
            (PATH, 0x01) => "the path is lost for good",
            (PATH, 0x02) => "the path is inaccessible",
            (PATH, 0x03) => "the path is changing",
            (PATH, 0x60) => "controller lost on the way",
            (PATH, 0x70) => "the host has lost the path to the device",
            (PATH, 0x71) => "aborted by the host",
            (7, _) => "a status of the vendor",
            _ => "refused",
        }
    }
}

impl fmt::Display for NvmeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (NVMe status type {}, code {:#04x}", self.meaning(), self.code_type(), self.code())?;
        f.write_str(if self.do_not_retry() { ", do not retry)" } else { ")" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_type_code_and_retry() {
        let unrecovered = NvmeStatus::new(0x4281);
        assert_eq!((unrecovered.code_type(), unrecovered.code(), unrecovered.do_not_retry()), (2, 0x81, true));
        assert_eq!(unrecovered.to_string(), "unrecovered read error (NVMe status type 2, code 0x81, do not retry)");
        let path = NvmeStatus::new(0x370);
        assert_eq!(path.to_string(), "the host has lost the path to the device (NVMe status type 3, code 0x70)");
        assert_eq!(NvmeStatus::new(0xffff).bits(), 0x7fff);
        assert!(NvmeStatus::new(0x82).passes() && !NvmeStatus::new(0x4082).passes() && !path.passes());
    }
}

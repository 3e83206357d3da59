//! Encrypted files as they look without their key: the name of an entry as the kernel shows it, and the policy of an
//! inode.
//!
//! Without its key a directory's names are ciphertext, which may hold any byte. They are shown as a text that leads
//! back to the entry (`struct fscrypt_nokey_name` in `fs/crypto/fname.c`):
//!
//! ```text
//!  base64url, without padding, of  | hash 4 | minor hash 4 | ciphertext, up to 149 bytes | SHA-256 of the rest, if there is one |
//! ```

use alloc::vec::Vec;
use core::fmt;

use sha2::{Digest, Sha256};

use crate::xattr::{XattrBuffer, index};

/// Bytes of the ciphertext that stand in a no-key name as they are.
const PLAIN: usize = 149;
/// Bytes of the two hashes in front of them.
const HASHES: usize = 8;
/// Bytes of a digest.
const DIGEST: usize = 32;
/// Bytes of the longest encrypted name that is shown in full, the hashes included.
const WHOLE: usize = HASHES + PLAIN;
/// Bytes of a longer one.
const LONGEST: usize = WHOLE + DIGEST;
/// Least bytes of an encrypted name (`FSCRYPT_FNAME_MIN_MSG_LEN`).
pub const MIN_NAME_LEN: usize = 16;
/// Name of the attribute that holds the policy (`F2FS_XATTR_NAME_ENCRYPTION_CONTEXT`).
const CONTEXT: &[u8] = b"c";

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The name that stands for an encrypted one as long as there is no key: `hash` is the one in its entry, `name` the
/// ciphertext.
///
/// ```
/// use f2fs_format::encryption::{NoKeyName, no_key_name};
/// let shown = no_key_name(7, &[0xa5; 16]);
/// assert_eq!(shown, b"BwAAAAAAAAClpaWlpaWlpaWlpaWlpaWl");
/// assert!(NoKeyName::parse(&shown).is_some_and(|name| name.hash() == 7 && name.means(&[0xa5; 16])));
/// ```
#[must_use]
pub fn no_key_name(hash: u32, name: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(LONGEST);
    bytes.extend_from_slice(&hash.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    match name.split_at_checked(PLAIN) {
        Some((plain, rest)) if !rest.is_empty() => {
            bytes.extend_from_slice(plain);
            bytes.extend_from_slice(&Sha256::digest(rest));
        }
        _ => bytes.extend_from_slice(name),
    }
    encode(&bytes)
}

/// Bytes of the no-key name of a ciphertext of `len` bytes.
#[must_use]
pub const fn no_key_len(len: usize) -> usize {
    let bytes = if len <= PLAIN { HASHES + len } else { LONGEST };
    (bytes * 4).div_ceil(3)
}

/// A no-key name that was asked for, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoKeyName(Vec<u8>);

impl NoKeyName {
    /// Takes a name apart; `None` if no encrypted name is shown like that.
    #[must_use]
    pub fn parse(shown: &[u8]) -> Option<NoKeyName> {
        let bytes = decode(shown)?;
        let possible = (HASHES + 1..=WHOLE).contains(&bytes.len()) || bytes.len() == LONGEST;
        possible.then_some(NoKeyName(bytes))
    }

    /// The hash that the entry states.
    #[must_use]
    pub fn hash(&self) -> u32 {
        self.0.first_chunk().map_or(0, |hash| u32::from_le_bytes(*hash))
    }

    /// Whether this ciphertext is meant.
    #[must_use]
    pub fn means(&self, name: &[u8]) -> bool {
        let bytes = self.0.get(HASHES..).unwrap_or_default();
        match (bytes.split_at_checked(PLAIN), name.split_at_checked(PLAIN)) {
            (Some((plain, digest)), Some((start, rest))) if !digest.is_empty() && !rest.is_empty() => {
                plain == start && digest == &Sha256::digest(rest)[..]
            }
            _ => bytes == name,
        }
    }
}

fn encode(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity((bytes.len() * 4).div_ceil(3));
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        text.extend((0..=group.len()).map(|index| ALPHABET[(word >> (18 - 6 * index) & 63) as usize]));
    }
    text
}

/// The bytes behind a text; `None` for other characters, a length that no bytes have, and bits that stand for none.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    for group in text.chunks(4) {
        let mut word = 0u32;
        for character in group {
            let digit = match character {
                b'A'..=b'Z' => character - b'A',
                b'a'..=b'z' => character - b'a' + 26,
                b'0'..=b'9' => character - b'0' + 52,
                b'-' => 62,
                b'_' => 63,
                _ => return None,
            };
            word = word << 6 | u32::from(digit);
        }
        let word = (word << (6 * (4 - group.len()))).to_be_bytes();
        let (now, rest) = word[1..].split_at_checked(group.len().checked_sub(1)?)?;
        if now.is_empty() || rest.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(now);
    }
    Some(bytes)
}

/// How a file is encrypted, and by which key (`union fscrypt_context`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncryptionPolicy {
    /// 1 or 2.
    pub version: u8,
    /// Cipher of the contents (`FSCRYPT_MODE_*`).
    pub contents_mode: u8,
    /// Cipher of the names.
    pub filenames_mode: u8,
    /// `FSCRYPT_POLICY_FLAG_*`.
    pub flags: u8,
    key: [u8; 16],
}

impl EncryptionPolicy {
    /// Reads the value of the attribute that holds it; `None` if the kernel does not know it.
    #[must_use]
    pub fn from_context(value: &[u8]) -> Option<EncryptionPolicy> {
        let (&[version, contents_mode, filenames_mode, flags], rest) = value.split_first_chunk()?;
        let mut key = [0; 16];
        let (from, size) = match version {
            1 => (rest.get(..8)?, 28),
            2 => (rest.get(4..20)?, 40),
            _ => return None,
        };
        key.get_mut(..from.len())?.copy_from_slice(from);
        (value.len() == size).then_some(EncryptionPolicy { version, contents_mode, filenames_mode, flags, key })
    }

    /// The policy among the attributes of an inode; `None` if there is no policy, or one that the kernel does not know.
    #[must_use]
    pub fn of(xattrs: &XattrBuffer) -> Option<EncryptionPolicy> {
        Self::from_context(xattrs.get(index::ENCRYPTION, CONTEXT)?)
    }

    /// The name of the key: the descriptor of 8 bytes of a policy v1, the identifier of 16 bytes of a policy v2.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        if self.version == 1 { &self.key[..8] } else { &self.key }
    }
}

/// As `policy v2, key 00112233445566778899aabbccddeeff`.
impl fmt::Display for EncryptionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policy v{}, key ", self.version)?;
        self.key().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_lead_back_to_their_entries() {
        for len in [1, 15, 16, 32, 148, 149, 150, 176, 255] {
            let name: Vec<u8> = (0..len).map(|at| (at * 7) as u8).collect();
            let shown = no_key_name(0xdead_beef, &name);
            assert_eq!(shown.len(), no_key_len(len));
            assert!(shown.len() <= 255 && shown.iter().all(|byte| ALPHABET.contains(byte)));
            let parsed = NoKeyName::parse(&shown).unwrap();
            assert!(parsed.hash() == 0xdead_beef && parsed.means(&name), "{len}");
            for at in [0, len / 2, len - 1] {
                let mut other = name.clone();
                other[at] ^= 1;
                assert!(!parsed.means(&other), "{len}, byte {at}");
            }
            assert!(!parsed.means(&name[..len - 1]) && !parsed.means(&[&name[..], b"x"].concat()));
        }
    }

    #[test]
    fn what_is_no_such_name_is_refused() {
        let good = no_key_name(1, &[9; 16]);
        assert!(NoKeyName::parse(&good).is_some());
        // Nothing behind the hashes; another alphabet; padding; a length that no bytes have; bits that stand for no
        // byte.
        for bad in
            [&b""[..], b"AAAAAAAAAAA", b"a+b/AAAAAAAAAAAA", b"AAAAAAAAAAAAAA==", b"AAAAAAAAAAAAA", b"AAAAAAAAAAAAAB"]
        {
            assert_eq!(NoKeyName::parse(bad), None, "{}", bad.escape_ascii());
        }
        let between = encode(&[0; WHOLE + 1]);
        assert_eq!(NoKeyName::parse(&between), None);
    }

    #[test]
    fn policies() {
        let mut v2 = vec![2, 1, 4, 2, 0, 0, 0, 0];
        v2.extend(0..16);
        v2.extend([0xff; 16]);
        let policy = EncryptionPolicy::from_context(&v2).unwrap();
        assert_eq!(policy.to_string(), "policy v2, key 000102030405060708090a0b0c0d0e0f");
        let mut v1 = vec![1, 1, 4, 0];
        v1.extend([0xab; 8]);
        v1.extend([0; 16]);
        assert_eq!(EncryptionPolicy::from_context(&v1).unwrap().to_string(), "policy v1, key abababababababab");
        v1[0] = 3;
        assert_eq!(EncryptionPolicy::from_context(&v1), None);
        assert_eq!((EncryptionPolicy::from_context(&v2[..39]), EncryptionPolicy::from_context(&[])), (None, None));
    }

    proptest! {
        #[test]
        fn text_and_bytes_round_trip(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }

        #[test]
        fn any_text_is_safe(text in prop::collection::vec(any::<u8>(), 0..260)) {
            if let Some(name) = NoKeyName::parse(&text) {
                let _ = (name.hash(), name.means(&text));
                prop_assert_eq!(encode(&name.0), text);
            }
        }
    }
}

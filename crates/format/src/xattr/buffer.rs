//! The buffer: parse, list, get, set, remove.

use alloc::vec;
use alloc::vec::Vec;
use zerocopy::{FromBytes, IntoBytes};

use super::{ENTRY_HEADER_SIZE, HEADER_SIZE, MAGIC, NODE_SIZE, XattrEntryHeader, XattrHeader};
use crate::Corruption;
use crate::inode::NAME_LEN;

/// One attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XattrEntry<'a> {
    /// Where the entry begins, in bytes from the header.
    pub offset: usize,
    /// The name's [`index`](super::index).
    pub index: u8,
    /// The name without its prefix.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

impl XattrEntry<'_> {
    /// Bytes that the entry takes, padding included.
    #[must_use]
    pub fn size(&self) -> usize {
        entry_size(self.name.len(), self.value.len())
    }
}

/// Bytes of an entry, padding included (`ENTRY_SIZE`).
const fn entry_size(name: usize, value: usize) -> usize {
    (ENTRY_HEADER_SIZE + name + value).next_multiple_of(4)
}

/// How [`XattrBuffer::set`] treats an attribute of that name (`XATTR_CREATE`, `XATTR_REPLACE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SetMode {
    /// Creates or replaces it.
    #[default]
    Any,
    /// Fails if there is one.
    Create,
    /// Fails if there is none.
    Replace,
}

/// Why an attribute could not be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum XattrError {
    /// [`SetMode::Create`], and the attribute is there.
    #[error("the attribute exists")]
    Exists,
    /// [`SetMode::Replace`], and the attribute is not there.
    #[error("no such attribute")]
    NotFound,
    /// The name is longer than 255 bytes.
    #[error("attribute name of {len} bytes, at most 255 are possible")]
    NameTooLong {
        /// Its length in bytes, without the prefix.
        len: usize,
    },
    /// The value is longer than any that an inode could hold with no other attribute (`MAX_VALUE_LEN`).
    #[error("attribute value of {len} bytes, at most {most} are possible")]
    TooLarge {
        /// Its length in bytes.
        len: usize,
        /// The most that this inode could hold.
        most: usize,
    },
    /// The value does not fit beside the others.
    #[error("the attribute needs {needed} bytes, {free} are free")]
    NoRoom {
        /// Bytes that the entry takes.
        needed: usize,
        /// Bytes that are left for it.
        free: usize,
    },
    /// The present content is corrupt.
    #[error(transparent)]
    Corrupt(#[from] Corruption),
}

/// All attributes of an inode, as `read_all_xattrs` and `write_all_xattrs` see them: the inline area, then the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XattrBuffer {
    /// Header and entries; as long as the inline area and a node together, whether or not there is a node.
    bytes: Vec<u8>,
    inline_size: usize,
    /// Bytes of header and entries, without the terminator.
    used: usize,
}

impl XattrBuffer {
    /// The attributes of an inode from its inline area (empty if it has none) and the body of its xattr node, if any.
    ///
    /// A buffer without the magic number holds no attributes.
    ///
    /// # Errors
    /// [`Corruption::Xattr`] if an entry runs beyond the areas that are there.
    pub fn read(inline: &[u8], node: Option<&[u8; NODE_SIZE]>) -> Result<XattrBuffer, Corruption> {
        let mut bytes = vec![0; inline.len() + NODE_SIZE];
        bytes[..inline.len()].copy_from_slice(inline);
        let mut present = inline.len();
        if let Some(node) = node {
            bytes[inline.len()..].copy_from_slice(node);
            present = bytes.len();
        }
        let magic = XattrHeader::ref_from_prefix(&bytes).map(|(header, _)| header.h_magic.get());
        if present < HEADER_SIZE || magic != Ok(MAGIC) {
            bytes.fill(0);
            let header = XattrHeader { h_magic: MAGIC.into(), h_refcount: 1.into(), h_reserved: Default::default() };
            bytes[..HEADER_SIZE].copy_from_slice(header.as_bytes());
            return Ok(XattrBuffer { bytes, inline_size: inline.len(), used: HEADER_SIZE });
        }
        let mut used = HEADER_SIZE;
        for entry in (XattrEntries { bytes: &bytes[..present], at: HEADER_SIZE }) {
            let entry = entry?;
            used = entry.offset + entry.size();
        }
        Ok(XattrBuffer { bytes, inline_size: inline.len(), used })
    }

    /// The attributes, in the order in which they stand.
    #[must_use]
    pub fn entries(&self) -> XattrEntries<'_> {
        XattrEntries { bytes: &self.bytes[..self.used], at: HEADER_SIZE }
    }

    fn find(&self, index: u8, name: &[u8]) -> Option<XattrEntry<'_>> {
        self.entries().flatten().find(|entry| entry.index == index && entry.name == name)
    }

    /// The value of an attribute.
    #[must_use]
    pub fn get(&self, index: u8, name: &[u8]) -> Option<&[u8]> {
        self.find(index, name).map(|entry| entry.value)
    }

    /// Whether there is no attribute.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used == HEADER_SIZE
    }

    /// Sets an attribute. A replaced one moves to the end, as in the kernel; one that has this value already stays.
    ///
    /// # Errors
    /// [`XattrError`]; then nothing is changed.
    pub fn set(&mut self, index: u8, name: &[u8], value: &[u8], mode: SetMode) -> Result<(), XattrError> {
        if name.len() > NAME_LEN {
            return Err(XattrError::NameTooLong { len: name.len() });
        }
        let most = self.bytes.len() - HEADER_SIZE - size_of::<XattrEntryHeader>();
        if value.len() > most {
            return Err(XattrError::TooLarge { len: value.len(), most });
        }
        let needed = entry_size(name.len(), value.len());
        let mut free = self.bytes.len() - self.used;
        match (self.find(index, name), mode) {
            (Some(_), SetMode::Create) => return Err(XattrError::Exists),
            (None, SetMode::Replace) => return Err(XattrError::NotFound),
            (Some(old), _) if old.value == value => return Ok(()),
            (Some(old), _) => free += old.size(),
            (None, _) => {}
        }
        if needed > free {
            return Err(XattrError::NoRoom { needed, free });
        }
        let Ok(value_size) = u16::try_from(value.len()) else {
            return Err(XattrError::TooLarge { len: value.len(), most: usize::from(u16::MAX) });
        };
        self.remove(index, name);
        let fixed =
            XattrEntryHeader { e_name_index: index, e_name_len: name.len() as u8, e_value_size: value_size.into() };
        // Old bytes may stand behind the list that was read; the terminator must be zero.
        self.bytes[self.used..].fill(0);
        let mut at = self.used;
        for part in [fixed.as_bytes(), name, value] {
            self.bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        self.used += needed;
        Ok(())
    }

    /// Removes an attribute; tells whether it was there.
    pub fn remove(&mut self, index: u8, name: &[u8]) -> bool {
        let Some((start, size)) = self.find(index, name).map(|entry| (entry.offset, entry.size())) else {
            return false;
        };
        self.bytes.copy_within(start + size..self.used, start);
        self.used -= size;
        self.bytes[self.used..].fill(0);
        true
    }

    /// The part for the inode's inline area; as long as the area that was read.
    #[must_use]
    pub fn inline(&self) -> &[u8] {
        &self.bytes[..self.inline_size]
    }

    /// The part for the body of the xattr node; `None` if everything fits the inline area, and a node that exists
    /// is to be freed.
    #[must_use]
    pub fn node(&self) -> Option<&[u8; NODE_SIZE]> {
        // Without an inline area an empty list needs no node either.
        if self.used <= self.inline_size || self.is_empty() {
            return None;
        }
        self.bytes[self.inline_size..].first_chunk()
    }
}

/// Iterator over attributes. Ends behind the first corrupt one.
#[derive(Clone, Debug)]
pub struct XattrEntries<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for XattrEntries<'a> {
    type Item = Result<XattrEntry<'a>, Corruption>;

    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.at;
        let (fixed, rest) = XattrEntryHeader::read_from_prefix(self.bytes.get(offset..)?).ok()?;
        let (name_len, value_len) = (usize::from(fixed.e_name_len), usize::from(fixed.e_value_size.get()));
        if fixed.e_name_index == 0 && name_len == 0 && value_len == 0 {
            return None;
        }
        let room = self.bytes.len() - offset;
        let size = entry_size(name_len, value_len);
        if size > room {
            self.at = self.bytes.len();
            return Some(Err(Corruption::Xattr { offset, what: "size", found: size as u64, max: room as u64 }));
        }
        self.at = offset + size;
        let (name, rest) = rest.split_at(name_len);
        Some(Ok(XattrEntry { offset, index: fixed.e_name_index, name, value: &rest[..value_len] }))
    }
}

impl core::iter::FusedIterator for XattrEntries<'_> {}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    use super::*;
    use crate::xattr::index::{SECURITY, USER};

    const INLINE: usize = 200;

    fn empty() -> XattrBuffer {
        XattrBuffer::read(&[0; INLINE], None).unwrap()
    }

    fn reread(buffer: &XattrBuffer) -> XattrBuffer {
        let again = XattrBuffer::read(buffer.inline(), buffer.node()).unwrap();
        assert_eq!(again.entries().collect::<Vec<_>>(), buffer.entries().collect::<Vec<_>>());
        again
    }

    #[test]
    fn bytes_on_disk() {
        let mut buffer = empty();
        buffer.set(USER, b"foo", b"value", SetMode::Any).unwrap();
        let expected = b"\x11\x20\xf5\xf2\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x03\x05\0foovalue\0\0\0\0";
        assert_eq!(&buffer.inline()[..40], expected);
        assert_eq!(buffer.node(), None);
        assert_eq!(reread(&buffer).get(USER, b"foo"), Some(&b"value"[..]));
        assert_eq!(buffer.get(SECURITY, b"foo"), None);
    }

    #[test]
    fn create_replace_remove() {
        let mut buffer = empty();
        assert_eq!(buffer.set(USER, b"a", b"1", SetMode::Replace), Err(XattrError::NotFound));
        buffer.set(USER, b"a", b"1", SetMode::Create).unwrap();
        buffer.set(USER, b"b", b"", SetMode::Create).unwrap();
        assert_eq!(buffer.set(USER, b"a", b"1", SetMode::Create), Err(XattrError::Exists));
        buffer.set(USER, b"a", b"two", SetMode::Replace).unwrap();
        let order: Vec<_> = buffer.entries().map(|entry| entry.unwrap().name).collect();
        assert_eq!(order, [b"b", b"a"]);
        assert_eq!((buffer.get(USER, b"a"), buffer.get(USER, b"b")), (Some(&b"two"[..]), Some(&b""[..])));
        assert!(buffer.remove(USER, b"b") && !buffer.remove(USER, b"b") && buffer.remove(USER, b"a"));
        assert!(buffer.is_empty());
        assert_eq!(buffer, empty());
        let error = buffer.set(USER, &[b'n'; 256], b"", SetMode::Any).unwrap_err();
        assert_eq!(error, XattrError::NameTooLong { len: 256 });
    }

    #[test]
    fn entries_cross_into_the_node_and_fill_it_to_the_end() {
        let mut buffer = empty();
        buffer.set(USER, b"x", &[7; INLINE - HEADER_SIZE - 5], SetMode::Any).unwrap();
        assert_eq!(buffer.node(), None, "the inline area is full to its last byte");
        reread(&buffer);
        let rest = NODE_SIZE - 5;
        let error = buffer.set(USER, b"y", &[9; NODE_SIZE], SetMode::Any).unwrap_err();
        assert_eq!(error, XattrError::NoRoom { needed: NODE_SIZE + 8, free: NODE_SIZE });
        buffer.set(USER, b"y", &vec![9; rest], SetMode::Any).unwrap();
        assert_eq!(reread(&buffer).get(USER, b"y"), Some(&vec![9; rest][..]));
        assert!(buffer.remove(USER, b"x"));
        assert!(buffer.node().is_some(), "the big one now begins in the inline area");
        assert_eq!(reread(&buffer).get(USER, b"y").map(<[u8]>::len), Some(rest));
        // The largest value: MAX_VALUE_LEN less the name.
        let mut buffer = empty();
        let largest = INLINE + NODE_SIZE - HEADER_SIZE - 4 - 4;
        let error = buffer.set(USER, b"name", &vec![1; largest + 1], SetMode::Any).unwrap_err();
        assert!(matches!(error, XattrError::NoRoom { .. }), "{error}");
        // Longer ones could not stand there with any name.
        for len in [largest + 5, 1 << 16] {
            let error = buffer.set(USER, b"name", &vec![1; len], SetMode::Any).unwrap_err();
            assert_eq!(error, XattrError::TooLarge { len, most: largest + 4 });
        }
        buffer.set(USER, b"name", &vec![1; largest], SetMode::Any).unwrap();
        reread(&buffer);
    }

    #[test]
    fn without_an_inline_area() {
        let mut buffer = XattrBuffer::read(&[], None).unwrap();
        assert_eq!((buffer.inline(), buffer.node()), (&[][..], None));
        buffer.set(USER, b"a", b"1", SetMode::Any).unwrap();
        assert!(buffer.node().is_some());
        assert_eq!(reread(&buffer).get(USER, b"a"), Some(&b"1"[..]));
        assert!(XattrBuffer::read(&[0; 8], None).unwrap().is_empty());
    }

    #[test]
    fn corrupt_entries_are_named() {
        let mut buffer = empty();
        buffer.set(USER, b"a", &[1; 300], SetMode::Any).unwrap();
        let error = XattrBuffer::read(buffer.inline(), None).unwrap_err();
        assert_eq!(error, Corruption::Xattr { offset: 24, what: "size", found: 308, max: 176 });
        let mut inline = [0xff; INLINE];
        inline[..4].copy_from_slice(&MAGIC.to_le_bytes());
        let error = XattrBuffer::read(&inline, None).unwrap_err();
        assert!(matches!(error, Corruption::Xattr { offset: 24, found: 65796, .. }), "{error}");
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(inline in prop::collection::vec(any::<u8>(), 0..400), magic: bool, node in prop::option::of(any::<[u8; 32]>())) {
            let mut inline = inline;
            if magic && inline.len() >= 4 {
                inline[..4].copy_from_slice(&MAGIC.to_le_bytes());
            }
            let node = node.map(|seed| core::array::from_fn(|i| seed[i % 32]));
            if let Ok(mut buffer) = XattrBuffer::read(&inline, node.as_ref()) {
                let _ = buffer.set(USER, b"name", b"value", SetMode::Any);
                buffer.remove(USER, b"name");
                prop_assert!(buffer.entries().all(|entry| entry.is_ok()));
            }
        }

        #[test]
        fn behaves_like_a_map(words in 0..60usize, ops in prop::collection::vec((0..3u8, 0..6u8, 0..900usize), 1..60)) {
            let mut buffer = XattrBuffer::read(&vec![0; 4 * words], None).unwrap();
            let mut model = BTreeMap::new();
            for (op, name, len) in ops {
                let name = vec![b'a' + name; 1 + usize::from(name) * 7];
                if op == 0 {
                    prop_assert_eq!(buffer.remove(USER, &name), model.remove(&name).is_some());
                } else {
                    let value = vec![op; len];
                    let mut next = model.clone();
                    next.insert(name.clone(), value.clone());
                    let size: usize = next.iter().map(|(name, value)| entry_size(name.len(), value.len())).sum();
                    let fits = HEADER_SIZE + size <= 4 * words + NODE_SIZE;
                    prop_assert_eq!(buffer.set(USER, &name, &value, SetMode::Any).is_ok(), fits);
                    if fits {
                        model = next;
                    }
                }
                buffer = reread(&buffer);
                let listed: BTreeMap<_, _> = buffer.entries().map(|entry| entry.unwrap()).map(|entry| (entry.name.to_vec(), entry.value.to_vec())).collect();
                prop_assert_eq!(&listed, &model);
            }
        }
    }
}

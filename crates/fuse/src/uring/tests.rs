//! Requests as the kernel leaves them in the memory of an entry, against a volume in memory.

use f2fs_files::{FileSystem, Options};
use f2fs_fuse_uring::RequestHeader;
use f2fs_sync::Arc;
use proptest::prelude::*;
use zerocopy::{FromBytes, FromZeros};

use super::abi::{
    Attr, AttrOut, CreateIn, CreateOut, Dirent, EntryOut, FallocateIn, GetXattrIn, IoctlIn, LinkIn, LseekIn, MkdirIn,
    MknodIn, OpenOut, ReadIn, Rename2In, RenameIn, SetAttrIn, SetXattrIn, StatfsOut, WriteIn, operation as op, valid,
    write,
};
use super::*;
use crate::options::{Cache, MountOptions};
use crate::table::ROOT;
use crate::volume::Mounted;

const ROOM: usize = 64 << 10;

struct Asked {
    service: Service,
    fs: FileSystem,
    memory: Vec<u8>,
    /// How often an answer has said what to read next.
    ahead: usize,
}

fn asked(options: MountOptions) -> Asked {
    let device = Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
    f2fs_volume::format::format(&*device, &Default::default()).unwrap();
    let fs = FileSystem::open(device, Options::new()).unwrap();
    Asked { service: Service(Mounted::new(&fs, options).unwrap()), fs, memory: vec![0; ROOM], ahead: 0 }
}

fn header(opcode: u32, nodeid: u64) -> RequestHeader {
    let mut header = RequestHeader::new_zeroed();
    (header.opcode, header.nodeid, header.unique) = (opcode, nodeid, 4);
    header
}

impl Asked {
    /// The bytes of the answer.
    fn bytes(
        &mut self,
        opcode: u32,
        node: u64,
        argument: &(impl IntoBytes + Immutable),
        payload: &[u8],
    ) -> Result<Vec<u8>, Errno> {
        let mut head = [0xa5; 128];
        head[..size_of_val(argument)].copy_from_slice(argument.as_bytes());
        self.memory[..payload.len()].copy_from_slice(payload);
        let mut exchange = Exchange::new(header(opcode, node), head, payload.len(), &mut self.memory);
        let read_on = |ahead| {
            self.ahead += 1;
            self.service.read_on(&ahead);
        };
        match answer(&self.service, &mut exchange, read_on) {
            Ok(length) => Ok(self.memory[..length].to_vec()),
            Err(number) => Err(Errno::from_raw_os_error(number)),
        }
    }

    /// The structure of the answer, which is all of it.
    fn ask<T: FromBytes>(
        &mut self,
        opcode: u32,
        node: u64,
        argument: &(impl IntoBytes + Immutable),
        payload: &[u8],
    ) -> Result<T, Errno> {
        let bytes = self.bytes(opcode, node, argument, payload)?;
        Ok(T::read_from_bytes(&bytes).unwrap_or_else(|_| panic!("{} bytes", bytes.len())))
    }

    fn done(&mut self, opcode: u32, node: u64, argument: &(impl IntoBytes + Immutable), payload: &[u8]) {
        assert_eq!(self.bytes(opcode, node, argument, payload), Ok(vec![]));
    }

    fn lookup(&mut self, parent: u64, name: &[u8]) -> EntryOut {
        self.ask(op::LOOKUP, parent, &(), &[name, b"\0"].concat()).unwrap()
    }

    fn create(&mut self, parent: u64, name: &[u8]) -> u64 {
        let made: CreateOut = self.ask(op::CREATE, parent, &NEW, &[name, b"\0"].concat()).unwrap();
        made.entry.nodeid
    }

    fn attributes(&mut self, node: u64) -> Attr {
        self.ask::<AttrOut>(op::GETATTR, node, &[0_u64; 2], b"").unwrap().attr
    }
}

const NEW: CreateIn = CreateIn { flags: 0, mode: 0o100_666, umask: 0o022, open_flags: 0 };

fn read(offset: u64, size: u32) -> ReadIn {
    ReadIn { fh: 0, offset, size, read_flags: 0, lock_owner: 0, flags: 0, padding: 0 }
}

fn write_in(offset: u64, size: u32) -> WriteIn {
    WriteIn { fh: 0, offset, size, write_flags: 0, lock_owner: 0, flags: 0, padding: 0 }
}

#[test]
fn files_are_made_written_and_read() {
    let mut asked = asked(MountOptions::default());
    let made: CreateOut = asked.ask(op::CREATE, ROOT, &NEW, b"f\0").unwrap();
    assert_eq!(made.entry.attr.mode, 0o100_644);
    assert_eq!(made.open.open_flags, 2, "the kernel keeps what it has of a new file");
    let file = made.entry.nodeid;
    assert_eq!(asked.bytes(op::CREATE, ROOT, &NEW, b"f\0"), Err(Errno::EXIST));
    let written: WriteOut = asked.ask(op::WRITE, file, &write_in(4090, 10), b"0123456789").unwrap();
    assert_eq!(written.size, 10);
    assert_eq!(asked.bytes(op::WRITE, file, &write_in(0, 11), b"0123456789"), Err(Errno::INVAL));
    assert_eq!(asked.bytes(op::READ, file, &read(4092, 100), b"").unwrap(), b"23456789");
    assert_eq!(asked.bytes(op::READ, file, &read(4092, 3), b"").unwrap(), b"234");
    assert_eq!(asked.bytes(op::READ, file, &read(5000, 3), b"").unwrap(), b"");
    assert_eq!(asked.attributes(file).size, 4100);
    asked.done(op::FSYNC, file, &[0_u64; 2], b"");
    asked.done(op::RELEASE, file, &[0_u64; 3], b"");
    assert_eq!(asked.bytes(op::OPEN, file, &[0_u32; 2], b""), Err(Errno::NOSYS));
    assert_eq!(asked.bytes(36, file, &(), b""), Err(Errno::NOSYS));
    let seek = |whence| LseekIn { fh: 0, offset: 0, whence, padding: 0 };
    assert_eq!(asked.ask::<LseekOut>(op::LSEEK, file, &seek(4), b"").unwrap().offset, 4100);
    let hole = FallocateIn { fh: 0, offset: 0, length: 4096, mode: 3, padding: 0 };
    asked.done(op::FALLOCATE, file, &hole, b"");
    assert_eq!(asked.ask::<LseekOut>(op::LSEEK, file, &seek(3), b"").unwrap().offset, 4096);
    assert_eq!(asked.bytes(op::LSEEK, file, &seek(7), b""), Err(Errno::INVAL));
    let space: StatfsOut = asked.ask(op::STATFS, ROOT, &(), b"").unwrap();
    assert!(space.bfree < space.blocks && space.bsize == 4096 && space.namelen == 255);
}

/// What was read ahead is in the answer, byte by byte, and what comes then is read behind it.
#[test]
fn a_file_that_is_read_in_order_is_read_ahead() {
    let mut asked = asked(MountOptions::default());
    let file = asked.create(ROOT, b"f");
    let step = ROOM as u32;
    for at in 0..64 {
        let data = vec![at as u8; ROOM];
        asked.ask::<WriteOut>(op::WRITE, file, &write_in(at * ROOM as u64, step), &data).unwrap();
    }
    for at in 0..64 {
        assert_eq!(asked.bytes(op::READ, file, &read(at * ROOM as u64, step), b"").unwrap(), vec![at as u8; ROOM]);
    }
    assert!(asked.ahead > 32, "{} of 64 answers were read ahead", asked.ahead);
}

/// As a damaged volume may have it.
#[test]
fn times_have_no_more_nanoseconds_than_a_second() {
    let mut asked = asked(MountOptions::default());
    let file = asked.create(ROOT, b"f");
    let mut data = asked.service.run(|volume| volume.attributes(file)).unwrap();
    (data.modified.seconds, data.modified.nanoseconds) = (7, u32::MAX);
    let shown = reply::attributes(&data, file);
    assert_eq!((shown.attr.mtime, shown.attr.mtimensec), (7, 999_999_999));
}

#[test]
fn a_file_without_the_kernels_cache_is_opened() {
    let mut asked = asked(MountOptions { cache: Cache::None, ..MountOptions::default() });
    let made: CreateOut = asked.ask(op::CREATE, ROOT, &NEW, b"f\0").unwrap();
    let file = made.entry.nodeid;
    let opened: OpenOut = asked.ask(op::OPEN, file, &[0_u32; 2], b"").unwrap();
    assert!(opened.open_flags & 1 == 1 && made.open.open_flags == opened.open_flags);
    // Set-id bits go with the write of somebody who may not keep them.
    let mode = SetAttrIn { valid: valid::MODE, mode: 0o4755, ..SetAttrIn::new_zeroed() };
    assert_eq!(asked.ask::<AttrOut>(op::SETATTR, file, &mode, b"").unwrap().attr.mode, 0o104_755);
    let write = WriteIn { write_flags: write::KILL_SUIDGID, flags: 0o4_010_000, ..write_in(0, 1) };
    asked.ask::<WriteOut>(op::WRITE, file, &write, b"x").unwrap();
    assert_eq!(asked.attributes(file).mode, 0o100_755);
}

#[test]
fn names_come_change_and_go() {
    let mut asked = asked(MountOptions::default());
    let dir: EntryOut = asked.ask(op::MKDIR, ROOT, &MkdirIn { mode: 0o777, umask: 0o022 }, b"d\0").unwrap();
    assert_eq!((dir.attr.mode, dir.attr.nlink), (0o040_755, 2));
    let node = MknodIn { mode: 0o020_600, rdev: 0x103, umask: 0, padding: 0 };
    let node: EntryOut = asked.ask(op::MKNOD, dir.nodeid, &node, b"null\0").unwrap();
    assert_eq!((node.attr.mode, node.attr.rdev), (0o020_600, 0x103));
    let link: EntryOut = asked.ask(op::SYMLINK, ROOT, &(), b"l\0d/null\0").unwrap();
    assert_eq!(asked.bytes(op::READLINK, link.nodeid, &(), b"").unwrap(), b"d/null");
    let linked: EntryOut = asked.ask(op::LINK, ROOT, &LinkIn { oldnodeid: node.nodeid }, b"m\0").unwrap();
    assert_eq!((linked.nodeid, linked.attr.nlink), (node.nodeid, 2));
    asked.done(op::RENAME, ROOT, &RenameIn { newdir: dir.nodeid }, b"m\0n\0");
    let exchange = Rename2In { newdir: dir.nodeid, flags: 2, padding: 0 };
    asked.done(op::RENAME2, ROOT, &exchange, b"l\0n\0");
    assert_eq!(asked.lookup(ROOT, b"l").nodeid, node.nodeid);
    assert_eq!(asked.bytes(op::RENAME2, ROOT, &Rename2In { flags: 4, ..exchange }, b"l\0n\0"), Err(Errno::INVAL));
    assert_eq!(asked.bytes(op::RMDIR, ROOT, &(), b"d\0"), Err(Errno::NOTEMPTY));
    asked.done(op::UNLINK, ROOT, &(), b"l\0");
    let gone = asked.lookup(ROOT, b"l");
    assert!(gone.nodeid == 0 && gone.entry_valid > 0, "that there is none is kept");
    assert_eq!(asked.bytes(op::UNLINK, ROOT, &(), b"no end"), Err(Errno::INVAL));
}

#[test]
fn times_owners_and_sizes_are_set() {
    let mut asked = asked(MountOptions::default());
    let file = asked.create(ROOT, b"f");
    let all = SetAttrIn {
        valid: valid::UID | valid::GID | valid::SIZE | valid::ATIME | valid::MTIME | valid::CTIME,
        size: 5000,
        uid: 7,
        gid: 8,
        atime: -1,
        atimensec: 999_999_999,
        mtime: 1 << 33,
        ctime: 5,
        ..SetAttrIn::new_zeroed()
    };
    let attr = asked.ask::<AttrOut>(op::SETATTR, file, &all, b"").unwrap().attr;
    assert_eq!((attr.uid, attr.gid, attr.size), (7, 8, 5000));
    assert_eq!((attr.atime, attr.atimensec, attr.mtime, attr.ctime), (-1, 999_999_999, 1 << 33, 5));
    let present = SetAttrIn { valid: valid::MTIME | valid::MTIME_NOW, ..SetAttrIn::new_zeroed() };
    let attr = asked.ask::<AttrOut>(op::SETATTR, file, &present, b"").unwrap().attr;
    assert!(attr.mtime > 1_600_000_000 && attr.mtime < 1 << 33 && attr.atime == -1);
}

#[test]
fn attributes_have_the_room_that_is_asked_for() {
    let mut asked = asked(MountOptions::default());
    let file = asked.create(ROOT, b"f");
    asked.done(op::SETXATTR, file, &SetXattrIn { size: 5, flags: 1 }, b"user.a\0value");
    assert_eq!(asked.bytes(op::SETXATTR, file, &SetXattrIn { size: 1, flags: 1 }, b"user.a\0v"), Err(Errno::EXIST));
    assert_eq!(asked.bytes(op::SETXATTR, file, &SetXattrIn { size: 9, flags: 0 }, b"user.a\0v"), Err(Errno::INVAL));
    let room = |size| GetXattrIn { size, padding: 0 };
    assert_eq!(asked.ask::<GetXattrOut>(op::GETXATTR, file, &room(0), b"user.a\0").unwrap().size, 5);
    assert_eq!(asked.bytes(op::GETXATTR, file, &room(4), b"user.a\0"), Err(Errno::RANGE));
    assert_eq!(asked.bytes(op::GETXATTR, file, &room(5), b"user.a\0").unwrap(), b"value");
    assert_eq!(asked.bytes(op::LISTXATTR, file, &room(99), b"").unwrap(), b"user.a\0");
    asked.done(op::REMOVEXATTR, file, &(), b"user.a\0");
    assert_eq!(asked.bytes(op::GETXATTR, file, &room(5), b"user.a\0"), Err(Errno::NODATA));
    let trim = IoctlIn { fh: 0, flags: 0, cmd: 0xc018_5879, arg: 0, in_size: 24, out_size: 24 };
    let range = [0_u64, u64::MAX, 0];
    assert_eq!(asked.bytes(op::IOCTL, file, &trim, range.as_bytes()).unwrap().len(), 16 + 24);
    assert_eq!(asked.bytes(op::IOCTL, file, &IoctlIn { cmd: 1, ..trim }, range.as_bytes()), Err(Errno::NOTTY));
}

/// The names of a listing, and where it goes on.
fn entries(mut bytes: &[u8], before: usize) -> Vec<(String, u64, u64)> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = Dirent::read_from_prefix(&bytes[before..]).unwrap();
        let length = head.namelen as usize;
        entries.push((String::from_utf8(rest[..length].to_vec()).unwrap(), head.ino, head.off));
        assert!(rest[length..length.next_multiple_of(8)].iter().all(|byte| *byte == 0));
        bytes = &rest[length.next_multiple_of(8)..];
    }
    entries
}

#[test]
fn a_listing_goes_on_where_there_was_no_room() {
    let mut asked = asked(MountOptions::default());
    let numbers: Vec<u64> = (0..40).map(|n| asked.create(ROOT, "n".repeat(n + 1).as_bytes())).collect();
    for (operation, before) in [(op::READDIR, 0), (op::READDIRPLUS, size_of::<EntryOut>())] {
        let (mut found, mut from) = (Vec::new(), 0);
        loop {
            let bytes = asked.bytes(operation, ROOT, &read(from, 500), b"").unwrap();
            assert!(bytes.len() <= 500);
            let listed = entries(&bytes, before);
            let Some(last) = listed.last() else { break };
            from = last.2;
            found.extend(listed.into_iter().filter(|entry| !entry.0.starts_with('.')).map(|entry| entry.1));
        }
        found.sort_unstable();
        let mut expected = numbers.clone();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
    // What was told with attributes counts as looked up, once each; what found no room does not.
    for number in numbers {
        asked.service.forget(number, 1);
        assert!(asked.service.0.is_known(number));
        asked.service.forget(number, 1);
        assert!(!asked.service.0.is_known(number), "{number} was counted more often than it was told");
    }
}

#[test]
fn a_file_without_a_name_gets_one_or_goes() {
    let mut asked = asked(MountOptions { inodes: 64, ..MountOptions::default() });
    let before = asked.fs.statfs().valid_inodes;
    let make = |asked: &mut Asked| asked.ask::<CreateOut>(op::TMPFILE, ROOT, &NEW, b"/\0").unwrap().entry;
    let (kept, lost) = (make(&mut asked), make(&mut asked));
    assert_eq!((kept.attr.nlink, kept.attr.mode), (0, 0o100_644));
    asked.ask::<WriteOut>(op::WRITE, kept.nodeid, &write_in(0, 5), b"whole").unwrap();
    // So many others that each inode which may rest does so.
    for n in 0..2000 {
        asked.create(ROOT, format!("other{n}").as_bytes());
    }
    assert_eq!(asked.bytes(op::READ, kept.nodeid, &read(0, 9), b"").unwrap(), b"whole");
    assert_eq!(asked.attributes(lost.nodeid).nlink, 0);
    let linked: EntryOut = asked.ask(op::LINK, ROOT, &LinkIn { oldnodeid: kept.nodeid }, b"kept\0").unwrap();
    assert_eq!((linked.nodeid, linked.attr.nlink), (kept.nodeid, 1));
    asked.service.forget(lost.nodeid, 1);
    assert_eq!(asked.fs.statfs().valid_inodes, before + 2001);
    assert_eq!(asked.bytes(op::GETATTR, lost.nodeid, &(), b""), Err(Errno::NOENT));
    assert_eq!(asked.fs.metadata("/kept").unwrap().size, 5);
    // A directory that is no directory, and a name that is gone.
    assert_eq!(asked.bytes(op::TMPFILE, kept.nodeid, &NEW, b"/\0"), Err(Errno::NOTDIR));
    asked.done(op::UNLINK, ROOT, &(), b"kept\0");
    assert_eq!(asked.bytes(op::LINK, ROOT, &LinkIn { oldnodeid: kept.nodeid }, b"again\0"), Err(Errno::NOENT));
}

/// A directory gives its group and its access control list to a file without a name as well.
#[test]
fn a_file_without_a_name_inherits() {
    let mut asked = asked(MountOptions::default());
    let dir: EntryOut = asked.ask(op::MKDIR, ROOT, &MkdirIn { mode: 0o777, umask: 0 }, b"d\0").unwrap();
    let shared = SetAttrIn { valid: valid::MODE | valid::GID, mode: 0o2777, gid: 99, ..SetAttrIn::new_zeroed() };
    asked.ask::<AttrOut>(op::SETATTR, dir.nodeid, &shared, b"").unwrap();
    let made: CreateOut = asked.ask(op::TMPFILE, dir.nodeid, &NEW, b"/\0").unwrap();
    assert_eq!((made.entry.attr.gid, made.entry.attr.mode), (99, 0o100_644));
    // Version 2; the owner rwx, the group r, others nothing.
    let entries = [(1_u16, 7_u16, u32::MAX), (4, 4, u32::MAX), (0x20, 0, u32::MAX)];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, bits, id) in entries {
        list.extend([&tag.to_le_bytes()[..], &bits.to_le_bytes(), &id.to_le_bytes()].concat());
    }
    let argument = SetXattrIn { size: list.len() as u32, flags: 0 };
    let payload = [b"system.posix_acl_default\0", list.as_slice()].concat();
    asked.done(op::SETXATTR, dir.nodeid, &argument, &payload);
    let made: CreateOut = asked.ask(op::TMPFILE, dir.nodeid, &NEW, b"/\0").unwrap();
    assert_eq!(made.entry.attr.mode, 0o100_640, "the list counts, not the umask");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    /// Whatever is in the memory of an entry, taking it apart does not panic, and what comes out lies within.
    #[test]
    fn any_request_is_taken_apart(
        opcode in 0_u32..60,
        argument in proptest::array::uniform32(any::<u32>()),
        payload in proptest::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..64),
    ) {
        match Question::decode(opcode, argument.as_bytes(), &payload) {
            Ok(Question::Write(write)) => prop_assert!(write.data.len() <= payload.len()),
            Ok(Question::SetXattr { name, value, .. }) => prop_assert!(name.len() + value.len() < payload.len()),
            Ok(Question::Rename { name, new_name, .. }) => prop_assert!(name.len() + new_name.len() < payload.len()),
            Err(error) => prop_assert!(matches!(error, Errno::NOSYS | Errno::INVAL)),
            Ok(_) => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// No answer is longer than the memory for it.
    #[test]
    fn an_answer_stays_in_its_room(
        opcode in prop_oneof![
            Just(op::LOOKUP), Just(op::GETATTR), Just(op::READ), Just(op::READDIR), Just(op::READDIRPLUS),
            Just(op::STATFS), Just(op::LISTXATTR), Just(op::TMPFILE)
        ],
        room in 0_usize..300,
        size in 0_u32..400,
    ) {
        let asked = asked(MountOptions::default());
        let mut memory = vec![0xee; room + 8];
        memory[..2.min(room)].copy_from_slice(&b"f\0"[..2.min(room)]);
        let mut argument = [0; 128];
        argument[16..20].copy_from_slice(&size.to_ne_bytes());
        let mut exchange = Exchange::new(header(opcode, ROOT), argument, 2.min(room), &mut memory[..room]);
        let length = answer(&asked.service, &mut exchange, |_| ()).unwrap_or(0);
        prop_assert!(length <= room);
        prop_assert_eq!(&memory[room..], &[0xee; 8][..]);
    }
}

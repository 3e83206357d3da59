//! Every field of every structure, set to other values one at a time: whatever fsck.f2fs finds is found here.
//!
//! The outcome is a table in the documentation of the check (`corpus.md`). `F2FS_WRITE_TABLE=1` writes it again;
//! otherwise the test compares a part of it, every field with one of its values, and all of it if `F2FS_CASES` is set.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::mem::offset_of;
use std::sync::Mutex;

use f2fs_format::checkpoint::CheckpointHeader;
use f2fs_format::dentry::{BITMAP_SIZE, DentryBlock, DirEntry, ENTRY_SIZE, SLOT_LEN};
use f2fs_format::inode::{Inode, InodeExtra};
use f2fs_format::nat::{self, RawNatEntry};
use f2fs_format::node::{NodeBlock, NodeFooter};
use f2fs_format::orphan::OrphanBlock;
use f2fs_format::sit::{self, RawSitEntry};
use f2fs_format::summary::{Summary, SummaryBlock};
use f2fs_format::superblock::SuperBlock;
use f2fs_format::xattr::{XattrEntryHeader, XattrHeader};
use f2fs_format::{BlockAddr, LogType, Nid, nat_bits};
use zerocopy::IntoBytes;

use super::crafted::with_xattrs;
use super::image::{Image, populated};
use super::orphans::with_orphan;
use crate::{CheckOptions, check};

/// Name, first byte in its structure, bytes.
type Field = (&'static str, usize, usize);

/// The size of what a function points to.
fn width<S, F>(_: fn(&S) -> &F) -> usize {
    size_of::<F>()
}

macro_rules! fields {
    ($of:ty: $($field:ident),* $(,)?) => {
        vec![$((stringify!($field), offset_of!($of, $field), width(|it: &$of| &it.$field))),*]
    };
}

/// Where a structure stands, and how its block is made believable again.
#[derive(Clone, Copy)]
enum At {
    /// Both copies, sealed.
    Superblocks,
    /// The pack in force, both its ends, sealed.
    Checkpoint,
    /// A node, whose checksum is put right.
    Node(Nid, usize),
    /// A byte of a block without a checksum.
    Block(BlockAddr, usize),
}

/// A structure of a volume.
struct Structure {
    name: &'static str,
    image: &'static Image,
    at: At,
    fields: Vec<Field>,
}

/// A new value of a field: its name, and the code that sets it.
type Value = (&'static str, fn(&mut [u8]));

const VALUES: [Value; 4] = [
    ("one more", |field| {
        for byte in field.iter_mut().take(8) {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }),
    ("ones", |field| field.fill(0xff)),
    ("zero", |field| field.fill(0)),
    ("highest bit", |field| {
        let last = field.len().min(8) - 1;
        field[last] ^= 0x80;
    }),
];

/// Of this one fsck.f2fs 1.15 makes no end: an entry without a name is looked at over and over.
const ENDLESS: (&str, &str, &str) = ("directory block", "dentry_bitmap", "one more");

impl Structure {
    /// The volume with one field changed; `None` if it has that value already.
    fn mutant(&self, field: Field, set: fn(&mut [u8])) -> Option<Image> {
        let image = self.image.copy();
        let mut changed = false;
        let mut change = |bytes: &mut [u8]| {
            let field = &mut bytes[field.1..][..field.2];
            let before = field.to_vec();
            set(field);
            changed = before != field;
        };
        match self.at {
            At::Superblocks => (0..2).for_each(|copy| image.edit_superblock(copy, |sb| change(sb.as_mut_bytes()))),
            At::Checkpoint => image.edit_checkpoint(|cp| change(cp.header.as_mut_bytes())),
            At::Node(nid, at) => image.edit_node(nid, |node| change(&mut node.as_mut_bytes()[at..])),
            At::Block(addr, at) => image.edit(addr, |block| change(&mut block[at..])),
        }
        changed.then_some(image)
    }
}

fn structures() -> Vec<Structure> {
    let image = populated();
    let leak = |image: Image| -> &'static Image { Box::leak(Box::new(image)) };
    let (orphan, xattrs) = (leak(with_orphan()), leak(with_xattrs()));
    let [large, tiny, many, link] = ["large", "tiny", "many", "long link"].map(|path| image.find(path).ino);
    let direct = Nid::from(image.node(large).inode().i_nid[0]);
    let indirect = Nid::from(image.node(large).inode().i_nid[2]);
    let data = image.data(large, 700);
    let segment = image.geometry.locate(data).unwrap().0;
    let (data_summary, data_at) = image.summary_of(data);
    let (node_summary, node_at) = image.summary_of(image.addr(tiny));
    let nat_at = |nid: Nid| nid.index() % nat::ENTRIES_PER_BLOCK * size_of::<RawNatEntry>();
    let sit_at = segment.index() % sit::ENTRIES_PER_BLOCK * size_of::<RawSitEntry>();
    let entry = image.find("tiny");
    let pack = image.pack();
    let bits = pack.start.offset(nat_bits::first_block(&image.geometry, pack.total()).unwrap());
    let size = image.geometry.nat_bitmap_size();
    let footer = || fields!(NodeFooter: nid, ino, flag, cp_ver, next_blkaddr);
    let summary = || fields!(Summary: nid, version, ofs_in_node);
    let block = |name, addr, at, fields| Structure { name, image, at: At::Block(addr, at), fields };
    let node = |name, nid, at, fields| Structure { name, image, at: At::Node(nid, at), fields };
    let inode = || {
        fields!(Inode: i_mode, i_advise, i_inline, i_uid, i_gid, i_links, i_size, i_blocks, i_atime, i_ctime, i_mtime,
            i_atime_nsec, i_ctime_nsec, i_mtime_nsec, i_generation, i_current_depth, i_xattr_nid, i_flags, i_pino, i_namelen,
            i_name, i_dir_level, i_ext)
    };
    // The nodes below an inode, one by one.
    let children: Vec<Field> = ["i_nid[0]", "i_nid[1]", "i_nid[2]", "i_nid[3]", "i_nid[4]"]
        .into_iter()
        .enumerate()
        .map(|(index, name)| (name, offset_of!(Inode, i_nid) + 4 * index, 4))
        .collect();
    let address = offset_of!(Inode, i_addr) + size_of::<InodeExtra>();
    let xattr_node = xattrs.node(tiny);
    let xattr_area = {
        let inline = xattr_node.inode().inline_xattr(image.geometry.features);
        inline.as_ptr() as usize - xattr_node.as_block().as_ptr() as usize
    };
    vec![
        Structure {
            name: "superblock",
            image,
            at: At::Superblocks,
            fields: fields!(SuperBlock: magic, major_ver, minor_ver, log_sectorsize, log_sectors_per_block, log_blocksize,
                log_blocks_per_seg, segs_per_sec, secs_per_zone, checksum_offset, block_count, section_count, segment_count,
                segment_count_ckpt, segment_count_sit, segment_count_nat, segment_count_ssa, segment_count_main,
                segment0_blkaddr, cp_blkaddr, sit_blkaddr, nat_blkaddr, ssa_blkaddr, main_blkaddr, root_ino, node_ino, meta_ino,
                uuid, volume_name, extension_count, extension_list, cp_payload, version, init_version, feature,
                encryption_level, encrypt_pw_salt, devs, qf_ino, hot_ext_count, s_encoding, s_encoding_flags, s_stop_reason,
                s_errors, reserved),
        },
        Structure {
            name: "checkpoint",
            image,
            at: At::Checkpoint,
            fields: fields!(CheckpointHeader: checkpoint_ver, user_block_count, valid_block_count, rsvd_segment_count,
                overprov_segment_count, free_segment_count, cur_node_segno, cur_node_blkoff, cur_data_segno, cur_data_blkoff,
                ckpt_flags, cp_pack_total_block_count, cp_pack_start_sum, valid_node_count, valid_inode_count, next_free_nid,
                sit_ver_bitmap_bytesize, nat_ver_bitmap_bytesize, checksum_offset, elapsed_time, alloc_type),
        },
        block("nat bits", bits, 0, vec![("signature", 0, 8), ("full", 8, size.min(64)), ("empty", 8 + size, 8)]),
        block(
            "nat entry, inode",
            image.nat_block(large),
            nat_at(large),
            fields!(RawNatEntry: version, ino, block_addr),
        ),
        block(
            "nat entry, node",
            image.nat_block(direct),
            nat_at(direct),
            fields!(RawNatEntry: version, ino, block_addr),
        ),
        block("sit entry", image.sit_block(segment), sit_at, fields!(RawSitEntry: vblocks, valid_map, mtime)),
        block("summary, data", data_summary, data_at * size_of::<Summary>(), summary()),
        block("summary, node", node_summary, node_at * size_of::<Summary>(), summary()),
        block("summary block", data_summary, 0, fields!(SummaryBlock: entry_type, check_sum)),
        block(
            "nat journal",
            image.log_summary(LogType::HotData),
            offset_of!(SummaryBlock, journal),
            vec![("n_nats", 0, 2)],
        ),
        block(
            "sit journal",
            image.log_summary(LogType::ColdData),
            offset_of!(SummaryBlock, journal),
            vec![("n_sits", 0, 2)],
        ),
        Structure {
            name: "orphan block",
            image: orphan,
            at: At::Block(orphan.pack().start.offset(1), 0),
            fields: [("ino[0]", 0, 4)]
                .into_iter()
                .chain(fields!(OrphanBlock: reserved, blk_addr, blk_count, entry_count, check_sum))
                .collect(),
        },
        node("inode, file", large, 0, inode().into_iter().chain(children).chain([("i_addr[0]", address, 4)]).collect()),
        node("inode, inline file", tiny, 0, inode()),
        node("inode, directory", many, 0, inode()),
        node("inode, symbolic link", link, 0, inode()),
        node(
            "extra attributes",
            large,
            offset_of!(Inode, i_addr),
            fields!(InodeExtra: i_extra_isize, i_inline_xattr_size, i_projid, i_crtime, i_crtime_nsec, i_compr_blocks,
                i_compress_algorithm, i_log_cluster_size, i_compress_flag),
        ),
        node("footer, inode", large, offset_of!(NodeBlock, footer), footer()),
        node("footer, direct node", direct, offset_of!(NodeBlock, footer), footer()),
        node("footer, indirect node", indirect, offset_of!(NodeBlock, footer), footer()),
        node("direct node", direct, 0, vec![("addr[0]", 0, 4), ("addr[1017]", 4068, 4)]),
        node("indirect node", indirect, 0, vec![("nid[0]", 0, 4), ("nid[1]", 4, 4), ("nid[1017]", 4068, 4)]),
        block(
            "directory entry",
            entry.block,
            offset_of!(DentryBlock, dentry) + entry.slot * ENTRY_SIZE,
            fields!(DirEntry: hash_code, ino, name_len, file_type),
        ),
        block(
            "directory block",
            entry.block,
            0,
            vec![
                ("dentry_bitmap", 0, BITMAP_SIZE),
                ("reserved", offset_of!(DentryBlock, reserved), width(|block: &DentryBlock| &block.reserved)),
                ("filename", offset_of!(DentryBlock, filename) + entry.slot * SLOT_LEN, 4),
            ],
        ),
        Structure {
            name: "xattr header",
            image: xattrs,
            at: At::Node(tiny, xattr_area),
            fields: fields!(XattrHeader: h_magic, h_refcount, h_reserved),
        },
        Structure {
            name: "xattr entry",
            image: xattrs,
            at: At::Node(tiny, xattr_area + size_of::<XattrHeader>()),
            fields: fields!(XattrEntryHeader: e_name_index, e_name_len, e_value_size),
        },
    ]
}

/// How many mutants of a field there are, and who finds them.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Row {
    mutants: u32,
    here: u32,
    fsck: u32,
}

/// Whether the check finds that anything is wrong.
fn found_here(image: &Image) -> bool {
    match check(&image.device, &CheckOptions { threads: Some(0), progress: None }) {
        Ok(report) => !report.is_clean(),
        Err(_) => true,
    }
}

#[test]
fn whatever_fsck_finds_of_any_field_is_found() {
    let all = structures();
    let whole = std::env::var_os("F2FS_WRITE_TABLE").is_some() || std::env::var_os("F2FS_CASES").is_some();
    let mut cases = Vec::new();
    for (which, structure) in all.iter().enumerate() {
        for (index, field) in structure.fields.iter().enumerate() {
            // One value for each field: every value has its turn.
            let values =
                VALUES.iter().enumerate().filter(|(value, _)| whole || (index + which) % VALUES.len() == *value);
            cases.extend(values.map(|(_, value)| (which, *field, *value)));
        }
    }
    let next = Mutex::new(cases.into_iter());
    let rows: Mutex<BTreeMap<(usize, usize), Row>> = Mutex::default();
    let missed = Mutex::new(String::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((which, field, (value, set))) = { next.lock().unwrap().next() } {
                    let Some(mutant) = all[which].mutant(field, set) else { continue };
                    let here = found_here(&mutant);
                    let endless = (all[which].name, field.0, value) == ENDLESS;
                    let fsck = endless || !mutant.fsck().is_accepted();
                    let mut rows = rows.lock().unwrap();
                    let row = rows.entry((which, field.1)).or_default();
                    row.mutants += 1;
                    row.here += u32::from(here);
                    row.fsck += u32::from(fsck);
                    if fsck && !here {
                        writeln!(missed.lock().unwrap(), "{}, {}: {value}", all[which].name, field.0).unwrap();
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "fsck.f2fs finds what is not found here:\n{missed}");
    let rows = rows.into_inner().unwrap();
    if whole {
        compare(&table(&all, &rows));
    }
}

fn table(all: &[Structure], rows: &BTreeMap<(usize, usize), Row>) -> String {
    let mut text = String::new();
    let mut sum = Row::default();
    for (which, structure) in all.iter().enumerate() {
        for field in &structure.fields {
            let Some(row) = rows.get(&(which, field.1)) else { continue };
            let Row { mutants, here, fsck } = *row;
            writeln!(text, "| {} | `{}` | {mutants} | {here} | {fsck} |", structure.name, field.0).unwrap();
            sum = Row { mutants: sum.mutants + mutants, here: sum.here + here, fsck: sum.fsck + fsck };
        }
    }
    writeln!(text, "| all | | {} | {} | {} |", sum.mutants, sum.here, sum.fsck).unwrap();
    text
}

/// The table is the one in the documentation, or becomes it.
fn compare(rows: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/corpus.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (head, _) = text.split_once("|--:|--:|--:|\n").expect("the head of the table");
    let new = format!("{head}|--:|--:|--:|\n{rows}");
    if std::env::var_os("F2FS_WRITE_TABLE").is_some() {
        std::fs::write(path, new).unwrap();
    } else {
        assert!(text == new, "the table is another one: F2FS_WRITE_TABLE=1 writes it anew\n{rows}");
    }
}

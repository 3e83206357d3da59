//! The byte maps and the numbers in `docs/FORMAT.md` are those of the types and constants of `f2fs-format`.

use core::mem::offset_of;
use std::collections::BTreeMap;

use f2fs_format::{checkpoint, dentry, inode, nat, node, orphan, sit, summary, superblock, xattr};

use crate::text::{cells, read};

/// A structure on the device: its size, and offset, size and name of each field.
struct Map {
    size: usize,
    fields: Vec<(usize, usize, &'static str)>,
}

/// The size of the field that a function leads to.
fn size_of_field<T, F>(_: impl Fn(&T) -> &F) -> usize {
    size_of::<F>()
}

macro_rules! maps {
    ($($module:ident :: $type:ident { $($field:ident),* $(,)? })*) => {
        /// All structures that have a byte map, by module and name.
        fn maps() -> BTreeMap<&'static str, Map> {
            BTreeMap::from([$((
                concat!(stringify!($module), "::", stringify!($type)),
                Map {
                    size: size_of::<$module::$type>(),
                    fields: vec![$((
                        offset_of!($module::$type, $field),
                        size_of_field(|raw: &$module::$type| &raw.$field),
                        stringify!($field),
                    )),*],
                },
            )),*])
        }
    };
}

maps! {
    superblock::SuperBlock {
        magic, major_ver, minor_ver, log_sectorsize, log_sectors_per_block, log_blocksize, log_blocks_per_seg, segs_per_sec,
        secs_per_zone, checksum_offset, block_count, section_count, segment_count, segment_count_ckpt, segment_count_sit,
        segment_count_nat, segment_count_ssa, segment_count_main, segment0_blkaddr, cp_blkaddr, sit_blkaddr, nat_blkaddr,
        ssa_blkaddr, main_blkaddr, root_ino, node_ino, meta_ino, uuid, volume_name, extension_count, extension_list,
        cp_payload, version, init_version, feature, encryption_level, encrypt_pw_salt, devs, qf_ino, hot_ext_count,
        s_encoding, s_encoding_flags, s_stop_reason, s_errors, reserved, crc,
    }
    superblock::Device { path, total_segments }
    checkpoint::CheckpointHeader {
        checkpoint_ver, user_block_count, valid_block_count, rsvd_segment_count, overprov_segment_count,
        free_segment_count, cur_node_segno, cur_node_blkoff, cur_data_segno, cur_data_blkoff, ckpt_flags,
        cp_pack_total_block_count, cp_pack_start_sum, valid_node_count, valid_inode_count, next_free_nid,
        sit_ver_bitmap_bytesize, nat_ver_bitmap_bytesize, checksum_offset, elapsed_time, alloc_type,
    }
    checkpoint::CheckpointBlock { header, tail }
    orphan::OrphanBlock { ino, reserved, blk_addr, blk_count, entry_count, check_sum }
    nat::RawNatEntry { version, ino, block_addr }
    nat::NatBlock { entries, padding }
    sit::RawSitEntry { vblocks, valid_map, mtime }
    sit::SitBlock { entries, padding }
    summary::Summary { nid, version, ofs_in_node }
    summary::SummaryBlock { entries, journal, entry_type, check_sum }
    summary::Journal { count, body }
    summary::NatJournalEntry { nid, ne }
    summary::SitJournalEntry { segno, se }
    node::NodeBlock { body, footer }
    node::NodeFooter { nid, ino, flag, cp_ver, next_blkaddr }
    inode::Inode {
        i_mode, i_advise, i_inline, i_uid, i_gid, i_links, i_size, i_blocks, i_atime, i_ctime, i_mtime, i_atime_nsec,
        i_ctime_nsec, i_mtime_nsec, i_generation, i_current_depth, i_xattr_nid, i_flags, i_pino, i_namelen, i_name,
        i_dir_level, i_ext, i_addr, i_nid,
    }
    inode::Extent { fofs, blk_addr, len }
    inode::InodeExtra {
        i_extra_isize, i_inline_xattr_size, i_projid, i_inode_checksum, i_crtime, i_crtime_nsec, i_compr_blocks,
        i_compress_algorithm, i_log_cluster_size, i_compress_flag,
    }
    dentry::DentryBlock { dentry_bitmap, reserved, dentry, filename }
    dentry::DirEntry { hash_code, ino, name_len, file_type }
    xattr::XattrHeader { h_magic, h_refcount, h_reserved }
    xattr::XattrEntryHeader { e_name_index, e_name_len, e_value_size }
}

macro_rules! numbers {
    ($($($name:ident)::+),* $(,)?) => {
        /// All constants that the document tells, by path.
        fn numbers() -> BTreeMap<String, u64> {
            BTreeMap::from([$((stringify!($($name)::+).replace(' ', ""), f2fs_format::$($name)::+ as u64)),*])
        }
    };
}

numbers! {
    BLOCK_SIZE, BLOCKS_PER_SEGMENT,
    superblock::MAGIC, superblock::OFFSET, superblock::SIZE, superblock::CHECKSUM_OFFSET, superblock::MAX_EXTENSIONS,
    crc::SEED,
    checkpoint::HEADER_SIZE, checkpoint::CHECKSUM_OFFSET, checkpoint::MAX_LOGS_PER_KIND,
    checkpoint::flags::UMOUNT, checkpoint::flags::ORPHAN_PRESENT, checkpoint::flags::COMPACT_SUM,
    checkpoint::flags::ERROR, checkpoint::flags::FSCK, checkpoint::flags::FASTBOOT, checkpoint::flags::CRC_RECOVERY,
    checkpoint::flags::NAT_BITS, checkpoint::flags::TRIMMED, checkpoint::flags::NOCRC_RECOVERY,
    checkpoint::flags::LARGE_NAT_BITMAP, checkpoint::flags::QUOTA_NEED_FSCK, checkpoint::flags::DISABLED,
    checkpoint::flags::DISABLED_QUICK, checkpoint::flags::RESIZEFS,
    checkpoint::alloc_type::LFS, checkpoint::alloc_type::SSR,
    orphan::PER_BLOCK, nat::ENTRIES_PER_BLOCK, sit::ENTRIES_PER_BLOCK, sit::VALID_MAP_SIZE,
    summary::ENTRIES, summary::JOURNAL_SIZE, summary::NAT_JOURNAL_ENTRIES, summary::SIT_JOURNAL_ENTRIES,
    summary::COMPACT_FIRST, summary::COMPACT_NEXT, summary::TYPE_NODE, summary::TYPE_DATA,
    node::ADDRS_PER_BLOCK, node::BODY_SIZE, node::XATTR_NODE_OFFSET,
    node::mark::COLD, node::mark::FSYNC, node::mark::DENTRY, node::mark::SHIFT,
    path::INODE_CHILDREN, path::FIRST_INDIRECT, path::SECOND_INDIRECT, path::DOUBLE_INDIRECT,
    inode::ADDRS_PER_INODE, inode::EXTRA_SIZE, inode::DEFAULT_INLINE_XATTR_WORDS, inode::INLINE_RESERVED_WORDS,
    inode::NAME_LEN,
    inode::inline::XATTR, inode::inline::DATA, inode::inline::DENTRY, inode::inline::DATA_EXIST, inode::inline::DOTS,
    inode::inline::EXTRA_ATTR, inode::inline::PIN_FILE, inode::inline::COMPRESS_RELEASED,
    inode::advise::COLD, inode::advise::LOST_PINO, inode::advise::ENCRYPT, inode::advise::ENC_NAME,
    inode::advise::KEEP_SIZE, inode::advise::HOT, inode::advise::VERITY, inode::advise::TRUNC,
    dentry::SLOTS_PER_BLOCK, dentry::SLOT_LEN, dentry::BITMAP_SIZE, dentry::RESERVED_SIZE, dentry::ENTRY_SIZE,
    hash::MAX_DEPTH,
    xattr::MAGIC, xattr::HEADER_SIZE, xattr::ENTRY_HEADER_SIZE, xattr::NODE_SIZE,
}

/// A number as the document writes it: decimal, or hexadecimal behind `0x`, both with `_` or `,` between digits.
fn number(cell: &str) -> Option<u64> {
    let digits: String = cell.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    }
}

/// The text between backquotes in a cell.
fn code(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.strip_suffix('`')
}

/// A byte map as the document tells it: the size in its heading, and offset, size and name in each row.
type Told<'t> = (usize, Vec<(usize, usize, &'t str)>);

/// The byte maps of the document: under a heading that ends in a type, the rows of offset, size and name.
fn told_maps(text: &str) -> BTreeMap<&str, Told<'_>> {
    let mut maps: BTreeMap<&str, Told<'_>> = BTreeMap::new();
    let mut here = None;
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            here = heading.split_once(": ").and_then(|(_, rest)| {
                let (name, size) = rest.split_once(", ")?;
                let size = number(size.strip_suffix(" bytes")?)?;
                maps.insert(code(name)?, (size as usize, Vec::new()));
                code(name)
            });
        }
        let Some(map) = here.and_then(|name| maps.get_mut(name)) else { continue };
        if let Some(cells) = cells(line)
            && let [offset, size, field, ..] = &cells[..]
            && let (Some(offset), Some(size), Some(field)) = (number(offset), number(size), code(field))
        {
            map.1.push((offset as usize, size as usize, field));
        }
    }
    maps
}

/// The constants of the document: rows of a path in backquotes and a number.
fn told_numbers(text: &str) -> BTreeMap<String, u64> {
    let rows = text.lines().filter_map(cells).filter_map(|cells| {
        let (name, value) = (code(cells.first()?)?, number(cells.get(1)?)?);
        Some((name.to_owned(), value))
    });
    rows.collect()
}

#[test]
fn byte_maps_are_those_of_the_types() {
    let text = read("docs/FORMAT.md");
    let told = told_maps(&text);
    let maps = maps();
    for (name, map) in &maps {
        let all: usize = map.fields.iter().map(|(_, size, _)| size).sum();
        assert_eq!(all, map.size, "{name}: this test names all fields");
        let Some((size, fields)) = told.get(name) else { panic!("docs/FORMAT.md has no byte map of {name}") };
        assert_eq!(*size, map.size, "{name}: bytes told in docs/FORMAT.md (left), of the type (right)");
        for (told, field) in fields.iter().zip(&map.fields) {
            assert_eq!(told, field, "{name}: told in docs/FORMAT.md (left), of the type (right)");
        }
        assert_eq!(fields.len(), map.fields.len(), "{name}: fields");
    }
    assert_eq!(told.len(), maps.len(), "docs/FORMAT.md has a byte map that this test does not know");
}

#[test]
fn numbers_are_those_of_the_constants() {
    let told = told_numbers(&read("docs/FORMAT.md"));
    let known = numbers();
    for (name, value) in &known {
        assert_eq!(told.get(name), Some(value), "{name}: told in docs/FORMAT.md (left), in the source (right)");
    }
    let more: Vec<_> = told.keys().filter(|name| !known.contains_key(*name)).collect();
    assert!(more.is_empty(), "docs/FORMAT.md tells numbers that this test does not know: {more:?}");
}

#[test]
fn maps_and_numbers_are_read() {
    let text = "### A block: `a::B`, 4,096 bytes\n| at | size | field |\n|--|--|--|\n| 0 | 4 | `x` | text |\n| `c::D` | 0x1_0 |\n";
    assert_eq!(told_maps(text), BTreeMap::from([("a::B", (4096, vec![(0, 4, "x")]))]));
    assert_eq!(told_numbers(text), BTreeMap::from([("c::D".to_owned(), 16)]));
}

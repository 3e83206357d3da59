//! What is done to a volume and its model, drawn at random.

use proptest::prelude::*;

/// Places are drawn as numbers and reduced to what is there when the operation runs.
pub(crate) type Pick = u16;

#[derive(Clone, Debug)]
pub(crate) enum Action {
    Create { dir: Pick, name: Pick },
    Many { dir: Pick, prefix: u8, count: u8, long: bool },
    RemoveMany { dir: Pick, prefix: u8 },
    Mkdir { dir: Pick, name: Pick },
    Symlink { dir: Pick, name: Pick, len: u16 },
    Special { dir: Pick, name: Pick, kind: u8 },
    Link { from: Pick, dir: Pick, name: Pick },
    Unlink { path: Pick },
    Rmdir { path: Pick },
    Rename { from: Pick, dir: Pick, name: Pick, mode: u8 },
    Exchange { from: Pick, to: Pick },
    Write { path: Pick, offset: u32, len: u32, seed: u8 },
    Append { path: Pick, len: u32, seed: u8 },
    Truncate { path: Pick, size: u32 },
    Allocate { path: Pick, offset: u32, len: u32, keep_size: bool },
    Punch { path: Pick, offset: u32, len: u32 },
    Zero { path: Pick, offset: u32, len: u32, keep_size: bool },
    CopyRange { from: Pick, to: Pick, offset: u32, to_offset: u32, len: u32 },
    Chmod { path: Pick, permissions: u16 },
    SetXattr { path: Pick, name: u8, len: u16, seed: u8 },
    RemoveXattr { path: Pick, name: u8 },
    Hold { path: Pick },
    Release,
    Checkpoint,
    Reopen,
    Crash,
}

fn place() -> impl Strategy<Value = Pick> {
    any::<Pick>()
}

pub(crate) fn action() -> impl Strategy<Value = Action> {
    // Offsets and sizes that meet the borders: inline, one block, the inode's addresses, direct and indirect nodes.
    let offset = prop_oneof![
        4 => 0u32..4000,
        3 => 0u32..40_000,
        1 => 3_400u32..4_200,
        2 => 3_560_000u32..3_600_000,
        1 => 7_700_000u32..7_800_000,
        1 => 11_900_000u32..12_000_000,
    ];
    let len = prop_oneof![4 => 1u32..300, 3 => 1u32..20_000, 1 => 1u32..400_000];
    prop_oneof![
        8 => (place(), place()).prop_map(|(dir, name)| Action::Create { dir, name }),
        2 => (place(), 0u8..4, 1u8..120, any::<bool>())
            .prop_map(|(dir, prefix, count, long)| Action::Many { dir, prefix, count, long }),
        1 => (place(), 0u8..4).prop_map(|(dir, prefix)| Action::RemoveMany { dir, prefix }),
        5 => (place(), place()).prop_map(|(dir, name)| Action::Mkdir { dir, name }),
        2 => (place(), place(), prop_oneof![1u16..100, 3000u16..4096])
            .prop_map(|(dir, name, len)| Action::Symlink { dir, name, len }),
        1 => (place(), place(), 0u8..4).prop_map(|(dir, name, kind)| Action::Special { dir, name, kind }),
        3 => (place(), place(), place()).prop_map(|(from, dir, name)| Action::Link { from, dir, name }),
        5 => place().prop_map(|path| Action::Unlink { path }),
        3 => place().prop_map(|path| Action::Rmdir { path }),
        6 => (place(), place(), place(), 0u8..2)
            .prop_map(|(from, dir, name, mode)| Action::Rename { from, dir, name, mode }),
        2 => (place(), place()).prop_map(|(from, to)| Action::Exchange { from, to }),
        10 => (place(), offset.clone(), len.clone(), any::<u8>())
            .prop_map(|(path, offset, len, seed)| Action::Write { path, offset, len, seed }),
        3 => (place(), len.clone(), any::<u8>()).prop_map(|(path, len, seed)| Action::Append { path, len, seed }),
        5 => (place(), offset.clone()).prop_map(|(path, size)| Action::Truncate { path, size }),
        2 => (place(), offset.clone(), len.clone(), any::<bool>())
            .prop_map(|(path, offset, len, keep_size)| Action::Allocate { path, offset, len, keep_size }),
        4 => (place(), offset.clone(), len.clone()).prop_map(|(path, offset, len)| Action::Punch { path, offset, len }),
        3 => (place(), offset.clone(), len.clone(), any::<bool>())
            .prop_map(|(path, offset, len, keep_size)| Action::Zero { path, offset, len, keep_size }),
        2 => (place(), place(), offset.clone(), offset, len)
            .prop_map(|(from, to, offset, to_offset, len)| Action::CopyRange { from, to, offset, to_offset, len }),
        2 => (place(), 0u16..0o10000).prop_map(|(path, permissions)| Action::Chmod { path, permissions }),
        4 => (place(), 0u8..6, prop_oneof![0u16..60, 0u16..3000], any::<u8>())
            .prop_map(|(path, name, len, seed)| Action::SetXattr { path, name, len, seed }),
        2 => (place(), 0u8..6).prop_map(|(path, name)| Action::RemoveXattr { path, name }),
        3 => place().prop_map(|path| Action::Hold { path }),
        1 => Just(Action::Release),
        2 => Just(Action::Checkpoint),
        1 => Just(Action::Reopen),
        1 => Just(Action::Crash),
    ]
}

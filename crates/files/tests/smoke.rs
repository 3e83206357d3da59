//! The first life sign: a volume of mkfs.f2fs, changed here, judged by fsck.f2fs.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;

use f2fs_device::MemoryDevice;
use f2fs_files::{AllocateFlags, FileKind, FileSystem, NewFile, Options, RenameMode, SetMode};

#[test]
fn a_little_of_everything() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    f2fs_oracle::mkfs_sized(&path, 128 << 20, &[]).unwrap();
    let device = Arc::new(MemoryDevice::load(&path).unwrap());
    {
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        fs.create_dir("/d", 0o755).unwrap();
        for i in 0..2000 {
            let file = fs.create_file(format!("/d/file-{i}"), 0o644).unwrap();
            let data = vec![i as u8; 17 * i];
            assert_eq!(file.write_at(&data, 0).unwrap(), data.len());
        }
        let big = fs.create_file("/big", 0o600).unwrap();
        let data: Vec<u8> = (0..10_000_000u32).map(|i| (i / 4096) as u8).collect();
        big.write_at(&data, 5 << 20).unwrap();
        let mut back = vec![1; data.len()];
        assert_eq!(big.read_at(&mut back, 5 << 20).unwrap(), data.len());
        assert!(back == data);
        fs.checkpoint().unwrap();
        for i in (0..2000).step_by(3) {
            fs.remove_file(format!("/d/file-{i}")).unwrap();
        }
        fs.symlink(b"d/file-1", "/link", &NewFile::new(FileKind::Symlink, 0o777)).unwrap();
        fs.symlink(&[b'x'; 4000], "/longlink", &NewFile::new(FileKind::Symlink, 0o777)).unwrap();
        fs.create("/null", &NewFile::new(FileKind::CharDevice, 0o666).device(1, 3)).unwrap();
        fs.create("/pipe", &NewFile::new(FileKind::Fifo, 0o666)).unwrap();
        fs.link("/d/file-1", "/hard").unwrap();
        fs.set_xattr("/hard", "user.a", &[7; 100], SetMode::Any).unwrap();
        fs.set_xattr("/hard", "user.b", &[8; 1000], SetMode::Any).unwrap();
        fs.create_dir("/e", 0o755).unwrap();
        fs.create_dir("/e/f", 0o755).unwrap();
        fs.rename("/e/f", "/d/f", RenameMode::Replace).unwrap();
        fs.rename("/d/file-4", "/d/file-5", RenameMode::Replace).unwrap();
        fs.rename("/d/file-7", "/hard", RenameMode::Exchange).unwrap();
        big.set_len(6 << 20).unwrap();
        big.allocate(20 << 20, 1 << 20, AllocateFlags::NONE).unwrap();
        drop(big);
        fs.close().unwrap();
    }
    device.save(&path).unwrap();
    let report = f2fs_oracle::fsck(&path).unwrap();
    assert!(report.is_clean(), "{report}");
    let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
    assert_eq!(fs.read_dir("/d").unwrap().count(), 2000 - 667 - 1 + 1);
    assert_eq!(fs.metadata("/link").unwrap().size, 17);
    assert_eq!(fs.xattr("/d/file-7", "user.b").unwrap(), vec![8; 1000]);
}

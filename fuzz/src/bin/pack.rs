//! Packs the metadata of an image, and checks that what was packed is sound: `pack IMAGE FILE`.

use std::path::PathBuf;
use std::{env, fs};

use f2fs_check::{CheckOptions, check};
use f2fs_device_test::SparseDevice;
use f2fs_fuzz::packed::{pack, unpack};

fn main() {
    let words: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [image, file] = &words[..] else { panic!("pack IMAGE FILE") };
    let bytes = fs::read(image).expect("the image can be read");
    let device = SparseDevice::new(bytes.len() as u64 / 4096);
    for (at, block) in bytes.chunks_exact(4096).enumerate() {
        device.put(at as u64, block.try_into().expect("a whole block"));
    }
    let device = device.frozen();
    let packed = pack(&device, bytes.len() as u64 / 4096);
    let report = check(&unpack(&packed), &CheckOptions::default()).expect("what was packed is checked");
    assert!(report.is_consistent() && report.complete, "{report}");
    println!("{} blocks in use, {} bytes packed", device.used().len(), packed.len());
    fs::write(file, packed).expect("the file can be written");
}

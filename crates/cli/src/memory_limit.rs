//! How much memory this process may have, and what a mount's server takes of it for its caches.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use f2fs::Options;
use f2fs::volume::VolumeOptions;
use f2fs_fuse::MountOptions;

/// Memory of an inode that is in the caches, with its node (bytes).
const INODE: u64 = 6 << 10;
const BLOCK: u64 = 4 << 10;

/// The memory of this machine, in bytes.
pub(crate) fn memory() -> u64 {
    let system = rustix::system::sysinfo();
    (system.totalram as u64).saturating_mul(system.mem_unit.into())
}

/// The memory of this machine, or the limit of the process's control group or of one above it, or its limit of
/// addresses, whichever is least (bytes).
pub(crate) fn memory_limit() -> u64 {
    let addresses = rustix::process::getrlimit(rustix::process::Resource::As).current;
    addresses.unwrap_or(u64::MAX).min(least(memory(), |path| std::fs::read_to_string(path).ok()))
}

/// `total`, or the least limit of a control group.
fn least(total: u64, read: impl Fn(&Path) -> Option<String>) -> u64 {
    let mut least = total;
    for line in read(Path::new("/proc/self/cgroup")).unwrap_or_default().lines() {
        // The number of a hierarchy, its controllers, and the path of the group in it.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let (root, name) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|controller| controller == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        // In a container some of these are not there. Without a limit stands `max`, or more than any machine has.
        for group in Path::new(group.trim_start_matches('/')).ancestors() {
            let file = PathBuf::from(root).join(group).join(name);
            let limit = read(&file).and_then(|text| text.trim().parse().ok());
            least = least.min(limit.unwrap_or(u64::MAX));
        }
    }
    least
}

/// The caches of a server that may have so much memory: what they are by default, or less, so that each of them takes
/// an eighth at most; and so many inodes that do not rest that they take an eighth.
pub(crate) fn sized(limit: u64, volume: VolumeOptions, mount: &mut MountOptions) -> Options {
    let share = limit / 8;
    let few = |number: NonZeroUsize, bytes: u64| {
        let fit = usize::try_from(share / bytes).unwrap_or(usize::MAX).max(256);
        NonZeroUsize::new(fit).map_or(number, |fit| fit.min(number))
    };
    let nodes = few(volume.node_cache, BLOCK);
    // Four times as many are in memory while a checkpoint is written.
    let dirty = volume.dirty_nodes.min((share / (4 * BLOCK)).max(1024));
    let all = Options::new().volume(volume.node_cache(nodes).dirty_nodes(dirty));
    mount.inodes = few(NonZeroUsize::MAX, INODE).get();
    let (inodes, dentries) = (few(all.inode_cache, INODE), few(all.dentry_cache, BLOCK));
    let (addresses, locks) = (all.address_cache.min(share), all.lock_memory.min(share));
    all.inode_cache(inodes).dentry_cache(dentries).address_cache(addresses).lock_memory(locks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOTAL: u64 = 23 << 30;

    fn with(files: &[(&str, &str)]) -> u64 {
        least(TOTAL, |path| files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned()))
    }

    #[test]
    fn the_least_limit_counts() {
        assert_eq!(with(&[]), TOTAL);
        let groups = "12:cpu,cpuacct:/a\n3:memory:/a/b\n0::/a/b/c\n";
        let files = [
            ("/proc/self/cgroup", groups),
            ("/sys/fs/cgroup/a/b/c/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/memory.max", "536870912\n"),
            ("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n"),
        ];
        assert_eq!(with(&files[..2]), TOTAL);
        assert_eq!(with(&files[..4]), 512 << 20);
        assert_eq!(with(&files), 256 << 20);
    }

    #[test]
    fn a_machine_with_much_memory_has_the_caches_of_always_and_a_small_one_less() {
        let (mut mount, default) = (MountOptions::default(), Options::new());
        let large = sized(1 << 40, VolumeOptions::new(), &mut mount);
        assert_eq!(mount.inodes, (1 << 37) / 6144);
        assert_eq!(format!("{large:?}"), format!("{default:?}"));
        let small = sized(256 << 20, VolumeOptions::new(), &mut mount);
        assert_eq!((mount.inodes, small.inode_cache.get()), (5461, 5461));
        assert_eq!(
            (small.volume.node_cache.get(), small.volume.dirty_nodes, small.dentry_cache.get()),
            (8192, 2048, 8192)
        );
        assert_eq!((small.address_cache, small.lock_memory), (32 << 20, 32 << 20));
        let none = sized(0, VolumeOptions::new(), &mut mount);
        assert_eq!((mount.inodes, none.inode_cache.get(), none.volume.dirty_nodes), (256, 256, 1024));
    }
}

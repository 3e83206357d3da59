//! From a file's blocks to their places, for reads: the nodes are asked, and the address cache remembers.

use f2fs_format::{BlockAddr, Corruption};
use f2fs_volume::tree::{Place, path_to, place_at};

use crate::FsError;
use crate::content::Content;
use crate::file_data::FileData;
use crate::inode::Inode;

/// Blocks of a file that follow each other on the device, or share the same lack of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// The address of the first block; [`BlockAddr::NULL`] and [`BlockAddr::NEW`] read as zeros.
    pub(crate) addr: BlockAddr,
    pub(crate) len: u64,
}

impl Mapping {
    /// Whether a run that begins at `addr` continues this one.
    pub(crate) fn is_followed_by(&self, addr: BlockAddr) -> bool {
        if self.addr.is_real() {
            addr.is_real() && u64::from(addr.0) == u64::from(self.addr.0) + self.len
        } else {
            !addr.is_real()
        }
    }
}

impl FileData<'_> {
    /// Asks the nodes for the run that begins with block `first`, to block `last` at most, and within one node if it is
    /// not a hole; what else the node says of the file goes into the cache.
    #[cold]
    pub(crate) fn look_up(&self, inode: &Inode, content: &Content, first: u64, last: u64) -> Result<Mapping, FsError> {
        if inode.form.alias {
            return self.look_up_on_device(inode, first, last);
        }
        if let Some(cluster) = inode.form.cluster() {
            return self.look_up_in_cluster(inode, content, first, last, cluster);
        }
        let features = self.volume.features();
        let most = (last - first).saturating_add(1);
        let path = path_to(content.addresses, first)?;
        let slot = match place_at(&self.volume, &inode.node, &path)? {
            Place::Slot(slot) => slot,
            // It is not remembered: no page is locked that would keep a writer from making the node.
            Place::Hole(blocks) => return Ok(Mapping { addr: BlockAddr::NULL, len: most.min(blocks) }),
        };
        let node = slot.node.read();
        let address = |index| {
            let addr = node.address(index, features).unwrap_or(BlockAddr::NULL);
            if addr.is_real() { addr } else { BlockAddr::NULL }
        };
        let slots = node.address_count(features);
        let start = first - slot.index as u64;
        let used = content.size().div_ceil(4096).saturating_sub(start).min(slots as u64) as usize;
        // With the node's page locked: see the rules of the cache.
        content.cache.fill(start, (0..used).map(|index| address(index).0));
        let mut run = Mapping { addr: address(slot.index), len: 1 };
        let most = most.min((slots - slot.index) as u64);
        while run.len < most && run.is_followed_by(address(slot.index + run.len as usize)) {
            run.len += 1;
        }
        Ok(run)
    }
}

impl FileData<'_> {
    /// The same in a file that stands for a device, which has all its blocks in one row, and no address of any.
    fn look_up_on_device(&self, inode: &Inode, first: u64, last: u64) -> Result<Mapping, FsError> {
        let most = (last - first).saturating_add(1);
        let extent = inode.node.read().inode().i_ext;
        let [begin, addr, len] = [extent.fofs, extent.blk_addr, extent.len].map(|raw| u64::from(raw.get()));
        let (start, end) = (self.volume.geometry().main_blkaddr.0.into(), self.volume.geometry().main_end().0.into());
        Corruption::check_equal("first block of a file that stands for a device", 0, begin)?;
        Corruption::check_range("first block of a device that a file stands for", addr, start, end)?;
        Corruption::check_range("blocks of a device that a file stands for", len, 0, end - addr)?;
        Ok(match len.checked_sub(first).filter(|behind| *behind != 0) {
            Some(behind) => Mapping { addr: BlockAddr((addr + first) as u32), len: most.min(behind) },
            None => Mapping { addr: BlockAddr::NULL, len: most },
        })
    }

    /// The same in a compressed file: the run ends with the cluster, which no node divides, and a cluster that stands
    /// compressed is an error. Nothing is remembered, so that this is asked for every cluster.
    fn look_up_in_cluster(
        &self,
        inode: &Inode,
        content: &Content,
        first: u64,
        last: u64,
        cluster: u64,
    ) -> Result<Mapping, FsError> {
        let features = self.volume.features();
        let within = first % cluster;
        let most = (last - first).saturating_add(1);
        let slot = match place_at(&self.volume, &inode.node, &path_to(content.addresses, first - within)?)? {
            Place::Slot(slot) => slot,
            Place::Hole(blocks) => return Ok(Mapping { addr: BlockAddr::NULL, len: most.min(blocks - within) }),
        };
        let node = slot.node.read();
        let address = |block: u64| node.address(slot.index + block as usize, features).unwrap_or(BlockAddr::NULL);
        if address(0) == BlockAddr::COMPRESS {
            drop(node);
            let compression = inode.node.read().inode().compression(features);
            return Err(match compression {
                Some(compression) => FsError::Compressed { ino: inode.ino, cluster: first / cluster, compression },
                None => FsError::Unsupported { ino: inode.ino, what: "compression" },
            });
        }
        let mut run = Mapping { addr: address(within), len: 1 };
        while run.len < most.min(cluster - within) && run.is_followed_by(address(within + run.len)) {
            run.len += 1;
        }
        Ok(run)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {

    use f2fs_volume::tree::present_blocks;

    use crate::samples::formatted;
    use crate::{FileSystem, Options};

    /// A damaged directory may claim the largest size there is: a listing must not visit each of its million nodes.
    #[test]
    fn a_hole_is_passed_in_one_step() {
        let device = formatted((64 << 20) >> 12);
        let fs = FileSystem::open(device, Options::new()).unwrap();
        let file = fs.create_file("/sparse", 0o644).unwrap();
        let (addresses, end) = {
            let volume = &fs.core.volume;
            let addresses = file.inode().node.read().inode().layout(volume.features()).addresses();
            (u64::from(addresses.inode), f2fs_format::path::max_file_blocks(addresses))
        };
        let direct = f2fs_format::node::ADDRS_PER_BLOCK as u64;
        let far = addresses + 2 * direct + 2 * direct * direct + 7 * direct * direct + 9 * direct + 11;
        for block in [3, far] {
            file.write_at(b"data", block * 4096).unwrap();
        }
        let (mut steps, mut at, mut present) = (0, 0, Vec::new());
        while at < end {
            at = present_blocks(&fs.core.volume, &file.inode().node, at, end, &mut present).unwrap();
            steps += 1;
        }
        assert_eq!((at, present), (end, vec![3, far]));
        // The inode, two direct nodes and two indirect ones that are not there; 7 indirect ones, 9 direct ones, the one
        // with the block, and as many steps behind it as there are nodes beside those on the way.
        assert_eq!(steps, 5 + 7 + 9 + 1 + (direct - 10) + (direct - 8));
    }
}

//! A journal that is found when its volume is opened: whether its records build on this checkpoint, and the nodes in
//! them.

use std::collections::{BTreeMap, BTreeSet};

use f2fs_device::BlockDevice;
use f2fs_format::feature::Features;
use f2fs_format::node::NodeBlock;
use f2fs_format::{BlockAddr, Nid, RawBlock};
use f2fs_journal::{Journal, Recovered, SharedMedium, Uuid};
use f2fs_sync::PlainArc;

use super::Journaling;
use super::rescue::{JournalRescue, area_of, most_wanted};
use crate::journal::record::{self, PackedNode};
use crate::journal::shown::ShownDevice;
use crate::journal::{DENTRY, FSYNC, SyncJournal};
use crate::{ChainNode, JournalArea, JournalMode, JournalTrouble, Volume, VolumeError};

/// The nodes that the records of a journal hold, each as it was last synced, file by file, the inode of each last.
#[derive(Debug, Default)]
pub struct JournaledNodes {
    nodes: Vec<PackedNode>,
    records: u64,
    data: BTreeMap<BlockAddr, Box<RawBlock>>,
    names: Vec<BoundName>,
    /// Inodes that some record has a name of, also one that is gone by now.
    named: BTreeSet<Nid>,
    given_up: GivenUp,
}

/// Records that are not brought back, since one that they may follow is damaged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GivenUp {
    /// How many.
    pub records: u64,
    /// The inodes in them, as far as they can be read.
    pub inos: BTreeSet<Nid>,
}

/// A name in the records, as it was last synced.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BoundName {
    /// The directory that it stands in.
    pub directory: Nid,
    /// Its bytes.
    pub name: Vec<u8>,
    /// The inode that it leads to; `None`: it is gone.
    pub ino: Option<Nid>,
}

/// The name that a new file was synced with.
fn name_of(node: &PackedNode) -> (Nid, Vec<u8>) {
    let block = node.unpack();
    let raw = block.inode();
    let len = (raw.i_namelen.get() as usize).min(raw.i_name.len());
    (raw.i_pino.into(), raw.i_name[..len].to_vec())
}

/// A file in the records.
#[derive(Default)]
struct File {
    /// The last record that holds it.
    last: u64,
    /// Each with the stamp of the last record that holds it.
    nodes: BTreeMap<Nid, (u64, PackedNode)>,
}

impl JournaledNodes {
    /// The records that build on the checkpoint `current`. Records of the one before it may stand in front of them, if
    /// their space was not taken back yet, or the header that says so was lost.
    ///
    /// Those with a stamp beyond `most` are given up.
    pub(super) fn read(
        recovered: &Recovered<SharedMedium>,
        current: u64,
        area: JournalArea,
        most: u64,
    ) -> Result<JournaledNodes, JournalTrouble> {
        let mut older = None;
        let mut files: BTreeMap<Nid, File> = BTreeMap::new();
        let mut records = 0;
        // A block is written once between two checkpoints: all records have the same data of it.
        let mut data = BTreeMap::new();
        let mut names = BTreeMap::new();
        let (mut named, mut given_up) = (BTreeSet::new(), GivenUp::default());
        recovered.for_each(|found| {
            let wrong = JournalTrouble::Record { lane: found.lane, position: found.position };
            if found.stamp > most {
                given_up.add(record::read(found.payload));
                return Ok(());
            }
            let Some(content) = record::read(found.payload) else { return Err(wrong) };
            if content.version != current {
                if records != 0 {
                    return Err(wrong);
                }
                older.get_or_insert(wrong);
                return Ok(());
            }
            records += 1;
            data.extend(content.blocks().map(|(addr, block)| (addr, Box::new(*block))));
            for entry in content.names {
                named.extend(entry.bound);
                names.insert((entry.directory, entry.name), entry.bound);
            }
            for node in content.nodes {
                let file = files.entry(node.ino).or_default();
                file.last = records;
                let node = match file.nodes.get(&node.nid) {
                    _ if node.base == 0 => node,
                    Some((stamp, base)) if *stamp == node.base => node.upon(base),
                    _ => return Err(wrong),
                };
                if node.nid == node.ino && node.flag & DENTRY != 0 {
                    named.insert(node.ino);
                    names.insert(name_of(&node), Some(node.ino));
                }
                file.nodes.insert(node.nid, (found.stamp, node));
            }
            Ok(())
        })?;
        if most != u64::MAX {
            recovered.for_each_behind(|found| {
                given_up.add(record::read(found.payload));
                Ok::<(), JournalTrouble>(())
            })?;
        }
        if let Some(wrong) = older.filter(|_| records == 0 && area.next != current) {
            return Err(wrong);
        }
        let mut files: Vec<(Nid, File)> = files.into_iter().collect();
        files.sort_by_key(|(_, file)| file.last);
        let in_order = |(ino, mut file): (Nid, File)| {
            let inode = file.nodes.remove(&ino);
            file.nodes.into_values().chain(inode).map(|(_, node)| node)
        };
        let nodes = files.into_iter().flat_map(in_order).collect();
        let name = |((directory, name), ino)| BoundName { directory, name, ino };
        let names = names.into_iter().map(name).collect();
        Ok(JournaledNodes { nodes, records, data, names, named, given_up })
    }

    /// Whether some record has a name of this inode: then the checkpoint need not have it.
    #[must_use]
    pub fn is_named(&self, ino: Nid) -> bool {
        self.named.contains(&ino)
    }

    /// What is not brought back, since a record is damaged that it may follow.
    #[must_use]
    pub fn given_up(&self) -> &GivenUp {
        &self.given_up
    }

    /// How many records there are.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The names that changed since the checkpoint, as far as they were synced, by directory.
    #[must_use]
    pub fn names(&self) -> &[BoundName] {
        &self.names
    }

    /// The data of a block that a record holds.
    pub(super) fn data(&self, addr: BlockAddr) -> Option<&RawBlock> {
        self.data.get(&addr).map(|block| &**block)
    }

    /// The nodes as a chain. [`ChainNode::addr`] is the number of the node here, not a block of the volume.
    #[must_use]
    pub fn chain(&self) -> Vec<ChainNode> {
        let node = |(number, node): (usize, &PackedNode)| {
            let inode = node.nid == node.ino;
            ChainNode {
                addr: BlockAddr(u32::try_from(number).unwrap_or(u32::MAX)),
                ino: node.ino,
                offset: if inode { 0 } else { node.flag >> f2fs_format::node::mark::SHIFT },
                fsync: node.flag & FSYNC != 0,
                dentry: node.flag & DENTRY != 0,
            }
        };
        self.nodes.iter().enumerate().map(node).collect()
    }

    /// A node by its number; `None` if there is none.
    #[must_use]
    pub fn node(&self, number: BlockAddr) -> Option<Box<NodeBlock>> {
        self.nodes.get(number.0 as usize).map(PackedNode::unpack)
    }
}

impl GivenUp {
    fn add(&mut self, content: Option<record::Content<'_>>) {
        self.records += 1;
        let Some(content) = content else { return };
        self.inos.extend(content.nodes.iter().map(|node| node.ino));
        self.inos.extend(content.names.iter().filter_map(|name| name.bound));
    }
}

/// A journal that was found, and belongs to a volume at its last checkpoint. Nothing was written to either.
#[derive(Debug)]
pub struct FoundJournal {
    recovered: Recovered<SharedMedium>,
    mode: JournalMode,
    nodes: JournaledNodes,
    area: JournalArea,
    upon: Option<u64>,
}

impl FoundJournal {
    /// Reads the journal of a volume that was just opened.
    ///
    /// # Errors
    /// [`JournalTrouble`].
    pub fn open(volume: &Volume, medium: SharedMedium, mode: JournalMode) -> Result<FoundJournal, VolumeError> {
        FoundJournal::rescue(volume, medium, mode, JournalRescue::default())
    }

    /// The same of a journal, or a volume, that was damaged.
    ///
    /// # Errors
    /// [`JournalTrouble`].
    pub fn rescue(
        volume: &Volume,
        medium: SharedMedium,
        mode: JournalMode,
        rescue: JournalRescue,
    ) -> Result<FoundJournal, VolumeError> {
        if mode == JournalMode::Journal && volume.features().contains(Features::BLKZONED) {
            return Err(JournalTrouble::Zoned.into());
        }
        let found = Self::find(volume, medium, mode, rescue)?;
        for addr in found.nodes.data.keys() {
            if !volume.geometry().in_main(*addr) || volume.segments.is_valid(*addr)? {
                return Err(JournalTrouble::Block { addr: *addr }.into());
            }
        }
        Ok(found)
    }

    fn find(
        volume: &Volume,
        medium: SharedMedium,
        mode: JournalMode,
        rescue: JournalRescue,
    ) -> Result<FoundJournal, JournalTrouble> {
        let recovered = Journal::open(medium, Some(Uuid(volume.superblock().uuid)))?;
        let area = area_of(&recovered)?;
        let (current, records) = (rescue.upon.unwrap_or_else(|| volume.footer_version()), recovered.records());
        let nodes = if [area.base, area.next].contains(&current) {
            // If the checkpoint that was being written is durable, it holds the older records.
            let most = most_wanted(&recovered, rescue)?;
            JournaledNodes::read(&recovered, current, area, most)?
        } else if records == 0 {
            // Records of any checkpoint may be lost.
            most_wanted(&recovered, rescue)?;
            JournaledNodes::default()
        } else {
            return Err(JournalTrouble::OtherCheckpoint { records, base: area.base, found: current });
        };
        Ok(FoundJournal { recovered, mode, nodes, area, upon: rescue.upon })
    }

    /// For a volume that says that files were synced into this journal: the journal must know its checkpoint, also if
    /// it holds nothing.
    ///
    /// # Errors
    /// [`JournalTrouble::OtherCheckpoint`].
    pub fn check_needed(&self, volume: &Volume) -> Result<(), VolumeError> {
        let JournalArea { base, next } = self.area;
        let found = self.upon.unwrap_or_else(|| volume.footer_version());
        if [base, next].contains(&found) {
            return Ok(());
        }
        Err(JournalTrouble::OtherCheckpoint { records: self.recovered.records(), base, found }.into())
    }

    /// The volume's device as it would be with the data of the records, for an opening for reading; `None` if there is
    /// no data. The records keep the nodes, and give the data away.
    #[must_use]
    pub fn shown(&mut self, device: PlainArc<dyn BlockDevice>) -> Option<PlainArc<dyn BlockDevice>> {
        let data = core::mem::take(&mut self.nodes.data);
        (!data.is_empty()).then(|| PlainArc::new(ShownDevice::new(device, data)) as PlainArc<dyn BlockDevice>)
    }

    /// The nodes that were synced since the checkpoint.
    #[must_use]
    pub fn nodes(&self) -> &JournaledNodes {
        &self.nodes
    }

    /// The journal's own identity.
    #[must_use]
    pub fn id(&self) -> [u8; 16] {
        self.recovered.id()
    }
}

impl Journaling<'_> {
    /// Lets syncs go to this journal, whose nodes were brought back before. The first of them waits for a checkpoint.
    ///
    /// # Errors
    /// [`VolumeError::Journal`] if the journal cannot be written, or the volume has one.
    pub fn attach(self, found: FoundJournal) -> Result<(), VolumeError> {
        let FoundJournal { recovered, mode, nodes, .. } = found;
        // A copy of both may be opened in the same second: their records must not be taken for each other's.
        self.0.last_checkpoint.mark_opening();
        let journal = recovered.start().map_err(JournalTrouble::from)?;
        if nodes.records() == 0 {
            // The records, if there are any, build on an earlier checkpoint.
            let mark = journal.mark();
            let area = JournalArea { base: self.0.footer_version(), next: 0 };
            journal.truncate_with(&mark, &area.bytes()).map_err(JournalTrouble::from)?;
        }
        if self.0.attached_journal.attach(SyncJournal::new(journal, mode, self.0.behind.clone())) {
            Ok(())
        } else {
            Err(JournalTrouble::Attached.into())
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

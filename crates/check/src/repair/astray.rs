//! Entries that lead to another inode than the one that has their name: one bit of a number does that.
//!
//! Nothing about such an entry may be wrong by itself. But where it leads there is nothing, or a directory with another
//! name, or an inode that was made with another name and that has more names than links, or another type than the entry
//! says. And elsewhere there is an inode that has fewer names than links, or none, and that was made with the name of
//! the entry.

use std::collections::BTreeMap;

use f2fs_format::Nid;
use f2fs_format::dentry::FileType;

use super::RepairError;
use super::directory::own_name;
use super::entries::look_up;
use super::nodes::node_of;
use super::walk::{Walk, WrongLinks};

/// A directory, and a name in it.
type Place = (Nid, Vec<u8>);

impl Walk<'_> {
    /// Finds entries that went astray, when all names are known. The next pass follows them to their own inodes.
    pub(super) fn turn_back(&mut self, wrong: WrongLinks) -> Result<(), RepairError> {
        let mut found: BTreeMap<Place, Vec<Nid>> = BTreeMap::new();
        for ino in wrong.too_many.into_iter().chain(self.unreached()?) {
            let Some((dir, name)) = self.first_place(ino)? else { continue };
            if !self.state.directories.contains_key(&dir.0) {
                continue;
            }
            let target = look_up(self, dir, &name)?;
            let place = (dir, name);
            let went_astray = match target {
                None => self.state.dangling().contains(&place),
                Some(other) if self.first_place(other)?.as_ref() == Some(&place) => false,
                Some(other) => {
                    wrong.too_few.contains(&other) || self.state.type_said(&place) == Some(self.type_of(ino)?)
                }
            };
            if went_astray {
                found.entry(place).or_default().push(ino);
            }
        }
        for ((dir, name), inodes) in found {
            // Of several that say so nobody knows which one it is.
            if let [ino] = inodes[..] {
                self.state.turn(dir, name, ino);
            }
        }
        Ok(())
    }

    /// Inodes that are there and have links, and that no name leads to.
    fn unreached(&self) -> Result<Vec<Nid>, RepairError> {
        let mut all = Vec::new();
        for ino in self.tables.nat.in_use().filter(|nid| !self.state.nodes.contains_key(&nid.0)) {
            let entry = self.tables.nat.get(ino);
            if Nid::from(entry.ino) != ino || !self.tables.is_there(entry.block_addr.into()) {
                continue;
            }
            let (_, node) = node_of(self, ino)?;
            if node.nid() == ino && node.ino() == ino && node.inode().i_links.get() != 0 {
                all.push(ino);
            }
        }
        Ok(all)
    }

    fn type_of(&self, ino: Nid) -> Result<FileType, RepairError> {
        Ok(FileType::from_mode(node_of(self, ino)?.1.inode().i_mode.get()))
    }

    /// Where an inode had its first name, as it says itself.
    fn first_place(&self, ino: Nid) -> Result<Option<Place>, RepairError> {
        let (_, node) = node_of(self, ino)?;
        let dir = self.state.said_parent(ino).unwrap_or(node.inode().i_pino.into());
        Ok(own_name(&node).map(|name| (dir, name)))
    }
}

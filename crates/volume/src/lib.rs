//! F2FS volumes: superblock, checkpoint packs, node store, format and check

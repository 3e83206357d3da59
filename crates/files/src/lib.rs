//! The F2FS namespace: inodes, directories, file data and extended attributes

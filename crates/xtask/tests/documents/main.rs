//! The documents of the repository say what is so: pictures, walks, byte maps, commands and links are compared with the
//! sources.
#![allow(clippy::unwrap_used)]

mod byte_maps;
mod crates;
mod evidence;
mod references;
mod sources;
mod text;
mod walks;

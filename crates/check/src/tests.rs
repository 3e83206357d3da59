//! The check on volumes of the real tools: whole ones, and such with one thing wrong at a time.

mod cases;
mod clean;
mod craft;
mod crafted;
mod fields;
mod hostile;
mod image;
mod kinds;
mod lost;
mod names;
mod nodes;
mod quotas;
mod reading;
mod superblocks;
mod tables;
mod two_losses;
mod unclean;

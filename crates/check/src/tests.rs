//! The check on volumes of the real tools: whole ones, and such with one thing wrong at a time.

mod astray;
mod beside;
mod cases;
mod clean;
mod copies;
mod craft;
mod crafted;
mod cut;
mod fields;
mod hostile;
mod image;
mod journaled;
mod kept;
mod kinds;
mod lost;
mod names;
mod nodes;
mod orphans;
mod quotas;
mod reading;
mod several;
mod superblocks;
mod tables;
mod texts;
mod two_losses;
mod unclean;

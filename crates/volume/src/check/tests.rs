//! The check on volumes of the real tools: whole ones, and such with one thing wrong at a time.

mod clean;
#[allow(dead_code)]
mod image;

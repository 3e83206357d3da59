//! The trials of a volume: a crash at every point, a fault at every request.
//!
//! | Module | What it does |
//! |---|---|
//! | [`tree`], [`op`] | the model: what a file system holds, and what operations do to it |
//! | [`base`], [`workload`] | where workloads begin, and what they do: enumerated, by chance, in several threads |
//! | [`record`](mod@record) | runs a workload and writes down what was promised when |
//! | `state` | one state of a volume: checked, opened, judged, used |
//! | [`judge`] | what may be on a volume after a crash or a fault, and what must be |
//! | [`explore`] | the states that a crash may leave, each looked at, some used and crashed again |
//! | [`lines`] | the same on persistent memory, where a crash loses words and not sectors |
//! | [`joint`] | the states of a volume and of its journal in persistent memory, both at the same time |
//! | [`storm`] | threads on a device that is late, unordered and fails, until the power goes |
//! | [`campaign`], [`contents`] | many workloads, and what was seen in them |
//! | [`faults`] | a fault at every request of a workload, and what it comes to |
//! | [`pool`], [`command`], `report` | all processors; the command line, and what is printed |
//! | [`kernel`] | the same of what Linux leaves |
//! | [`mutants`] | faults in the sources that the explorer must find |
//!
//! `cargo xtask crash` runs it. `RESULTS.md` beside this crate's sources keeps what was measured.
//!
//! # What is looked at
//!
//! *Which states.* A crash of a workload leaves any part of the writes since the last flush: up to 12 outstanding
//! requests every subset (4096), beyond that every prefix, each request missing alone and surviving alone, and 256
//! random subsets; and each request torn at 512 bytes and between its blocks, with those before it and with all
//! others. Where a promise falls due while requests are outstanding, as it does if a flush is missing, the same is done
//! at that position. Of requests that overlap and were in flight together either may be the last, or torn over the
//! other. Of the sequences of one operation all of these are looked at; of other workloads so many as were asked for,
//! chosen at random, or all (`--exhaustive`).
//!
//! *Which promises.* Names, bytes, extended attributes, modes, owners and times (but for the time of the last change of
//! the inode): after a checkpoint of everything, after a sync of the file that was synced ([`judge`]). Threads that
//! share files and directories are judged by the orders of their operations that explain what they were told
//! ([`record::shared`]).
//!
//! *What is not seen.* Reads beside a crash; links, orphans and subdirectories that threads share; how the blocks of
//! one write stand to each other where another thread syncs the file meanwhile (any of them may be there); more than
//! three threads; volumes of more than 128 MiB.
//!
//! *Each state* is checked without a write, opened, which recovers it, and compared with what was promised. *One in
//! four* is used as well (files are made, changed, synced, renamed and removed), closed, checked, opened and compared
//! again; of these, *one in six* is crashed again, in its recovery and its use. *One in 500* of the used ones is given
//! to fsck.f2fs, before and after.
//!
//! *Distinct* are states whose contents differ. Times of files stand still, so that they make no difference; of
//! workloads that begin on the same volume the same content counts once.
//!
//! # Locking model
//!
//! Workloads are explored independently of each other; the results meet behind one mutex, which is held for adding
//! numbers, and the contents that were seen behind another, held for one look-up a state. What is on its way is noted behind
//! a third one, and a thread of its own watches whether it ends: a state that takes a minute is a violation.
#![forbid(unsafe_code)]

pub mod base;
pub mod campaign;
pub mod command;
pub mod contents;
pub mod explore;
pub mod faults;
pub mod joint;
pub mod judge;
pub mod kernel;
pub mod lines;
pub mod mutants;
pub mod op;
pub mod pool;
pub mod record;
mod report;
mod several;
mod state;
pub mod storm;
pub mod tree;
mod watch;
pub mod workload;

//! Crash states that Linux leaves: a script of operations runs in its kernel on a recorded device, and every state that
//! a power cut may leave is judged here, by the check, the recovery and the model of this project.
//!
//! ```text
//!   grounds, scripts --> the kernel, on `f2fs ublk add --file GROUND --record LOG` --> log, report --> recording --> explorer
//!                                                                                                       '-> samples --> mounted by the kernel
//! ```
//!
//! | Module | What it does |
//! |---|---|
//! | [`script`] | which operations, on which volume |
//! | [`perform`] | the operations as calls of the kernel, in the virtual machine |
//! | [`report`] | what the kernel said of each, and how long the log was then |
//! | [`recording`] | a [`Recording`](crate::record::Recording) of these |
//! | [`early`] | syncs that return before their node is durable, as Linux's first after a checkpoint does |
//! | [`campaign`] | all scripts of a directory, and what their states showed |
//! | [`command`] | the command line of `kernel-trials` |
//!
//! `cargo xtask crash-kernel` runs it.

pub mod campaign;
pub mod command;
pub mod early;
pub mod perform;
pub mod recording;
pub mod report;
pub mod script;

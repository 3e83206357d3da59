//! Reading ahead for files that are read in order, beside the threads of the rings: the kernel gives the next request to the
//! entry that was given back last, so what its thread did first would be waited for.
//!
//! # Locking
//!
//! A mutex around what waits to be read, held for a look; no other lock is taken with it.

use std::collections::VecDeque;
use std::io;
use std::thread::{Builder, JoinHandle};

use f2fs_sync::{Arc, Condvar, Mutex};

use crate::service::{Ahead, Service};

/// What may wait. Of more, each is passed over: it would come after the request that it is for.
const MOST: usize = 16;

#[derive(Debug, Default)]
struct Waiting {
    list: VecDeque<Ahead>,
    ends: bool,
}

#[derive(Debug, Default)]
pub(super) struct List {
    waiting: Mutex<Waiting>,
    came: Condvar,
}

impl List {
    /// Has this read by one of the threads.
    pub(super) fn add(&self, ahead: Ahead) {
        let mut waiting = self.waiting.lock();
        if waiting.list.len() < MOST {
            waiting.list.push_back(ahead);
            drop(waiting);
            self.came.notify_one();
        }
    }

    /// `None`: there is nothing more to read.
    fn next(&self) -> Option<Ahead> {
        let mut waiting = self.waiting.lock();
        loop {
            if waiting.ends {
                return None;
            }
            match waiting.list.pop_front() {
                Some(ahead) => return Some(ahead),
                None => self.came.wait(&mut waiting),
            }
        }
    }
}

/// The threads that read. They end with this.
#[derive(Debug)]
pub(super) struct Readers {
    list: Arc<List>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(super) fn start(service: &Arc<Service>, threads: usize) -> io::Result<Readers> {
        let mut readers = Readers { list: Arc::default(), threads: Vec::new() };
        for number in 0..threads {
            let (service, list) = (Arc::clone(service), Arc::clone(&readers.list));
            readers.threads.push(Builder::new().name(format!("f2fs-ahead-{number}")).spawn(move || {
                while let Some(ahead) = list.next() {
                    service.read_on(&ahead);
                }
            })?);
        }
        Ok(readers)
    }

    pub(super) fn list(&self) -> Arc<List> {
        Arc::clone(&self.list)
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        let mut waiting = self.list.waiting.lock();
        waiting.ends = true;
        waiting.list.clear();
        drop(waiting);
        self.list.came.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

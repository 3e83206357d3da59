//! The threads that serve a mount's rings.
//!
//! Each running processor has a queue, and some threads with one entry each in it: a request waits only if all of these
//! are busy. The queues of processors that do not run, which the kernel wants as well, have one thread for all.
//!
//! ```text
//!   prepare ──► each thread makes its ring ──► all have one ──► begin ──► entries go to the kernel ──► requests
//!                       └── one cannot ──► none begins, and the mount is none
//! ```
//!
//! # Locking
//!
//! A mutex around what the threads wait for at their start and tell at their end, held for a look; no other lock is taken
//! with it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use f2fs_fuse_uring::{Queues, Worker, stay_on};
use f2fs_sync::{Arc, Condvar, Mutex};

use super::ahead::{List, Readers};
use super::answer;
use crate::service::Service;
use crate::transport::MAX_WRITE;

/// How long entries may take to end when the connection has: the kernel ends those soon that are idle.
const PATIENCE: Duration = Duration::from_secs(30);

/// Threads that read ahead.
const MOST_READERS: usize = 4;

/// Where the threads are.
#[derive(Debug, Default)]
struct Stage {
    /// Threads that have a ring, or have none.
    made: usize,
    /// Why the first of them had none, or ended too early.
    failed: Option<io::Error>,
    /// Entries are given to the kernel; `Some(false)`: they are not.
    begins: Option<bool>,
    ended: usize,
}

#[derive(Debug, Default)]
struct Shared {
    stage: Mutex<Stage>,
    changed: Condvar,
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut Stage)) {
        change(&mut self.stage.lock());
        self.changed.notify_all();
    }

    /// A thread has made its ring, or failed. Whether it begins.
    fn made(&self, failed: Option<io::Error>) -> bool {
        self.change(|stage| {
            stage.made += 1;
            stage.failed = stage.failed.take().or(failed);
        });
        let mut stage = self.stage.lock();
        loop {
            match stage.begins {
                Some(begins) => return begins,
                None => self.changed.wait(&mut stage),
            }
        }
    }
}

/// The threads of a mount's rings.
#[derive(Debug)]
pub(crate) struct Rings {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Closed when the threads are to leave.
    stay: Option<io::PipeWriter>,
    readers: Readers,
}

impl Rings {
    /// Starts threads, about as many as asked for and one at least for each processor. They wait for
    /// [`begin`](Self::begin). `broken` is told once requests cannot be served any more, though the mount has not ended.
    ///
    /// # Errors
    /// If a thread cannot be started, or a ring cannot be made.
    pub(crate) fn prepare(
        service: &Arc<Service>,
        connection: &Arc<OwnedFd>,
        threads: usize,
        broken: impl Fn(io::Error) + Clone + Send + 'static,
    ) -> io::Result<Rings> {
        let queues = Queues::of_this_machine()?;
        let each = threads.div_ceil(queues.running.len());
        let running = queues.running.iter().flat_map(|queue| std::iter::repeat_n(vec![*queue], each));
        let possible = Some(queues.possible).filter(|queues| !queues.is_empty());
        let (stays, stay) = io::pipe()?;
        let (stays, shared) = (Arc::new(stays), Arc::<Shared>::default());
        let readers = Readers::start(service, queues.running.len().min(MOST_READERS))?;
        let mut rings = Rings { shared, threads: Vec::new(), stay: Some(stay), readers };
        for queues in running.chain(possible) {
            let (service, connection, broken) = (Arc::clone(service), Arc::clone(connection), broken.clone());
            let (shared, stays) = (Arc::clone(&rings.shared), Arc::clone(&stays));
            let list = rings.readers.list();
            let name = format!("f2fs-ring-{}", rings.threads.len());
            rings.threads.push(Builder::new().name(name).spawn(move || {
                let served = serve(&service, &list, &shared, &queues, || {
                    Worker::new(connection.as_fd(), stays.as_fd(), &queues, MAX_WRITE as usize)
                });
                if let Err(error) = served {
                    broken(error);
                }
                // In front of the telling: who waits for it takes the volume apart.
                drop(service);
                shared.change(|stage| stage.ended += 1);
            })?);
        }
        rings.wait_until_made()?;
        Ok(rings)
    }

    fn wait_until_made(&self) -> io::Result<()> {
        let mut stage = self.shared.stage.lock();
        while stage.made < self.threads.len() {
            self.shared.changed.wait(&mut stage);
        }
        stage.failed.take().map_or(Ok(()), Err)
    }

    /// Gives the kernel the entries, which it uses from then on.
    pub(crate) fn begin(&self) {
        self.shared.change(|stage| stage.begins = Some(true));
    }

    /// Waits until all threads have ended with the connection, which has ended or ends now.
    pub(crate) fn wait(&self) {
        let mut stage = self.shared.stage.lock();
        while stage.ended < self.threads.len() {
            if self.shared.changed.wait_for(&mut stage, PATIENCE).timed_out() {
                break;
            }
        }
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        self.shared.change(|stage| {
            stage.begins.get_or_insert(false);
        });
        self.stay.take();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The work of a thread.
fn serve(
    service: &Service,
    list: &List,
    shared: &Shared,
    queues: &[u16],
    make: impl FnOnce() -> io::Result<Worker>,
) -> io::Result<()> {
    if let [queue] = queues {
        stay_on(*queue);
    }
    let worker = match make() {
        Ok(worker) => worker,
        Err(error) => {
            shared.made(Some(error));
            return Ok(());
        }
    };
    if !shared.made(None) {
        return Ok(());
    }
    let served =
        catch_unwind(AssertUnwindSafe(|| worker.serve(|exchange| answer(service, exchange, |ahead| list.add(ahead)))));
    served.unwrap_or_else(|_| Err(io::Error::other("a thread of a ring has panicked")))
}

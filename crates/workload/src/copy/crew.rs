//! Workers that share a stack of jobs, and directories that know when all below them is done.
//!
//! # Locking
//!
//! One lock, on the stack; nothing is called while it is held. The newest job is taken first, so that a tree is walked
//! in depth and the stack stays short. A worker without a job waits until one is added or no worker is busy.

use f2fs::sync::{Arc, Condvar, Mutex};

/// Jobs to be done.
pub(super) struct Crew<J> {
    state: Mutex<State<J>>,
    changed: Condvar,
}

struct State<J> {
    jobs: Vec<J>,
    busy: usize,
}

/// A worker that has a job. Dropping it, also by a panic, lets the others end.
struct Busy<'a, J>(&'a Crew<J>);

impl<J> Drop for Busy<'_, J> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.busy -= 1;
        if state.busy == 0 {
            self.0.changed.notify_all();
        }
    }
}

impl<J: Send> Crew<J> {
    /// Does a job and all that are added meanwhile. Each of the `workers` has the equipment that `equip` returns.
    pub(super) fn run<T>(
        first: J,
        workers: usize,
        equip: impl Fn() -> T + Sync,
        work: impl Fn(&mut T, J, &Crew<J>) + Sync,
    ) {
        let state = State { jobs: vec![first], busy: 0 };
        let crew = Crew { state: Mutex::new(state), changed: Condvar::new() };
        let labour = || {
            let mut tools = equip();
            while let Some(job) = crew.take() {
                let _busy = Busy(&crew);
                work(&mut tools, job, &crew);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..workers {
                // Without more threads fewer do it.
                if std::thread::Builder::new().spawn_scoped(scope, labour).is_err() {
                    break;
                }
            }
            labour();
        });
    }

    /// Adds a job; it is the next one to be taken.
    pub(super) fn add(&self, job: J) {
        self.state.lock().jobs.push(job);
        self.changed.notify_one();
    }

    fn take(&self) -> Option<J> {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop() {
                state.busy += 1;
                return Some(job);
            }
            if state.busy == 0 {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }
}

/// A directory that is copied. Jobs below it hold it; the thread that drops the last hold finishes it.
pub(super) struct Node<T> {
    pub(super) parent: Option<Arc<Node<T>>>,
    pub(super) what: T,
}

impl<T> Node<T> {
    /// Lets go of a directory. Those that no thread holds any more are finished, the lowest first.
    pub(super) fn release(node: Arc<Node<T>>, mut finish: impl FnMut(&Node<T>)) {
        let mut next = Some(node);
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            finish(&node);
            next = node.parent.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_done_once_and_a_directory_after_all_below_it() {
        let done = Mutex::new(Vec::new());
        let top = Arc::new(Node { parent: None, what: 0_u32 });
        let finish = |node: &Node<u32>| done.lock().push(node.what);
        Crew::run(
            (top, 0),
            4,
            || (),
            |(), (node, depth), crew| {
                if depth < 4 {
                    for child in 1..=5 {
                        let below = Node { parent: Some(Arc::clone(&node)), what: node.what * 10 + child };
                        crew.add((Arc::new(below), depth + 1));
                    }
                }
                Node::release(node, finish);
            },
        );
        let done = done.into_inner();
        assert_eq!(done.len(), 1 + 5 + 25 + 125 + 625);
        let place = |what: u32| done.iter().position(|done| *done == what).unwrap();
        assert!(done.iter().all(|what| *what == 0 || place(*what) < place(what / 10)));
    }
}

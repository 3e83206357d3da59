//! Work that is done side by side.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::Result;

/// Does the same with each item, the first ones first, on as many threads as there are processors. What comes of it is
/// in no order.
///
/// # Errors
///
/// The first error of a thread, which ends with it. The others go on to the end.
pub(super) fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(usize, &T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return Ok(done) };
            done.push(work(index, item)?);
        }
    };
    thread::scope(|scope| {
        let count = thread::available_parallelism().map_or(2, usize::from);
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(worker)).collect();
        let ends = workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        ends.collect::<Result<Vec<Vec<R>>>>().map(|all| all.into_iter().flatten().collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_has_its_turn_and_errors_are_told() {
        let items: Vec<usize> = (0..100).collect();
        let mut doubled = each(&items, |index, item| Ok(index + item)).unwrap();
        doubled.sort_unstable();
        assert_eq!(doubled, (0..100).map(|item| 2 * item).collect::<Vec<_>>());
        assert!(each(&items, |_, &item| if item == 7 { anyhow::bail!("seven") } else { Ok(()) }).is_err());
    }
}

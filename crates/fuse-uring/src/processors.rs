//! The processors of the machine: the kernel has a queue for each, and sends a request to that of the processor where
//! the asking program runs.

use std::fs;
use std::io;

use rustix::thread::{CpuSet, sched_setaffinity};

/// The queues of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queues {
    /// Queues of processors that run: requests come here.
    pub running: Vec<u16>,
    /// Queues of processors that may be added later. The kernel wants them served as well, before it uses any.
    pub possible: Vec<u16>,
}

impl Queues {
    /// The queues that the kernel has on this machine.
    ///
    /// # Errors
    /// If the kernel does not say which processors there are, or has more than there can be queues.
    pub fn of_this_machine() -> io::Result<Queues> {
        let read = |name| fs::read_to_string(format!("/sys/devices/system/cpu/{name}"));
        let unclear = || io::Error::other("the kernel's list of processors is not clear");
        Queues::new(&read("possible")?, &read("online")?).ok_or_else(unclear)
    }

    /// The kernel has as many queues as there are possible processors, by the processors' numbers.
    fn new(possible: &str, online: &str) -> Option<Queues> {
        let count = u16::try_from(numbers(possible)?.len()).ok()?;
        let running: Vec<u16> = numbers(online)?.into_iter().filter(|number| *number < count).collect();
        let possible = (0..count).filter(|number| !running.contains(number)).collect();
        (!running.is_empty()).then_some(Queues { running, possible })
    }
}

/// The numbers of a list such as `0-3,8`.
fn numbers(list: &str) -> Option<Vec<u16>> {
    let mut numbers = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        numbers.extend(first.parse::<u16>().ok()?..=last.parse().ok()?);
    }
    Some(numbers)
}

/// Has the calling thread run on this processor only, if it may.
pub fn stay_on(processor: u16) {
    let mut set = CpuSet::new();
    if usize::from(processor) < CpuSet::MAX_CPU {
        set.set(processor.into());
        // Where the process may not run there, its thread runs elsewhere: slower, and as well.
        let _ = sched_setaffinity(None, &set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_possible_processor_has_a_queue() {
        let queues = Queues::new("0-7\n", "0-1,4\n").unwrap();
        assert_eq!(queues, Queues { running: vec![0, 1, 4], possible: vec![2, 3, 5, 6, 7] });
        assert_eq!(Queues::new("0", "0").unwrap(), Queues { running: vec![0], possible: vec![] });
        for (possible, online) in [("", ""), ("0-1", ""), ("0-x", "0"), ("0", "7"), ("0-70000", "0")] {
            assert_eq!(Queues::new(possible, online), None, "{possible} {online}");
        }
        assert!(!Queues::of_this_machine().unwrap().running.is_empty());
    }

    #[test]
    fn a_thread_stays_on_a_processor() {
        std::thread::spawn(|| {
            let queues = Queues::of_this_machine().unwrap();
            stay_on(queues.running[0]);
            stay_on(u16::MAX);
        })
        .join()
        .unwrap();
    }
}

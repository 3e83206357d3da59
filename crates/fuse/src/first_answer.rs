//! The answer to the first request of a mount, which shows that it is served.
//!
//! # Locking
//!
//! A mutex around the answer, held for a look; no other lock is taken with it.

use std::io;

use f2fs_sync::{Arc, Condvar, Mutex};

/// The first answer, or the end of the server.
#[derive(Debug, Default)]
pub(crate) struct FirstAnswer {
    told: Mutex<Option<io::Result<()>>>,
    came: Condvar,
}

impl FirstAnswer {
    /// What is told first counts.
    pub(crate) fn tell(&self, answer: io::Result<()>) {
        let mut told = self.told.lock();
        if told.is_none() {
            *told = Some(answer);
        }
        drop(told);
        self.came.notify_one();
    }

    /// Waits for it; asked once.
    pub(crate) fn wait(&self) -> io::Result<()> {
        let mut told = self.told.lock();
        loop {
            match told.take() {
                Some(answer) => return answer,
                None => self.came.wait(&mut told),
            }
        }
    }
}

/// A server that ends with this, by a panic too: nobody answers any more, or ever did.
pub(crate) struct Ends(pub(crate) Arc<FirstAnswer>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.tell(Err(io::ErrorKind::NotConnected.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_an_answer_unless_one_came_before() {
        let answer = Arc::new(FirstAnswer::default());
        drop(Ends(answer.clone()));
        assert_eq!(answer.wait().unwrap_err().kind(), io::ErrorKind::NotConnected);
        let answer = Arc::new(FirstAnswer::default());
        answer.tell(Ok(()));
        drop(Ends(answer.clone()));
        answer.wait().unwrap();
    }
}

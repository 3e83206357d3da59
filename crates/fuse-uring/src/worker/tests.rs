//! Workers against a kernel that is played: it checks what it is given as Linux does, and gives out what a test wants.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use zerocopy::FromZeros;

use super::*;
use crate::abi::Headers;

const ROOM: usize = 4096;
const NOTCONN: i32 = -107;

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// A request with this payload comes to an entry.
    Request {
        entry: usize,
        unique: u64,
        payload: Vec<u8>,
    },
    /// The command of an entry is over with an error.
    Over {
        entry: usize,
        result: i32,
    },
    Leave,
}

/// An answer as the kernel found it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    entry: usize,
    unique: u64,
    error: i32,
    payload: Vec<u8>,
}

#[derive(Debug, Default)]
struct Log {
    answers: Vec<Found>,
    /// Entries into the kernel that wait.
    waits: usize,
}

#[derive(Debug)]
struct Played {
    headers: Vec<Headers>,
    payloads: Vec<Vec<u8>>,
    kernels: Vec<bool>,
    /// Commands that the kernel was not told of.
    untold: Vec<(usize, Option<u64>)>,
    steps: VecDeque<Step>,
    events: VecDeque<Event>,
    log: Rc<RefCell<Log>>,
}

impl Played {
    fn new(entries: usize, steps: impl IntoIterator<Item = Step>) -> (Played, Rc<RefCell<Log>>) {
        let log = Rc::default();
        let played = Played {
            headers: (0..entries).map(|_| Headers::new_zeroed()).collect(),
            payloads: vec![vec![0; ROOM]; entries],
            kernels: vec![false; entries],
            untold: Vec::new(),
            steps: steps.into_iter().collect(),
            events: VecDeque::new(),
            log: Rc::clone(&log),
        };
        (played, log)
    }
}

impl Kernel for Played {
    fn register(&mut self, entry: usize) -> io::Result<()> {
        assert!(!self.kernels[entry]);
        self.untold.push((entry, None));
        Ok(())
    }

    fn commit(&mut self, entry: usize, commit_id: u64) -> io::Result<()> {
        assert!(!self.kernels[entry], "an entry that is the kernel's is given to it");
        self.untold.push((entry, Some(commit_id)));
        Ok(())
    }

    fn enter(&mut self) -> io::Result<()> {
        for (entry, commit_id) in self.untold.drain(..) {
            self.kernels[entry] = true;
            let Some(commit_id) = commit_id else { continue };
            let headers = &self.headers[entry];
            assert_eq!(commit_id, headers.entry.commit_id, "the kernel finds the request by this");
            let (answer, _) = AnswerHeader::read_from_prefix(&headers.in_out).unwrap();
            assert!((-511..=0).contains(&answer.error), "the kernel takes no such error: {}", answer.error);
            let payload = self.payloads[entry][..headers.entry.payload_sz as usize].to_vec();
            let found = Found { entry, unique: answer.unique, error: answer.error, payload };
            self.log.borrow_mut().answers.push(found);
        }
        self.log.borrow_mut().waits += 1;
        match self.steps.pop_front().expect("the worker waits for what never comes") {
            Step::Leave => self.events.push_back(Event::Leave),
            Step::Over { entry, result } => {
                assert!(std::mem::take(&mut self.kernels[entry]));
                self.events.push_back(Event::Over { entry, result });
            }
            Step::Request { entry, unique, payload } => {
                assert!(std::mem::take(&mut self.kernels[entry]), "a request comes to an entry that it has");
                let mut header = RequestHeader::new_zeroed();
                (header.unique, header.opcode, header.nodeid) = (unique, 1, 1);
                let headers = &mut self.headers[entry];
                headers.in_out[..40].copy_from_slice(header.as_bytes());
                headers.op_in[0] = unique as u8;
                headers.entry.commit_id = unique;
                headers.entry.payload_sz = payload.len() as u32;
                let kept = payload.len().min(ROOM);
                self.payloads[entry][..kept].copy_from_slice(&payload[..kept]);
                self.events.push_back(Event::Over { entry, result: 0 });
            }
        }
        Ok(())
    }

    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn headers(&mut self, entry: usize) -> &mut Headers {
        assert!(!self.kernels[entry]);
        &mut self.headers[entry]
    }

    fn payload(&mut self, entry: usize) -> &mut [u8] {
        assert!(!self.kernels[entry]);
        &mut self.payloads[entry]
    }

    fn entries(&self) -> usize {
        self.headers.len()
    }
}

fn request(entry: usize, unique: u64, payload: &[u8]) -> Step {
    Step::Request { entry, unique, payload: payload.to_vec() }
}

fn ended(entry: usize) -> Step {
    Step::Over { entry, result: NOTCONN }
}

/// Answers with the payload backwards.
fn backwards(exchange: &mut Exchange<'_>) -> Result<usize, i32> {
    let answer: Vec<u8> = exchange.payload().iter().rev().copied().collect();
    exchange.room()[..answer.len()].copy_from_slice(&answer);
    assert_eq!(u64::from(exchange.argument()[0]), exchange.header().unique & 0xff);
    Ok(answer.len())
}

#[test]
fn requests_are_answered_until_the_end() {
    let (played, log) =
        Played::new(2, [request(1, 7, b"abc"), request(1, 8, b""), request(0, 9, b"xy"), ended(0), ended(1)]);
    Work::new(played).run(backwards).unwrap();
    let log = log.borrow();
    let found = |entry, unique, payload: &[u8]| Found { entry, unique, error: 0, payload: payload.to_vec() };
    assert_eq!(log.answers, [found(1, 7, b"cba"), found(1, 8, b""), found(0, 9, b"yx")]);
    // An answer and the wait behind it are one entry into the kernel.
    assert_eq!(log.waits, 5);
}

#[test]
fn errors_are_told_as_the_kernel_takes_them() {
    let steps = (1..=5).map(|unique| request(0, unique, b"abc")).chain([ended(0)]);
    let (played, log) = Played::new(1, steps);
    let results = [Err(2), Err(0), Err(512), Err(i32::MIN), Ok(ROOM + 1)];
    let serve = |exchange: &mut Exchange<'_>| results[exchange.header().unique as usize - 1];
    Work::new(played).run(serve).unwrap();
    let told: Vec<_> = log.borrow().answers.iter().map(|found| (found.error, found.payload.len())).collect();
    assert_eq!(told, [(-2, 0), (-5, 0), (-5, 0), (-5, 0), (-5, 0)]);
}

#[test]
fn a_length_beyond_the_memory_is_cut() {
    let (played, _log) = Played::new(1, [request(0, 1, &vec![1; ROOM + 9]), ended(0)]);
    let serve = |exchange: &mut Exchange<'_>| {
        assert_eq!(exchange.payload().len(), ROOM);
        Ok(0)
    };
    Work::new(played).run(serve).unwrap();
}

#[test]
fn a_worker_leaves_with_its_server() {
    let (played, log) = Played::new(2, [request(0, 1, b"a"), Step::Leave]);
    Work::new(played).run(backwards).unwrap();
    assert_eq!(log.borrow().answers.len(), 1);
}

#[test]
fn what_the_kernel_refuses_is_told_at_the_end() {
    for (result, told) in [(-22, Some(22)), (-95, Some(95)), (-103, None), (-125, None), (i32::MIN, Some(i32::MAX))] {
        let (played, log) = Played::new(2, [Step::Over { entry: 0, result }, request(1, 1, b"a"), ended(1)]);
        let run = Work::new(played).run(backwards);
        assert_eq!(run.err().and_then(|error| error.raw_os_error()), told);
        assert_eq!(log.borrow().answers.len(), 1, "the other entry is served to its end");
    }
}

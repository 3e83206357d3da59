//! Requests that are on their way when another one panics: they are over when the panic is caught.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use f2fs_device::{BlockDevice, Claims, Completion, DeviceError, DeviceInfo, Operation, Pending, Request, Ticket};
use f2fs_device_test::{Fault, FaultDevice, FaultRule};
use f2fs_files::{FileSystem, Options};
use f2fs_volume::StopCause;

use crate::judge::{LIMIT, options, text, tree};
use crate::work::prepared;
use f2fs_device_test::bytes;
use f2fs_test_kit::volumes::assert_consistent;
use f2fs_test_kit::volumes::within;

/// The outcome of a request.
type Outcome = std::thread::Result<(usize, Completion)>;

/// A device that carries each batch out on a thread of its own, some time after it was submitted. A request that panics
/// does so to whoever waits for it.
#[derive(Debug)]
struct Slow {
    inner: Arc<FaultDevice>,
    on_the_way: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Answers(mpsc::Receiver<Outcome>);

impl Pending for Answers {
    fn collect(&mut self, block: bool, out: &mut VecDeque<(usize, Completion)>) {
        let answer = if block { self.0.recv().ok() } else { self.0.try_recv().ok() };
        match answer {
            Some(Ok(completion)) => out.push_back(completion),
            Some(Err(panic)) => resume_unwind(panic),
            None => {}
        }
    }
}

impl BlockDevice for Slow {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn claims(&self) -> &Claims {
        self.inner.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        let (device, on_the_way) = (self.inner.clone(), self.on_the_way.clone());
        let (total, (answer, answers)) = (requests.len(), mpsc::channel());
        on_the_way.fetch_add(total, Ordering::SeqCst);
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(3));
            for (index, request) in requests.into_iter().enumerate() {
                let outcome = catch_unwind(AssertUnwindSafe(|| (index, device.execute(request))));
                on_the_way.fetch_sub(1, Ordering::SeqCst);
                let _ = answer.send(outcome);
            }
        });
        Ticket::pending(total, Vec::new(), Box::new(Answers(answers)))
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.inner.flush()
    }

    fn execute(&self, request: Request) -> Completion {
        self.inner.execute(request)
    }
}

#[test]
fn nothing_is_on_its_way_when_a_panic_is_caught() {
    let base = prepared();
    let content = bytes(6 << 20, 5);
    let mut panics = 0;
    for number in 0.. {
        let inner = Arc::new(base.snapshot());
        let faulty = Arc::new(FaultDevice::new(inner.clone()));
        let on_the_way = Arc::new(AtomicUsize::new(0));
        let slow = Slow { inner: faulty.clone(), on_the_way: on_the_way.clone() };
        let fs = FileSystem::open(Arc::new(slow), options()).unwrap();
        let file = fs.create_file("/new", 0o644).unwrap();
        faulty.arm(FaultRule::on([Operation::Write]).after(number).fault(Fault::Panic));
        let caught = catch_unwind(AssertUnwindSafe(|| {
            file.write_at(&content, 0).unwrap();
            fs.checkpoint().unwrap();
        }));
        assert_eq!(on_the_way.load(Ordering::SeqCst), 0, "after {number} writes");
        let Err(panic) = caught else { break };
        assert!(text(&*panic).contains("the device panics in a write"));
        assert_eq!(fs.volume().stopped(), Some(&StopCause::Panic));
        panics += 1;
        // Who starts again at once finds the volume as it was, and nobody writes beside.
        within(LIMIT, move || drop((file, fs)));
        let again = FileSystem::open(inner.clone(), Options::new()).unwrap();
        assert!(tree(&again).len() > 150);
        again.create_file("/goes on", 0o644).unwrap().write_at(&[7; 9000], 0).unwrap();
        again.close().unwrap();
        assert_consistent(&*inner);
    }
    assert!(panics > 5, "{panics}");
}

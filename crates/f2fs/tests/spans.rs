//! The spans and events that `tracing` is told of (`cargo test -p f2fs --features tracing --test spans`).
//!
//! One test, alone in its program: `tracing` decides once for a process whether anyone listens to a place, and a second
//! thread that reaches the place first, without a listener, can turn it off for this one.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::{Arc, Mutex};

use f2fs::device::MemoryDevice;
use f2fs::volume::format::format;
use f2fs::{FileSystem, Options};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Notes which spans begin, and inside which.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    names: Vec<&'static str>,
    inside: Vec<u64>,
    spans: Vec<String>,
    events: Vec<String>,
}

impl Subscriber for Seen {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("f2fs")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut state = self.0.lock().unwrap();
        state.names.push(span.metadata().name());
        Id::from_u64(state.names.len() as u64)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut state = self.0.lock().unwrap();
        let level = event.metadata().level().to_string();
        let within = state.inside.last().map_or("nothing", |id| state.names[*id as usize - 1]);
        let text = format!("{level} in {within}");
        state.events.push(text);
    }

    fn enter(&self, span: &Id) {
        let mut state = self.0.lock().unwrap();
        state.inside.push(span.into_u64());
        let path: Vec<_> = state.inside.iter().map(|id| state.names[*id as usize - 1]).collect();
        let path = path.join(" > ");
        state.spans.push(path);
    }

    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().inside.pop();
    }
}

impl Seen {
    fn during(&self, what: impl FnOnce()) -> (Vec<String>, Vec<String>) {
        *self.0.lock().unwrap() = State::default();
        tracing::subscriber::with_default(self.clone(), what);
        let mut state = self.0.lock().unwrap();
        (std::mem::take(&mut state.spans), std::mem::take(&mut state.events))
    }
}

#[test]
fn spans_of_what_takes_its_time() {
    let seen = Seen::default();
    let device = Arc::new(MemoryDevice::new(32 * 1024));
    format(&*device, &Default::default()).unwrap();
    let (spans, events) = seen.during(|| {
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        fs.create_file("/first", 0o644).unwrap().sync_all().unwrap();
        let file = fs.create_file("/second", 0o644).unwrap();
        file.write_at(b"x", 0).unwrap();
        file.sync_all().unwrap();
    });
    assert_eq!(spans, ["open", "open > recover", "checkpoint"]);
    // Each reports how it ended.
    assert_eq!(events, ["INFO in recover", "INFO in checkpoint"]);

    let (spans, _) = seen.during(|| {
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        assert_eq!(fs.recovered().files, 1);
        fs.clean().unwrap();
        fs.close().unwrap();
    });
    // Closing writes the last one into both packs.
    assert_eq!(spans, ["open", "open > recover", "open > checkpoint", "clean", "checkpoint", "checkpoint"]);

    let (spans, events) = seen.during(|| {
        let device: Arc<dyn f2fs::BlockDevice> = device.clone();
        f2fs::check::repair::plan(&device, &Default::default()).unwrap().apply(&*device).unwrap();
        assert!(FileSystem::open(Arc::new(MemoryDevice::new(32 * 1024)), Options::new()).is_err());
    });
    assert_eq!(spans, ["plan_repair", "repair", "open"]);
    assert_eq!(events.last().map(String::as_str), Some("ERROR in open"));
}

//! What `tracing` is told, and what is exported of the counts: with the features `tracing` and `serde`
//! (`cargo test -p f2fs --features tracing,serde --test observability`).
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
    assert_eq!(spans, ["open", "open > recover", "open > checkpoint", "clean", "checkpoint"]);

    let (spans, events) = seen.during(|| {
        let device: Arc<dyn f2fs::BlockDevice> = device.clone();
        f2fs::check::repair::plan(&device, &Default::default()).unwrap().apply(&*device).unwrap();
        assert!(FileSystem::open(Arc::new(MemoryDevice::new(32 * 1024)), Options::new()).is_err());
    });
    assert_eq!(spans, ["plan_repair", "repair", "open"]);
    assert_eq!(events.last().map(String::as_str), Some("ERROR in open"));
}

#[test]
fn counts_are_exported_under_their_names() {
    let device = Arc::new(MemoryDevice::new(32 * 1024));
    format(&*device, &Default::default()).unwrap();
    let fs = FileSystem::open(device, Options::new()).unwrap();
    fs.create_file("/first", 0o644).unwrap().write_at(&[7; 40_960], 0).unwrap();
    fs.checkpoint().unwrap();
    let stats = fs.stats();
    let json = serde_json::to_value(stats).unwrap();
    let fields = json.as_object().unwrap();
    assert_eq!(fields.len(), stats.named().count());
    for (name, _, value) in stats.named() {
        assert_eq!(fields[name], value, "{name}");
    }
    assert!(stats.user_blocks_written >= 10 && stats.blocks_written() > stats.user_blocks_written);
    let (user, valid) = (fs.statfs().user_blocks, fs.statfs().valid_blocks);
    assert_eq!((stats.user_blocks, stats.valid_blocks, stats.stopped, stats.orphans), (user, valid, 0, 0));
}

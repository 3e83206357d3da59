//! Progress bars, on a terminal only.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over `total` units, or a spinner if the total is not known. Draws nothing unless stderr is a terminal.
pub(crate) fn bar(what: &'static str, total: Option<u64>) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match total {
        Some(total) => (ProgressBar::new(total), "{msg} [{bar:40}] {pos}/{len} {eta}"),
        None => (ProgressBar::new_spinner(), "{msg} {spinner} {pos}"),
    };
    bar.enable_steady_tick(Duration::from_millis(200));
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style).with_message(what)
}

/// A bar over bytes.
pub(crate) fn bytes(what: &'static str, total: u64) -> ProgressBar {
    let bar = bar(what, Some(total));
    if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:40}] {bytes}/{total_bytes} {bytes_per_sec} {eta}") {
        bar.set_style(style);
    }
    bar
}

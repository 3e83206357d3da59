//! The workers of one measurement, which start together.

use super::error::FxmarkError;
use super::line::StartLine;
use super::observer::Observer;
use super::prepare::prepare;
use super::setting::Setting;
use super::system::System;
use super::work::{Work, work};

/// Prepares, starts and awaits the workers. `ready` is called between, when all files are there.
pub(super) fn race<S: System, T>(
    system: &S,
    setting: &Setting,
    observer: &dyn Observer,
    ready: impl FnOnce() -> Result<T, FxmarkError>,
) -> Result<(T, Vec<Work>), FxmarkError> {
    let line = StartLine::new();
    std::thread::scope(|scope| {
        let mut workers = Vec::with_capacity(setting.threads);
        let mut refused = None;
        for worker in 0..setting.threads {
            let arrival = line.worker();
            let begun = std::thread::Builder::new().name(format!("fxmark-{worker}")).spawn_scoped(scope, move || {
                prepare(system, setting, worker, observer)?;
                arrival.arrive().then(|| work(system, setting, worker)).transpose()
            });
            match begun {
                Ok(handle) => workers.push(handle),
                Err(source) => {
                    // Its arrival was dropped with the closure, so nobody waits for it.
                    refused = Some(FxmarkError::Thread { thread: worker, source });
                    break;
                }
            }
        }
        let all = line.all_ready(workers.len() + usize::from(refused.is_some()));
        let ready = if all { ready().map(Some) } else { Ok(None) };
        let starts = all && ready.is_ok();
        if starts {
            observer.start();
        }
        line.release(starts);
        let ended: Vec<_> = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        if let Some(refused) = refused {
            return Err(refused);
        }
        let ready = ready?;
        let work: Vec<Option<Work>> = ended.into_iter().collect::<Result<_, _>>()?;
        let ready = ready.ok_or(FxmarkError::Setting("a worker failed without an error"))?;
        Ok((ready, work.into_iter().flatten().collect()))
    })
}

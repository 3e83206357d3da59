//! Runs models and mutants, as many at once as there are processors.

use std::fmt;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};

use super::build::Model;
use super::registry::{Crate, Mutant};
use crate::Result;
use crate::process::{self, Outcome};

/// How many times as many random schedules as a scenario a mutant may try. Schedules are drawn again in each run: some
/// mutants are found once in a hundred of them, so that the two hundred of a scenario now and then have none. A mutant
/// stops at the first schedule that finds it, so that more of them cost nothing.
const MUTANT_FACTOR: u32 = 20;

/// One model, run as it is or with a mutant.
#[derive(Debug)]
pub(super) struct Job {
    package: String,
    model: Model,
    mutant: Option<String>,
    /// Whether some mutant is there to show that the model can fail.
    proven: bool,
}

/// Terms that hold for all jobs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// How long a model may take.
    pub(crate) limit: Duration,
    /// The least number of preemptions in bounded models, if they are to have more than they ask for.
    pub(crate) preemptions: Option<u32>,
    /// Whether models that explore every schedule are bounded too.
    pub(crate) quick: bool,
    /// How many times as many random schedules as scenarios ask for.
    pub(crate) factor: Option<u32>,
}

/// How many models and mutants ran.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Tally {
    pub(super) models: usize,
    pub(super) mutants: usize,
    pub(super) iterations: u64,
    pub(super) failed: usize,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Tally) {
        self.models += other.models;
        self.mutants += other.mutants;
        self.iterations += other.iterations;
        self.failed += other.failed;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { models, mutants, iterations, failed } = self;
        write!(f, "{models} models ({iterations} iterations), {mutants} mutants, {failed} failures")
    }
}

/// The jobs of a crate: its models first, then its mutants.
///
/// # Errors
///
/// If a mutant's model does not exist.
pub(super) fn plan(krate: &Crate, models: &[Model], filter: Option<&str>) -> Result<Vec<Job>> {
    let wanted = |name: &str| filter.is_none_or(|part| name.contains(part));
    let job = |model: &Model, mutant| {
        let proven = krate.mutants.iter().any(|mutant| kills(model, mutant));
        Job { package: krate.package.clone(), model: model.clone(), mutant, proven }
    };
    let mut jobs: Vec<Job> = models.iter().filter(|model| wanted(&model.name)).map(|model| job(model, None)).collect();
    for mutant in &krate.mutants {
        let Some(model) = models.iter().find(|model| kills(model, mutant)) else {
            bail!("{}.rs: the model `{}` of the mutant `{}` does not exist", mutant.test, mutant.model, mutant.name);
        };
        if wanted(&mutant.name) || wanted(&model.name) {
            jobs.push(job(model, Some(mutant.name.clone())));
        }
    }
    Ok(jobs)
}

/// Whether the mutant names this model, with or without the modules it is in.
fn kills(model: &Model, mutant: &Mutant) -> bool {
    let last = model.name.rsplit("::").next();
    model.test == mutant.test && (model.name == mutant.model || last == Some(mutant.model.as_str()))
}

/// Runs the jobs and prints one line for each, and the output of those that fail.
///
/// # Errors
///
/// If a model cannot be started. A failing model is counted, not an error.
pub(super) fn run(jobs: &[Job], terms: Terms) -> Result<Tally> {
    let next = AtomicUsize::new(0);
    let tally = Mutex::new(Tally::default());
    let work = || -> Result<()> {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let verdict = job.run(terms)?;
            let mut tally = tally.lock().map_err(|_| anyhow::anyhow!("a worker panicked"))?;
            tally.add(&verdict);
        }
        Ok(())
    };
    let workers = thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| anyhow::anyhow!("a worker panicked"))?)
    })?;
    tally.into_inner().ok().context("a worker panicked")
}

impl Job {
    /// Runs the job, prints its line, and counts it.
    fn run(&self, terms: Terms) -> Result<Tally> {
        let mut command = Command::new(&self.model.executable);
        command.args(["--exact", "--nocapture", "--test-threads", "1", &self.model.name]).env("RUST_BACKTRACE", "0");
        match &self.mutant {
            Some(mutant) => command.env("F2FS_MUTANT", mutant),
            None => command.env_remove("F2FS_MUTANT"),
        };
        if let Some(preemptions) = terms.preemptions {
            command.env("LOOM_MAX_PREEMPTIONS", preemptions.to_string());
        }
        if terms.quick {
            command.env("F2FS_LOOM_QUICK", "1");
        }
        if let Some(factor) = terms.factor {
            let factor = if self.mutant.is_some() { factor.saturating_mul(MUTANT_FACTOR) } else { factor };
            command.env("F2FS_SHUTTLE_FACTOR", factor.to_string());
        }
        let outcome = process::capture(&mut command, terms.limit)?;
        let iterations = iterations(&outcome.stdout);
        let (good, verdict) = verdict(self.mutant.is_some(), &outcome);
        let note = if self.proven || iterations.is_none() { "" } else { " (no mutant)" };
        let name = match &self.mutant {
            Some(mutant) => format!("{} {}: mutant {mutant}", self.package, self.model.name),
            None => format!("{} {}", self.package, self.model.name),
        };
        let count = iterations.map_or_else(|| "-".to_owned(), |count| count.to_string());
        println!("{name:<88} {count:>9} iterations {:>7.2} s  {verdict}{note}", outcome.took.as_secs_f64());
        if !good {
            println!("{}{}", outcome.stdout, outcome.stderr);
        }
        let mutants = usize::from(self.mutant.is_some());
        // The schedules that a mutant ran before it was found say nothing of the model.
        let iterations = if self.mutant.is_none() { iterations.unwrap_or(0) } else { 0 };
        Ok(Tally { models: 1 - mutants, mutants, iterations, failed: usize::from(!good) })
    }
}

/// Whether a run went as it must, and the word for how it went.
fn verdict(mutant: bool, outcome: &Outcome) -> (bool, String) {
    let ran = outcome.stdout.contains("running 1 test");
    match (mutant, outcome.success) {
        _ if !ran => (false, "NOT RUN".to_owned()),
        _ if outcome.timed_out => (false, "TOO SLOW".to_owned()),
        (false, true) => (true, "passed".to_owned()),
        (false, false) => (false, "FAILED".to_owned()),
        (true, true) => (false, "SURVIVED".to_owned()),
        // A crash for some other reason than a failed check is not a kill.
        (true, false) => match panic_message(&outcome.stderr) {
            Some(message) => (true, format!("killed: {message}")),
            None => (false, "DIED WITHOUT A PANIC".to_owned()),
        },
    }
}

/// The sum of the numbers that `f2fs_sync::model` or `scenario` printed.
fn iterations(stdout: &str) -> Option<u64> {
    let lines = stdout.lines().filter_map(|line| line.split_once("model ")?.1.split_once(": "));
    let counts = lines.filter_map(|(_, rest)| rest.split_once(" iterations")?.0.parse::<u64>().ok());
    counts.fold(None, |sum, count| Some(sum.unwrap_or(0) + count))
}

/// The first line of the first panic, cut short.
fn panic_message(stderr: &str) -> Option<String> {
    let mut lines = stderr.lines().skip_while(|line| !(line.starts_with("thread ") && line.contains(" panicked at ")));
    lines.next()?;
    let message = lines.next().unwrap_or_default();
    let message = message.split_once("; threads =").map_or(message, |(kind, _)| kind);
    Some(message.chars().take(70).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(success: bool, stdout: &str, stderr: &str) -> Outcome {
        let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
        Outcome { success, timed_out: false, stdout, stderr, took: Duration::ZERO }
    }

    #[test]
    fn iterations_are_added_up() {
        let stdout = "\nrunning 1 test\nmodel a: 12 iterations, 0.1 s\ntest a ... model b: 3 iterations, 0 s\nok\n";
        assert_eq!(iterations(stdout), Some(15));
        assert_eq!(iterations("running 1 test\n"), None);
    }

    #[test]
    fn only_a_panic_kills() {
        let run = "running 1 test\n";
        let panic = "\nthread 'x' (12) panicked at a.rs:1:2:\ndeadlock; threads = [...]\nnote: run with\n";
        assert_eq!(verdict(true, &outcome(false, run, panic)), (true, "killed: deadlock".to_owned()));
        assert!(!verdict(true, &outcome(false, run, "Segmentation fault")).0);
        assert!(!verdict(true, &outcome(true, run, "")).0);
        assert!(!verdict(true, &outcome(true, "running 0 tests\n", "")).0);
        assert!(!verdict(false, &outcome(false, run, panic)).0);
        assert!(verdict(false, &outcome(true, run, "")).0);
    }
}

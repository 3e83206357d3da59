//! PostgreSQL on a mount: work by several clients, kills of the database and of the mount's server, and recovery.
//!
//! PostgreSQL refuses to run as root, so it runs as the user `postgres`, whom its package makes, and the mount is for
//! all users. Clients tell of each transaction that was committed; after a kill each of them has to be there.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::Bench;
use super::volume::{How, Mounted};
use crate::{Result, process, tools};

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amount {
    /// Clients that count, and of pgbench.
    pub(crate) clients: usize,
    /// Seconds of pgbench.
    pub(crate) seconds: u64,
    /// Rounds of three kills each.
    pub(crate) rounds: u32,
    /// How many of the ways of mounting.
    pub(crate) ways: usize,
}

const WAYS: [How; 2] =
    [How::plain("allow_other,cache=through"), How { options: "allow_other,cache=writeback", page_cache: "64M" }];
/// The user who runs it.
const USER: &str = "postgres";
const PORT: &str = "54329";
/// How long a start with recovery may take, and all else.
const PATIENCE: Duration = Duration::from_secs(300);

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    /// The postmaster and all its children.
    Database,
    /// The mount's server.
    Mount,
    /// Both, the server first.
    Both,
}

pub(crate) fn run(bench: &Bench, amount: Amount) -> Result<()> {
    tools::require(&["pgbench", "runuser", "fsck.f2fs"])?;
    let bin = programs()?;
    let version = process::output(Command::new(bin.join("postgres")).arg("--version"))?;
    println!("{}", String::from_utf8_lossy(&version).trim());
    for how in WAYS.iter().take(amount.ways) {
        let begun = Instant::now();
        let mounted = Mounted::new(bench, "postgres", "4G", *how)?;
        let mut database = Database::new(&bin, &mounted)?;
        let rate = database.pgbench(amount)?;
        let mut committed = 0;
        for _ in 0..amount.rounds {
            for victim in [Victim::Database, Victim::Mount, Victim::Both] {
                committed += database.killed(&mounted, *how, victim, amount.clients)?;
            }
        }
        database.whole()?;
        database.stop("fast")?;
        mounted.judge()?;
        println!(
            "PostgreSQL, {how}: pgbench {rate}; {} kills, {committed} transactions told as committed, all there; {:.0} s",
            3 * amount.rounds,
            begun.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

/// The directory of PostgreSQL's own programs, which are not on the path.
fn programs() -> Result<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").context("/usr/lib/postgresql: install postgresql")?;
    let mut found: Vec<PathBuf> = versions.flatten().map(|entry| entry.path().join("bin")).collect();
    found.retain(|bin| bin.join("initdb").is_file());
    found.sort();
    found.pop().context("no initdb below /usr/lib/postgresql")
}

/// A database on a mount.
struct Database<'a> {
    bin: &'a Path,
    data: PathBuf,
    /// Beside the mount: its sockets and its log.
    place: PathBuf,
}

impl<'a> Database<'a> {
    fn new(bin: &'a Path, mounted: &Mounted<'_>) -> Result<Database<'a>> {
        let place = std::env::temp_dir().join(format!("f2fs-postgres-{}", std::process::id()));
        fs_err::create_dir_all(&place)?;
        fs::set_permissions(&place, fs::Permissions::from_mode(0o777))?;
        let data = mounted.dir.join("data");
        fs::create_dir(&data)?;
        let id = |flag| -> Result<u32> {
            Ok(String::from_utf8_lossy(&process::output(Command::new("id").arg(flag).arg(USER))?).trim().parse()?)
        };
        chown(&data, Some(id("-u")?), Some(id("-g")?))?;
        let database = Database { bin, data, place };
        database.ended(database.command("initdb").arg("-D").arg(&database.data).args(["-A", "trust", "-k"]))?;
        database.start()?;
        Ok(database)
    }

    /// One of its programs, as its user.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("runuser");
        command.args(["-u", USER, "--"]).arg(self.bin.join(program)).current_dir("/");
        command.env("PGHOST", &self.place).env("PGPORT", PORT).env("PGDATABASE", "postgres").env("PGUSER", USER);
        command
    }

    fn ended(&self, command: &mut Command) -> Result<String> {
        let outcome = process::capture(command, PATIENCE)?;
        if !outcome.success {
            let log = fs::read_to_string(self.place.join("log")).unwrap_or_default();
            let log: Vec<&str> = log.lines().rev().take(20).collect();
            bail!(
                "`{}` failed: {}{}; its log, the last first:\n{}",
                process::shown(command),
                outcome.stdout,
                outcome.stderr,
                log.join("\n")
            );
        }
        Ok(outcome.stdout)
    }

    fn start(&self) -> Result<()> {
        let place = self.place.display();
        let options = format!("-p {PORT} -k {place} -c listen_addresses='' -c shared_buffers=32MB");
        // The postmaster gets no pipe of ours: nobody would ever see its end.
        let mut start = self.command("pg_ctl");
        start.arg("-D").arg(&self.data).arg("-l").arg(self.place.join("log")).args(["-w", "-t", "120", "-o"]);
        start.arg(options).arg("start").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if !start.status()?.success() {
            let log = fs::read_to_string(self.place.join("log")).unwrap_or_default();
            bail!("PostgreSQL does not start: {log}");
        }
        Ok(())
    }

    fn stop(&self, how: &str) -> Result<()> {
        self.ended(self.command("pg_ctl").arg("-D").arg(&self.data).args(["-w", "-m", how, "stop"])).map(drop)
    }

    fn ask(&self, sql: &str) -> Result<String> {
        self.ended(self.command("psql").args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql]))
    }

    /// pgbench's own tables and work; its rate.
    fn pgbench(&self, amount: Amount) -> Result<String> {
        self.ended(self.command("pgbench").args(["-i", "-q", "-s", "2"]))?;
        let (clients, seconds) = (amount.clients.to_string(), amount.seconds.to_string());
        let said = self.ended(self.command("pgbench").args(["-n", "-c", &clients, "-j", "2", "-T", &seconds]))?;
        self.ask(
            "CREATE TABLE counted(client int PRIMARY KEY, n bigint); CREATE TABLE history_of(client int, n bigint)",
        )?;
        for client in 0..amount.clients {
            self.ask(&format!("INSERT INTO counted VALUES({client}, 0)"))?;
        }
        Ok(said.lines().find_map(|line| line.strip_prefix("tps = ")).unwrap_or("no rate").to_owned())
    }

    /// A client that counts in one row, and tells each number that is committed.
    fn client(&self, number: usize) -> Result<(Child, JoinHandle<u64>)> {
        let first: u64 = self.ask(&format!("SELECT n FROM counted WHERE client = {number}"))?.trim().parse()?;
        let mut script = String::new();
        for n in first + 1..first + 200_000 {
            script += &format!(
                "BEGIN; UPDATE counted SET n = {n} WHERE client = {number}; INSERT INTO history_of VALUES({number}, {n}); \
                 COMMIT;\n\\echo {n}\n"
            );
        }
        let file = self.place.join(format!("client-{number}.sql"));
        fs_err::write(&file, script)?;
        let mut command = self.command("psql");
        command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f"]).arg(&file);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let told = thread::spawn(move || {
            lines.map_while(std::result::Result::ok).filter_map(|line| line.parse().ok()).last().unwrap_or(first)
        });
        Ok((child, told))
    }

    /// Clients work, and something is killed in the middle; all that they were told is there. How much that was.
    fn killed(&mut self, mounted: &Mounted<'_>, how: How, victim: Victim, clients: usize) -> Result<u64> {
        let before = self.counts()?;
        let working: Vec<_> = (0..clients).map(|number| self.client(number)).collect::<Result<_>>()?;
        thread::sleep(Duration::from_millis(2500));
        let postmaster = fs_err::read_to_string(self.data.join("postmaster.pid"))?;
        let postmaster = postmaster.lines().next().context("an empty postmaster.pid")?.to_owned();
        let family = family(&postmaster)?;
        if victim != Victim::Database {
            mounted.kill()?;
        }
        // Without its files the database cannot go on, and does not always end.
        for pid in &family {
            let _ = Command::new("kill").args(["-KILL", pid]).stderr(Stdio::null()).status();
        }
        let mut told = Vec::new();
        for (mut child, thread) in working {
            child.wait()?;
            told.push(thread.join().ok().context("a panic")?);
        }
        let end = Instant::now() + PATIENCE;
        while family.iter().any(|pid| alive(pid)) {
            ensure!(Instant::now() < end, "PostgreSQL goes on");
            thread::sleep(Duration::from_millis(20));
        }
        if victim != Victim::Database {
            mounted.mount(how)?;
        }
        self.start()?;
        let counts = self.counts()?;
        for (client, (told, there)) in told.iter().zip(&counts).enumerate() {
            // One more may have been committed, and not told.
            ensure!(
                (*told..=told + 1).contains(there),
                "{victim:?}: client {client} was told of {told}, and {there} is there"
            );
            let history = self.ask(&format!("SELECT count(*), max(n) FROM history_of WHERE client = {client}"))?;
            ensure!(history.trim() == format!("{there}|{there}"), "{victim:?}: {there}, and its history is {history}");
        }
        let worked: u64 = told.iter().sum::<u64>() - before.iter().sum::<u64>();
        ensure!(worked > 0, "no client had committed anything");
        Ok(worked)
    }

    fn counts(&self) -> Result<Vec<u64>> {
        let said = self.ask("SELECT n FROM counted ORDER BY client")?;
        said.lines().map(|line| Ok(line.parse()?)).collect()
    }

    /// Its tables and indexes have the right structure, the checksums of pages hold, and all can be read.
    fn whole(&self) -> Result<()> {
        self.ended(self.command("pg_amcheck").args(["--all", "--install-missing", "--heapallindexed"]))?;
        self.ended(self.command("pg_dump").arg("--file=/dev/null"))?;
        self.stop("fast")?;
        self.ended(self.command("pg_checksums").args(["--check", "-D"]).arg(&self.data))?;
        self.start()
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        // After an error: no process is left, and the log is told with the error.
        if let Ok(postmaster) = fs::read_to_string(self.data.join("postmaster.pid"))
            && let Some(pid) = postmaster.lines().next()
        {
            for pid in family(pid).unwrap_or_default() {
                let _ = Command::new("kill").args(["-KILL", &pid]).stderr(Stdio::null()).status();
            }
        }
        let _ = fs::remove_dir_all(&self.place);
    }
}

/// A process and its children.
fn family(pid: &str) -> Result<Vec<String>> {
    let said = process::capture(Command::new("ps").args(["-o", "pid=", "--ppid", pid]), PATIENCE)?.stdout;
    Ok(std::iter::once(pid.to_owned()).chain(said.split_whitespace().map(str::to_owned)).collect())
}

/// Whether a process has a number still, if only because nobody has asked how it ended: PostgreSQL does not start while
/// the number of its last postmaster is taken.
fn alive(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

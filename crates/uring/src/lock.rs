//! The locks between openers: one writer or many readers, across processes.
//!
//! Both are locks of the open file that the rings use, `flock` on it and, on block devices, the claim of `O_EXCL`. That
//! is on purpose. When a process dies, the kernel keeps its open file until the requests of its rings are over, some
//! time after the process is gone. An opening before that would have writes of the dead process among its own. So a
//! lock that goes with the process would be too short; this one is exactly as long as the requests.
//!
//! ```text
//!   try ──ok──► locked
//!    ▲ │ taken
//!    │ ├─ /proc/locks names a living process ──────────► refused, at once, with its number and command
//!    │ ├─ it is dead or dying, or nobody can be named ── patience over? ─► refused
//!    └─┴─────────────────────────── sleep ◄───────────────────┘ no
//! ```
//!
//! No locks of this process.

use std::fmt;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, StatxFlags};
use rustix::io::Errno;

use crate::OpenError;

/// Between two tries at first, and at most.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// How long udev keeps a block device that it looks at, with room to spare. The same for a claim that comes with no
/// lock.
const UDEV: Duration = Duration::from_millis(500);

/// A process that has a file open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// Its number.
    pub pid: u32,
    /// Its command, as `ps` shows it; `None`: the process has ended, and its last requests are on their way.
    pub command: Option<String>,
}

impl Holder {
    /// Who has locked the file or device at a path, as far as this process may know: nobody in another PID namespace.
    #[must_use]
    pub fn of(path: &Path) -> Option<Holder> {
        living(holders(path))
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.command {
            _ if self.pid == std::process::id() => write!(f, "this process ({})", self.pid),
            Some(command) => write!(f, "process {} ({command})", self.pid),
            None => write!(f, "process {}, which has ended, but not all of its requests", self.pid),
        }
    }
}

impl Holder {
    fn new(pid: u32) -> Holder {
        let proc = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let living = is_living(&proc("stat"), &proc("status"));
        Holder { pid, command: living.then(|| proc("comm").trim_end().to_owned()) }
    }

    fn is_udev(&self) -> bool {
        self.command.as_ref().is_some_and(|command| command.contains("udev"))
    }
}

/// Whether a process goes on to run, by its `/proc/PID/stat` and `/proc/PID/status`: neither gone, nor at its end, nor
/// killed.
fn is_living(stat: &str, status: &str) -> bool {
    /// Of the task's flags: it is at its end (`PF_EXITING`).
    const EXITING: u64 = 4;
    /// Of the signals that it has not seen yet.
    const KILL: u64 = 1 << (9 - 1);
    // The command stands in parentheses and may hold some itself.
    let Some((_, rest)) = stat.rsplit_once(") ") else { return false };
    let mut fields = rest.split(' ');
    let state = fields.next().unwrap_or_default();
    let flags: u64 = fields.nth(5).and_then(|flags| flags.parse().ok()).unwrap_or(0);
    let pending = status.lines().filter_map(|line| line.strip_prefix("SigPnd:").or(line.strip_prefix("ShdPnd:")));
    let killed = pending.filter_map(|mask| u64::from_str_radix(mask.trim(), 16).ok()).any(|mask| mask & KILL != 0);
    !matches!(state, "Z" | "X" | "x") && flags & EXITING == 0 && !killed
}

/// Calls `attempt` until it does not fail with `taken`, as long as that makes sense.
pub(crate) fn until_free<T>(
    path: &Path,
    (call, taken): (&'static str, Errno),
    block_device: bool,
    patience: Duration,
    mut attempt: impl FnMut() -> rustix::io::Result<T>,
) -> Result<T, OpenError> {
    let begun = Instant::now();
    let [mut pause, longest] = PAUSES;
    loop {
        match attempt() {
            Ok(done) => return Ok(done),
            Err(Errno::INTR) => continue,
            Err(errno) if errno != taken => {
                return Err(OpenError::Io { path: path.into(), call, source: errno.into() });
            }
            Err(_) => {}
        }
        let holders = holders(path);
        let waits = match holders.iter().find(|holder| holder.command.is_some()) {
            Some(living) if block_device && living.is_udev() => UDEV,
            Some(_) => Duration::ZERO,
            // A mount, or a tool that claims and does not lock: the dead of this crate have both.
            None if holders.is_empty() && taken == Errno::BUSY => UDEV,
            None => patience,
        };
        if begun.elapsed() >= waits {
            return Err(OpenError::AlreadyOpen { path: path.into(), holder: living(holders) });
        }
        thread::sleep(pause);
        pause = (pause * 2).min(longest);
    }
}

/// The one that still runs, or else the first.
fn living(holders: Vec<Holder>) -> Option<Holder> {
    let living = holders.iter().position(|holder| holder.command.is_some()).unwrap_or(0);
    holders.into_iter().nth(living)
}

/// The processes that have locked a file, as far as this process may know: none in other PID namespaces.
fn holders(path: &Path) -> Vec<Holder> {
    let (Ok(stat), Ok(locks)) = (rustix::fs::stat(path), fs::read_to_string("/proc/locks")) else { return Vec::new() };
    let mut devices = vec![(rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev))];
    // Some file systems (btrfs) give another device number for the file than the list of locks has: that of the mount.
    devices.extend(device_of_mount(path));
    let mut pids: Vec<u32> = locks.lines().filter_map(|line| locker(line, &devices, stat.st_ino)).collect();
    pids.dedup();
    pids.into_iter().map(Holder::new).collect()
}

/// The process of a line such as `5: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF`, if it is about this file.
fn locker(line: &str, devices: &[(u32, u32)], ino: u64) -> Option<u32> {
    let mut fields = line.split_whitespace().skip(1);
    // The line of a waiter has an arrow here.
    if fields.next() != Some("FLOCK") {
        return None;
    }
    let pid = fields.nth(2)?.parse().ok()?;
    let mut place = fields.next()?.split(':');
    let mut hex = || u32::from_str_radix(place.next()?, 16).ok();
    let device = (hex()?, hex()?);
    (devices.contains(&device) && place.next()?.parse() == Ok(ino)).then_some(pid)
}

/// The device of the mount that a file lies on.
fn device_of_mount(path: &Path) -> Option<(u32, u32)> {
    let statx = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let id = statx.stx_mnt_id.to_string();
    let mount = mounts.lines().find(|line| line.split(' ').next() == Some(&*id))?;
    let (major, minor) = mount.split(' ').nth(2)?.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_locks() {
        let devices = [(0xfe, 0), (0, 0x23)];
        let line = |place: &str| locker(&format!("5: FLOCK  ADVISORY  WRITE 4711 {place} 0 EOF"), &devices, 131);
        assert_eq!(line("fe:00:131"), Some(4711));
        assert_eq!(line("00:23:131"), Some(4711));
        assert_eq!([line("fe:01:131"), line("fe:00:132"), line("fe:00"), line("")], [None; 4]);
        assert_eq!(locker("5: -> FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF", &devices, 131), None);
        assert_eq!(locker("5: POSIX  ADVISORY  WRITE 4711 fe:00:131 0 EOF", &devices, 131), None);
        assert_eq!(locker("", &devices, 131), None);
    }

    #[test]
    fn the_living_and_the_dead() {
        let stat = |state: &str, flags: u32| format!("1 (a ) b) {state} 1 1 1 0 -1 {flags} 0 0");
        assert!(is_living(&stat("S", 0x40_0040), "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n"));
        assert!(!is_living(&stat("Z", 0), ""));
        assert!(!is_living(&stat("R", 0x40_0044), ""));
        assert!(!is_living(&stat("D", 0), "SigPnd:\t0000000000000100\n"));
        assert!(!is_living("", ""));
        let this = Holder::new(std::process::id());
        assert!(this.command.is_some() && this.to_string().starts_with("this process"), "{this}");
    }
}

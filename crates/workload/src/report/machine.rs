//! The machine that a number was taken on.

use std::fmt;
use std::process::Command;

/// The facts about a machine that are needed to compare numbers. Shown, they are one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The processor's name; `?` if it is not known.
    pub cpu: String,
    /// Processors that this process may use.
    pub processors: usize,
    /// Release of the running kernel.
    pub kernel: String,
    /// Frequency governor of the first processor; `not known` if the kernel does not say.
    pub governor: String,
    /// Commit of the git checkout that this process runs in, with `+` if something in it was changed; empty outside of
    /// one.
    pub commit: String,
}

impl Machine {
    /// The machine that this runs on.
    #[must_use]
    pub fn here() -> Machine {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let info = read("/proc/cpuinfo");
        let cpu = info.lines().find_map(|line| Some(line.strip_prefix("model name")?.split_once(':')?.1.trim()));
        let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        let mut commit = git(&["rev-parse", "--short", "HEAD"]);
        if !commit.is_empty() && !git(&["status", "--porcelain", "--untracked-files=no"]).is_empty() {
            commit.push('+');
        }
        Machine {
            cpu: cpu.unwrap_or("?").to_owned(),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: read("/proc/sys/kernel/osrelease"),
            governor: if governor.is_empty() { "not known".to_owned() } else { governor },
            commit,
        }
    }

    /// The same as comment lines for the head of a CSV file, each ending in a newline.
    #[must_use]
    pub fn comments(&self) -> String {
        let Machine { cpu, processors, kernel, governor, commit } = self;
        format!(
            "# cpu: {cpu}\n# processors: {processors}\n# kernel: Linux {kernel}\n# governor: {governor}\n# commit: {commit}\n"
        )
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { cpu, processors, kernel, governor, commit } = self;
        write!(f, "{cpu}; {processors} processors; Linux {kernel}; governor {governor}; commit {commit}")
    }
}

fn git(args: &[&str]) -> String {
    let output = Command::new("git").args(args).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_the_line_say_the_same() {
        let machine = Machine::here();
        let line = machine.to_string();
        let comments = machine.comments();
        assert_eq!(comments.lines().count(), 5);
        assert!(comments.lines().all(|line| line.starts_with("# ")), "{comments}");
        assert!(machine.processors > 0 && !machine.kernel.is_empty() && !machine.cpu.is_empty());
        for word in [&machine.cpu, &machine.kernel, &machine.governor, &machine.commit] {
            assert!(line.contains(word.as_str()) && comments.contains(word.as_str()), "{word}");
        }
    }
}

//! The machine that a number was taken on.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::UNIX_EPOCH;

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
    /// Version of this program.
    pub version: &'static str,
    /// Commit of the sources that this program was built from, with `+` if something in them was changed; `not known` if
    /// they are not in a git checkout or no longer there, if the program lies elsewhere, or if a commit is younger.
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
        Machine {
            cpu: cpu.unwrap_or("?").to_owned(),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: read("/proc/sys/kernel/osrelease"),
            governor: if governor.is_empty() { "not known".to_owned() } else { governor },
            version: env!("CARGO_PKG_VERSION"),
            commit: built_from(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap_or_else(|| "not known".to_owned()),
        }
    }

    /// The same as comment lines for the head of a CSV file, each ending in a newline.
    #[must_use]
    pub fn comments(&self) -> String {
        let Machine { cpu, processors, kernel, governor, version, commit } = self;
        format!(
            "# cpu: {cpu}\n# processors: {processors}\n# kernel: Linux {kernel}\n# governor: {governor}\n\
             # version: {version}\n# commit: {commit}\n"
        )
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { cpu, processors, kernel, governor, version, commit } = self;
        write!(
            f,
            "{cpu}; {processors} processors; Linux {kernel}; governor {governor}; version {version}; commit {commit}"
        )
    }
}

/// The commit of a crate's sources, if this program was built from them as they are: cargo runs it, or it lies in their
/// workspace and is younger than the commit. Nothing is run in the sources of a program that was installed.
fn built_from(sources: &Path) -> Option<String> {
    if std::env::var_os("CARGO_MANIFEST_DIR").is_none() {
        let program = std::env::current_exe().ok()?;
        program.starts_with(sources.ancestors().nth(2)?).then_some(())?;
        let built = program.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let committed: u64 = git(sources, &["log", "-1", "--format=%ct"])?.parse().ok()?;
        (built.as_secs() >= committed).then_some(())?;
    }
    commit(sources)
}

/// The commit of a crate's sources. They may have been copied into the checkout of another project, which then does not
/// know them.
fn commit(sources: &Path) -> Option<String> {
    git(sources, &["ls-files", "--error-unmatch", "Cargo.toml"])?;
    let mut commit = git(sources, &["rev-parse", "--short", "HEAD"])?;
    if !git(sources, &["status", "--porcelain", "--untracked-files=no"])?.is_empty() {
        commit.push('+');
    }
    Some(commit)
}

/// What git says in a directory.
fn git(directory: &Path, args: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    git.arg("-C")
        .arg(directory)
        .args(args)
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE");
    let output = git.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_the_line_say_the_same() {
        let machine = Machine::here();
        let line = machine.to_string();
        let comments = machine.comments();
        assert_eq!(comments.lines().count(), 6);
        assert!(comments.lines().all(|line| line.starts_with("# ")), "{comments}");
        assert!(machine.processors > 0 && !machine.kernel.is_empty() && !machine.cpu.is_empty());
        for word in [&machine.cpu, &machine.kernel, &machine.governor, machine.version, &machine.commit] {
            assert!(line.contains(word) && comments.contains(word), "{word}");
        }
    }

    #[test]
    fn a_commit_is_that_of_the_sources() {
        let place = tempfile::tempdir().unwrap();
        let [of_theirs, ours] = ["theirs", "ours"].map(|name| place.path().join(name));
        std::fs::create_dir(&of_theirs).unwrap();
        std::fs::create_dir(&ours).unwrap();
        let name = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let done = |args: &[&str]| git(place.path(), &[&name, args].concat()).unwrap();
        done(&["init", "-q"]);
        std::fs::write(ours.join("Cargo.toml"), "a").unwrap();
        done(&["add", "ours/Cargo.toml"]);
        done(&["commit", "-q", "-m", "thesis"]);
        std::fs::write(of_theirs.join("Cargo.toml"), "b").unwrap();

        let head = done(&["rev-parse", "--short", "HEAD"]);
        assert_eq!(commit(&ours).unwrap(), head);
        std::fs::write(ours.join("Cargo.toml"), "changed").unwrap();
        assert_eq!(commit(&ours).unwrap(), format!("{head}+"));
        assert_eq!(commit(&of_theirs), None, "the checkout does not know it");
        assert_eq!(commit(&place.path().join("gone")), None);
    }
}

//! Whole chores, with a script in the place of cargo that notes what it is asked for and builds nothing.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

/// A repository in a temporary directory, as far as these chores look at it.
struct Repository {
    dir: TempDir,
}

impl Repository {
    fn new() -> Repository {
        let repository = Repository { dir: tempfile::tempdir().unwrap() };
        fs::create_dir_all(repository.path("crates/xtask")).unwrap();
        // It tells of three programs, whatever it is to build, as cargo does if it is asked for its JSON.
        repository.script(
            "cargo",
            "echo \"$*\" >> \"$NOTES\"\n\
             case \"$*\" in *--message-format*) ;; *) exit 0;; esac\n\
             for name in trials trials-mutants quickstart f2fs; do\n\
             echo '{\"reason\":\"compiler-artifact\",\"package_id\":\"p\",\"target\":{\"name\":\"'$name'\"},\
             \"executable\":\"'$BUILT/$name'\"}'\n\
             done\n",
        );
        repository
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn script(&self, name: &str, lines: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{lines}")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A chore with this repository.
    fn chore(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.args(words).current_dir(self.dir.path()).env("CARGO", self.path("cargo"));
        command.env("CARGO_MANIFEST_DIR", self.path("crates/xtask")).env("NOTES", self.path("notes"));
        command.env("BUILT", self.path("elsewhere"));
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.chore(words).output().unwrap()
    }

    /// The lines that cargo was called with since the last time.
    fn notes(&self) -> Vec<String> {
        let notes = fs::read_to_string(self.path("notes")).unwrap();
        fs::remove_file(self.path("notes")).unwrap();
        notes.lines().map(str::to_owned).collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_program_that_is_run_is_the_one_that_was_built() {
    let repository = Repository::new();
    for name in ["release/trials", "debug/trials", "debug/examples/quickstart"] {
        repository.script(&format!("target/{name}"), "echo a program of last week\n");
    }
    for name in ["trials", "quickstart"] {
        repository.script(&format!("elsewhere/{name}"), "echo this one was built, $*\n");
    }
    for (words, says) in [
        (&["crash"][..], "this one was built,\n"),
        (&["crash", "--faults"], "this one was built, --faults\n"),
        (&["crash", "--", "--states", "5"], "this one was built, --states 5\n"),
        (&["test", "--only", "examples"], "this one was built,\n"),
    ] {
        let output = repository.run(words);
        let (said, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{words:?}: {said}{errors}");
        assert!(said.contains(says) && !said.contains("last week"), "{words:?}: {said}{errors}");
    }
    // One that cargo does not name is not looked for elsewhere.
    fs::remove_file(repository.path("elsewhere/trials")).unwrap();
    assert_eq!(repository.run(&["crash"]).status.code(), Some(1));
    repository.script("cargo", "exit 0\n");
    let output = repository.run(&["crash"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no program `trials`"), "{}", text(&output.stderr));
}

#[test]
fn words_behind_two_dashes_go_to_the_benches() {
    let repository = Repository::new();
    for (words, calls) in [
        (&["bench", "--", "--quick"][..], &["bench --package f2fs-benches -- --quick"][..]),
        (&["bench", "--", "mwum"], &["bench --package f2fs-benches -- mwum"]),
        (&["bench", "--bench", "fxmark"], &["bench --package f2fs-benches --bench fxmark"]),
        (
            &["bench", "--bench", "fxmark", "--", "mwum", "--quick"],
            &["bench --package f2fs-benches --bench fxmark -- mwum --quick"],
        ),
        (&["bench"], &["bench --package f2fs-benches", "bench --package f2fs-instructions"]),
    ] {
        let output = repository.run(words);
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        assert_eq!(repository.notes(), calls, "{words:?}");
    }
}

#[test]
fn a_validation_measures_into_the_repository() {
    let repository = Repository::new();
    fs::create_dir_all(repository.path("crates/nat")).unwrap();
    let mut chore = repository.chore(&["manycore", "--validate"]);
    let output = chore.current_dir(repository.path("crates/nat")).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let [measured, played] = &repository.notes()[..] else { panic!("two benches run") };
    let file = repository.path("target/manycore-measured.csv");
    assert!(measured.ends_with(&format!("-- --measure --csv {}", file.display())), "{measured}");
    assert!(played.ends_with(&format!("-- --validate --measured {}", file.display())), "{played}");
    // With another target directory nobody else makes this one.
    assert!(repository.path("target").is_dir());
}

#[test]
fn a_report_of_mutants_writes_nothing() {
    let repository = Repository { dir: tempfile::tempdir().unwrap() };
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    for name in ["crates", "docs"] {
        symlink(workspace.join(name), repository.path(name)).unwrap();
    }
    repository.script("cargo", "exit 1\n");
    let output = repository.run(&["mutants", "--report", "-p", "f2fs-sync"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!repository.path("target").exists());
}

#[test]
fn a_wrong_command_line_exits_with_two() {
    let repository = Repository::new();
    for words in
        [&["fuzz", "--seconds", "0"][..], &["test", "--only", "fmt", "--skip", "fmt"], &["mutants", "-p", "nosuch"]]
    {
        assert_eq!(repository.run(words).status.code(), Some(2), "{words:?}");
    }
    assert!(!repository.path("notes").exists(), "nothing is built for it");
}

/// Whether this process may mount something.
fn may_mount(repository: &Repository) -> bool {
    let dir = repository.path("probe");
    fs::create_dir(&dir).unwrap();
    let mount = |words: &[&str]| {
        Command::new(words[0]).args(&words[1..]).arg(&dir).status().is_ok_and(|status| status.success())
    };
    Path::new("/dev/fuse").exists() && mount(&["mount", "-t", "tmpfs", "none"]) && mount(&["umount"])
}

#[test]
fn an_interrupt_ends_the_mounts() {
    let repository = Repository::new();
    if !may_mount(&repository) {
        eprintln!("not run: this process may not mount");
        return;
    }
    repository.script(
        "f2fs",
        "for last; do :; done\n\
         case \"$*\" in\n\
         format*) : > \"$last\";;\n\
         umount*) umount \"$last\";;\n\
         *mount*) mount -t tmpfs none \"$last\";;\n\
         esac\n",
    );
    repository.script("bin/fsx", "exec sleep 60\n");
    let images = repository.path("images");
    let is_mounted = || {
        let dir = format!(" {} ", images.join("fsx-through").display());
        fs::read_to_string("/proc/self/mounts").unwrap().contains(&dir)
    };
    for signal in [Signal::INT, Signal::TERM] {
        let mut chore = repository.chore(&["mount", "fsx", "--quick"]);
        chore.arg("--program").arg(repository.path("f2fs")).arg("--images").arg(&images);
        let path = std::env::var("PATH").unwrap();
        chore.env("PATH", format!("{}:{path}", repository.path("bin").display()));
        // As of a shell: all that the chore starts hears Ctrl-C as well.
        let mut chore = chore.process_group(0).stderr(Stdio::piped()).spawn().unwrap();
        let end = Instant::now() + Duration::from_secs(30);
        while !is_mounted() {
            assert!(Instant::now() < end && chore.try_wait().unwrap().is_none(), "nothing is mounted");
            sleep(Duration::from_millis(10));
        }
        kill_process_group(Pid::from_child(&chore), signal).unwrap();
        let output = chore.wait_with_output().unwrap();
        let stays = is_mounted();
        if stays {
            // For the next one.
            Command::new("umount").arg(images.join("fsx-through")).status().unwrap();
        }
        assert!(!stays, "{signal:?}: {}", text(&output.stderr));
        assert_eq!(output.status.signal(), None, "it ends by itself: {}", text(&output.stderr));
        assert!(!output.status.success());
    }
}

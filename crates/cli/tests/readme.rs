//! The sessions of the READMEs, the repository's and this crate's, are run, and print what the READMEs say.
//!
//! A session is a block fenced as `console`: lines that begin with `$ ` are run by the shell, one after the other in
//! one directory, with the command `f2fs` on the path; the lines below it are its output. A line `...` stands for any
//! lines.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

/// The blocks of a README that are fenced as `console`, each as commands with what they print.
fn sessions(readme: &str) -> Vec<Vec<(String, Vec<String>)>> {
    let mut sessions = Vec::new();
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        if line != "```console" {
            continue;
        }
        let mut session: Vec<(String, Vec<String>)> = Vec::new();
        for line in lines.by_ref().take_while(|line| *line != "```") {
            match line.strip_prefix("$ ") {
                Some(command) => session.push((command.to_owned(), Vec::new())),
                None => session.last_mut().expect("a session begins with a command").1.push(line.to_owned()),
            }
        }
        sessions.push(session);
    }
    sessions
}

/// Whether lines are as expected, where `...` stands for any lines.
fn matches(expected: &[String], found: &[&str]) -> bool {
    match expected.split_first() {
        None => found.is_empty(),
        Some((first, rest)) if first == "..." => (0..=found.len()).any(|skip| matches(rest, &found[skip..])),
        Some((first, rest)) => found.split_first().is_some_and(|(line, found)| line == first && matches(rest, found)),
    }
}

/// Runs a command in `directory`; what it prints, both streams together.
fn run(command: &str, directory: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_f2fs"));
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(directory)
        .env("PATH", format!("{}:{path}", program.parent().unwrap().display()))
        .env("TZ", "UTC")
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_readmes_tell_the_truth() {
    let read = |path| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let each = ["../../README.md", "README.md"].map(|path| sessions(&read(path)));
    assert!(each.iter().all(|sessions| !sessions.is_empty()), "a README without a session");
    let sessions: Vec<_> = each.into_iter().flatten().collect();
    let commands: Vec<&str> = sessions.iter().flatten().map(|(command, _)| command.as_str()).collect();
    for name in [
        "bench", "format", "inspect", "check", "ls", "cat", "stat", "manifest", "put", "get", "mkdir", "rm", "mv", "ln",
    ] {
        assert!(commands.iter().any(|command| command.contains(&format!("f2fs {name} "))), "no example of f2fs {name}");
    }
    for session in sessions {
        let dir = tempfile::tempdir().unwrap();
        for (command, expected) in session {
            let output = run(&command, dir.path());
            let found: Vec<&str> = output.lines().collect();
            assert!(matches(&expected, &found), "$ {command}\n{output}instead of\n{}", expected.join("\n"));
        }
    }
}

#[test]
fn expectations_are_compared() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(matches(&lines("a\n...\nd"), &["a", "b", "c", "d"]));
    assert!(matches(&lines("a\n..."), &["a"]));
    assert!(!matches(&lines("a\n..."), &["b"]));
    assert!(!matches(&lines("a"), &["a", "b"]));
    assert!(!matches(&lines(""), &["a"]));
    let parsed = sessions("text\n```console\n$ one\nout\n$ two\n```\n$ no\n");
    assert_eq!(parsed, [[("one".to_owned(), lines("out")), ("two".to_owned(), vec![])]]);
}

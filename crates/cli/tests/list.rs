//! `f2fs ls`: its options, what they show, and the names as a shell takes them back.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Place, command, fail, formatted, ok, rename_by_hand, run};

/// `ls` with these options and paths.
fn ls(image: &Path, options: &str, paths: &[&str]) -> Command {
    let mut built = command(["ls"]);
    built.args(options.split_whitespace()).arg(image).args(paths);
    built
}

fn tree(place: &Place) -> std::path::PathBuf {
    let image = formatted(place);
    let image = &*image;
    ok(command(["mkdir"]).arg(image).args(["/d", "/d/below", "/d/.hidden", "/e"]));
    std::fs::write(place.path("data"), vec![7; 1537]).unwrap();
    ok(command(["put"]).arg(image).arg(place.path("data")).arg("/d/data"));
    ok(command(["ln", "-s"]).arg(image).args(["d", "/to-d"]));
    ok(command(["ln", "-s"]).arg(image).args(["a b", "/d/link"]));
    image.to_path_buf()
}

#[test]
fn names_with_a_dot_are_shown_on_demand() {
    let place = Place::new();
    let image = tree(&place);
    assert_eq!(ok(&mut ls(&image, "", &["/d"])), "below\ndata\nlink\n");
    assert_eq!(ok(&mut ls(&image, "-A", &["/d"])), ".hidden\nbelow\ndata\nlink\n");
    assert_eq!(ok(&mut ls(&image, "-a1", &["/d"])), ".\n..\n.hidden\nbelow\ndata\nlink\n");
    let long = ok(&mut ls(&image, "-la", &["/d"]));
    let lines: Vec<&str> = long.lines().collect();
    assert!(lines[0].starts_with("drwxr-xr-x   4 ") && lines[0].ends_with(" ."), "{long}");
    assert!(lines[1].starts_with("drwxr-xr-x   4 ") && lines[1].ends_with(" .."), "{long}");
    assert!(lines[2].ends_with(" .hidden") && lines[5].ends_with(" link -> 'a b'"), "{long}");
    assert!(lines[4].contains(" 1537 2"), "{long}");
    assert!(ok(&mut ls(&image, "-lh", &["/d/data"])).contains(" 1.6K 2"));
    // For programs nothing is hidden.
    assert_eq!(ok(&mut ls(&image, "--json", &["/d"])).lines().count(), 4);
}

#[test]
fn several_paths_of_every_kind() {
    let place = Place::new();
    let image = tree(&place);
    assert_eq!(ok(&mut ls(&image, "", &["/d", "/d/data", "/e"])), "/d/data\n\n/d:\nbelow\ndata\nlink\n\n/e:\n");
    assert_eq!(ok(&mut ls(&image, "-R", &["/"])), "/:\nd\ne\nto-d\n\n/d:\nbelow\ndata\nlink\n\n/d/below:\n\n/e:\n");
    assert_eq!(ok(&mut ls(&image, "-d", &["/d", "/"])), "/d\n/\n");
    // A link to a directory is followed, unless it is to be seen.
    assert_eq!(ok(&mut ls(&image, "", &["/to-d"])), "below\ndata\nlink\n");
    assert!(ok(&mut ls(&image, "-l", &["/to-d"])).ends_with(" /to-d -> d\n"));
    assert_eq!(ok(&mut ls(&image, "-d", &["/to-d"])), "/to-d\n");
    assert_eq!(ok(&mut ls(&image, "", &["/to-d/"])), "below\ndata\nlink\n");
    // A missing path is reported, the others are listed.
    let output = run(&mut ls(&image, "", &["/none", "/e", "/d/data", "/d/data/x"]));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "/d/data\n\n/e:\n");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "f2fs: /none: no such file or directory\nf2fs: /d/data/x: not a directory\n");
    fail(&mut ls(&image, "-dR", &[]), 2, "cannot be used with");
}

#[test]
fn names_can_be_pasted_back() {
    let place = Place::new();
    let image = formatted(&place);
    let names: Vec<&[u8]> = vec![
        b"two words",
        b"it's",
        b"new\nline",
        b"tab\t",
        b"\xff\xfe1",
        b"-rf",
        b"-",
        b"--",
        b"$HOME",
        b"*",
        b"~",
        b"a\\b",
        b"\x1b[31mred",
        "\u{202e}gpj.exe".as_bytes(),
        "größe".as_bytes(),
    ];
    ok(command(["mkdir"]).arg(&image).arg("--").args(names.iter().map(|name| OsStr::from_bytes(name))));
    // Every line of the list is an argument, to the shell and to the command.
    let list = ok(&mut ls(&image, "", &[]));
    assert_eq!(list.lines().count(), names.len(), "{list}");
    assert!(!list.contains('\x1b') && !list.contains('\u{202e}'));
    let script: String = list.lines().map(|name| format!("\"$F\" rm -r \"$I\" {name} || exit\n")).collect();
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).env("F", env!("CARGO_BIN_EXE_f2fs")).env("I", &image).stdin(Stdio::null());
    ok(&mut bash);
    assert_eq!(ok(&mut ls(&image, "-A", &[])), "");

    // So do messages, headings and targets.
    fail(command(["cat"]).arg(&image).arg("no such"), 1, "'no such': no such file");
    ok(command(["mkdir"]).arg(&image).arg("/x y"));
    ok(command(["ln", "-s"]).arg(&image).args(["a\nb", "/l"]));
    let text = ok(&mut ls(&image, "-lR", &[]));
    assert!(text.contains("\n'/x y':\n") && text.contains(" l -> $'a\\nb'\n"), "{text}");
    // Raw, for xargs; with -R as paths.
    let raw = run(&mut ls(&image, "--zero -R", &["/"])).stdout;
    assert_eq!(OsString::from_vec(raw), OsStr::new("/l\0/x y\0"));
    fail(&mut ls(&image, "--zero -l", &[]), 2, "cannot be used with");
}

#[test]
fn a_name_that_none_can_have_hides_no_other() {
    let place = Place::new();
    let image = formatted(&place);
    ok(command(["mkdir"]).arg(&image).args(["/first", "/AAAevil", "/last", "/last/below"]));
    rename_by_hand(&image, b"AAAevil", b"../evil");
    for (options, listed) in
        [("", "first\nlast\n"), ("-R", "/:\nfirst\nlast\n\n/first:\n\n/last:\nbelow\n\n/last/below:\n")]
    {
        let output = run(&mut ls(&image, options, &["/"]));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(String::from_utf8_lossy(&output.stdout), listed, "{options} {said}");
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(said.matches("an invalid name").count(), 1, "{said}");
    }
}

/// A directory of damaged entries is not a flood of messages, whichever command meets them.
#[test]
fn of_many_failures_a_thousand_are_said() {
    let place = Place::new();
    let image = formatted(&place);
    let tree = place.path("tree");
    std::fs::create_dir(&tree).unwrap();
    for number in 0..1100 {
        std::fs::write(tree.join(format!("AAAevil{number}")), "").unwrap();
    }
    ok(command(["put", "-r"]).arg(&image).arg(&tree).arg("/tree"));
    rename_by_hand(&image, b"AAAevil", b"../evil");
    let out = place.path("out");
    for args in [&["ls", "-R", "I"][..], &["manifest", "I"], &["get", "-r", "I", "/tree", "out"]] {
        let args = args.iter().map(|arg| match *arg {
            "I" => image.as_os_str(),
            "out" => out.as_os_str(),
            other => other.as_ref(),
        });
        let output = run(&mut command(args));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(said.matches("an invalid name").count(), 1000);
        assert!(said.contains("f2fs: 100 more messages were left out\n"), "{said}");
        assert!(said.lines().count() <= 1002, "{}", said.lines().count());
    }
}

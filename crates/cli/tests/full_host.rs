//! A machine without room: what `get` and `put` leave on it, and in the volume.
//!
//! The file system that is full is a tmpfs of the test's own, which other processes do not see. Where none can be
//! mounted (that takes root, or user namespaces), a limit on the size of files stands for it, and the test says so.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{Place, command, formatted, ok, run};

const MIB: u64 = 1 << 20;

/// The ways to a mount namespace of one's own: for root, and for who may become root in it.
const WAYS: [&[&str]; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];

/// An empty directory on a file system of so many bytes, and how a shell gets there.
struct Full {
    dir: PathBuf,
    bytes: u64,
    way: Option<&'static [&'static str]>,
    /// The size of a file at most, where there is no such file system.
    limit: u64,
}

/// The outcome of a script.
struct Done {
    code: i32,
    out: String,
    err: String,
}

impl Full {
    fn new(place: &Place, bytes: u64, limit: u64) -> Full {
        let dir = place.path("full");
        fs::create_dir(&dir).unwrap();
        let mut full = Full { dir, bytes, way: None, limit };
        for way in WAYS {
            full.way = Some(way);
            if full.script("test $(stat -f -c %T \"$FULL\") = tmpfs").code == 0 {
                return full;
            }
        }
        println!("not done: {bytes} bytes of tmpfs cannot be mounted here; a limit on the size of files stands for it");
        full.way = None;
        full
    }

    /// Runs a script of a shell. `$FULL` is the directory and `$F2FS` the command; from `limited` on room is short.
    fn script(&self, script: &str) -> Done {
        let (mut shell, begin) = match self.way {
            Some(way) => {
                let mut unshare = Command::new("unshare");
                unshare.args(way).args(["--", "bash"]);
                let mount = format!("mount -t tmpfs -o size={} tmpfs \"$FULL\" || exit 99", self.bytes);
                (unshare, mount + "\nlimited() { true; }")
            }
            None => {
                let empty = "rm -rf \"$FULL\"/*";
                let limit = format!("{empty}\nlimited() {{ trap '' XFSZ; ulimit -f {}; }}", self.limit / 1024);
                (Command::new("bash"), limit)
            }
        };
        shell.arg("-c").arg(format!("{begin}\n{script}")).stdin(Stdio::null());
        shell.env("FULL", &self.dir).env("F2FS", env!("CARGO_BIN_EXE_f2fs"));
        let output = run(&mut shell);
        let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(!err.contains("panicked"), "{err}");
        Done { code: output.status.code().unwrap(), out, err }
    }
}

fn put(image: &Path, source: &Path, to: &str) {
    ok(command(["put", "-r"]).args([image, source]).arg(to));
}

#[test]
fn a_file_that_does_not_fit_is_taken_away_or_said_to_be_incomplete() {
    let place = Place::new();
    let image = formatted(&place);
    fs::write(place.path("f"), vec![7; 3 << 20]).unwrap();
    put(&image, &place.path("f"), "/f");
    let full = Full::new(&place, MIB, MIB);
    let get = format!("limited; \"$F2FS\" get '{}' /f \"$FULL/out\"", image.display());
    for jobs in ["", " -j 1", " -j 8"] {
        let done = full.script(&format!("{get}{jobs}; echo $?; ls -A \"$FULL\"; echo room > \"$FULL/next\""));
        assert_eq!(done.out, "1\n", "{}", done.err);
        assert!(done.code == 0 && done.err.contains("out") && done.err.contains(reason(&full)), "{}", done.err);
        // A file that was there was emptied first: it is not taken away.
        let done = full.script(&format!("echo before > \"$FULL/out\"; {get}{jobs}; echo $?; ls -A \"$FULL\""));
        assert_eq!(done.out, "1\nout\n", "{}", done.err);
        assert!(done.err.contains("incomplete"), "{}", done.err);
    }
    // To a pipe that leads there.
    let done = full.script(&format!("limited; \"$F2FS\" cat '{}' /f > \"$FULL/out\"; echo $?", image.display()));
    assert_eq!(done.out, "1\n", "{}", done.err);
    assert!(done.err.contains(reason(&full)), "{}", done.err);
}

/// The system's message for a write that does not fit.
fn reason(full: &Full) -> &'static str {
    if full.way.is_some() { "No space left on device" } else { "File too large" }
}

#[test]
fn of_a_tree_that_does_not_fit_each_file_is_whole_or_missing_and_that_is_said() {
    let place = Place::new();
    let image = formatted(&place);
    fs::create_dir(place.path("tree")).unwrap();
    let name = |file: u64| format!("small-{file}");
    for file in 0..200 {
        fs::write(place.path("tree").join(name(file)), vec![file as u8; 9000]).unwrap();
    }
    // Large enough for several threads, and never in one piece.
    fs::write(place.path("tree/large"), vec![7; 9 << 20]).unwrap();
    put(&image, &place.path("tree"), "/tree");
    let full = Full::new(&place, 4 * MIB, 4 * MIB);
    for jobs in [1, 2, 8] {
        let done = full.script(&format!(
            "limited; \"$F2FS\" get -r -j {jobs} '{}' /tree \"$FULL/out\"; echo $?; cd \"$FULL/out\" && sha256sum *",
            image.display()
        ));
        let (code, sums) = done.out.split_once('\n').unwrap();
        assert_eq!(code, "1", "{}", done.err);
        let there = |name: &str| sums.lines().find(|line| line.ends_with(&format!("  {name}")));
        // Of the files that several threads are at, the first that fails is named.
        assert!(there("large").is_none() && done.err.contains("out/"), "{sums}{}", done.err);
        assert!(done.err.contains(reason(&full)), "{}", done.err);
        let originals = run(Command::new("sha256sum").args((0..200).map(name)).current_dir(place.path("tree")));
        let mut whole = 0;
        for original in String::from_utf8(originals.stdout).unwrap().lines() {
            let name = original.rsplit(' ').next().unwrap();
            match there(name) {
                Some(line) => assert_eq!(line, original, "-j {jobs}"),
                // Nothing more fits, so the copy does not go on.
                None => assert!(done.err.contains("the copy stopped there"), "{name}: {}", done.err),
            }
            whole += usize::from(there(name).is_some());
        }
        // A limit on the size of files stops the large one only.
        assert!(full.way.is_some() || whole == 200, "{}", done.err);
    }
}

#[test]
fn an_image_that_cannot_grow_holds_what_it_held() {
    let place = Place::new();
    fs::write(place.path("small"), "text").unwrap();
    fs::write(place.path("large"), vec![7; 10 << 20]).unwrap();
    fs::create_dir(place.path("many")).unwrap();
    for file in 0..1200 {
        fs::write(place.path(&format!("many/{file}")), vec![7; 9000]).unwrap();
    }
    // A sparse image, of which less fits than it says.
    for (source, to) in [("large", "/large"), ("many", "/many")] {
        let full = Full::new(&place, 8 * MIB, 24 * MIB);
        let place = place.dir().display();
        let done = full.script(&format!(
            "I=\"$FULL/image\"\n\"$F2FS\" format --size 64M \"$I\" > /dev/null\n\
             \"$F2FS\" put \"$I\" '{place}/small' /small || exit 98\n\
             limited\n\
             \"$F2FS\" put -r \"$I\" '{place}/{source}' {to}; echo $?\n\
             \"$F2FS\" check \"$I\"; echo $?\n\
             \"$F2FS\" cat \"$I\" /small\n"
        ));
        assert_eq!((done.code, &*done.out), (0, "1\n0\ntext"), "{source}: {}", done.err);
        assert!(done.err.contains(reason(&full)), "{}", done.err);
        // Not even the next checkpoint fits: what was copied before is not there either, and that is said.
        let lost = done.err.contains("is as it was at its last checkpoint, since it could not be closed");
        assert_eq!(lost, full.way.is_some(), "{}", done.err);
        fs::remove_dir_all(&full.dir).unwrap();
    }
}

/// A checkpoint comes while the file is copied, and then the disk is full: there is no half of a file under its name.
#[test]
fn a_large_file_that_the_host_has_no_room_for_is_not_there() {
    let place = Place::new();
    fs::write(place.path("huge"), vec![7; 48 << 20]).unwrap();
    let full = Full::new(&place, 40 * MIB, 40 * MIB);
    let done = full.script(&format!(
        "I=\"$FULL/image\"\n\"$F2FS\" format --size 100M \"$I\" > /dev/null || exit 98\nlimited\n\
         \"$F2FS\" put \"$I\" '{}' /huge; echo $?\n\"$F2FS\" ls \"$I\" /\n",
        place.path("huge").display()
    ));
    assert_eq!((done.code, &*done.out), (0, "1\n"), "{}", done.err);
    assert!(done.err.contains(reason(&full)), "{}", done.err);
}

/// The signal that a limit on the size of files comes with does not end the command.
#[test]
fn a_limit_on_the_size_of_files_is_an_error() {
    let place = Place::new();
    let image = formatted(&place);
    fs::write(place.path("f"), vec![7; 3 << 20]).unwrap();
    put(&image, &place.path("f"), "/f");
    let limited = |args: &str| {
        let mut shell = Command::new("bash");
        shell.arg("-c").arg(format!("ulimit -f 1024; exec \"$0\" {args}"));
        let output = run(shell.arg(env!("CARGO_BIN_EXE_f2fs")).current_dir(place.dir()).stdin(Stdio::null()));
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for args in ["get disk.img /f out", "format new.img --size 64M", "put disk.img f /g"] {
        let (code, said) = limited(args);
        assert!(code == Some(1) && said.contains("File too large"), "{args}: {code:?} {said}");
    }
    assert_eq!(ok(command(["check"]).arg(&image)), "");
}

//! `f2fs bench` as scripts use it: its tables and files, the command lines that it refuses, and the image that it
//! leaves.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Place, command, fail, formatted, ok};
use serde_json::Value;

const COLUMNS: &str =
    "workload,policy,threads,operations,seconds,ops_per_second,slowest_share,p50_us,p99_us,nid_scan_share";

fn fxmark<const N: usize>(args: [&str; N]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_f2fs"));
    command.args(["bench", "fxmark", "--files", "200"]).args(args).stdin(Stdio::null());
    command
}

/// The lines of a CSV file below the comments and the columns, as fields.
fn measurements(csv: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(csv).unwrap();
    for comment in ["# cpu: ", "# processors: ", "# kernel: ", "# governor: ", "# commit: ", "# directory lock: "] {
        assert!(text.lines().any(|line| line.starts_with(comment)), "{comment} is not in {text}");
    }
    let mut lines = text.lines().skip_while(|line| line.starts_with('#'));
    assert_eq!(lines.next(), Some(COLUMNS));
    lines.map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn fxmark_writes_a_table_a_csv_and_a_picture() {
    let place = Place::new();
    let (csv, svg) = (place.path("out.csv"), place.path("out.svg"));
    let policies = ["kernel-scan", "clue", "clue:optimistic+lazy", "clue:heuristic", "sharded"];
    let table = ok(fxmark(["--memory", "256M", "--workload", "mwul,mwum,mwrm", "--threads", "1,3", "--verify"])
        .args(["--policy", &policies.join(","), "--directory-lock", "whole", "--csv"])
        .arg(&csv)
        .arg("--svg")
        .arg(&svg));
    for word in ["processors", "memory, 256.0 MiB", "directory lock whole", "200 operations", "ops/s", "NID scans"] {
        assert!(table.contains(word), "{word} is not in {table}");
    }
    let lines = measurements(&csv);
    assert_eq!(lines.len(), 3 * 2 * policies.len());
    for line in &lines {
        assert_eq!(line.len(), COLUMNS.split(',').count(), "{line:?}");
        assert!(policies.contains(&&*line[1]) && line[3] == "200", "{line:?}");
        let number = |column: usize| line[column].parse::<f64>().unwrap();
        assert!((number(3) / number(4) / number(5) - 1.0).abs() < 0.01, "{line:?}");
        assert!((0.0..=1.0).contains(&number(6)) && (0.0..=1.0).contains(&number(9)), "{line:?}");
        assert!(number(7) > 0.0 && number(7) <= number(8), "{line:?}");
        if line[1] == "sharded" {
            assert!(number(9) < 0.5, "no list, no scan: {line:?}");
        }
    }
    let picture = fs::read_to_string(svg).unwrap();
    for word in ["MWUL on memory", "MWRM on memory", "clue:optimistic+lazy", "sharded", "threads", "renames/s"] {
        assert!(picture.contains(word), "{word}");
    }
    assert_eq!(picture.matches("<circle").count(), lines.len());
}

#[test]
fn fxmark_tells_programs_all_it_knows() {
    let text = ok(&mut fxmark(["--memory", "256M", "--workload", "mwul", "--threads", "2", "--json"]));
    let value: Value = serde_json::from_str(&text).unwrap();
    assert!(value["machine"]["processors"].as_u64().unwrap() > 0);
    assert_eq!(value["directory_lock"], "bucket");
    let all = value["measurements"].as_array().unwrap();
    assert_eq!(all.len(), 3);
    for measured in all {
        // As FxMark leaves it: all node IDs are used up.
        assert_eq!((measured["operations"].as_u64(), measured["free_nids"].as_u64()), (Some(200), Some(0)));
        assert!(measured["used_nids"].as_u64().unwrap() > 200);
        assert!(measured["cached_nat_entries"].as_u64().unwrap() > 100_000);
    }
    let scans = |policy: &str| all.iter().find(|line| line["policy"] == policy).unwrap()["nid_scans"].as_u64().unwrap();
    assert_eq!((scans("kernel-scan"), scans("sharded")), (200, 0), "the kernel scans in every unlink");

    // With NIDs left, the list stays long enough.
    let text = ok(&mut fxmark([
        "--memory",
        "256M",
        "--workload",
        "mwul",
        "--threads",
        "1",
        "--policy",
        "kernel-scan",
        "--free-nids",
        "5000",
        "--json",
    ]));
    let value: Value = serde_json::from_str(&text).unwrap();
    assert!(value["measurements"][0]["nid_scans"].as_u64().unwrap() <= 1);
}

#[test]
fn fxmark_keeps_what_is_on_an_image() {
    let place = Place::new();
    let image = place.path("image");
    let on = |args: [&str; 4]| {
        let mut command = fxmark(["--workload", "mwcm,mwul,dwol", "--policy", "sharded", "--threads", "2"]);
        command.arg("--image").arg(&image).args(args.iter().filter(|arg| !arg.is_empty()));
        command
    };
    fail(&mut on([""; 4]), 1, "--size creates it");
    assert!(!image.exists());
    ok(&mut on(["--size", "256M", "", ""]));
    f2fs_oracle::assert_clean(&image);

    let before = fs::read(&image).unwrap();
    fail(&mut on([""; 4]), 1, "is not empty; --force overwrites it");
    fail(&mut on(["--size", "512M", "", ""]), 1, "--force");
    assert!(fs::read(&image).unwrap() == before);
    ok(&mut on(["--force", "--size", "300M", "--verify"]));
    assert_eq!(fs::metadata(&image).unwrap().len(), 300 << 20);
    f2fs_oracle::assert_clean(&image);

    // Not only file systems are worth keeping.
    fs::write(&image, b"a letter").unwrap();
    fail(&mut on([""; 4]), 1, "--force");
    assert_eq!(fs::read(&image).unwrap(), b"a letter");
    // What it is comes before what it holds.
    let pipe = place.path("pipe");
    ok(Command::new("mkfifo").arg(&pipe));
    for nothing in [place.dir(), Path::new("/dev/null"), &pipe] {
        fail(fxmark(["--force"]).arg("--image").arg(nothing), 1, "neither a file nor a block device");
        fail(fxmark([]).arg("--image").arg(nothing), 1, "neither a file nor a block device");
    }
    let link = place.path("link");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    fail(fxmark(["--size", "64M"]).arg("--image").arg(&link), 1, "is a symbolic link, and what it leads to is missing");
    fail(command(["format", "--size", "64M"]).arg(&link), 1, "is a symbolic link, and what it leads to is missing");
}

#[test]
fn fxmark_in_a_directory_and_on_a_volume_that_is_there() {
    let place = Place::new();
    let csv = place.path("out.csv");
    let table = ok(fxmark(["--workload", "mwul,mwcm", "--threads", "1,2", "--directory"])
        .arg(place.dir())
        .arg("--csv")
        .arg(&csv));
    assert!(table.contains("directory lock its own"), "{table}");
    let lines = measurements(&csv);
    assert_eq!(lines.len(), 4, "of each workload and number of threads one, and none of each policy");
    assert!(lines.iter().all(|line| line[1] == "directory" && line[3] == "200"), "{lines:?}");
    fail(fxmark(["--policy", "clue", "--directory"]).arg(place.dir()), 2, "--policy");

    let image = place.path("image");
    f2fs_oracle::mkfs_sized(&image, 256 << 20, &["-l", "kept"]).unwrap();
    let on = |args: [&str; 2]| {
        let mut command = fxmark(["--threads", "2", "--workload", "mwcl", "--force", "--formatted"]);
        command.args(args).arg("--image").arg(&image);
        command
    };
    fail(&mut on(["--policy", "clue,sharded"]), 2, "--formatted is for one measurement");
    ok(&mut on(["--policy", "sharded"]));
    f2fs_oracle::assert_clean(&image);
    let mut inspect = Command::new(env!("CARGO_BIN_EXE_f2fs"));
    assert!(ok(inspect.arg("inspect").arg(&image)).contains("kept"), "the volume of before");
    fail(&mut fxmark(["--formatted"]), 2, "--image");
}

#[test]
fn fxmark_says_what_is_wrong() {
    let place = Place::new();
    fail(&mut fxmark(["--workload", "mwux"]), 2, "mwum");
    fail(&mut fxmark(["--policy", "clue:hopeful"]), 2, "optimistic");
    fail(&mut fxmark(["--threads", "1,0"]), 2, "0");
    fail(&mut fxmark(["--threads", "many"]), 2, "many");
    fail(&mut fxmark(["--directory-lock", "none"]), 2, "bucket");
    fail(&mut fxmark(["--memory", "64M", "--image", "x"]), 2, "--image");
    fail(&mut fxmark(["--force"]), 2, "--image");
    fail(&mut fxmark(["--free-nids", "some"]), 2, "--free-nids");
    fail(&mut fxmark(["--threads", "1,1"]), 2, "--threads has 1 twice");
    fail(&mut fxmark(["--policy", "sharded,clue,sharded"]), 2, "--policy has sharded twice");
    fail(&mut fxmark(["--workload", "mwul,mwul"]), 2, "--workload has mwul twice");
    fail(&mut fxmark(["--policy", "clue:lazy+lazy"]), 2, "clue:lazy+lazy");
    fail(
        fxmark(["--page-cache", "64M", "--directory"]).arg(place.dir()),
        2,
        "--page-cache has no effect on a directory",
    );
    // Identifiers that are held back are no more in use than free.
    let mut held = fxmark(["--memory", "256M", "--free-nids", "1", "--threads", "2", "--workload", "mwcl"]);
    fail(&mut held, 1, "in use, and no other is free: they are held back, or wait for a checkpoint");
    // A volume too small says so, with what was measured.
    let mut command = Command::new(env!("CARGO_BIN_EXE_f2fs"));
    command.args(["bench", "fxmark", "--memory", "64M", "--files", "100000", "--threads", "2", "--policy", "clue"]);
    fail(&mut command, 1, "mwul, clue, 2 threads: create /fxmark/");
    let nowhere = place.path("none/out.csv");
    fail(fxmark(["--memory", "64M", "--csv"]).arg(&nowhere), 1, "none/out.csv");
    fail(fxmark(["--memory", "64M", "--svg"]).arg(&nowhere), 1, "none/out.csv");
}

#[test]
fn results_take_the_place_of_a_file_when_there_are_any() {
    let place = Place::new();
    let (csv, svg) = (place.path("old.csv"), place.path("old.svg"));
    let output = |mut command: Command| {
        command.arg("--csv").arg(&csv).arg("--svg").arg(&svg);
        command
    };
    let fails = || {
        // The warm-up fails.
        let small = fxmark(["--memory", "64M", "--free-nids", "0", "--workload", "mwcl", "--threads", "1"]);
        fail(&mut output(small), 1, "mwcl, kernel-scan, 1 threads");
        let mut varmail = Command::new(env!("CARGO_BIN_EXE_f2fs"));
        varmail.args(["bench", "varmail", "--seconds", "1", "--directory"]).arg(place.path("none"));
        fail(&mut output(varmail), 1, "none");
    };
    fails();
    assert_eq!(fs::read_dir(place.dir()).unwrap().count(), 0, "nothing is made");
    fs::write(&csv, "old").unwrap();
    fs::write(&svg, "old").unwrap();
    fails();
    assert!([&csv, &svg].iter().all(|path| fs::read_to_string(path).unwrap() == "old"));
    ok(&mut output(fxmark(["--memory", "256M", "--workload", "mwcl", "--threads", "1"])));
    assert_eq!(measurements(&csv).len(), 3);
    assert!(fs::read_to_string(&svg).unwrap().starts_with("<svg"));
    assert_eq!(fs::read_dir(place.dir()).unwrap().count(), 2, "nothing is left beside them");
}

#[test]
fn results_do_not_overwrite_a_volume() {
    let place = Place::new();
    let image = formatted(&place);
    let before = fs::read(&image).unwrap();
    let image_to_calibrate = place.path("other");
    for option in ["--csv", "--svg"] {
        fail(fxmark(["--memory", "64M", option]).arg(&image), 1, "holds an F2FS volume");
    }
    for option in ["--store", "--text", "--svg"] {
        let mut calibrate = command(["calibrate", "--size", "16M"]);
        fail(calibrate.arg(&image_to_calibrate).arg(option).arg(&image), 1, "holds an F2FS volume");
    }
    assert!(fs::read(&image).unwrap() == before && !image_to_calibrate.exists());
}

#[test]
fn results_go_to_devices_and_pipes_as_well() {
    let place = Place::new();
    let bench = || fxmark(["--memory", "256M", "--workload", "mwcl", "--threads", "1", "--csv", "/dev/stdout"]);
    let piped = ok(&mut bench());
    assert!(piped.contains("# cpu: ") && piped.contains(COLUMNS) && piped.contains("ops/s"), "{piped}");
    // The table is behind the lines, and not over them.
    let both = place.path("both");
    ok(bench().stdout(fs::File::create(&both).unwrap()));
    let text = fs::read_to_string(&both).unwrap();
    assert!(text.starts_with("# cpu: ") && text.contains("\nmwcl,sharded,1,200,") && text.contains("ops/s"), "{text}");
    let null = ["--csv", "/dev/null", "--svg", "/dev/null"];
    ok(fxmark(["--memory", "256M", "--workload", "mwcl", "--threads", "1"]).args(null));
}

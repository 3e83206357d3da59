//! `f2fs bench read` as scripts use it.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs;
use std::process::{Command, Stdio};

use common::{Place, fail, ok};
use serde_json::Value;

fn read<const N: usize>(args: [&str; N]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_f2fs"));
    command.args(["bench", "read", "--reads", "500", "--file-size", "4M"]).args(args).stdin(Stdio::null());
    command
}

#[test]
fn read_writes_a_table_a_csv_and_a_picture() {
    let place = Place::new();
    let (csv, svg) = (place.path("out.csv"), place.path("out.svg"));
    let mut command = read(["--memory", "128M", "--threads", "1,5", "--csv"]);
    let table = ok(command.arg(&csv).arg("--svg").arg(&svg));
    for word in ["processors", "memory, 128.0 MiB", "random reads of one file of 4.0 MiB", "IOPS", "in locks", "btree"]
    {
        assert!(table.contains(word), "{word} is not in {table}");
    }
    let text = fs::read_to_string(csv).unwrap();
    for comment in ["# cpu: ", "# commit: ", "# device: memory", "# reads: random"] {
        assert!(text.lines().any(|line| line.starts_with(comment)), "{comment} is not in {text}");
    }
    let lines: Vec<Vec<&str>> =
        text.lines().skip_while(|line| line.starts_with('#')).map(|line| line.split(',').collect()).collect();
    assert_eq!(&lines[0][..5], ["pattern", "file", "depth", "table", "threads"]);
    let measured: Vec<_> = lines[1..].iter().map(|line| (line[3], line[4], line[5])).collect();
    assert_eq!(
        measured,
        [("extent", "1", "500"), ("btree", "1", "500"), ("extent", "5", "500"), ("btree", "5", "500")]
    );
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
    let picture = fs::read_to_string(svg).unwrap();
    assert_eq!(picture.matches("<circle").count(), 8, "two charts of two lines of two points");
    for word in ["extent", "btree", "reads/s", "time waiting for locks"] {
        assert!(picture.contains(word), "{word}");
    }
}

#[test]
fn read_tells_programs_all_it_knows() {
    let mut command = read(["--memory", "128M", "--threads", "3", "--depth", "8", "--json", "--table", "extent"]);
    let text = ok(command.args(["--pattern", "sequential", "--file", "private"]));
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((value["pattern"].as_str(), value["file"].as_str()), (Some("sequential"), Some("private")));
    assert_eq!((value["depth"].as_u64(), value["file_bytes"].as_u64()), (Some(8), Some(4 << 20)));
    let all = value["measurements"].as_array().unwrap();
    assert_eq!((all.len(), all[0]["reads"].as_u64(), all[0]["threads"].as_u64()), (1, Some(500), Some(3)));
    let number = |name: &str| all[0][name].as_f64().unwrap();
    assert!((500.0 / number("seconds") / number("iops") - 1.0).abs() < 0.01);
    assert!(number("p50_us") > 0.0 && number("p50_us") <= number("p999_us"));
    // The longest time is exact, percentiles are within one per cent.
    assert!(number("p999_us") <= number("longest_us") * 1.01);
    assert_eq!(number("lock_waits"), 0.0, "nobody shares a file");
}

#[test]
fn read_keeps_what_is_on_an_image() {
    let place = Place::new();
    let image = place.path("image");
    let on = |args: &[&str]| {
        let mut command = read(["--threads", "2", "--depth", "4"]);
        command.arg(&image).args(args);
        command
    };
    fail(&mut on(&[]), 1, "--size creates it");
    ok(&mut on(&["--size", "128M"]));
    f2fs_oracle::assert_clean(&image);
    fail(&mut on(&[]), 1, "is not empty; --force overwrites it");
    ok(&mut on(&["--force"]));
    f2fs_oracle::assert_clean(&image);
}

#[test]
fn read_says_what_is_wrong() {
    fail(&mut read(["--pattern", "backwards"]), 2, "sequential");
    fail(&mut read(["--file", "none"]), 2, "private");
    fail(&mut read(["--table", "list"]), 2, "btree");
    fail(&mut read(["--depth", "0"]), 2, "0");
    fail(&mut read(["--memory", "64M", "image"]), 2, "--memory");
    fail(&mut read(["--force"]), 2, "IMAGE");
    let mut command = Command::new(env!("CARGO_BIN_EXE_f2fs"));
    command.args(["bench", "read", "--memory", "64M", "--file-size", "63M"]);
    fail(&mut command, 1, "bytes fitted");
    fail(&mut read(["--threads", "1,2,1"]), 2, "--threads has 1 twice");
    fail(&mut read(["--table", "extent,extent"]), 2, "--table has extent twice");
    fail(&mut read(["--page-cache", "64M"]), 2, "--page-cache has no effect");
    fail(&mut read(["--journal", "journal"]), 2, "takes no --journal");
}

/// Nothing is written before, and no image is made.
#[test]
fn files_that_are_larger_than_the_device_are_refused() {
    let place = Place::new();
    let image = place.path("image");
    let with = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_f2fs"));
        command.args(["bench", "read"]).args(args).stdin(Stdio::null());
        command
    };
    fail(&mut with(&["--file-size", "8T"]), 2, "8.0 TiB do not fit on a device of 4.0 GiB");
    fail(&mut with(&["--memory", "64M", "--file-size", "1G"]), 2, "do not fit on a device of 64.0 MiB");
    fail(with(&["--file-size", "1G", "--size", "64M"]).arg(&image), 2, "do not fit");
    assert!(!image.exists());
    fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    fail(with(&["--file-size", "1G"]).arg(&image), 1, "do not fit on a device of 64.0 MiB");
}

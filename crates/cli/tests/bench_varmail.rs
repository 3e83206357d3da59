//! `f2fs bench varmail` as scripts use it.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs;
use std::path::Path;

use common::{Place, command, fail, ok};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn the_models_give_the_same_table_each_time() {
    let place = Place::new();
    let (csv, svg) = (place.path("varmail.csv"), place.path("varmail.svg"));
    let run = || {
        let args = ["bench", "varmail", "--rounds", "3", "--threads", "4", "--json", "--csv", text(&csv), "--svg"];
        let output = ok(command(args).arg(&svg));
        serde_json::from_str::<serde_json::Value>(&output).unwrap()
    };
    let first = run();
    assert_eq!(first["measurements"], run()["measurements"]);
    let of = |mode: &str, journal: &str| {
        let rows = first["measurements"].as_array().unwrap();
        rows.iter().find(|row| row["mode"] == mode && row["journal"] == journal).unwrap().clone()
    };
    assert_eq!(of("log", "none")["operations"], 4 * 3 * 13);
    assert!(of("ordered", "nvdimm")["ratio_to_ssd"].as_f64().unwrap() > 1.2);
    assert!(of("journal", "nvdimm")["ratio_to_ssd"].as_f64().unwrap() > 4.0);
    let lines = fs::read_to_string(&csv).unwrap();
    assert_eq!(lines.lines().filter(|line| !line.starts_with('#')).count(), 1 + 5, "{lines}");
    assert!(fs::read_to_string(&svg).unwrap().starts_with("<svg"));
}

#[test]
fn options_of_another_kind_are_refused() {
    let place = Place::new();
    let image = place.path("disk.img");
    let on_image = ["--image", text(&image), "--size", "64M"];
    for (option, value) in [("--rounds", "5"), ("--flush-us", "5")] {
        fail(command(["bench", "varmail", option, value]).args(on_image), 2, option);
        fail(command(["bench", "varmail", option, value, "--directory"]).arg(place.dir()), 2, option);
    }
    fail(command(["bench", "varmail", "--cached-reads"]).args(on_image), 2, "--cached-reads");
    fail(&mut command(["bench", "varmail", "--seconds", "1"]), 2, "--image");
    fail(&mut command(["bench", "varmail", "--journal", "x"]), 2, "--journal has no effect on the models");
    let args = ["bench", "varmail", "--page-cache", "64M", "--directory", text(place.dir())];
    fail(&mut command(args), 2, "--page-cache has no effect on a directory");
    assert!(!image.exists());
}

#[test]
fn a_real_device_with_a_journal_and_without() {
    let place = Place::new();
    let (image, journal) = (place.path("disk.img"), place.path("journal"));
    fs::write(&journal, vec![0; 4 << 20]).unwrap();
    let run = |more: &[&str]| {
        let args = ["bench", "varmail", "--image", text(&image), "--seconds", "1", "--threads", "2", "--json"];
        serde_json::from_str::<serde_json::Value>(&ok(command(args).args(more))).unwrap()["measurements"][0].clone()
    };
    let none = run(&["--size", "256M", "--journal", "none"]);
    assert_eq!((none["mode"].as_str(), none["journal"].as_str()), (Some("log"), Some("none")));
    let with = run(&["--force", "--journal", text(&journal), "--journal-mode", "journal"]);
    assert_eq!(with["mode"], "journal");
    assert!(with["syncs"].as_u64().unwrap() > 0 && none["syncs"].as_u64().unwrap() > 0);
    f2fs_oracle::assert_clean(&image);
    // Nothing is overwritten that nobody gave up.
    fail(&mut command(["bench", "varmail", "--image", text(&image), "--seconds", "1"]), 1, "--force");
}

#[test]
fn a_directory_of_the_kernels_for_comparison() {
    let place = Place::new();
    let directory = place.path("mounted");
    fs::create_dir(&directory).unwrap();
    let args = ["bench", "varmail", "--directory", text(&directory), "--seconds", "1", "--threads", "2", "--json"];
    let output: serde_json::Value = serde_json::from_str(&ok(&mut command(args))).unwrap();
    let row = &output["measurements"][0];
    assert_eq!((row["mode"].as_str(), row["checkpoints"].as_u64()), (Some("directory"), Some(0)));
    assert!(row["syncs"].as_u64().unwrap() > 0 && row["operations"].as_u64() > row["syncs"].as_u64());
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0, "what was made is removed");
    // What is there already is named, and stays.
    fs::create_dir(directory.join("mail")).unwrap();
    fail(&mut command(args), 1, "mail: File exists");
    assert!(directory.join("mail").exists());
}

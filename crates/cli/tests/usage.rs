//! A wrong command line ends every subcommand with 2, before anything is opened. A refusal of the machine or of a
//! volume ends it with 1 (`check`: 8).
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs;

use common::{Place, command, fail, formatted, ok, run};

/// Each subcommand with arguments that are enough; `I` stands for an image.
const ENOUGH: [&str; 28] = [
    "format I --size 64M -f",
    "inspect I",
    "trim I",
    "check I",
    "calibrate I --size 16M",
    "ls I /",
    "cat I /f",
    "stat I /",
    "manifest I",
    "put I h /x",
    "get I /f h",
    "mkdir I /x",
    "rm I /x",
    "mv I /x /y",
    "ln I /x /y",
    "bench fxmark --memory 64M",
    "bench read I -f",
    "mount I .",
    "umount h",
    "ublk add --memory 64M",
    "ublk list",
    "ublk delete 0",
    "ublk recover 0 --file I",
    "zones I",
    "journal create I I -f",
    "journal inspect I",
    "journal detach I I",
    "completions bash",
];

/// Command lines that are wrong whatever the image holds, and a word of the message.
const WRONG: [(&str, &str); 92] = [
    ("", "Usage"),
    ("nothing", "nothing"),
    ("--page-cache 100T ls I", "the memory of this machine"),
    ("bench", "Usage"),
    ("bench nothing", "nothing"),
    ("ublk add", "--memory"),
    ("ublk add --memory 1M --file I", "--file"),
    ("ublk add --zoned 1G", "SIZE:ZONE"),
    ("ublk add --memory 1M --slow card-d", "card-a"),
    ("ublk add --memory 1M --slow nvme,flush=x", "milliseconds"),
    ("ublk add --memory 1M --faults wrote", "read, write"),
    ("ublk add --memory 1M --faults write,after=x", "after"),
    ("ublk add --memory 4097", "not a multiple of 4096"),
    ("ublk add --memory 18446744073709547520", "4.0 PiB"),
    ("ublk add --zoned 1P:64M", "1048576"),
    ("ublk add --zoned 16383P:16383P", "4.0 PiB"),
    ("ublk add --zoned 1G:3M", "power of two"),
    ("ublk add --memory 1M --queues 100000", "1..=4096"),
    ("ublk add --memory 1M --queues 0", "1..=4096"),
    ("ublk add --memory 1M --depth 4097", "1..=4096"),
    ("ublk delete x", "x"),
    ("zones", "IMAGE"),
    ("zones --make 1G I", "SIZE:ZONE"),
    ("ublk recover 0", "--file"),
    ("format", "IMAGE"),
    ("inspect", "IMAGE"),
    ("check", "IMAGE"),
    ("calibrate", "IMAGE"),
    ("ls", "IMAGE"),
    ("cat I", "PATH"),
    ("stat I", "PATH"),
    ("manifest", "IMAGE"),
    ("put I", "PATH"),
    ("put I a", "PATH"),
    ("get I", "PATH"),
    ("get I /a", "HOST"),
    ("mkdir I", "PATH"),
    ("rm I", "PATH"),
    ("mv I /a", "TO"),
    ("ln I /a", "PATH"),
    ("completions", "SHELL"),
    ("completions tcsh", "tcsh"),
    ("inspect I J", "J"),
    ("check I J", "J"),
    ("cat I /a /b", "/b"),
    ("mv I /a /b /c", "/c"),
    ("ln I /a /b /c", "/c"),
    ("format I --size 0", "more than 0"),
    ("format I --size -1", "negative"),
    ("format I --size 1.5", "fraction of a byte"),
    ("format I --size 1.5Q", "unit"),
    ("format I --size 99999999T", "more than"),
    ("format I --size 1M", "at least"),
    ("format I --size 64M -O casefold", "casefold"),
    ("format I --size 64M -R 1000", "1000:1000"),
    ("format I --size 64M -R 1:-1", "1000:1000"),
    ("format I --size 64M -O inode_checksum", "extra_attr"),
    ("format I --size 64M -s 0", "segments"),
    ("format I --size 64M -o 150", "less than 100"),
    ("format I --size 64M -o -1", "less than 100"),
    ("format I --size 64M -o nan", "less than 100"),
    ("calibrate I --size lots", "size"),
    ("calibrate I --samples 0", "at least 1"),
    ("manifest I --max-hash -1", "negative"),
    ("manifest I --max-hash lots", "size"),
    ("manifest --host --no-recovery I", "cannot be used"),
    ("bench fxmark --memory 0", "more than 0"),
    ("bench fxmark --threads 0", "threads"),
    ("bench fxmark --size 1G", "image"),
    ("bench read I --memory 1G", "cannot be used"),
    ("bench read --file-size 1.5", "fraction of a byte"),
    ("bench read --depth 0", "depth"),
    ("check --repair --undo b I", "cannot be used"),
    ("check --backup b I", "--repair"),
    ("mv -n --exchange I /a /b", "cannot be used"),
    ("ls -d -R I", "cannot be used"),
    ("ls --zero --json I", "cannot be used"),
    ("put -j 0 I a /b", "at least 1"),
    ("rm I -x", "-- -x"),
    ("get -j x I /a b", "at least 1"),
    ("bench fxmark --memory 64M --device I", "none is measured"),
    ("bench fxmark --memory 64M --pmem", "none is measured"),
    ("bench fxmark --memory 64M --without-journal", "none is measured"),
    ("bench fxmark --image I -f --formatted --policy clue --workload mwul --threads 1,2", "--formatted is for one"),
    ("bench read --depth 65535 --reads 4000000000 --threads 4096", "more than half of the memory"),
    ("bench fxmark --image I -f --csv I", "is what is measured"),
    ("bench fxmark --image d -f --device I --svg I", "is what is measured"),
    ("bench read I -f --svg I", "is what is measured"),
    ("bench varmail --image I -f --csv ./I.csv --svg I.csv", "are both"),
    ("format I --size 64M -f -R 4294967295:0", "no number of a user"),
    ("mount I . -o uid=4294967295", "no number of a user"),
    ("mount I . -o commit=99999999999999999999", "too large"),
];

#[test]
fn wrong_command_lines_end_with_2_and_touch_nothing() {
    let place = Place::new();
    let image = formatted(&place);
    let before = fs::read(&image).unwrap();
    let missing = place.path("missing");
    let check = |line: &str, word: &str| {
        // The same whether the image is there or not.
        for image in [&image, &missing] {
            let args = line.split_whitespace().map(|arg| if arg == "I" { image.as_os_str() } else { arg.as_ref() });
            fail(command(args).current_dir(place.dir()), 2, word);
        }
    };
    for (line, word) in WRONG {
        check(line, word);
    }
    for line in ENOUGH {
        check(&format!("{line} --no-such-option"), "--no-such-option");
    }
    assert!(fs::read(&image).unwrap() == before && !missing.exists());
    // An empty path is none.
    for line in [["ls", ""], ["inspect", ""], ["check", ""]] {
        fail(&mut command(line), 2, "none was supplied");
    }
    fail(command(["rm"]).arg(&image).arg(""), 2, "none was supplied");
}

/// Lines end where the terminal does, not in the middle of it.
#[test]
fn paragraphs_of_the_help_are_filled() {
    let help = ok(&mut command(["--help"]));
    for begin in ["Names are printed", "Sizes are bytes"] {
        let lines: Vec<&str> =
            help.lines().skip_while(|line| !line.starts_with(begin)).take_while(|line| !line.is_empty()).collect();
        for pair in lines.windows(2) {
            let next = pair[1].split(' ').next().unwrap();
            assert!(pair[0].len() + 1 + next.len() > 90, "{pair:?}");
        }
        assert!(!lines.is_empty(), "{help}");
    }
}

/// Two names that everybody knows.
#[test]
fn format_and_check_have_the_names_of_other_tools_as_well() {
    let place = Place::new();
    let image = place.path("disk.img");
    ok(command(["mkfs", "--size", "64M"]).arg(&image));
    ok(command(["fsck"]).arg(&image));
    for (name, known) in [("format", "mkfs"), ("check", "fsck")] {
        assert_eq!(ok(&mut command([name, "--help"])), ok(&mut command([known, "--help"])));
    }
}

#[test]
fn every_subcommand_is_in_the_table_and_has_help() {
    let help = ok(&mut command(["--help"]));
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> =
        listed.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect();
    assert!(names.len() > 12, "{help}");
    for name in names {
        assert!(ENOUGH.iter().any(|line| line.split_whitespace().next() == Some(name)), "{name}");
        let long = ok(&mut command(["help", name]));
        assert_eq!(long, ok(&mut command([name, "--help"])));
        // Every option and argument says what it is.
        for line in ok(&mut command([name, "--help"])).lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let bare = matches!(*words, [option] if option.starts_with('<') && !long.contains("          "));
            assert!(!bare, "{name}: {line}");
        }
    }
    assert!(ok(&mut command(["--version"])).starts_with("f2fs 0."));
    for shell in ["bash", "zsh", "fish"] {
        assert!(ok(&mut command(["completions", shell])).contains("manifest"));
    }
}

#[test]
fn what_the_machine_refuses_ends_with_1() {
    let place = Place::new();
    fs::write(place.path("h"), "text").unwrap();
    let directory = place.path("directory");
    fs::create_dir(&directory).unwrap();
    let small = place.path("small");
    fs::write(&small, "short").unwrap();
    let missing = place.path("none/image");
    for (image, word) in [
        (&*directory, "is a directory"),
        (std::path::Path::new("/dev/null"), "is a character device"),
        (&*small, "less than one block"),
        (&*missing, "no such file"),
    ] {
        for line in ENOUGH.iter().filter(|line| line.contains('I')) {
            // A format makes the small file larger, and it may be measured on.
            if image == small && (line.starts_with("format") || line.starts_with("bench")) {
                continue;
            }
            let args = line.split_whitespace().map(|arg| if arg == "I" { image.as_os_str() } else { arg.as_ref() });
            let output = run(command(args).current_dir(place.dir()));
            let said = String::from_utf8(output.stderr).unwrap();
            let code = if line.starts_with("check") { 8 } else { 1 };
            assert_eq!(output.status.code(), Some(code), "{line}: {said}");
            let word = if line.starts_with("bench") { "" } else { word };
            assert!(said.starts_with("f2fs: ") && said.lines().count() == 1 && said.contains(word), "{line}: {said}");
            assert!(!said.contains("os error"), "{line}: {said}");
        }
    }
}

#[test]
fn an_impossible_size_does_not_cut_the_volume_that_is_there() {
    let place = Place::new();
    let image = formatted(&place);
    let before = fs::read(&image).unwrap();
    for line in [&["--size", "1M"][..], &["--size", "32M", "-s", "9"], &["--size", "64M", "-O", "inode_crtime"]] {
        fail(command(["format", "--force"]).arg(&image).args(line), 2, "");
        assert!(fs::read(&image).unwrap() == before);
    }
    fail(command(["calibrate", "--size", "16M"]).arg(&image), 1, "67108864 bytes, not 16777216");
    assert!(fs::read(&image).unwrap() == before);
    // What was made to be measured goes again, if it is too small for that.
    fail(command(["calibrate", "--size", "4K"]).arg(place.path("small")), 1, "the device has 1 blocks");
    assert!(!place.path("small").exists());
    // Fractions are sizes everywhere.
    ok(command(["format", "--size", "0.0625G"]).arg(place.path("fraction")));
    assert_eq!(fs::metadata(place.path("fraction")).unwrap().len(), 64 << 20);
}

#[test]
fn whatever_is_refused_does_not_change_the_size_of_the_volume_that_is_there() {
    let place = Place::new();
    let image = formatted(&place);
    let zoned = place.path("z.img");
    ok(command(["zones", "--make", "64M:2M"]).arg(&zoned));
    let before = [&image, &zoned].map(|path| fs::read(path).unwrap());
    let missing = place.path("missing");
    for size in ["56M", "80M"] {
        let format = |image| {
            let mut line = command(["format", "--force", "--size", size]);
            line.arg(image);
            line
        };
        fail(format(&image).arg("-m"), 2, "-m needs a device with zones");
        fail(format(&image).arg("--device").arg(&missing), 1, "missing");
        fail(format(&image).arg("--device").arg(&image), 1, "");
        fail(format(&image).arg("--device").arg(&zoned), 2, "add -m");
        fail(format(&zoned).arg("-m"), 2, "-m needs a device with zones");
        for (path, before) in [&image, &zoned].into_iter().zip(&before) {
            assert!(fs::read(path).unwrap() == *before, "{size}: {}", path.display());
        }
    }
    ok(&mut command(["check".as_ref(), image.as_os_str()]));
    ok(command(["format", "--force", "--size", "56M"]).arg(&image));
    assert_eq!(fs::metadata(&image).unwrap().len(), 56 << 20);
}

#[test]
fn a_model_without_an_end_is_refused_in_few_words() {
    let output = run(&mut command(["ublk", "add", "--memory", "1M", "--slow", "/dev/zero"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stderr.len() < 1000, "{} bytes", output.stderr.len());
}

#[test]
fn a_verdict_that_nobody_can_read_is_none() {
    let place = Place::new();
    let image = formatted(&place);
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    fail(command(["check", "--json"]).arg(&image).stdout(full()), 8, "standard output: No space left");
    fail(command(["check", "--repair", "--json"]).arg(&image).stdout(full()), 8, "standard output: No space left");
    fail(command(["cat"]).arg(&image).arg("/none").stdout(full()), 1, "/none");
    let hello = place.path("hello");
    fs::write(&hello, "hello").unwrap();
    ok(command(["put"]).arg(&image).arg(&hello).arg("/hello"));
    fail(command(["cat"]).arg(&image).arg("/hello").stdout(full()), 1, "f2fs: standard output: No space left");
    // A reader that has seen enough is none.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    ok(command(["check", "--json"]).arg(&image).stdout(writer));
    // A failure that was told is one, also if the reader has gone.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    fail(command(["ls"]).arg(&image).args(["/none", "/"]).stdout(writer), 1, "/none");
    // What can only be read takes no output.
    fail(command(["ls"]).arg(&image).stdout(fs::File::open(&hello).unwrap()), 1, "standard output: Bad file");
    // What is found counts, whoever reads it.
    let mut bytes = fs::read(&image).unwrap();
    let main = bytes.len() - (24 << 21);
    bytes[main..].fill(0xff);
    fs::write(&image, bytes).unwrap();
    fail(command(["check"]).arg(&image).stdout(full()), 4, "standard output: No space left");
}

#[test]
fn numbers_of_devices_may_be_their_paths() {
    for name in ["9999", "ublkb9999", "/dev/ublkb9999", "/dev/ublkc9999"] {
        fail(&mut command(["ublk", "delete", name]), 1, "");
    }
    fail(&mut command(["ublk", "delete", "/dev/sda"]), 2, "neither a number nor a device such as /dev/ublkb0");
}

#[test]
fn a_log_without_a_device_goes_away() {
    let place = Place::new();
    let log = place.path("log");
    // Zones that the kernel does not take; where it has no driver, nothing is taken.
    let line = ["ublk", "add", "--zoned", "63M:3M", "--foreground", "--record"];
    fail(command(line).arg(&log), 2, "power of two");
    assert!(!log.exists());
    // A file that is there already is nobody's to remove.
    fs::write(&log, "mine").unwrap();
    fail(command(line).arg(&log), 1, "log: ");
    assert_eq!(fs::read(&log).unwrap(), b"mine");
}

#[test]
fn help_that_cannot_be_printed_is_a_failure() {
    for line in [&["--help"][..], &["--version"], &["ls", "--help"], &["help", "put"], &["completions", "bash"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        fail(command(line).stdout(full), 1, "standard output: No space left");
        // A reader that has seen enough is none.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        ok(command(line).stdout(writer));
    }
}

#[test]
fn results_that_cannot_be_written_are_known_before_anything_is_measured() {
    let place = Place::new();
    let image = place.path("scratch.img");
    let nowhere = place.path("none/x");
    for option in ["--store", "--text", "--svg"] {
        fail(command(["calibrate", "--size", "64M"]).arg(&image).arg(option).arg(&nowhere), 1, "none/x");
        fail(
            command(["calibrate", "--size", "64M", "--force"]).arg(&image).arg(option).arg(&image),
            2,
            "is what is measured",
        );
    }
    assert!(!image.exists(), "what was made to be measured goes again");
    for line in [["bench", "fxmark"], ["bench", "read"]] {
        fail(command(line).args(["--memory", "900P"]), 2, "16.0 TiB");
        fail(command(line).args(["--memory", "1K"]), 2, "1.0 KiB, is not a size for a volume");
        fail(
            command(line).args(["--csv", "a", "--svg", "./a"]).current_dir(place.dir()),
            2,
            "--csv and --svg are both a",
        );
        fail(command(line).args(["--memory", "512M", "--svg"]).arg(&nowhere), 1, "none/x");
    }
}

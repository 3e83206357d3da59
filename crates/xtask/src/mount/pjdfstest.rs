//! pjdfstest: the rules of POSIX for each call, error by error.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;
use std::{env, iter};

use anyhow::bail;

use super::volume::{How, Mounted};
use super::{Bench, installed};
use crate::{Result, process};

const VERSION: &str = "0.2.2";
/// How long the suite may take.
const LIMIT: Duration = Duration::from_secs(1200);
/// All that Linux has of the suite. Users are those that every Debian has.
const CONFIGURATION: &str = "\
[features]
posix_fallocate = {}
rename_ctime = {}
utime_now = {}
utimensat = {}
[dummy_auth]
entries = [[\"nobody\", \"nogroup\"], [\"daemon\", \"daemon\"]]
[settings]
naptime = 0.02
";
/// The tests that mount again for reading only. They have a run of their own: others leave files open, with which no
/// file system can be.
const REMOUNTS: &str = "erofs";
/// Tests that the suite leaves out on a FUSE mount; docs/TESTING.md says why.
const LEFT_OUT: &[&str] = &["link::link_count_max"];

pub(crate) fn run(bench: &Bench) -> Result<()> {
    let program = installed("pjdfstest", VERSION)?;
    // Its remounts go to the kernel, not to a helper of the file system, which may not be installed.
    let bin = bench.images.join("bin");
    fs_err::create_dir_all(&bin)?;
    let helper = bin.join("mount");
    fs_err::write(&helper, "#!/bin/sh\nexec /bin/mount -i \"$@\"\n")?;
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755))?;
    let path = env::var_os("PATH").unwrap_or_default();
    let path: OsString = env::join_paths(iter::once(bin).chain(env::split_paths(&path)))?;
    let mounted = Mounted::new(bench, "pjdfstest", "1G", How::plain("allow_other"))?;
    let other = Mounted::new(bench, "pjdfstest-other", "128M", How::plain("allow_other"))?;
    for (remounts, pattern) in [(true, Some(REMOUNTS)), (false, None)] {
        let configuration = bench.images.join("pjdfstest.toml");
        fs_err::write(&configuration, format!("{CONFIGURATION}allow_remount = {remounts}\n"))?;
        let mut command = Command::new(&program);
        command.env("PATH", &path).current_dir(&mounted.dir).arg("-c").arg(&configuration);
        command.arg("-s").arg(&other.dir).arg("-p").arg(&mounted.dir).args(pattern);
        let outcome = process::capture(&mut command, LIMIT)?;
        let said = outcome.stdout;
        let tests = |end| {
            said.lines().filter(move |line| line.ends_with(end)).filter_map(|line| line.split_whitespace().next())
        };
        let failed: Vec<&str> = tests("FAILED").collect();
        let known = |name: &&str| LEFT_OUT.contains(name) || !remounts && name.contains(REMOUNTS);
        let left_out: Vec<&str> = tests("skipped").filter(|name| !known(name)).collect();
        let summary = said.lines().find(|line| line.starts_with("Summary:")).unwrap_or("no summary");
        println!("pjdfstest {VERSION}, {}: {summary}", pattern.unwrap_or("all but remounts"));
        if !outcome.success || !failed.is_empty() || !left_out.is_empty() {
            bail!("pjdfstest: failed: {}; left out: {}; {}", failed.join(" "), left_out.join(" "), outcome.stderr);
        }
    }
    other.judge()?;
    mounted.judge()
}

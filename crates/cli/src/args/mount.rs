//! The arguments of `mount` and `umount`.

use std::num::IntErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use f2fs_fuse::{Cache, MountOptions, Transport};

use super::format::NOBODYS;

#[derive(Debug, Args)]
pub(crate) struct MountArgs {
    /// Mount options, separated by commas.
    ///
    /// ro: read only. `allow_other`: other users may use the mount. uid=N, gid=N, umask=OCTAL: owner, group and
    /// permissions that files are shown with. cache=through, writeback or none: how the kernel caches. commit=SECONDS:
    /// time between checkpoints (0: none). threads=N: threads that serve. transport=device or uring: how requests come
    /// from the kernel. nodiscard: what becomes free is not discarded. dev, suid: device nodes and set-id bits work.
    /// noexec: programs do not.
    #[arg(short = 'o', value_delimiter = ',', value_name = "OPTION")]
    pub(crate) options: Vec<String>,
    /// Stay in the foreground until the volume is unmounted or a signal comes.
    #[arg(long, short = 'f')]
    pub(crate) foreground: bool,
    /// Write to standard output when the volume is mounted, and go to the background then.
    #[arg(long, hide = true)]
    pub(crate) told: bool,
    /// File or block device.
    pub(crate) image: PathBuf,
    /// The directory to mount the volume on.
    pub(crate) dir: PathBuf,
}

/// Threads of a server at most: each takes megabytes.
const MOST_THREADS: u32 = 256;
/// Options that change nothing: they ask for what is the default, or speak to `mount` and /etc/fstab.
const IGNORED: &[&str] = &[
    "defaults",
    "auto",
    "noauto",
    "nofail",
    "_netdev",
    "user",
    "users",
    "nouser",
    "owner",
    "group",
    "nogroup",
    "atime",
    "noatime",
    "relatime",
    "norelatime",
    "strictatime",
    "nostrictatime",
    "diratime",
    "nodiratime",
    "lazytime",
    "nolazytime",
    "iversion",
    "noiversion",
    "mand",
    "nomand",
    "silent",
    "loud",
    "default_permissions",
];

/// What the options of a mount ask for.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) mount: MountOptions,
    /// Whether segments that become free are discarded.
    pub(crate) discard: bool,
}

/// The options of a mount.
///
/// # Errors
///
/// A text that names the option and says what is wrong with it.
pub(crate) fn options(given: &[String], root: bool) -> Result<Asked, String> {
    let (mut options, mut discard) = (MountOptions::default(), true);
    // Device nodes and set-id bits work if root mounts, as on any file system.
    (options.devices, options.set_id) = (root, root);
    for option in given {
        let (name, value) = option.split_once('=').map_or((option.as_str(), None), |(name, value)| (name, Some(value)));
        let number = |base| {
            let value = value.ok_or_else(|| format!("-o {name} needs a number"))?;
            u32::from_str_radix(value, base).map_err(|error| match error.kind() {
                IntErrorKind::PosOverflow => format!("-o {option}: too large"),
                _ => format!("-o {option}: not a number"),
            })
        };
        let id = || match number(10)? {
            u32::MAX => Err(format!("-o {option}: {NOBODYS}")),
            id => Ok(id),
        };
        match (name, value) {
            ("ro", None) => options.read_only = true,
            ("rw", None) => options.read_only = false,
            ("allow_other", None) => options.allow_other = true,
            ("dev", None) => options.devices = true,
            ("nodev", None) => options.devices = false,
            ("suid", None) => options.set_id = true,
            ("nosuid", None) => options.set_id = false,
            ("noexec", None) => options.no_exec = true,
            ("exec", None) => options.no_exec = false,
            ("sync", None) => options.synchronous = true,
            ("async", None) => options.synchronous = false,
            ("dirsync", None) => {
                return Err(format!("-o {option}: not possible; names are durable after a sync of their directory"));
            }
            ("uid", _) => options.uid = Some(id()?),
            ("gid", _) => options.gid = Some(id()?),
            ("umask", _) => match u16::try_from(number(8)?) {
                Ok(umask @ 0..=0o777) => options.umask = Some(umask),
                _ => return Err(format!("-o {option}: at most 777 is possible")),
            },
            ("threads", _) => match number(10)? {
                threads @ 1..=MOST_THREADS => options.threads = threads as usize,
                _ => return Err(format!("-o {option}: 1 to {MOST_THREADS} are possible")),
            },
            ("cache", Some("through")) => options.cache = Cache::Through,
            ("cache", Some("writeback")) => options.cache = Cache::WriteBack,
            ("cache", Some("none")) => options.cache = Cache::None,
            ("transport", Some("device")) => options.transport = Transport::Device,
            ("transport", Some("uring")) => options.transport = Transport::Uring,
            ("commit", _) => {
                options.commit = Some(number(10)?).filter(|s| *s != 0).map(|s| Duration::from_secs(s.into()));
            }
            ("discard", None) => discard = true,
            ("nodiscard", None) => discard = false,
            // Of `-o ""`, or of a comma too many.
            ("", None) => {}
            (name, None) if IGNORED.contains(&name) || name.starts_with("x-") => {}
            (name, Some(_)) if name.starts_with("x-") || name.starts_with("comment") => {}
            _ => return Err(format!("-o {option}: there is no such option")),
        }
    }
    Ok(Asked { mount: options, discard })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_taken_or_refused_by_name() {
        let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        let asked = options(&list("rw,ro,uid=5,umask=027,cache=writeback,nodiscard,x-systemd.automount"), false);
        let Asked { mount: taken, discard } = asked.unwrap();
        assert!(!discard && taken.read_only && taken.cache == Cache::WriteBack && !taken.devices);
        assert_eq!((taken.uid, taken.umask), (Some(5), Some(0o27)));
        assert!(!options(&list("ro,rw"), true).unwrap().mount.read_only, "the last one counts");
        // What mount(8) hands to a helper.
        let handed =
            options(&list("rw,silent,sync,noexec,strictatime,iversion,mand,_netdev,group"), true).unwrap().mount;
        assert!(handed.synchronous && handed.no_exec);
        let taken_back = options(&list("sync,async,noexec,exec"), true).unwrap().mount;
        assert!(!taken_back.synchronous && !taken_back.no_exec);
        assert!(options(&list("dirsync"), true).unwrap_err().contains("names are durable after a sync"));
        assert!(options(&list("ro,,"), true).unwrap().mount.read_only && options(&list(""), true).is_ok());
        let plain = options(&[], true).unwrap();
        assert!(plain.mount.devices && plain.discard);
        let commit = |text| options(&list(text), true).unwrap().mount.commit;
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!((commit("rw"), commit("commit=5"), commit("commit=0")), (seconds(60), seconds(5), None));
        let transport = |text| options(&list(text), true).unwrap().mount.transport;
        assert_eq!((transport("rw"), transport("transport=uring")), (Transport::Device, Transport::Uring));
        assert_eq!(transport("transport=uring,transport=device"), Transport::Device);
        for wrong in [
            "bogus",
            "uid",
            "uid=x",
            "umask=1000",
            "umask=9",
            "cache=no",
            "threads=0",
            "commit",
            "commit=x",
            "transport",
            "transport=ring",
        ] {
            assert!(options(&list(wrong), true).unwrap_err().contains(wrong), "{wrong}");
        }
        for (wrong, why) in [
            ("commit=99999999999999999999", "too large"),
            ("commit=-1", "not a number"),
            ("uid=4294967295", "no number of a user"),
            ("gid=4294967295", "no number of a user"),
            ("gid=4294967296", "too large"),
        ] {
            let said = options(&list(wrong), true).unwrap_err();
            assert!(said.contains(wrong) && said.contains(why), "{said}");
        }
        assert_eq!(options(&list("uid=4294967294"), true).unwrap().mount.uid, Some(u32::MAX - 1));
    }
}

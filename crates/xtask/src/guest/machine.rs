//! One boot of the test machine: QEMU, with KVM or in software emulation, disks, a shared directory, a script.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::initrd;
use super::kernel::Kernel;
use super::modules::ModuleTree;
use super::programs::Programs;
use crate::{Result, files};

/// How long a boot may take until the script starts. Five seconds on an idle machine; this is for a loaded one.
const BOOT_LIMIT: Duration = Duration::from_secs(150);
/// Memory of a machine that does not ask for more (MiB).
const MEMORY: u64 = 2048;
/// Where persistent memory begins (MiB): away from the kernel at the begin and the initial RAM disk at the end.
const PERSISTENT_START: u32 = 512;
/// The command line that proved stable under emulation.
const KERNEL_ARGUMENTS: &str =
    "console=ttyS0 mitigations=off nokaslr tsc=reliable panic=-1 quiet loglevel=4 log_buf_len=16M rdinit=/init";

/// How the guest sees a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bus {
    /// A virtio block device.
    VirtioBlk,
    /// An NVMe controller with one namespace, of sectors of 512 bytes.
    Nvme,
    /// The same with sectors of 4096 bytes.
    Nvme4096,
    /// The first again, with a sector of 512 bytes, [`BAD_SECTOR`], that can neither be read nor written.
    NvmeBad,
    /// An NVMe controller with one zoned namespace, of sectors of so many bytes: zones of [`ZONE`] bytes, of which
    /// [`ZONE_CAPACITY`] can be written, [`ACTIVE_ZONES`] at a time.
    NvmeZoned(u32),
}

/// Of a zone of [`Bus::NvmeZoned`] (MiB).
pub(crate) const ZONE: u32 = 4;
/// What can be written of it (MiB).
pub(crate) const ZONE_CAPACITY: u32 = 3;
/// So many of its zones may be open or closed.
pub(crate) const ACTIVE_ZONES: u32 = 14;

/// The sector of [`Bus::NvmeBad`] that fails.
pub(crate) const BAD_SECTOR: u64 = 81920;

/// The parts that guest tests share: the kernel, the initial RAM disk and the place for runs.
#[derive(Debug)]
pub(crate) struct Guest {
    kernel: Kernel,
    initrd: PathBuf,
    cache: PathBuf,
    programs: Vec<PathBuf>,
}

impl Guest {
    /// Fetches the kernel of a series and builds the initial RAM disk under `cache`. The programs are found by name in the guest.
    pub(super) fn new(cache: &Path, series: &str, programs: Programs) -> Result<Self> {
        if cfg!(not(target_arch = "x86_64")) {
            bail!("the guest tests run x86-64 programs in an x86-64 guest; this host has another architecture");
        }
        fs_err::create_dir_all(cache)?;
        let kernel = Kernel::obtain(cache, series)?;
        let initrd = initrd::build(cache, &kernel, &programs.libraries)?;
        Ok(Self { kernel, initrd, cache: cache.to_owned(), programs: vec![programs.f2fs, programs.agent] })
    }

    /// The kernel's release.
    pub(crate) fn release(&self) -> &str {
        &self.kernel.release
    }

    /// Describes a boot. `name` names its directory.
    pub(crate) fn boot(&self, name: &str) -> Boot<'_> {
        let (disks, programs, files, modules) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Boot {
            guest: self,
            name: name.to_owned(),
            disks,
            programs,
            files,
            modules,
            processors: 1,
            memory: MEMORY,
            persistent: 0,
        }
    }
}

/// A boot that has not happened yet.
#[derive(Debug)]
pub(crate) struct Boot<'a> {
    guest: &'a Guest,
    name: String,
    disks: Vec<(PathBuf, Bus, String)>,
    programs: Vec<PathBuf>,
    /// Files for the share.
    files: Vec<PathBuf>,
    /// Modules of the kernel beside those that every guest loads.
    modules: Vec<&'static str>,
    processors: u32,
    /// MiB.
    memory: u64,
    /// MiB of the memory that are `/dev/pmem0`.
    persistent: u32,
}

/// The result of a script.
#[derive(Debug)]
pub(crate) struct GuestOutput {
    /// The script's exit status.
    pub(crate) status: i32,
    /// Its output.
    pub(crate) log: String,
    /// The kernel's messages.
    pub(crate) dmesg: String,
    /// The shared directory, `/share` in the guest.
    pub(crate) share: PathBuf,
    /// From power on to power off.
    pub(crate) wall: Duration,
}

/// How a boot ended that gave no status.
enum Failure {
    /// The script never started: worth another boot.
    Early(String),
    /// It started, and the machine died or ran past its limit.
    Late(String),
}

impl Boot<'_> {
    /// Adds a raw image as a disk, which the guest finds by `serial` (`device SERIAL`; at most 20 characters).
    pub(crate) fn disk(mut self, image: &Path, bus: Bus, serial: &str) -> Self {
        self.disks.push((image.to_owned(), bus, serial.to_owned()));
        self
    }

    /// Adds a program, or a library of one, to those that the guest has in `/bin`.
    pub(crate) fn program(mut self, file: &Path) -> Self {
        self.programs.push(file.to_owned());
        self
    }

    /// Puts a file into the share, `/share/NAME` in the guest, which only reads it.
    pub(crate) fn carry(mut self, file: &Path) -> Self {
        self.files.push(file.to_owned());
        self
    }

    /// Loads modules of the kernel, and what they need, beside those that every guest loads.
    pub(crate) fn modules(mut self, names: &[&'static str]) -> Self {
        self.modules.extend(names);
        self
    }

    /// Gives the machine so many processors, which is one otherwise.
    pub(crate) fn processors(mut self, processors: u32) -> Self {
        self.processors = processors;
        self
    }

    /// Gives the machine so much memory (MiB), which is 2048 otherwise.
    pub(crate) fn memory(mut self, megabytes: u64) -> Self {
        self.memory = megabytes;
        self
    }

    /// Makes so much of the memory the persistent memory `/dev/pmem0` (MiB, 1024 at most).
    pub(crate) fn persistent_memory(mut self, megabytes: u32) -> Self {
        self.persistent = megabytes.min(1024);
        self
    }

    /// Boots and runs `script` with busybox sh. About one boot in thirty dies early under emulation, so one is
    /// repeated.
    ///
    /// # Errors
    ///
    /// If the machine died or ran past `limit` (from the start of the boot). A script that fails is not an error here.
    pub(crate) fn run(self, script: &str, limit: Duration) -> Result<GuestOutput> {
        let start = Instant::now();
        match self.attempt(script, limit)? {
            Ok(output) => return Ok(output),
            Err(Failure::Late(why)) => bail!("{why}"),
            Err(Failure::Early(why)) => {
                println!("    {} ({:.0?}); booting once more", why.lines().next().unwrap_or_default(), start.elapsed());
            }
        }
        match self.attempt(script, limit)? {
            Ok(output) => Ok(output),
            Err(Failure::Early(why) | Failure::Late(why)) => bail!("second boot: {why}"),
        }
    }

    fn attempt(&self, script: &str, limit: Duration) -> Result<std::result::Result<GuestOutput, Failure>> {
        let home = self.guest.cache.join("run").join(&self.name);
        if home.exists() {
            files::remove_dir(&home)?;
        }
        let share = home.join("share");
        let programs = share.join("bin");
        fs_err::create_dir_all(&programs)?;
        for program in self.guest.programs.iter().chain(&self.programs) {
            let name = program.file_name().with_context(|| format!("{} has no name", program.display()))?;
            fs::copy(program, programs.join(name)).with_context(|| format!("cannot copy {}", program.display()))?;
        }
        for file in &self.files {
            let name = file.file_name().with_context(|| format!("{} has no name", file.display()))?;
            // Large ones are not copied.
            fs::hard_link(file, share.join(name)).with_context(|| format!("cannot share {}", file.display()))?;
        }
        self.share_modules(&share.join("modules"))?;
        fs_err::write(share.join("script"), script)?;
        let console = home.join("console");
        let start = Instant::now();
        let mut machine = Machine(self.command(&share, &console).spawn().context("cannot start qemu-system-x86_64")?);
        let ended = machine.wait(|| share.join("started").exists(), start, limit)?;
        let wall = start.elapsed();
        let read = |name: &str| String::from_utf8_lossy(&fs::read(share.join(name)).unwrap_or_default()).into_owned();
        let told = || {
            let log = last_lines(&read("log"), 30);
            let console = last_lines(&String::from_utf8_lossy(&fs::read(&console).unwrap_or_default()), 30);
            format!("\nend of the log:\n{log}\nend of the console:\n{console}")
        };
        Ok(match ended {
            Ended::NeverStarted => {
                Err(Failure::Early(format!("the guest did not start within {BOOT_LIMIT:?}{}", told())))
            }
            Ended::TooLate => Err(Failure::Late(format!("the guest ran past its limit of {limit:?}{}", told()))),
            Ended::PoweredOff if !share.join("started").exists() => {
                Err(Failure::Early(format!("the guest died while it booted{}", told())))
            }
            Ended::PoweredOff => match read("status").trim().parse() {
                Ok(status) => Ok(GuestOutput { status, log: read("log"), dmesg: read("dmesg"), share, wall }),
                Err(_) => Err(Failure::Late(format!("the guest died without an exit status{}", told()))),
            },
        })
    }

    /// Puts this boot's own modules and the order of their loading into a directory.
    fn share_modules(&self, home: &Path) -> Result<()> {
        fs_err::create_dir_all(home)?;
        let mut order = String::new();
        for module in ModuleTree::index(&self.guest.kernel.modules)?.load_order(&self.modules)? {
            fs_err::write(home.join(format!("{}.ko", module.name)), &module.object)?;
            order += &format!("{}\n", module.name);
        }
        fs_err::write(home.join("order"), order)?;
        Ok(())
    }

    fn command(&self, share: &Path, console: &Path) -> Command {
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        let (accelerator, processor) = if has_kvm() { ("kvm", "host") } else { ("tcg,thread=multi", "max") };
        qemu.args(["-M", "q35", "-accel", accelerator, "-cpu", processor]);
        qemu.args(["-smp", &self.processors.to_string(), "-m", &self.memory.to_string()]);
        qemu.arg("-kernel").arg(&self.guest.kernel.image).arg("-initrd").arg(&self.guest.initrd);
        let mut arguments = KERNEL_ARGUMENTS.to_owned();
        if self.persistent > 0 {
            // Writing to a String cannot fail.
            let _ = write!(arguments, " memmap={}M!{PERSISTENT_START}M", self.persistent);
        }
        qemu.args(["-append", &arguments]);
        qemu.arg("-serial").arg(format!("file:{}", console.display()));
        qemu.arg("-fsdev").arg(format!("local,id=share,security_model=none,path={}", option_value(share)));
        qemu.args(["-device", "virtio-9p-pci,fsdev=share,mount_tag=share"]);
        for (index, (image, bus, serial)) in self.disks.iter().enumerate() {
            // The host's page cache outlives the machine, so its flushes need not reach the host's disk.
            let mut drive = format!("if=none,id=disk{index},cache=unsafe,discard=unmap");
            let file = option_value(image);
            // Writing to a String cannot fail.
            let _ = match bus {
                Bus::NvmeBad => write!(
                    drive,
                    ",driver=blkdebug,image.driver=raw,image.file.driver=file,image.file.filename={file},\
                     inject-error.0.event=none,inject-error.0.sector={BAD_SECTOR},inject-error.0.errno=5"
                ),
                _ => write!(drive, ",format=raw,file={file}"),
            };
            qemu.arg("-drive").arg(drive);
            let (disk, serial) = (format!("drive=disk{index}"), format!("serial={serial}"));
            let devices = match bus {
                Bus::VirtioBlk => vec![format!("virtio-blk-pci,{disk},{serial}")],
                Bus::Nvme | Bus::NvmeBad => vec![format!("nvme,{disk},{serial}")],
                Bus::Nvme4096 => vec![format!("nvme,{disk},{serial},{}", sectors(4096))],
                Bus::NvmeZoned(sector) => vec![
                    format!("nvme,id=zoned{index},{serial}"),
                    format!(
                        "nvme-ns,{disk},bus=zoned{index},{},zoned=on,zoned.zone_size={ZONE}M,\
                         zoned.zone_capacity={ZONE_CAPACITY}M,zoned.max_open={ACTIVE_ZONES},\
                         zoned.max_active={ACTIVE_ZONES}",
                        sectors(*sector)
                    ),
                ],
            };
            for device in devices {
                qemu.arg("-device").arg(device);
            }
        }
        qemu.stdin(Stdio::null());
        qemu
    }
}

/// Whether this process may use the processors' own virtualisation. A `/dev/kvm` without that is of a kind (PVM) that runs
/// only kernels made for it.
fn has_kvm() -> bool {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    processors.split_whitespace().any(|flag| matches!(flag, "vmx" | "svm"))
        && File::options().read(true).write(true).open("/dev/kvm").is_ok()
}

/// The size of sectors, as QEMU's options say it.
fn sectors(bytes: u32) -> String {
    format!("logical_block_size={bytes},physical_block_size={bytes}")
}

/// A comma ends a value in QEMU's options, unless doubled.
fn option_value(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

enum Ended {
    PoweredOff,
    NeverStarted,
    TooLate,
}

/// A QEMU process that does not outlive its owner.
struct Machine(Child);

impl Machine {
    fn wait(&mut self, started: impl Fn() -> bool, start: Instant, limit: Duration) -> Result<Ended> {
        let mut running = false;
        loop {
            if self.0.try_wait()?.is_some() {
                return Ok(Ended::PoweredOff);
            }
            running = running || started();
            if start.elapsed() > limit {
                return Ok(Ended::TooLate);
            }
            if !running && start.elapsed() > BOOT_LIMIT {
                return Ok(Ended::NeverStarted);
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Both fail only when the process has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

//! An NVMe namespace beside fio in one boot: as a block device beside fio's engine `io_uring`, by its own commands
//! beside `io_uring_cmd`, and with queues that poll.
//!
//! The machine is emulated, and its processors are shared: ratios of rounds in turn say something, rates do not. They
//! are printed, and judged by nobody.

use std::time::Duration;

use super::machine::Bus;
use super::programs::{self, LOADER, dynamic};
use super::{Bench, Outcome, judge};
use crate::{Result, files};

const LIMIT: Duration = Duration::from_secs(3000);

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let program = programs::example(&bench.cache, "f2fs-uring", "device_vs_fio")?;
    let mut boot = bench.guest.boot("nvme-fio").processors(2).program(&program);
    for file in dynamic(&["fio"])? {
        boot = boot.program(&file);
    }
    let image = bench.image("nvme-fio");
    files::make_sparse(&image, 64 << 20)?;
    let (rounds, seconds) = if bench.quick { (1, 0.3) } else { (7, 0.4) };
    let script = format!(
        "set -e\n\
         disk=$(device target)\n\
         generic=/dev/ng${{disk#/dev/nvme}}\n\
         measure() {{\n\
             /bin/device_vs_fio --fio '/bin/{LOADER} --library-path /bin /bin/fio' --rounds {rounds} --seconds {seconds} \"$@\"\n\
         }}\n\
         measure --device $disk\n\
         measure --device $generic\n\
         measure --device $disk --only read --io-poll yes\n\
         measure --device $generic --only read --io-poll yes\n\
         measure --device $disk --only read --sq-poll yes\n"
    );
    let output = boot.disk(&image, Bus::Nvme, "target").run(&script, LIMIT)?;
    judge::succeeded(&output)?;
    for line in output.log.lines() {
        println!("    {line}");
    }
    Ok(Outcome { wall: output.wall, remark: "ratios to fio of one boot".into() })
}

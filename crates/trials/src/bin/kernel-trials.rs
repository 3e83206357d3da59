//! `kernel-trials`: what `cargo xtask crash-kernel` runs.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    f2fs_trials::kernel::command::main()
}

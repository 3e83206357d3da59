//! `trials`: what `cargo xtask crash` runs.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    f2fs_trials::command::main()
}

//! `trials` with the faults of [`f2fs_trials::mutants`] in the sources, chosen by `F2FS_MUTANT`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    f2fs_trials::command::main()
}

//! `f2fs completions`.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::args::Arguments;
use crate::error::CliError;

pub(crate) fn run(shell: Shell) -> Result<(), CliError> {
    let mut script = Vec::new();
    generate(shell, &mut Arguments::command(), "f2fs", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(())
}

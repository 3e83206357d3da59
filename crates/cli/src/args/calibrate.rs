//! The command line of `f2fs calibrate`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::count;
use crate::size::Size;

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// File or block device, whose content is overwritten. A file that is missing is created.
    pub(crate) image: PathBuf,
    /// Size of a file that is created [default: 256M].
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) size: Option<Size>,
    /// Number of writes of each size and kind.
    #[arg(long, default_value = "300", value_name = "N", value_parser = count)]
    pub(crate) samples: NonZeroUsize,
    /// Store the result as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
    /// Store the model as text: on each line the size of a write in blocks, a tab, and the seconds for each of its
    /// blocks.
    #[arg(long, value_name = "FILE")]
    pub(crate) text: Option<PathBuf>,
    /// Draw the result as SVG.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Overwrite a device that holds data.
    #[arg(long, short = 'f')]
    pub(crate) force: bool,
    /// Print JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

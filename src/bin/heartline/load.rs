//! `heartline load`: placeholder until the command is merged.

use std::process::ExitCode;

use clap::Args;

use crate::exit;
use crate::resolve::Host;

/// Not in this build yet.
#[derive(Debug, Args)]
pub(crate) struct LoadArgs {}

/// Says that the command is not there yet.
pub(crate) async fn run(_args: LoadArgs, _host: &Host) -> ExitCode {
    exit::fail(exit::INTERNAL, &"load is not in this build yet")
}

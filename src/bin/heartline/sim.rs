//! `heartline sim`: placeholder until the command is merged.

use std::process::ExitCode;

use clap::Args;

use crate::exit;
use crate::resolve::Host;

/// Not in this build yet.
#[derive(Debug, Args)]
pub(crate) struct SimArgs {}

/// Says that the command is not there yet.
pub(crate) async fn run(_args: SimArgs, _host: &Host) -> ExitCode {
    exit::fail(exit::INTERNAL, &"sim is not in this build yet")
}

//! `heartline demo`: the problem and the cure, side by side, in seconds.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::resolve::Host;
use crate::{args, exit};

/// Show streams being cut by a silent wait, then the same streams kept alive by heartbeats.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  heartline demo                                              the whole story in about 20 seconds
  heartline demo --streams 1k --wait 10s                      a larger burst
  heartline demo --json -                                     figures for a script
  heartline demo --wait 2s --cut-after 800ms --interval 250ms the same in a few seconds

Exits 0 only when streams were cut without heartbeats, none was cut or failed with them,
and every completed stream decoded to exactly the engine's events; 99 otherwise.")]
pub(crate) struct DemoArgs {
    /// Streams in the burst.
    #[arg(long, value_name = "COUNT", default_value = "200", value_parser = args::count)]
    streams: usize,
    /// Longest wait for a first token.
    #[arg(long, value_name = "DURATION", default_value = "8s", value_parser = args::duration)]
    wait: Duration,
    /// Silence after which the gateway cuts a stream.
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = args::duration)]
    cut_after: Duration,
    /// Time between heartbeats.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = args::duration)]
    interval: Duration,
    /// Write the figures as JSON to a file, or to standard output with '-' (then nothing else goes there).
    #[arg(long, value_name = "FILE|-")]
    json: Option<String>,
}

pub(crate) async fn run(_args: DemoArgs, _host: &Host) -> ExitCode {
    exit::fail(exit::INTERNAL, &"demo is not in this build yet")
}

//! `heartline load merge`: one report of the parts of one plan.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use heartline_cli::load::{self, Allowed, Report};

use super::files;
use super::gates::{self, GateArgs};
use super::output::OutputArgs;
use crate::exit;

/// Make one report of the result files of all shards: histograms are added, percentiles never averaged.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  heartline load merge shard-*.json --json run.json --threshold 'silence.max<30s'
      rules are held against the whole run, once

What the hold phase judges is taken from the time in which all shards held. Shards of different
plans, missing ones and ones that are there twice are refused.")]
pub(crate) struct MergeArgs {
    /// Result files, as `load --shard … --json FILE` writes them; logs that hold one will do.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Merge although shards are missing or there twice, are of different plans, or held too far apart.
    #[arg(long, value_name = "WHAT", value_enum, num_args = 1.., value_delimiter = ',')]
    allow: Vec<Allow>,
    #[command(flatten)]
    gates: GateArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Allow {
    /// Shards that are not there.
    Missing,
    /// Shards that are there twice.
    Duplicate,
    /// Shards of different plans.
    Mixed,
    /// Hold phases that hardly overlap.
    Apart,
}

impl From<Allow> for Allowed {
    fn from(allow: Allow) -> Self {
        match allow {
            Allow::Missing => Self::Missing,
            Allow::Duplicate => Self::Duplicate,
            Allow::Mixed => Self::Mixed,
            Allow::Apart => Self::Apart,
        }
    }
}

/// Merges, prints the report and judges it.
pub(crate) fn run(args: &MergeArgs) -> ExitCode {
    match merged(args) {
        Err((code, message)) => exit::fail(code, &message),
        Ok(report) => {
            if !args.output.takes_stdout() {
                // A reader that went away has seen what it wanted.
                let _ = writeln!(std::io::stdout(), "{report}");
                gates::print(&report);
            }
            gates::exit_code(&report)
        }
    }
}

fn merged(args: &MergeArgs) -> Result<Report, (u8, String)> {
    let usage = |message| (exit::USAGE, message);
    let mut reports = Vec::with_capacity(args.files.len());
    for path in &args.files {
        reports.push((path.display().to_string(), files::read(path).map_err(usage)?));
    }
    let allowed: Vec<_> = args.allow.iter().copied().map(Allowed::from).collect();
    let mut report = load::merge(reports, &allowed).map_err(|error| usage(error.to_string()))?;
    report.judge(&args.gates.thresholds);
    args.output.open().map_err(usage)?.write(&report).map_err(|message| (exit::INTERNAL, message))?;
    Ok(report)
}

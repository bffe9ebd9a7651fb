//! The rules a run must keep, and the exit code that says whether it did. Used by every way to a report: one process,
//! several, or merged from files.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use heartline_cli::load::{Report, Threshold};

use crate::exit;

/// The rules a run must keep.
#[derive(Debug, Args)]
pub(crate) struct GateArgs {
    /// Rules the figures must keep, or the exit code is 99, such as 'silence.max<30s' 'ttft.p99<5s' 'error-rate<1%'; a
    /// rule without samples fails, and an invalid run outranks a pass.
    #[arg(long = "threshold", value_name = "RULE", num_args = 1.., value_parser = rule, help_heading = "Gates")]
    pub(crate) thresholds: Vec<Threshold>,
}

fn rule(text: &str) -> Result<Threshold, String> {
    text.parse().map_err(|error: heartline_cli::load::LoadError| error.to_string())
}

/// Prints how the rules came out, where standard output is for people.
pub(crate) fn print(report: &Report) {
    for note in report.merged.iter().flat_map(|merged| &merged.notes) {
        let _ = writeln!(std::io::stdout(), "Merged      although {note}");
    }
    for outcome in &report.thresholds {
        // A reader that went away has seen what it wanted.
        let _ = writeln!(std::io::stdout(), "{outcome}");
    }
}

/// Returns the exit code of a run: interrupted before invalid before broken rules before a pass.
pub(crate) fn exit_code(report: &Report) -> ExitCode {
    if report.interrupted {
        return exit::fail(exit::INTERRUPTED, &report.client.reasons.join("; "));
    }
    if !report.client.valid {
        return exit::fail(exit::INVALID_RUN, &format!("the run is invalid: {}", report.client.reasons.join("; ")));
    }
    let broken = report.thresholds.iter().filter(|outcome| !outcome.passed);
    let broken: Vec<_> = broken.map(|outcome| format!("{}: {}", outcome.rule, outcome.shown)).collect();
    if !broken.is_empty() {
        return exit::fail(exit::THRESHOLD, &format!("not kept: {}", broken.join("; ")));
    }
    ExitCode::from(exit::PASS)
}

//! `heartline load compare`: what changed between two runs.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use heartline_cli::load::Comparison;

use super::files;
use crate::{exit, json};

/// Show what changed between two runs: signed differences, and the settings that differ.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  heartline load compare before.json after.json --fail-on-regression --tolerance 5%
      exit code 99 when a figure got worse by more than 5 %, 4 when one of the runs was invalid")]
pub(crate) struct CompareArgs {
    /// The result file of the first run.
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The result file of the second run.
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// Fail when a figure got worse by more than the tolerance.
    #[arg(long)]
    fail_on_regression: bool,
    /// How much worse a figure may be, as a share of what it was.
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = percent)]
    tolerance: f64,
    /// Write the comparison as JSON to a file, or to standard output with '-' (then nothing else goes there).
    #[arg(long, value_name = "FILE|-")]
    json: Option<json::Destination>,
}

/// Compares, prints and judges.
pub(crate) fn run(args: &CompareArgs) -> ExitCode {
    let comparison = match compared(args) {
        Ok(comparison) => comparison,
        Err((code, message)) => return exit::fail(code, &message),
    };
    if !args.json.as_ref().is_some_and(json::Destination::is_stdout) {
        // A reader that went away has seen what it wanted.
        let _ = writeln!(std::io::stdout(), "{comparison}");
    }
    if !args.fail_on_regression {
        return ExitCode::from(exit::PASS);
    }
    if !comparison.invalid.is_empty() {
        return exit::fail(exit::INVALID_RUN, &comparison.invalid.join("; "));
    }
    let worse: Vec<_> = comparison.regressions().map(|change| change.name.as_str()).collect();
    if !worse.is_empty() {
        return exit::fail(exit::THRESHOLD, &format!("worse than before: {}", worse.join(", ")));
    }
    ExitCode::from(exit::PASS)
}

fn compared(args: &CompareArgs) -> Result<Comparison, (u8, String)> {
    let usage = |message| (exit::USAGE, message);
    let before = files::read(&args.before).map_err(usage)?;
    let after = files::read(&args.after).map_err(usage)?;
    let comparison = Comparison::new(&before, &after, args.tolerance);
    if let Some(json) = &args.json {
        let written = json.open().map_err(usage)?.write(&comparison);
        written.map_err(|message| (exit::INTERNAL, message))?;
    }
    Ok(comparison)
}

/// Parses `5%`, or a share such as `0.05`.
fn percent(text: &str) -> Result<f64, String> {
    let malformed = || "not a share; write for example 5%".to_owned();
    let (number, whole) = text.trim().strip_suffix('%').map_or((text.trim(), 1.0), |number| (number, 100.0));
    let share = number.trim().parse::<f64>().map_err(|_| malformed())? / whole;
    if share.is_finite() && share >= 0.0 { Ok(share) } else { Err(malformed()) }
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn a_tolerance_is_a_share() {
        assert_eq!((percent("5%"), percent("0.5"), percent("0 %")), (Ok(0.05), Ok(0.5), Ok(0.0)));
        for text in ["", "-5%", "five", "inf"] {
            assert!(percent(text).unwrap_err().contains("5%"), "{text}");
        }
    }
}

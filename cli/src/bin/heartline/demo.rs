//! `heartline demo`: the problem and the cure, side by side, in seconds.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use heartline_cli::demo::{Plan, Progress, Report, Run, Settings, Verdict};
use heartline_cli::values;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::interrupt::interrupted;
use crate::resolve::Host;
use crate::{exit, json};

/// Show streams being cut by a silent wait, then the same streams kept alive by heartbeats.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  heartline demo                                               the whole story in about 12 seconds
  heartline demo --streams 1k --wait 10s                       a larger burst
  heartline demo --json -                                      figures for a script
  heartline demo --wait 2s --cut-after 800ms --interval 250ms  the same in a few seconds

Exits 0 only when streams were cut without heartbeats, none was cut or failed with them,
and every completed stream decoded to exactly the engine's events; 99 otherwise.")]
pub(crate) struct DemoArgs {
    /// Streams in the burst.
    #[arg(long, value_name = "COUNT", default_value = "200", value_parser = values::count)]
    streams: usize,
    /// Longest wait for a first token.
    #[arg(long, value_name = "DURATION", default_value = "8s", value_parser = values::duration)]
    wait: Duration,
    /// Silence after which the gateway cuts a stream.
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = values::duration)]
    cut_after: Duration,
    /// Time between heartbeats.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = values::duration)]
    interval: Duration,
    /// Write the figures as JSON to a file, or to standard output with '-' (then nothing else goes there).
    #[arg(long, value_name = "FILE|-")]
    json: Option<json::Destination>,
}

/// Runs the demo, prints what it found and judges it.
pub(crate) async fn run(args: DemoArgs, host: &Host) -> ExitCode {
    let (plan, writer) = match prepare(&args, host) {
        Ok(prepared) => prepared,
        Err((code, message)) => return exit::fail(code, &message),
    };
    let bar = bar(host, args.streams);
    let ended = tokio::select! {
        ended = heartline_cli::demo::run(&plan, |progress| show(&bar, progress)) => Some(ended),
        () = interrupted() => None,
    };
    bar.finish_and_clear();
    let report = match ended {
        Some(Ok(report)) => report,
        Some(Err(error)) if error.is_settings() => return exit::fail(exit::USAGE, &error),
        Some(Err(error)) if error.is_host_limit() => return exit::fail(exit::HOST_LIMIT, &error),
        Some(Err(error)) => return exit::fail(exit::INTERNAL, &error),
        None => return exit::fail(exit::INTERRUPTED, &"interrupted before both runs had ended"),
    };
    if let Some(writer) = writer
        && let Err(message) = writer.write(&report)
    {
        return exit::fail(exit::INTERNAL, &message);
    }
    conclude(&report, args.json.as_ref())
}

/// Checks everything that can be wrong before the first stream.
fn prepare(args: &DemoArgs, host: &Host) -> Result<(Plan, Option<json::Writer>), (u8, String)> {
    let settings =
        Settings { streams: args.streams, wait: args.wait, cut_after: args.cut_after, interval: args.interval };
    let plan = settings.plan().map_err(|error| (exit::USAGE, error.to_string()))?;
    host.require_open_files(plan.open_files()).map_err(|message| (exit::HOST_LIMIT, message))?;
    let writer = args.json.as_ref().map(json::Destination::open).transpose();
    Ok((plan, writer.map_err(|message| (exit::USAGE, message))?))
}

/// Prints the table and the plain words, unless standard output belongs to the JSON; returns the exit code.
fn conclude(report: &Report, json: Option<&json::Destination>) -> ExitCode {
    let verdict = Verdict::of(report);
    if !json.is_some_and(json::Destination::is_stdout) {
        let text = if verdict.is_pass() { format!("{report}\n\n{verdict}\n") } else { format!("{report}\n\n") };
        // A reader that went away has seen what it wanted.
        let _ = std::io::stdout().write_all(text.as_bytes());
    }
    if verdict.is_pass() { ExitCode::from(exit::PASS) } else { exit::fail(exit::THRESHOLD, &verdict) }
}

/// A bar on standard error, or a hidden one where that is no terminal.
fn bar(host: &Host, streams: usize) -> ProgressBar {
    let target = if host.stderr_is_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let template = if host.colors {
        "{msg:<20} {bar:30.green} {pos}/{len} streams ended, {elapsed}"
    } else {
        "{msg:<20} {bar:30} {pos}/{len} streams ended, {elapsed}"
    };
    let style = ProgressStyle::with_template(template).expect("the template above is well formed");
    ProgressBar::with_draw_target(Some(streams as u64), target).with_style(style)
}

/// Moves the bar; the second run starts it anew.
fn show(bar: &ProgressBar, progress: Progress) {
    let message = match progress.run {
        Run::Without => "without heartbeats",
        Run::With => "with heartbeats",
    };
    if bar.message() != message {
        bar.reset();
        bar.set_message(message);
    }
    bar.set_position(progress.ended as u64);
}

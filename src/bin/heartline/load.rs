//! `heartline load`: hold many streams, report the silence each one saw.

mod engine;
mod output;
mod progress;
mod shapes;
mod targets;

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use heartline::load::{self, LoadError, Report, Settings};
use http::Uri;

use crate::exit;
use crate::interrupt::interrupted;
use crate::resolve::Host;

use self::output::OutputArgs;
use self::shapes::ShapeArgs;
use self::targets::TargetArgs;

/// Hold many streams and report the silence each one saw.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  heartline load --streams 9k --interval 1s --hold 20s
      9,000 streams against an engine of its own that sends nothing but heartbeats
  heartline load http://127.0.0.1:8080 --api openai-chat --model llama --streams 500 --hold 2m
      an engine or a gateway of yours, asked with a prompt of its own for each stream
  heartline load https://example.org --api anthropic --bearer-env KEY --concurrency 8 --requests 100
      closed loop: 8 at a time, 100 in all
  heartline load http://127.0.0.1:8080/v1/completions --arrivals poisson --rate 20/s --body @ask.json
      open loop: as independent users come, timed from when each was meant to begin
  heartline load http://127.0.0.1:8900/events --cut-after 100s --json run.json --html run.html
      cut what a hop would cut; the report in a file, and as a page to look at

Only the hold phase is judged. Silences count from a stream's last byte, latencies from the time
a stream was meant to begin. Ctrl-C ends the run and still writes the report.

Exit codes:
  0  all streams were held and the client kept up      1  an unexpected failure of heartline
  2  the arguments cannot be used                      3  a limit of this host is in the way
  4  the run is invalid, and its verdict says why      5  interrupted")]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    targets: TargetArgs,
    #[command(flatten)]
    shapes: ShapeArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the load, prints the report and judges the run.
pub(crate) async fn run(args: LoadArgs, host: &Host) -> ExitCode {
    match hold(&args, host).await {
        Ok(report) => conclude(&report, &args.output),
        Err((code, message)) => exit::fail(code, &message),
    }
}

/// Checks, starts an engine where none is given, runs, stops it and writes the JSON.
async fn hold(args: &LoadArgs, host: &Host) -> Result<Report, (u8, String)> {
    let usage = |message| (exit::USAGE, message);
    let mut stop = std::pin::pin!(interrupted());
    // What cannot be used is refused before an engine is started for it.
    let mut settings = settings(args, Uri::from_static("http://127.0.0.1/")).map_err(usage)?;
    let started = match args.targets.url {
        Some(_) => None,
        None => {
            let script = engine::script_for(settings.shape);
            tokio::select! {
                started = engine::Engine::start(args.shapes.interval, script) => {
                    Some(started.map_err(|message| (exit::INTERNAL, message))?)
                }
                () = &mut stop => return Err((exit::INTERRUPTED, "interrupted before the engine was up".to_owned())),
            }
        }
    };
    if let Some(engine) = &started {
        settings = self::settings(args, engine.url(args.targets.api)).map_err(usage)?;
    }
    let output = args.output.open().map_err(usage)?;

    let bar = progress::Bar::new(host, settings.streams, settings.shape.length());
    let ended = load::run_until(settings, |progress| bar.show(progress), stop).await;
    bar.clear();
    if let Some(engine) = started {
        engine.stop().await;
    }
    let report = ended.map_err(|error| (code_of(&error), error.to_string()))?;
    output.write(&report).map_err(|message| (exit::INTERNAL, message))?;
    Ok(report)
}

/// Turns the arguments into settings; `url` is asked where they name none.
fn settings(args: &LoadArgs, url: Uri) -> Result<Settings, String> {
    let mut settings = Settings::new(url);
    args.shapes.apply(&mut settings);
    args.targets.apply(&mut settings)?;
    Ok(settings)
}

/// Prints the report, unless standard output belongs to another form of it; returns the exit code.
fn conclude(report: &Report, output: &OutputArgs) -> ExitCode {
    if !output.takes_stdout() {
        // A reader that went away has seen what it wanted.
        let _ = writeln!(std::io::stdout(), "{report}");
    }
    if report.interrupted {
        return exit::fail(exit::INTERRUPTED, &report.client.reasons.join("; "));
    }
    if !report.client.valid {
        return exit::fail(exit::INVALID_RUN, &format!("the run is invalid: {}", report.client.reasons.join("; ")));
    }
    ExitCode::from(exit::PASS)
}

fn code_of(error: &LoadError) -> u8 {
    if error.is_config() {
        exit::USAGE
    } else if error.is_host_limit() {
        exit::HOST_LIMIT
    } else {
        exit::INTERNAL
    }
}

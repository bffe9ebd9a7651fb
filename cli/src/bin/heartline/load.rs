//! `heartline load`: hold many streams, report the silence each one saw.

mod compare;
pub(crate) mod config;
mod engine;
mod files;
mod gates;
mod merge;
mod output;
mod procs;
mod progress;
mod screen;
mod shapes;
mod shards;
mod targets;
mod tui;
mod tui_view;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use heartline_cli::load::{self, LoadError, Protocol, Report, Settings, Shape};
use http::Uri;
use tokio::sync::Notify;

use crate::exit;
use crate::interrupt::interrupted;
use crate::resolve::Host;

use self::config::ConfigArgs;
use self::gates::GateArgs;
use self::output::OutputArgs;
use self::screen::{Screen, Wanted};
use self::shapes::ShapeArgs;
use self::shards::ShardArgs;
use self::targets::TargetArgs;

/// Hold many streams and report the silence each one saw.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  heartline load --streams 9k --interval 1s --hold 20s
      9,000 streams against an engine of its own that sends nothing but heartbeats
  heartline load http://127.0.0.1:8080 --api openai-chat --model llama --streams 500 --hold 2m
      an engine or a gateway of yours, asked with a prompt of its own for each stream
  heartline load https://example.org --api anthropic --bearer-env KEY --concurrency 8 --requests 100
      closed loop: 8 at a time, 100 in all
  heartline load http://127.0.0.1:8080/v1/completions --arrivals poisson --rate 20/s --body @ask.json
      open loop: as independent users come, timed from when each was meant to begin
  heartline load http://127.0.0.1:8900/events --threshold 'silence.max<30s' 'error-rate<1%'
      exit code 99 when a rule is not kept
  heartline load --streams 100k --http2 --procs 4 --interval 5s --hold 30s
      shared by four processes on this machine
  heartline load http://10.0.0.7/events --shard 2/8 --start-at 2026-12-01T12:00:00Z --json 2.json
      one of eight machines; 'heartline load merge *.json' adds them up
  heartline load http://127.0.0.1:8900/events --cut-after 100s --json run.json --html run.html
      cut what a hop would cut; the report in a file, and as a page to look at

Only the hold phase is judged. Silences count from a stream's last byte, latencies from the time
a stream was meant to begin. Ctrl-C ends the run and still writes the report.

Exit codes:
  0  all streams were held and the client kept up      1  an unexpected failure of heartline
  2  the arguments cannot be used                      3  a limit of this host is in the way
  4  the run is invalid, and its verdict says why      5  interrupted
  99 a --threshold was not kept"
)]
pub(crate) struct LoadArgs {
    #[command(subcommand)]
    command: Option<LoadCommand>,
    #[command(flatten)]
    targets: TargetArgs,
    #[command(flatten)]
    shapes: ShapeArgs,
    #[command(flatten)]
    shards: ShardArgs,
    #[command(flatten)]
    gates: GateArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Show a live screen: streams held, events a second, silences, the worst streams; q ends the run. Plain lines where
    /// standard error is no terminal.
    #[arg(long, conflicts_with = "procs", help_heading = "Reports")]
    tui: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

/// What is done with the reports of runs.
#[derive(Debug, Subcommand)]
enum LoadCommand {
    Merge(merge::MergeArgs),
    Compare(compare::CompareArgs),
}

/// Runs the load, prints the report and judges the run.
pub(crate) async fn run(args: LoadArgs, host: &Host) -> ExitCode {
    match &args.command {
        Some(LoadCommand::Merge(args)) => return merge::run(args),
        Some(LoadCommand::Compare(args)) => return compare::run(args),
        None if args.shards.part.is_some() => return run_part(&args).await,
        None => {}
    }
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
            // Each of several processes has a limit of its own; the one engine has to hold them all.
            let files = connections(&settings) + FILES_OF_THE_ENGINE;
            host.require_open_files(files).map_err(|message| (exit::HOST_LIMIT, message))?;
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

    let quit = Arc::new(Notify::new());
    let wanted = if args.tui { Wanted::Live } else { Wanted::Bar };
    let mut screen = Screen::new(host, wanted, &mut settings, Arc::clone(&quit)).map_err(usage)?;
    let stop = async {
        tokio::select! {
            () = stop => {}
            () = quit.notified() => {}
        }
    };
    let ended = match args.shards.procs {
        None | Some(1) => {
            let ended = load::run_until(settings, |progress| screen.show(progress), stop).await;
            ended.map_err(|error| (code_of(&error), error.to_string()))
        }
        Some(procs) => {
            procs::run(procs, settings.start_at, &settings.url, |progress| screen.show(progress), stop).await
        }
    };
    screen.clear();
    if let Some(engine) = started {
        engine.stop().await;
    }
    let mut report = ended?;
    report.judge(&args.gates.thresholds);
    output.write(&report).map_err(|message| (exit::INTERNAL, message))?;
    Ok(report)
}

/// Turns the arguments into settings; `url` is asked where they name none.
fn settings(args: &LoadArgs, url: Uri) -> Result<Settings, String> {
    let mut settings = Settings::new(url);
    args.shapes.apply(&mut settings);
    args.shards.apply(&mut settings);
    args.targets.apply(&mut settings)?;
    Ok(settings)
}

/// Prints the report, unless standard output belongs to another form of it; returns the exit code.
fn conclude(report: &Report, output: &OutputArgs) -> ExitCode {
    if !output.takes_stdout() {
        // A reader that went away has seen what it wanted.
        let _ = writeln!(std::io::stdout(), "{report}");
        gates::print(report);
    }
    gates::exit_code(report)
}

/// Runs one part for the process that started this one, which prints and judges the whole.
async fn run_part(args: &LoadArgs) -> ExitCode {
    let url = args.shards.part.as_ref().map(|part| part.url.clone()).unwrap_or_default();
    let settings = match settings(args, url) {
        Ok(settings) => settings,
        Err(message) => return exit::fail(exit::USAGE, &message),
    };
    let stop = async {
        tokio::select! {
            () = procs::input_closed() => {}
            () = interrupted() => {}
        }
    };
    match load::run_until(settings, procs::tell_progress, stop).await {
        Ok(report) => {
            procs::tell_report(report);
            ExitCode::from(exit::PASS)
        }
        Err(error) => exit::fail(code_of(&error), &error),
    }
}

/// How many connections the streams need, at most.
fn connections(settings: &Settings) -> u64 {
    match (settings.protocol, settings.shape) {
        (Protocol::Http2 { streams_per_connection }, _) => settings.streams.div_ceil(streams_per_connection) as u64,
        (_, Shape::Closed { concurrency, .. }) => concurrency as u64,
        // How many are there at once follows from how long they live, which preflight has an opinion about.
        (_, Shape::Open { .. }) => 0,
        _ => settings.streams as u64,
    }
}

/// What the engine holds open besides its streams.
const FILES_OF_THE_ENGINE: u64 = 32;

fn code_of(error: &LoadError) -> u8 {
    if error.is_config() {
        exit::USAGE
    } else if error.is_host_limit() {
        exit::HOST_LIMIT
    } else {
        exit::INTERNAL
    }
}

//! The `heartline` command: parse the arguments, look at the host once, run one command.

#![forbid(unsafe_code)]

mod completions;
mod demo;
mod exit;
mod health;
mod interrupt;
mod json;
mod load;
mod man;
mod proxy;
mod resolve;
mod sim;
mod telemetry;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Keeps slow response streams alive by heartbeats; shows, scripts and measures it on this machine.
#[derive(Debug, Parser)]
#[command(name = "heartline", version, max_term_width = 100, after_help = EXAMPLES, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Sim(sim::SimArgs),
    Load(Box<load::LoadArgs>),
    Proxy(Box<proxy::ProxyArgs>),
    Health(health::HealthArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

fn main() -> ExitCode {
    let arguments = match load::config::arguments(&Cli::command(), std::env::args_os().collect()) {
        Ok(arguments) => arguments,
        Err(message) => return exit::fail(exit::USAGE, &message),
    };
    let command = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli.command,
        Err(error) => return exit::refuse_arguments(&error),
    };
    let host = resolve::Host::probe();
    let log = match &command {
        Command::Proxy(args) => args.log(),
        _ => telemetry::Log::default(),
    };
    if let Err(message) = telemetry::install(&host, log) {
        return exit::fail(exit::USAGE, &message);
    }
    // A panic is reported by the hook on stderr; the code must still be ours.
    catch_unwind(AssertUnwindSafe(|| run(command, &host))).unwrap_or_else(|_| ExitCode::from(exit::INTERNAL))
}

#[tokio::main]
async fn run(command: Command, host: &resolve::Host) -> ExitCode {
    match command {
        Command::Demo(args) => demo::run(args, host).await,
        Command::Sim(args) => sim::run(args, host).await,
        Command::Load(args) => load::run(*args, host).await,
        Command::Proxy(args) => proxy::run(*args, host).await,
        Command::Health(args) => health::run(args).await,
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    }
}

/// Shown under `heartline --help`.
const EXAMPLES: &str = "\
Examples:
  heartline demo
      the problem and the cure, side by side, in seconds
  heartline sim --script cliff --heartbeat newline
      an engine to test against, with heartbeats
  heartline proxy --upstream http://127.0.0.1:23333
      heartbeats for an engine that has none
  heartline load --streams 9k --interval 1s --hold 20s --json -
      hold 9,000 streams and report the silence each one saw
  heartline completions bash > ~/.local/share/bash-completion/completions/heartline
  heartline man load | man -l -

Exit codes:
  0   pass                  3   refused by a host limit    99  a condition failed
  1   internal              4   the run is invalid
  2   usage                 5   interrupted";

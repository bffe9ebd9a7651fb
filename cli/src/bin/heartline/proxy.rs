//! `heartline proxy`: heartbeats for engines that have none. Flags and environment are here, the run is in `proxy/run.rs`.

mod run;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use heartline_cli::proxy::{Config, Error, OrOff, Overrides};
use heartline_cli::values::{self, or_off};

use self::watch::Watch;
use crate::exit;
use crate::resolve::Host;
use crate::telemetry::{Log, LogFormat};

/// Put heartbeats into the streams of engines that have none, as a reverse proxy in front of them.
///
/// A flag goes before its environment variable (HEARTLINE_DRAIN_TIMEOUT for --drain-timeout), that before the file of
/// --config, that before the default. Flags that describe an engine hold for every engine of the file.
#[derive(Debug, Args)]
#[command(mut_args = values::in_environment, after_help = "\
Examples:
  heartline proxy --upstream http://127.0.0.1:23333       LMDeploy; clients and nginx now talk to port 8080
  heartline proxy --upstream http://127.0.0.1:8000 --listen 0.0.0.0:8080 --interval 10s
                                                          a heartbeat every 10s, for every interface
  heartline proxy --upstream http://127.0.0.1:30000 --commit-after 20s
                                                          an engine that holds its headers back (SGLang)
  heartline proxy --config heartline.toml --check         is the file valid? prints what it means and ends
  heartline proxy --config heartline.toml                 several engines; SIGHUP reads the file again

Signals: SIGTERM or SIGINT drains, a second one ends at once, SIGHUP reloads --config without dropping a stream.

Exits 0 after a drain, 2 when the settings or the address cannot be used, 3 when the limit on open files is too low,
5 when a second signal cut the drain short. Settings: docs/proxy-config.md")]
pub(crate) struct ProxyArgs {
    /// Settings file (TOML), read again on SIGHUP.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Read --config again by itself when it has changed, looking at it so often.
    #[arg(long, value_name = "DURATION|off", default_value = "off", value_parser = or_off(values::duration))]
    watch: OrOff<Duration>,
    /// Check all settings and the files they name, print what they mean, and end.
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    settings: Overrides,

    /// How the log on standard error is written: text or json. RUST_LOG filters it.
    #[arg(long, value_name = "FORMAT", default_value = "text", help_heading = "Log", hide_possible_values = true)]
    log_format: LogFormat,
    /// Whether each exchange is logged when it is over; neither queries nor header values are.
    #[arg(long, value_name = "on|off", default_value = "on", help_heading = "Log", hide_possible_values = true)]
    access_log: AccessLog,
}

/// Whether exchanges are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AccessLog {
    On,
    Off,
}

impl ProxyArgs {
    /// How this command logs.
    pub(crate) fn log(&self) -> Log {
        Log {
            format: self.log_format,
            directives: match self.access_log {
                AccessLog::On => "warn,heartline=info",
                AccessLog::Off => "warn,heartline=info,heartline::access=off",
            },
        }
    }

    /// The file to watch, and how often to look at it, if that was asked for.
    ///
    /// # Errors
    ///
    /// No file, or looking without a pause.
    fn watched(&self) -> Result<Option<(PathBuf, Duration)>, String> {
        match (self.watch, &self.config) {
            (None, _) => Ok(None),
            (Some(_), None) => Err("--watch looks at the file of --config: name it, or leave --watch out".to_owned()),
            (Some(every), Some(_)) if every < WATCH_MIN => {
                Err(format!("--watch is {every:?}: write {WATCH_MIN:?} or more"))
            }
            (Some(every), Some(file)) => Ok(Some((file.clone(), every))),
        }
    }

    /// The settings in force: flags over environment over the file, as it is now, over defaults.
    ///
    /// # Errors
    ///
    /// One line that says where and what is wrong, and what to do.
    fn resolved(&self) -> Result<Config, Error> {
        Config::load(self.config.as_deref(), &self.settings)
    }
}

/// Serves until a signal ends it.
pub(crate) async fn run(args: ProxyArgs, host: &Host) -> ExitCode {
    let config = match args.resolved() {
        Ok(config) => config,
        Err(error) => return exit::fail(exit::USAGE, &error),
    };
    let watch = match args.watched() {
        Ok(watched) => watched.map(|(file, every)| Watch::new(file, every)),
        Err(message) => return exit::fail(exit::USAGE, &message),
    };
    if args.check {
        return run::explain(&config);
    }
    match run::fit(config, host) {
        Ok(config) => run::serve(&args, config, host, watch).await,
        Err(message) => exit::fail(exit::HOST_LIMIT, &message),
    }
}

/// A look reads the whole file.
const WATCH_MIN: Duration = Duration::from_millis(100);

//! `heartline proxy`: heartbeats for engines that have none. Flags and environment are here, the run is in `proxy/run.rs`.

mod engine;
mod parse;
mod run;
mod watch;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use heartline_cli::proxy::{Config, Error, Fallback, HalfClose, Layer, LimitsLayer, OrOff, UpstreamLayer, engine_url};
use heartline_cli::values;
use ipnet::IpNet;

use self::engine::EngineArgs;
use self::parse::{or_off, read};
use self::watch::Watch;
use crate::exit;
use crate::resolve::Host;
use crate::telemetry::{Log, LogFormat};

/// Put heartbeats into the streams of engines that have none, as a reverse proxy in front of them.
///
/// A flag goes before its environment variable (HEARTLINE_DRAIN_TIMEOUT for --drain-timeout), that before the file of
/// --config, that before the default. Flags that describe an engine hold for every engine of the file.
#[derive(Debug, Args)]
#[command(mut_args = |arg| arg.hide_env(true), after_help = "\
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
    /// Engine to pass requests on to: http://, https:// or h2c:// (cleartext HTTP/2), host and port.
    // Parsed later: clap would repeat the text, and a password in it, in its error.
    #[arg(long, value_name = "URL", env = "HEARTLINE_UPSTREAM")]
    upstream: Option<String>,
    /// Settings file (TOML), read again on SIGHUP.
    #[arg(long, value_name = "FILE", env = "HEARTLINE_CONFIG")]
    config: Option<PathBuf>,
    /// Read --config again by itself when it has changed, looking at it so often; off by default.
    #[arg(long, value_name = "DURATION|off", env = "HEARTLINE_WATCH", value_parser = or_off(values::duration))]
    watch: Option<OrOff<Duration>>,
    /// Check all settings and the files they name, print what they mean, and end.
    #[arg(long)]
    check: bool,

    /// Address for clients, 127.0.0.1:8080 by default; port 0 takes any free one, printed as 'listening on http://ADDR'.
    #[arg(long, value_name = "ADDR", env = "HEARTLINE_LISTEN", value_parser = values::socket)]
    listen: Option<SocketAddr>,
    /// Address for operators (health, metrics, live page), 127.0.0.1:9900 by default, or off. It asks for no password.
    #[arg(long, value_name = "ADDR|off", env = "HEARTLINE_ADMIN", value_parser = or_off(values::socket))]
    admin: Option<OrOff<SocketAddr>>,
    /// Serve TLS with this certificate chain (PEM).
    #[arg(long, value_name = "FILE", env = "HEARTLINE_TLS_CERT")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM).
    #[arg(long, value_name = "FILE", env = "HEARTLINE_TLS_KEY")]
    tls_key: Option<PathBuf>,
    /// Peers whose X-Forwarded-* are believed: addresses or networks, separated by commas.
    #[arg(long, value_name = "NET,…", env = "HEARTLINE_TRUSTED", value_delimiter = ',', value_parser = values::network)]
    trusted: Option<Vec<IpNet>>,
    /// A client that closes its sending side while it waits: abort (it is gone; default) or serve.
    #[arg(long, value_name = "WHAT", env = "HEARTLINE_HALF_CLOSE", value_parser = read::<HalfClose>)]
    half_close: Option<HalfClose>,
    /// How long streams may go on after SIGTERM, 60s by default.
    #[arg(long, value_name = "DURATION", env = "HEARTLINE_DRAIN_TIMEOUT", value_parser = values::duration)]
    drain_timeout: Option<Duration>,
    /// Where requests for a model go that no engine names: first (default), refuse, or an engine's name.
    #[arg(long, value_name = "WHERE", env = "HEARTLINE_UNKNOWN_MODELS", value_parser = read::<Fallback>)]
    unknown_models: Option<Fallback>,
    /// Where requests go that name no model, such as /v1/models: first (default), refuse, or an engine's name.
    #[arg(long, value_name = "WHERE", env = "HEARTLINE_NO_MODEL", value_parser = read::<Fallback>)]
    no_model: Option<Fallback>,

    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    limits: LimitArgs,

    /// How the log on standard error is written: text or json. RUST_LOG filters it.
    #[arg(
        long,
        value_name = "FORMAT",
        env = "HEARTLINE_LOG_FORMAT",
        default_value = "text",
        help_heading = "Log",
        hide_possible_values = true
    )]
    log_format: LogFormat,
    /// Whether each exchange is logged when it is over; neither queries nor header values are.
    #[arg(
        long,
        value_name = "on|off",
        env = "HEARTLINE_ACCESS_LOG",
        default_value = "on",
        help_heading = "Log",
        hide_possible_values = true
    )]
    access_log: AccessLog,
}

/// Bounds; those that are not here are set in the file.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// Client connections at once, 30k by default or what the limit on open files allows.
    #[arg(long, value_name = "COUNT", env = "HEARTLINE_CONNECTIONS", value_parser = values::count)]
    connections: Option<usize>,
    /// Client connections at once from one address, 10k by default.
    #[arg(long, value_name = "COUNT", env = "HEARTLINE_CONNECTIONS_PER_ADDRESS", value_parser = values::count)]
    connections_per_address: Option<usize>,
    /// How long a client may take to send a request's head or be silent in its body, and a connection idle, 75s by
    /// default
    #[arg(long, value_name = "DURATION", env = "HEARTLINE_HEADER_TIMEOUT", value_parser = values::duration)]
    header_timeout: Option<Duration>,
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
        match (self.watch.and_then(Option::from), &self.config) {
            (None, _) => Ok(None),
            (Some(_), None) => Err("--watch looks at the file of --config: name it, or leave --watch out".to_owned()),
            (Some(every), Some(_)) if every < WATCH_MIN => {
                Err(format!("--watch is {every:?}: write {WATCH_MIN:?} or more"))
            }
            (Some(every), Some(file)) => Ok(Some((file.clone(), every))),
        }
    }

    /// The settings of flags and environment, which go over the file's.
    ///
    /// # Errors
    ///
    /// An address that is none.
    fn layer(&self) -> Result<Layer, Error> {
        let Self { engine, limits, .. } = self;
        let url = self.upstream.as_deref().map(engine_url).transpose()?;
        let named = url.map(|url| UpstreamLayer { url: Some(url), ..UpstreamLayer::default() });
        Ok(Layer {
            listen: self.listen,
            admin: self.admin,
            tls_cert: self.tls_cert.clone(),
            tls_key: self.tls_key.clone(),
            trusted: self.trusted.clone(),
            half_close: self.half_close,
            drain_timeout: self.drain_timeout,
            unknown_models: self.unknown_models.clone(),
            no_model: self.no_model.clone(),
            limits: LimitsLayer {
                connections: limits.connections,
                connections_per_address: limits.connections_per_address,
                header_timeout: limits.header_timeout,
                ..LimitsLayer::default()
            },
            every: engine.layer(),
            upstreams: named.into_iter().collect(),
        })
    }

    /// The settings in force: flags over environment over the file, as it is now, over defaults.
    ///
    /// # Errors
    ///
    /// One line that says where and what is wrong, and what to do.
    fn settings(&self) -> Result<Config, Error> {
        Config::load(self.config.as_deref(), &self.layer()?)
    }
}

/// Serves until a signal ends it.
pub(crate) async fn run(args: ProxyArgs, host: &Host) -> ExitCode {
    let config = match args.settings() {
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

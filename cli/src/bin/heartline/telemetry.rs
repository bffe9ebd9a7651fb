//! The command's own log: `tracing` events on stderr, filtered by `RUST_LOG`, warnings by default.

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

use crate::resolve::Host;

/// How a command logs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    /// Text or JSON.
    pub(crate) format: LogFormat,
    /// What is logged when `RUST_LOG` is unset, in its words.
    pub(crate) directives: &'static str,
}

impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::Text, directives: "warn" }
    }
}

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Installs the subscriber of this process; called once, before the runtime starts.
///
/// # Errors
///
/// One line when `RUST_LOG` does not parse.
pub(crate) fn install(host: &Host, log: Log) -> Result<(), String> {
    let directives = std::env::var(EnvFilter::DEFAULT_ENV).ok().filter(|set| !set.trim().is_empty());
    let filter = EnvFilter::builder()
        .parse(directives.as_deref().unwrap_or(log.directives))
        .map_err(|error| format!("RUST_LOG cannot be used: {error}; write for example RUST_LOG=heartline=debug"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match log.format {
        LogFormat::Text => builder.with_ansi(host.colors).init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    Ok(())
}

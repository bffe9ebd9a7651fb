//! The command's own log: `tracing` events on stderr, filtered by `RUST_LOG`, warnings by default.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::resolve::Host;

/// Installs the subscriber of this process; called once, before the runtime starts.
///
/// # Errors
///
/// One line when `RUST_LOG` does not parse.
pub(crate) fn install(host: &Host) -> Result<(), String> {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::WARN.into())
        .from_env()
        .map_err(|error| format!("RUST_LOG cannot be used: {error}; write for example RUST_LOG=heartline=debug"))?;
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(host.colors).init();
    Ok(())
}

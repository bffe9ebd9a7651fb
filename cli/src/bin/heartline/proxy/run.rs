//! The life of `heartline proxy`: fit the host, bind, say where, then signals until it has ended.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use heartline_cli::proxy::{Config, Handle, Limits, Proxy};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::ProxyArgs;
use super::watch::Watch;
use crate::exit;
use crate::resolve::Host;

/// Prints what checked settings mean, for `--check`.
pub(super) fn explain(config: &Config) -> ExitCode {
    let mut text = String::from("the settings are valid\n");
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let _ = writeln!(text, "listen  {scheme}://{}", config.listen);
    let _ = match config.admin {
        Some(admin) => writeln!(text, "admin   http://{admin}"),
        None => writeln!(text, "admin   off"),
    };
    for upstream in &config.upstreams {
        let or_all = |words: &[String]| if words.is_empty() { "all".to_owned() } else { words.join(" ") };
        let _ = writeln!(
            text,
            "engine  {}  {}  paths: {}  models: {}  interval: {:?}",
            upstream.name,
            upstream.url,
            or_all(&upstream.paths),
            or_all(&upstream.models),
            upstream.heart.interval,
        );
    }
    for warning in config.warnings() {
        let _ = writeln!(text, "note    {warning}");
    }
    // A reader that went away has seen what it wanted.
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::from(exit::PASS)
}

/// Makes the default number of connections fit the limit on open files; a number that was asked for must fit by itself.
///
/// # Errors
///
/// One line that names the limit and how to lift it.
pub(super) fn fit(mut config: Config, host: &Host) -> Result<Config, String> {
    let room = host.open_files_max.saturating_sub(FILES_OWN) / FILES_PER_CONNECTION;
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    let asked = config.limits.connections;
    if asked <= room {
        return Ok(config);
    }
    let files = FILES_OWN + FILES_PER_CONNECTION * asked as u64;
    if asked == Limits::default().connections && room >= CONNECTIONS_MIN {
        config.limits.connections = room;
        tracing::warn!(
            connections = room,
            open_files = host.open_files_max,
            "the limit on open files bounds connections"
        );
        return Ok(config);
    }
    Err(format!(
        "{asked} connections need {files} open files and the limit here is {}; raise it ('ulimit -Hn {files}', \
         LimitNOFILE= in systemd) or set --connections {room}",
        host.open_files_max
    ))
}

/// Serves until a signal ends it.
pub(super) async fn serve(args: &ProxyArgs, config: Config, host: &Host, mut watch: Option<Watch>) -> ExitCode {
    let warnings = config.warnings();
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    // Watched before the address is printed: whoever reads it may send a signal at once.
    let mut signals = match Signals::watch() {
        Ok(signals) => signals,
        Err(error) => return exit::fail(exit::INTERNAL, &format!("signals cannot be watched: {error}")),
    };
    let proxy = match Proxy::bind(config).await {
        Ok(proxy) => proxy,
        Err(error) => return exit::fail(exit::USAGE, &error),
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let proxy = match proxy.on_threads(threads) {
        Ok(proxy) => proxy,
        Err(error) => return exit::fail(exit::HOST_LIMIT, &format!("no thread could be started: {error}")),
    };
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    announce(&proxy, scheme);
    let handle = proxy.handle();
    let mut running = std::pin::pin!(proxy.run());
    let mut stops = 0;
    loop {
        tokio::select! {
            left = &mut running => {
                if left > 0 {
                    tracing::warn!(exchanges = left, "exchanges had not ended in time and were cut");
                }
                return match stops {
                    0 => exit::fail(exit::INTERNAL, &"the proxy ended although no signal came"),
                    1 => ExitCode::from(exit::PASS),
                    _ => ExitCode::from(exit::INTERRUPTED),
                };
            }
            () = changed(&mut watch) => reload(args, host, &handle),
            signal = signals.next() => {
                if signal == Order::Reload {
                    reload(args, host, &handle);
                    continue;
                }
                stops += 1;
                match stops {
                    1 => {
                        tracing::info!(exchanges = handle.state().exchanges, "draining; a second signal ends now");
                        handle.drain();
                    }
                    2 => {
                        tracing::info!(exchanges = handle.state().exchanges, "ending now");
                        handle.stop_now();
                    }
                    // Whatever still holds the run is not waited for.
                    _ => return ExitCode::from(exit::INTERRUPTED),
                }
            }
        }
    }
}

/// Waits for the settings file to change; for ever where nobody asked for that.
async fn changed(watch: &mut Option<Watch>) {
    match watch {
        Some(watch) => watch.changed().await,
        None => std::future::pending().await,
    }
}

/// Says where it listens. Whoever started this process reads the lines to learn the ports; one that reads nothing is no
/// reason to stop.
fn announce(proxy: &Proxy, scheme: &str) {
    let mut text = format!("listening on {scheme}://{}\n", proxy.local_addr());
    if let Some(admin) = proxy.admin_addr() {
        let _ = writeln!(text, "admin on http://{admin}");
    }
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Takes the settings as they are now, or says why not and keeps the old ones.
fn reload(args: &ProxyArgs, host: &Host, handle: &Handle) {
    let Some(file) = &args.config else {
        tracing::warn!("SIGHUP: there is no --config to read again; nothing has changed");
        return;
    };
    let settings = args.settings().map_err(|error| error.to_string());
    let taken = settings.and_then(|config| fit(config, host)).and_then(|config| {
        let warnings = config.warnings();
        handle.reload(config).map(|()| warnings).map_err(|error| error.to_string())
    });
    match taken {
        Ok(warnings) => {
            for warning in warnings {
                tracing::warn!("{warning}");
            }
            tracing::info!(file = %file.display(), "settings reloaded; live streams keep theirs");
        }
        Err(error) => tracing::error!("the settings were not reloaded, the old ones stay: {error}"),
    }
}

/// The signals that steer the proxy.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn watch() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The next one. Cancel safe: a signal that comes while nobody waits is kept.
    async fn next(&mut self) -> Order {
        tokio::select! {
            _ = self.terminate.recv() => Order::Stop,
            _ = self.interrupt.recv() => Order::Stop,
            _ = self.hangup.recv() => Order::Reload,
        }
    }
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Stop,
    Reload,
}

/// What a connection may hold open: the client's socket and the engine's.
const FILES_PER_CONNECTION: u64 = 2;
/// Listeners, the admin's connections, pooled connections, files read at a reload, the runtime's own.
const FILES_OWN: u64 = 256;
/// With less the proxy is of no use, and the limit is surely a mistake.
const CONNECTIONS_MIN: usize = 64;

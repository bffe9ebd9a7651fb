//! `heartline health`: asks a running proxy how it is, for containers that hold nothing else which could.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use heartline_cli::values;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::exit;

/// Ask the admin listener of a running proxy whether it lives, or takes requests.
///
/// For health checks of containers: it needs no shell and no curl. It reads the same HEARTLINE_ADMIN as the proxy, and no
/// settings file, so that a mistake in one does not make a proxy look dead that still runs on the old settings.
#[derive(Debug, Args)]
#[command(mut_args = |arg| arg.hide_env(true), after_help = "\
Examples:
  heartline health                           does the proxy of this machine live?
  heartline health --ready                   does it take requests? Not while it drains
  heartline health --admin 127.0.0.1:9901    the proxy with this --admin

Exits 0 when it does, 1 when it does not or cannot be asked, 2 for an address that is none.")]
pub(crate) struct HealthArgs {
    /// The proxy's --admin: an IP address with a port.
    // Text, since the proxy also takes `off`, for which there is a better answer than clap's.
    #[arg(long, value_name = "ADDR", env = "HEARTLINE_ADMIN", default_value = "127.0.0.1:9900")]
    admin: String,
    /// Ask whether it takes requests, not only whether it lives.
    #[arg(long)]
    ready: bool,
    /// How long the whole question may take.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = values::duration)]
    timeout: Duration,
}

/// Asks once and ends.
pub(crate) async fn run(args: HealthArgs) -> ExitCode {
    let address = match values::or_off(&args.admin, values::socket) {
        Ok(Some(address)) if address.port() != 0 => reachable(address),
        Ok(Some(_)) => {
            return exit::fail(exit::USAGE, &"--admin has port 0, which is none to ask; write the proxy's own");
        }
        Ok(None) => {
            return exit::fail(exit::USAGE, &"--admin is off, so the proxy has nothing to ask; give it an address");
        }
        Err(message) => return exit::fail(exit::USAGE, &format!("--admin: {message}")),
    };
    let path = if args.ready { "/readyz" } else { "/healthz" };
    let problem = match timeout(args.timeout, ask(address, path)).await {
        Ok(Ok(200)) => return ExitCode::from(exit::PASS),
        Ok(Ok(status)) => format!("answered {status}"),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {:?}", args.timeout),
    };
    exit::fail(UNHEALTHY, &format!("http://{address}{path}: {problem}"))
}

/// The status of the answer to a GET of `path`.
///
/// # Errors
///
/// The connection's, and an answer that is not HTTP.
async fn ask(address: SocketAddr, path: &str) -> std::io::Result<u16> {
    let mut socket = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await?;
    let mut line = [0; "HTTP/1.1 200".len()];
    socket.read_exact(&mut line).await?;
    status(&line).ok_or_else(|| std::io::Error::other("the answer is not HTTP/1.1"))
}

/// The status in the first bytes of an answer.
fn status(line: &[u8]) -> Option<u16> {
    let digits = line.strip_prefix(b"HTTP/1.1 ")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A listener on every address is asked on loopback.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

/// The one code for "unhealthy" that container runtimes define (Dockerfile reference, HEALTHCHECK; 2 is reserved there).
const UNHEALTHY: u8 = 1;

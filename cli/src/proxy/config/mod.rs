//! Settings of the proxy: what it listens on, the engines behind it, its bounds. Read by every part of `proxy`.
//!
//! A field is a setting, and its definition: the argument's name is the flag, the key of the file and the environment
//! variable, its default the default, its documentation the help. `resolve` puts flags, environment and file over one
//! another, `check` refuses what cannot work. `docs/proxy-config.md` and `docs/examples/heartline.toml` have a line for each,
//! which `cli/tests/proxy_config.rs` holds to the definitions.

mod check;
mod files;
mod limits;
mod reload;
mod resolve;
mod upstream;
mod warn;
mod words;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use http::Uri;
use ipnet::IpNet;

pub use self::limits::Limits;
pub use self::resolve::Overrides;
pub use self::upstream::{HeartSettings, Upstream};
pub use self::words::{Consent, Fallback, FormChoice, HalfClose, HostHeader};
use super::error::Error;
use crate::values::{self, File, or_off};

/// A setting that can be off: `None`.
pub type OrOff<T> = Option<T>;

/// Everything a [`Proxy`](super::Proxy) is told.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct Config {
    /// Address for clients; port 0 takes any free one, printed as 'listening on http://ADDR'.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080", value_parser = values::socket)]
    pub listen: SocketAddr,
    /// Address for operators (health, metrics, live page), or off. It asks for no password.
    #[arg(long, value_name = "ADDR|off", default_value = "127.0.0.1:9900", value_parser = or_off(values::socket))]
    pub admin: OrOff<SocketAddr>,
    /// Serve TLS with this certificate chain (PEM), the server's own first.
    #[arg(long, value_name = "FILE", value_parser = values::path)]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM).
    #[arg(long, value_name = "FILE", value_parser = values::path)]
    pub tls_key: Option<PathBuf>,
    /// Peers whose X-Forwarded-* are believed and appended to: addresses or networks, separated by commas.
    #[arg(long, value_name = "NET,…", value_delimiter = ',', value_parser = values::network)]
    pub trusted: Vec<IpNet>,
    /// A client that closes its sending side while it waits: abort (it is gone) or serve (it still reads).
    #[arg(long, value_name = "WHAT", default_value = "abort")]
    pub half_close: HalfClose,
    /// How long streams may go on after SIGTERM.
    // Most answers are complete by then, and service managers wait 90 s before they kill.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = values::duration)]
    pub drain_timeout: Duration,
    /// Where requests for a model go that no engine names: first, refuse, or an engine's name.
    #[arg(long, value_name = "WHERE", default_value = "first")]
    pub unknown_models: Fallback,
    /// Where requests go that name no model, such as /v1/models: first, refuse, or an engine's name.
    #[arg(long, value_name = "WHERE", default_value = "first")]
    pub no_model: Fallback,
    /// Bounds on what one client, or all of them, may take.
    #[command(flatten)]
    pub limits: Limits,
    /// The engines, in the order in which they are tried.
    #[arg(skip)]
    pub upstreams: Vec<Upstream>,
}

impl Config {
    /// The defaults in front of one engine: on 127.0.0.1:8080, admin on 127.0.0.1:9900.
    pub fn single(upstream: Uri) -> Self {
        Self { upstreams: vec![Upstream::new("engine", upstream)], ..values::defaults() }
    }

    /// Reads and checks the settings of a file, whose keys `docs/proxy-config.md` describes.
    ///
    /// # Errors
    ///
    /// One line: where in the text, what is wrong, what to write instead. The files that settings name are not opened;
    /// [`check_files`](Self::check_files) does.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        resolve::resolve(Some(&File::nameless(text)), &Overrides::default()).map_err(Error::config)
    }

    /// Reads `file`, puts `overrides` (flags, environment) over it, both over the defaults, checks the outcome and opens
    /// the files that it names.
    ///
    /// # Errors
    ///
    /// One line: where in the file, if it stands there; what is wrong; what to do.
    pub fn load(file: Option<&Path>, overrides: &Overrides) -> Result<Self, Error> {
        let file = file.map(File::open).transpose().map_err(Error::config)?;
        let config = resolve::resolve(file.as_ref(), overrides).map_err(Error::config)?;
        config.check_files()?;
        Ok(config)
    }

    /// Refuses settings that cannot work, alone or together.
    ///
    /// # Errors
    ///
    /// One line: which setting, what is wrong with it, what to do.
    pub fn check(&self) -> Result<(), Error> {
        check::check(self).map_err(|problem| Error::config(problem.message))
    }

    /// The files to serve TLS with; `None` for plain TCP.
    pub fn tls(&self) -> Option<TlsFiles> {
        Some(TlsFiles { certificate: self.tls_cert.clone()?, key: self.tls_key.clone()? })
    }
}

/// A certificate chain and its key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain, the server's own certificate first.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

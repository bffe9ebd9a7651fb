//! Settings of the proxy: what it listens on, the engines behind it, its bounds. Read by every part of `proxy`.
//!
//! `document` reads a file into a [`Layer`] of settings that may be absent, flags make another, and `layer` puts them over
//! one another and over the defaults; `check` then refuses what cannot work, and `place` says where it stands in the file.

mod check;
mod document;
mod files;
mod layer;
mod limits;
mod place;
mod reload;
mod text;
mod units;
mod upstream;
mod warn;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Uri;
use ipnet::IpNet;

pub use self::layer::{Layer, LimitsLayer, OrOff, UpstreamLayer};
pub use self::limits::Limits;
use self::place::{Problem, Source};
pub use self::text::engine_url;
pub use self::upstream::{Consent, FormChoice, HeartSettings, HostHeader, Upstream};
use super::error::Error;

/// Everything a [`Proxy`](super::Proxy) is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where operators connect; loopback unless told otherwise, `None` for no admin listener.
    pub admin: Option<SocketAddr>,
    /// Serve TLS with these files; plain TCP without.
    pub tls: Option<TlsFiles>,
    /// The engines, in the order in which they are tried.
    pub upstreams: Vec<Upstream>,
    /// Where a request goes whose model no engine names, when no engine for its path takes every model.
    pub unknown_models: Fallback,
    /// Where a request goes that names no model (`/v1/models` does not), when no engine for its path takes every model.
    pub no_model: Fallback,
    /// Peers whose `X-Forwarded-*` are believed and appended to; those of others are overwritten.
    pub trusted: Vec<IpNet>,
    /// What a client means that closes its sending side early.
    pub half_close: HalfClose,
    /// How long streams may go on after a drain began.
    pub drain_timeout: Duration,
    /// Bounds on what one client, or all of them, may take.
    pub limits: Limits,
}

impl Config {
    /// The defaults in front of one engine: on 127.0.0.1:8080, admin on 127.0.0.1:9900.
    pub fn single(upstream: Uri) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            admin: Some(SocketAddr::from(([127, 0, 0, 1], 9900))),
            tls: None,
            upstreams: vec![Upstream::new(ENGINE, upstream)],
            unknown_models: Fallback::default(),
            no_model: Fallback::default(),
            trusted: Vec::new(),
            half_close: HalfClose::default(),
            drain_timeout: DRAIN_TIMEOUT,
            limits: Limits::default(),
        }
    }

    /// Reads and checks the settings of a file, whose keys `docs/proxy-config.md` describes.
    ///
    /// # Errors
    ///
    /// One line: where in the text, what is wrong, what to write instead. The files that settings name are not opened;
    /// [`check_files`](Self::check_files) does.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        Self::layered(Some(Source { name: None, text }), &Layer::default())
    }

    /// Reads `file`, puts `overrides` (flags, environment) over it, both over the defaults, checks the outcome and opens
    /// the files that it names.
    ///
    /// # Errors
    ///
    /// One line: where in the file, if it stands there; what is wrong; what to do.
    pub fn load(file: Option<&Path>, overrides: &Layer) -> Result<Self, Error> {
        let config = match file {
            None => Self::layered(None, overrides)?,
            Some(path) => {
                let name = path.display().to_string();
                let text = files::text(path)?;
                Self::layered(Some(Source { name: Some(&name), text: &text }), overrides)?
            }
        };
        config.check_files()?;
        Ok(config)
    }

    /// Puts `overrides` over the file, both over the defaults, and checks the outcome.
    fn layered(file: Option<Source<'_>>, overrides: &Layer) -> Result<Self, Error> {
        let document = file.map(document::parse).transpose()?.unwrap_or_default();
        resolved(&document, overrides).map_err(|problem| {
            // What the file alone would be refused for stands in the file; anything else came from the overrides.
            let in_file = resolved(&document, &Layer::default()).is_err_and(|alone| alone == problem);
            problem.located(file.filter(|_| in_file))
        })
    }

    /// Refuses settings that cannot work, alone or together.
    ///
    /// # Errors
    ///
    /// One line: which setting, what is wrong with it, what to do.
    pub fn check(&self) -> Result<(), Error> {
        check::check(self).map_err(|problem| problem.located(None))
    }
}

/// Both layers over the defaults, checked.
fn resolved(file: &Layer, overrides: &Layer) -> Result<Config, Problem> {
    let config = layer::resolve(file, overrides)?;
    check::check(&config)?;
    Ok(config)
}

/// A certificate chain and its key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain, the server's own certificate first.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// What a client means that closes its sending side while it waits for the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HalfClose {
    /// It is gone: drop the upstream request at once.
    #[default]
    Abort,
    /// It has said all it had to say and still reads.
    Serve,
}

/// Which engine takes a request that none of those for its path was meant for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fallback {
    /// The first of them in the order of the settings.
    #[default]
    First,
    /// The engine of this name, if it serves the path.
    Engine(String),
    /// None: the proxy answers 404 itself.
    Refuse,
}

/// The name of an engine that is given by its address alone.
const ENGINE: &str = "engine";
/// Most answers are complete by then, and service managers wait 90 s before they kill.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(60);

//! One engine: where it is, what it serves, and how its streams are kept alive. Part of `Config`.

use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, Uri};

use heartline::{Cadence, Form};

/// One engine, and how its streams are kept alive.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstream {
    /// Its name in logs, metrics and `/streams`.
    pub name: String,
    /// `http://`, `https://` or `h2c://` with host and port; a path is put before each request's.
    pub url: Uri,
    /// PEM file of the authorities to trust instead of the system's, for `https://`.
    pub ca: Option<PathBuf>,
    /// Path prefixes it serves; empty for every path.
    pub paths: Vec<String>,
    /// Models it serves; empty for every model.
    pub models: Vec<String>,
    /// The `Host` it is sent.
    pub host: HostHeader,
    /// How its streams are kept alive.
    pub heart: HeartSettings,
    /// Commit a 200 for a stream whose headers are not there after so long; off by default.
    pub commit_after: Option<Duration>,
    /// The same for answers that do not stream; off by default.
    pub commit_json_after: Option<Duration>,
    /// How long an idle connection is kept; zero for not at all.
    pub pool_idle: Duration,
    /// How long a connect may take.
    pub connect_timeout: Duration,
    /// How long the response's head may take; for ever by default, since waiting is the product.
    pub response_timeout: Option<Duration>,
    /// How long the response's body may be silent; for ever by default.
    pub body_idle: Option<Duration>,
}

impl Upstream {
    /// An engine with default settings.
    pub fn new(name: impl Into<String>, url: Uri) -> Self {
        Self {
            name: name.into(),
            url,
            ca: None,
            paths: Vec::new(),
            models: Vec::new(),
            host: HostHeader::default(),
            heart: HeartSettings::default(),
            commit_after: None,
            commit_json_after: None,
            pool_idle: POOL_IDLE,
            connect_timeout: CONNECT_TIMEOUT,
            response_timeout: None,
            body_idle: None,
        }
    }
}

/// The `Host` that an upstream is sent; the client's own goes into `X-Forwarded-Host`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostHeader {
    /// The upstream's own.
    #[default]
    Upstream,
    /// The client's.
    Preserve,
    /// This one.
    Name(String),
}

/// How the streams of one upstream are kept alive.
#[derive(Clone, Debug, PartialEq)]
pub struct HeartSettings {
    /// Time between heartbeats.
    pub interval: Duration,
    /// Every tick, or only while the engine is silent.
    pub cadence: Cadence,
    /// The form of a heartbeat.
    pub form: FormChoice,
    /// A request header that may choose the form, where the operator allows it.
    pub form_header: Option<HeaderName>,
    /// The longest time without content.
    pub max_silence: Option<Duration>,
    /// The longest life of a stream.
    pub max_lifetime: Option<Duration>,
    /// Heartbeats in NDJSON.
    pub ndjson: Consent,
    /// Heartbeats before JSON.
    pub json: Consent,
}

impl Default for HeartSettings {
    fn default() -> Self {
        Self {
            interval: INTERVAL,
            cadence: Cadence::default(),
            form: FormChoice::default(),
            form_header: None,
            max_silence: Some(MAX_SILENCE),
            max_lifetime: None,
            ndjson: Consent::default(),
            json: Consent::Never,
        }
    }
}

/// Where a stream's form comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum FormChoice {
    /// What the request tells about its client ([`Form::auto`]).
    #[default]
    Auto,
    /// Always this one.
    Form(Form),
}

/// Whether a format that not every client reads with heartbeats gets them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consent {
    /// Only where the API is known to be read by clients that take them.
    #[default]
    KnownApis,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Cloudflare cuts after 100 s, nginx after 60 s; half of the shorter one.
const INTERVAL: Duration = Duration::from_secs(30);
/// Longer than any prefill seen, shorter than an evening: a dead request must end.
const MAX_SILENCE: Duration = Duration::from_secs(15 * 60);
/// LMDeploy and vLLM close an idle connection after 5 s.
const POOL_IDLE: Duration = Duration::from_secs(4);
/// An engine on the same host or network answers in milliseconds; a lost SYN is sent again after 1 s and 3 s.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

//! Settings of the proxy: what it listens on, the engines behind it, its bounds. Read by every part of `proxy`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, Uri};
use ipnet::IpNet;

use crate::{Cadence, Form};

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
            upstreams: vec![Upstream::new("engine", upstream)],
            trusted: Vec::new(),
            half_close: HalfClose::default(),
            drain_timeout: DRAIN_TIMEOUT,
            limits: Limits::default(),
        }
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

/// What a client means that closes its sending side while it waits for the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HalfClose {
    /// It is gone: drop the upstream request at once.
    #[default]
    Abort,
    /// It has said all it had to say and still reads.
    Serve,
}

/// Bounds, each with a default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Connections at once from one address.
    pub connections_per_address: usize,
    /// Requests at once on one HTTP/2 connection.
    pub streams_per_connection: u32,
    /// Bytes of one request's head.
    pub header_bytes: usize,
    /// Fields in one request's head.
    pub headers: usize,
    /// How long a client may take to send a head.
    pub header_timeout: Duration,
    /// How long written bytes may stay unacknowledged (`TCP_USER_TIMEOUT`).
    pub user_timeout: Duration,
    /// How long a client may leave bytes that are ready for it untaken.
    pub stalled_after: Duration,
    /// Bytes of a request's body that are looked at for `stream` and `model`.
    pub look_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: CONNECTIONS,
            connections_per_address: CONNECTIONS_PER_ADDRESS,
            streams_per_connection: STREAMS_PER_CONNECTION,
            header_bytes: HEADER_BYTES,
            headers: HEADERS,
            header_timeout: HEADER_TIMEOUT,
            user_timeout: USER_TIMEOUT,
            stalled_after: STALLED_AFTER,
            look_bytes: LOOK_BYTES,
        }
    }
}

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
/// Most answers are complete by then, and service managers wait 90 s before they kill.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(60);
/// Two descriptors a stream; fits the 65,536 that service managers give.
const CONNECTIONS: usize = 30_000;
/// A balancer or a campus behind one address opens thousands.
const CONNECTIONS_PER_ADDRESS: usize = 10_000;
/// What h2 servers usually allow.
const STREAMS_PER_CONNECTION: u32 = 200;
/// What most servers allow for a whole head.
const HEADER_BYTES: usize = 64 * 1024;
/// Far above what clients and hops add.
const HEADERS: usize = 100;
/// Slow enough for a bad mobile link, too short for a slowloris to hold many connections.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// A peer that has not acknowledged for so long has gone without a word.
const USER_TIMEOUT: Duration = Duration::from_secs(60);
/// Two intervals and some: a reader that takes nothing for so long will not.
const STALLED_AFTER: Duration = Duration::from_secs(120);
/// `model` and `stream` usually stand in the first kilobyte, or after the messages.
const LOOK_BYTES: usize = 1024 * 1024;

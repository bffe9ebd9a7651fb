//! One engine and the pool of connections to it. Made by `shared` for each configured upstream; `exchange` sends through it.
//!
//! Only the configured address is ever connected to: a request gives its path and query, never its host.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, Uri, Version};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::config::{HostHeader, Upstream};
use super::direct::{Direct, DirectBody};
use super::error::Error;
use super::forward::Forward;
use super::hearts::Hearts;
use super::refusal::Refusal;
use super::refuse::{self, Unframed};
use super::reply::NotHttp;
use heartline::{BoxError, Heartline};

/// One engine.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) settings: Upstream,
    pub(super) name: Arc<str>,
    pub(super) heart: Heartline,
    pool: Arc<Pool>,
}

/// What a request needs of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Any.
    Answer,
    /// One that can become a tunnel: HTTP/1.1.
    Upgrade,
}

type Wire = Client<HttpsConnector<HttpConnector>, Forward>;

/// The wait for an engine's answer. Dropping it drops the request at the engine.
pub(super) type Sending = Pin<Box<dyn Future<Output = Result<Response<Arrived>, BoxError>> + Send>>;

/// The body of an engine's answer. Dropping it drops the request at the engine.
#[derive(Debug)]
pub(super) enum Arrived {
    /// On a connection that this body drives itself.
    Direct(DirectBody),
    /// On a connection that a task drives.
    Pooled(Incoming),
}

impl Body for Arrived {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Self::Direct(body) => Pin::new(body).poll_frame(cx),
            Self::Pooled(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Direct(body) => body.is_end_stream(),
            Self::Pooled(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Direct(body) => body.size_hint(),
            Self::Pooled(body) => body.size_hint(),
        }
    }
}

/// The connections to one engine.
struct Pool {
    /// For answers, where HTTP/1.1 is spoken without TLS.
    direct: Option<Arc<Direct>>,
    /// For answers otherwise.
    wire: Wire,
    /// For tunnels: HTTP/1.1 only.
    upgrade_wire: Wire,
    scheme: Scheme,
    authority: Authority,
    /// Put before each path; without a slash at its end.
    prefix: String,
    host: HeaderValue,
}

impl Engine {
    /// The engine of these settings; takes over the connections of `before` where they still suit.
    ///
    /// # Errors
    ///
    /// An address, a certificate file or an interval that cannot be used.
    pub(super) fn new(settings: Upstream, hearts: &Hearts, before: Option<&Self>) -> Result<Self, Error> {
        let heart = hearts.of(&settings.heart)?;
        let pool = match before {
            Some(before) if before.is_wired_like(&settings) => Arc::clone(&before.pool),
            _ => Arc::new(Pool::new(&settings)?),
        };
        Ok(Self { name: Arc::from(settings.name.as_str()), settings, heart, pool })
    }

    fn is_wired_like(&self, other: &Upstream) -> bool {
        let own = &self.settings;
        (&own.url, &own.ca, own.pool_idle, own.connect_timeout)
            == (&other.url, &other.ca, other.pool_idle, other.connect_timeout)
    }

    /// The address of a request at this engine.
    ///
    /// # Errors
    ///
    /// The path cannot be put behind the engine's own.
    pub(super) fn uri(&self, asked: &Uri) -> Result<Uri, Refusal> {
        let pool = &self.pool;
        let path = asked.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        let path = match pool.prefix.as_str() {
            "" => path,
            prefix => PathAndQuery::try_from(format!("{prefix}{path}"))
                .map_err(|_| Refusal::Malformed("its path is no path"))?,
        };
        let uri = Uri::builder().scheme(pool.scheme.clone()).authority(pool.authority.clone()).path_and_query(path);
        uri.build().map_err(|_| Refusal::Malformed("its path is no path"))
    }

    /// Whether its connections are known to speak HTTP/1.1, in which `TE` is named by `Connection`.
    pub(super) fn is_http_1(&self) -> bool {
        self.pool.direct.is_some()
    }

    /// The `Host` for a client that asked for `asked`.
    pub(super) fn host(&self, asked: Option<&HeaderValue>) -> HeaderValue {
        let own = || self.pool.host.clone();
        match &self.settings.host {
            HostHeader::Upstream => own(),
            HostHeader::Preserve => asked.cloned().unwrap_or_else(own),
            HostHeader::Name(name) => HeaderValue::try_from(name).unwrap_or_else(|_| own()),
        }
    }

    /// Sends a request whose address and fields are the engine's. Sent again, on another connection, only if no byte of
    /// it was written. Dropping the future or the response drops the request at the engine.
    pub(super) fn send(&self, mut request: Request<Forward>, need: Need) -> Sending {
        *request.version_mut() = Version::HTTP_11; // the connection's own version is used
        let pool = &self.pool;
        let wire = match (&pool.direct, need) {
            (_, Need::Upgrade) => &pool.upgrade_wire,
            (Some(direct), Need::Answer) => {
                let answer = Arc::clone(direct).send(request);
                return Box::pin(async { arrived(answer.await?, Arrived::Direct) });
            }
            (None, Need::Answer) => &pool.wire,
        };
        if self.settings.url.scheme_str() == Some("h2c") && need == Need::Answer {
            request.headers_mut().remove(HOST); // `:authority` says it
        }
        let answer = wire.request(request);
        Box::pin(async { arrived(answer.await?, Arrived::Pooled) })
    }
}

/// An answer whose end all hops behind this one see alike.
fn arrived<B>(answer: Response<B>, body: impl FnOnce(B) -> Arrived) -> Result<Response<Arrived>, BoxError> {
    let mut answer = answer.map(body);
    refuse::settle_length(answer.headers_mut())?;
    Ok(answer)
}

impl Pool {
    fn new(settings: &Upstream) -> Result<Self, Error> {
        let url = &settings.url;
        let refused = |why: &str| Error::config(format!("upstream {}: {url} {why}", settings.name));
        let scheme = match url.scheme_str() {
            Some("http" | "h2c") => Scheme::HTTP,
            Some("https") => Scheme::HTTPS,
            _ => return Err(refused("has no scheme that is known; write http://, https:// or h2c://")),
        };
        let authority =
            url.authority().cloned().ok_or_else(|| refused("names no host; write http://127.0.0.1:8000"))?;
        let host = HeaderValue::try_from(authority.as_str()).map_err(|_| refused("names a host that is none"))?;
        let is_h2c = url.scheme_str() == Some("h2c");
        let is_https = scheme == Scheme::HTTPS;
        let wire = wire(settings, if is_h2c { Speak::Http2 } else { Speak::Either })?;
        let upgrade_wire = self::wire(settings, Speak::Http1)?;
        let direct = (!is_h2c && !is_https).then(|| {
            Arc::new(Direct::new(dialler(settings), url.clone(), settings.connect_timeout, settings.pool_idle))
        });
        let prefix = url.path().trim_end_matches('/').to_owned();
        Ok(Self { direct, wire, upgrade_wire, scheme, authority, prefix, host })
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("authority", &self.authority).finish_non_exhaustive()
    }
}

/// What is spoken to an engine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speak {
    Http1,
    /// HTTP/2 without an upgrade.
    Http2,
    /// HTTP/1.1, or over TLS what the engine prefers.
    Either,
}

/// Opens connections to an engine.
fn dialler(settings: &Upstream) -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(settings.connect_timeout));
    // An engine whose host has gone without a word is noticed, though waiting for its answer has no limit.
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    tcp.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    tcp
}

fn wire(settings: &Upstream, speak: Speak) -> Result<Wire, Error> {
    let tcp = dialler(settings);
    let tls = match (&settings.ca, settings.url.scheme_str()) {
        (Some(file), Some("https")) => HttpsConnectorBuilder::new().with_tls_config(trusting(file)?),
        (None, Some("https")) => HttpsConnectorBuilder::new().with_native_roots().map_err(|error| {
            Error::host(format!("the system's certificate authorities cannot be read: {error}; name a file with `ca`"))
        })?,
        // Never used for TLS: an empty store trusts nobody.
        _ => HttpsConnectorBuilder::new().with_tls_config(client_config(RootCertStore::empty())?),
    };
    let tls = match speak {
        Speak::Either => tls.https_or_http().enable_all_versions().wrap_connector(tcp),
        Speak::Http1 | Speak::Http2 => tls.https_or_http().enable_http1().wrap_connector(tcp),
    };
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_timer(TokioTimer::new()).timer(TokioTimer::new());
    match settings.pool_idle {
        Duration::ZERO => builder.pool_max_idle_per_host(0),
        idle => builder.pool_idle_timeout(idle),
    };
    builder.http2_only(speak == Speak::Http2).http1_max_buf_size(RESPONSE_BUFFER);
    builder.http2_initial_stream_window_size(RESPONSE_BUFFER as u32);
    builder.http2_initial_connection_window_size(RESPONSE_BUFFER as u32 * STREAMS_UNREAD);
    builder.set_host(false);
    Ok(builder.build(tls))
}

/// Trusts the authorities in a PEM file only.
fn trusting(file: &Path) -> Result<ClientConfig, Error> {
    let shown = file.display();
    let unread = |error: &dyn fmt::Display| {
        Error::host(format!("{shown} cannot be read as PEM certificates: {error}; give the authority's certificate"))
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unread(&error))? {
        roots.add(certificate.map_err(|error| unread(&error))?).map_err(|error| unread(&error))?;
    }
    if roots.is_empty() {
        return Err(unread(&"it holds no certificate"));
    }
    client_config(roots)
}

fn client_config(roots: RootCertStore) -> Result<ClientConfig, Error> {
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::config(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Why an engine did not answer, from the client's view.
pub(super) fn failure(error: &(dyn StdError + 'static), connect_timeout: Duration) -> Refusal {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            return Refusal::EngineLate(connect_timeout);
        }
        let is_unread =
            error.downcast_ref::<hyper::Error>().is_some_and(|error| error.is_parse() || error.is_parse_too_large());
        if is_unread || error.is::<Unframed>() || error.is::<NotHttp>() {
            return Refusal::EngineProtocol;
        }
        cause = error.source();
    }
    Refusal::EngineDown
}

/// The most that is read ahead of, or kept of, one response; more waits in the engine's kernel.
const RESPONSE_BUFFER: usize = 128 * 1024;
/// Responses on one HTTP/2 connection whose clients may read nothing before the others have to wait: as many as servers
/// usually allow at once.
const STREAMS_UNREAD: u32 = 256;
/// Silence after which an engine's host is asked whether it still lives, how often, and how many times in vain.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;

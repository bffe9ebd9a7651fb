//! One request and its answer: refuse, look, route, forward, wait, relay. Called by `server` for each request.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HOST, UPGRADE};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use tokio::time::{Instant, sleep_until};

use super::config::{FormChoice, HalfClose};
use super::departure::Departure;
use super::forward::{Fault, Forward, Progress};
use super::forwarded::{self, Origin};
use super::headers::{self, has_token};
use super::late::{self, Commit};
use super::log::{Unanswered, trace_id};
use super::look::Look;
use super::pace::Pace;
use super::refusal::Refusal;
use super::relay::Relay;
use super::shared::{Place, Running, Shared};
use super::signal::{Kill, Streams};
use super::sniff::{Heads, Told};
use super::socket::Line;
use super::state::Phase;
use super::table::Seat;
use super::upstream::{Arrived, Engine, Need, Sending, failure};
use super::{refuse, route};
use heartline::api::{Api, Endpoint};
use heartline::{Form, Format};

/// One client connection, as its requests see it.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) peer: IpAddr,
    pub(super) scheme: &'static str,
    pub(super) line: Line,
    pub(super) place: Place,
    /// What was seen of the heads, on HTTP/1.
    pub(super) heads: Arc<Heads>,
    /// Where a live stream waits for the connection.
    pub(super) departure: Arc<Departure>,
    /// Set when the connection is to be closed with care, since its client may still be sending.
    pub(super) settles: std::sync::atomic::AtomicBool,
}

/// The client is gone: there is nobody to answer.
#[derive(Debug)]
pub(super) struct Gone;

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client is gone")
    }
}

impl std::error::Error for Gone {}

/// Answers a request.
///
/// # Errors
///
/// The client is gone. Dropping the future drops the request at the engine too.
pub(super) async fn serve(
    shared: Arc<Shared>,
    client: Arc<Client>,
    request: Request<Incoming>,
) -> Result<Response<Relay>, Gone> {
    let running = shared.running.load_full();
    let (mut head, body) = request.into_parts();
    let kill = match head.version {
        Version::HTTP_2 => Streams::current(),
        _ => Some(Kill::Connection(Arc::clone(&client.place.signal))),
    };
    let seat = shared.table.enter(head.method.clone(), head.uri.path(), kill);
    let exchange = Exchange {
        entry: Unanswered::new(Arc::clone(&seat.live), trace_id(&head.headers)),
        seat,
        api: Api::nearest(head.uri.path(), head.uri.query()),
        method: head.method.clone(),
        version: head.version,
        line: (head.version != Version::HTTP_2 && running.config.half_close == HalfClose::Abort)
            .then(|| client.line.clone()),
        form: None,
        endpoint: None,
        shared,
        running,
        client,
    };
    let prepared = match exchange.prepare(&mut head) {
        Ok(prepared) => prepared,
        Err(refusal) => return Ok(exchange.refuse(&refusal)),
    };
    exchange.forward(head, body, prepared).await
}

/// An exchange at work.
pub(super) struct Exchange {
    pub(super) shared: Arc<Shared>,
    pub(super) running: Arc<Running>,
    pub(super) client: Arc<Client>,
    pub(super) seat: Seat,
    pub(super) method: Method,
    pub(super) version: Version,
    /// In whose shape the proxy itself answers.
    pub(super) api: Api,
    /// Its line in the log, whatever becomes of it.
    pub(super) entry: Unanswered,
    /// Where to see that an HTTP/1 client is gone; `None` where that does not end the exchange.
    pub(super) line: Option<Line>,
    pub(super) form: Option<Form>,
    /// The known API that is asked.
    pub(super) endpoint: Option<Endpoint>,
}

/// What is known of a request that may pass.
struct Prepared {
    host: Option<HeaderValue>,
    upgrade: Option<OnUpgrade>,
}

/// What the wait for the engine came to.
enum Waited {
    Answer(Response<Arrived>),
    Commit(Commit),
    Refuse(Refusal),
}

impl Exchange {
    fn prepare(&self, head: &mut Parts) -> Result<Prepared, Refusal> {
        let told = if head.version == Version::HTTP_2 { Told::Once } else { self.client.heads.next() };
        if self.shared.phase() != Phase::Serving {
            return Err(Refusal::Draining);
        }
        let host = refuse::judge(head, told, &self.shared.pseudonym)?;
        let is_upgrade = head.version == Version::HTTP_11
            && head.method == Method::GET
            && has_token(&head.headers, &CONNECTION, "upgrade")
            && has_token(&head.headers, &UPGRADE, "websocket");
        let upgrade = head.extensions.remove::<OnUpgrade>().filter(|_| is_upgrade);
        Ok(Prepared { host, upgrade })
    }

    async fn forward(mut self, mut head: Parts, body: Incoming, prepared: Prepared) -> Result<Response<Relay>, Gone> {
        let running = Arc::clone(&self.running);
        let path = head.uri.path();
        self.endpoint = Endpoint::of_request(&head.method, &head.uri, &head.headers);
        let needs_model = route::needs_model(&running.config, path);
        let limits = &running.config.limits;
        let bytes_max = limits.look_bytes;
        let look = (needs_model || self.endpoint.is_some()).then(|| Look::new(&head.headers, bytes_max));
        let pace = Pace::new(limits.header_timeout, limits.body_rate);
        let (mut body, progress) = Forward::new(body, look, pace, Arc::clone(&self.client.heads));
        let model = match needs_model {
            true => match body.find_model(bytes_max).await {
                Ok(model) => model,
                Err(_) => return Ok(self.refuse(&fault(&progress).unwrap_or(Refusal::BrokenBody))),
            },
            false => None,
        };
        let Some(engine) = route::choose(&running.config, path, model.as_deref()).map(|at| &running.engines[at]) else {
            return Ok(self.refuse(&Refusal::NoRoute { model }));
        };
        let _ = self.seat.live.upstream.set(Arc::clone(&engine.name)); // set once, here
        self.form = Some(form(engine, &head));
        let need = if prepared.upgrade.is_some() { Need::Upgrade } else { Need::Answer };
        if let Err(refusal) = self.address(engine, &mut head, prepared.host, need) {
            return Ok(self.refuse(&refusal));
        }
        if body.gather().await.is_err() {
            return Ok(self.refuse(&fault(&progress).unwrap_or(Refusal::BrokenBody)));
        }
        let mut pending = engine.send(Request::from_parts(head, body), need);
        match self.wait(engine, &mut pending, progress).await? {
            Waited::Refuse(refusal) => Ok(self.refuse(&refusal)),
            Waited::Commit(commit) => Ok(self.commit(engine, pending, &commit)),
            Waited::Answer(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                Ok(self.tunnel(response, prepared.upgrade))
            }
            Waited::Answer(response) => Ok(self.relay(engine, response)),
        }
    }

    /// Makes the head that of the request to `engine`.
    fn address(&self, engine: &Engine, head: &mut Parts, host: Option<HeaderValue>, need: Need) -> Result<(), Refusal> {
        let uri = engine.uri(&head.uri)?;
        let may_stream = self.endpoint.is_some() || wants_stream(head);
        let to_engine = engine.host(host.as_ref());
        let origin = Origin {
            peer: self.client.peer,
            trust: self.running.trust(self.client.peer),
            scheme: self.client.scheme,
            host,
        };
        headers::forward(&mut head.headers);
        if let Some(name) = forwarded::write(&mut head.headers, &origin)
            && !self.shared.malformed_told.swap(true, Ordering::Relaxed)
        {
            let peer = self.client.peer;
            tracing::warn!(%peer, field = %name, "a trusted peer's field is malformed and goes no further; told once");
        }
        headers::add_via(&mut head.headers, self.version, &self.shared.pseudonym);
        head.headers.insert(HOST, to_engine);
        if may_stream {
            headers::narrow_encoding(&mut head.headers);
        }
        if let Some(name) = &engine.settings.heart.heartbeat_header {
            head.headers.remove(name);
        }
        if need == Need::Upgrade {
            head.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            head.headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        } else if engine.is_http_1() && head.headers.contains_key(http::header::TE) {
            head.headers.insert(CONNECTION, HeaderValue::from_static("te"));
        }
        head.uri = uri;
        head.extensions.clear();
        Ok(())
    }

    /// Waits for the engine's answer as long as the settings, the phase and the client allow.
    async fn wait(&self, engine: &Engine, pending: &mut Sending, mut progress: Progress) -> Result<Waited, Gone> {
        let settings = &engine.settings;
        let (mut is_told, mut commit, mut commit_at, mut late_at) = (false, None, never(), never());
        let mut ending = std::pin::pin!(self.shared.reached(Phase::Ending));
        loop {
            tokio::select! {
                biased;
                answer = &mut *pending => return Ok(match answer {
                    Ok(response) => Waited::Answer(response),
                    Err(error) => Waited::Refuse(fault(&progress).unwrap_or_else(|| {
                        tracing::warn!(upstream = %engine.name, error = %super::log::Chain(&*error), "no answer");
                        failure(&*error, settings.connect_timeout)
                    })),
                }),
                finding = &mut progress.whole, if !is_told => {
                    // The clocks start when the whole body is forwarded; one that broke off starts none.
                    is_told = true;
                    if let Ok(finding) = finding {
                        let now = Instant::now();
                        commit = self.endpoint.and_then(|endpoint| late::plan(endpoint, &finding, settings));
                        commit_at = commit.as_ref().map_or(commit_at, |commit| now + commit.after);
                        late_at = settings.response_timeout.map_or(late_at, |limit| now + limit);
                    }
                }
                () = sleep_until(commit_at), if commit.is_some() => {
                    return Ok(commit.map_or(Waited::Refuse(Refusal::EngineDown), Waited::Commit));
                }
                () = sleep_until(late_at), if is_told && settings.response_timeout.is_some() => {
                    return Ok(Waited::Refuse(Refusal::EngineLate(settings.response_timeout.unwrap_or_default())));
                }
                () = &mut ending => return Ok(Waited::Refuse(Refusal::Draining)),
                () = self.client_gone(), if is_told => return Err(Gone),
            }
        }
    }

    /// Waits for the client to go, where hyper does not look itself. Before the request is whole nobody waits for it.
    async fn client_gone(&self) {
        match &self.line {
            Some(line) => std::future::poll_fn(|cx| line.poll_gone(cx)).await,
            None => std::future::pending().await,
        }
    }
}

/// What the client is told that broke its own request.
fn fault(progress: &Progress) -> Option<Refusal> {
    progress.fault().map(|fault| match fault {
        Fault::Broken => Refusal::BrokenBody,
        Fault::Slow => Refusal::SlowBody,
    })
}

/// The form for the client of this request: the route's, else the request's own where the operator allows it, else what
/// suits the client.
fn form(engine: &Engine, head: &Parts) -> Form {
    let heart = &engine.settings.heart;
    let asked = heart.heartbeat_header.as_ref().and_then(|name| head.headers.get(name));
    if let Some(form) = asked.and_then(|value| value.to_str().ok()?.parse().ok()) {
        return form;
    }
    match &heart.heartbeat {
        FormChoice::Form(form) => form.clone(),
        FormChoice::Auto => Form::auto(head),
    }
}

/// Whether the answer may be a stream although the API is not known.
fn wants_stream(head: &Parts) -> bool {
    let streams = |value: &HeaderValue| {
        let value = value.as_bytes().to_ascii_lowercase();
        memchr::memmem::find(&value, b"text/event-stream").is_some()
            || memchr::memmem::find(&value, b"ndjson").is_some()
    };
    let is_json = |value: &HeaderValue| Format::of_content_type(value) == Some(Format::Json);
    head.headers.get_all(ACCEPT).iter().any(streams)
        || (head.method == Method::POST && head.headers.get(CONTENT_TYPE).is_some_and(is_json))
}

/// A time that no process reaches.
fn never() -> Instant {
    Instant::now() + Duration::from_secs(365 * 24 * 60 * 60)
}

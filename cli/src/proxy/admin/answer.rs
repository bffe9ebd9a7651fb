//! One request of an operator, and its answer. Called by `mod` for each request; nothing here changes the proxy.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, REFERRER_POLICY, RETRY_AFTER,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::task::spawn_blocking;

use super::super::Handle;
use super::super::state::Phase;
use super::feed::Feed;
use super::{listing, metrics, snapshot};
use heartline::{EventBody, KeepAlive};

/// An answer's body: whole, or a stream of events.
pub(super) type Body = Either<Full<Bytes>, KeepAlive<EventBody>>;

/// What every request may look at.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) proxy: Handle,
    pub(super) feed: Feed,
    pub(super) recorder: Option<&'static PrometheusHandle>,
    pub(super) reach: Reach,
}

/// From where the listener can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// From this machine only: then a foreign host name means that a web page has been rebound to this address.
    Loopback,
    /// From elsewhere too, under names that are not known here.
    Network,
}

/// Answers one request.
pub(super) async fn answer<B>(desk: Arc<Desk>, request: Request<B>) -> Result<Response<Body>, Infallible> {
    let mut response = respond(&desk, &request).await;
    let headers = response.headers_mut();
    for (name, value) in SAFETY {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

async fn respond<B>(desk: &Arc<Desk>, request: &Request<B>) -> Response<Body> {
    if desk.reach == Reach::Loopback && !is_local(request.headers()) {
        return text(StatusCode::FORBIDDEN, "the admin listener answers to localhost and addresses only\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "nothing can be changed here\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match request.uri().path() {
        "/" => asset("text/html; charset=utf-8", include_str!("page.html")),
        "/page.css" => asset("text/css; charset=utf-8", include_str!("page.css")),
        "/page.js" => asset("text/javascript; charset=utf-8", include_str!("page.js")),
        "/icon.svg" => asset("image/svg+xml", include_str!("icon.svg")),
        "/healthz" => text(StatusCode::OK, "alive\n"),
        "/readyz" => ready(desk.proxy.state().phase),
        "/metrics" => recorded(desk).await,
        "/streams" => streams(desk, request.uri().query()).await,
        "/events" => events(desk, request.method()),
        _ => text(
            StatusCode::NOT_FOUND,
            "try /, /healthz, /readyz, /metrics, /streams or /events; clients of the engine use another port\n",
        ),
    }
}

fn ready(phase: Phase) -> Response<Body> {
    match phase {
        Phase::Serving => text(StatusCode::OK, "ready\n"),
        _ => text(StatusCode::SERVICE_UNAVAILABLE, snapshot::word(phase)),
    }
}

async fn recorded(desk: &Arc<Desk>) -> Response<Body> {
    let Some(recorder) = desk.recorder else {
        return text(
            StatusCode::NOT_FOUND,
            "this process records its metrics elsewhere: another recorder was installed before the proxy\n",
        );
    };
    let proxy = desk.proxy.clone();
    let rendered = spawn_blocking(move || metrics::render(recorder, &proxy)).await;
    rendered.map_or_else(|_| broken(), |text| whole(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text))
}

async fn streams(desk: &Arc<Desk>, query: Option<&str>) -> Response<Body> {
    let Some(limit) = listing::limit(query) else {
        return text(StatusCode::BAD_REQUEST, "limit is a number of streams, as in /streams?limit=50\n");
    };
    let proxy = desk.proxy.clone();
    let listed = spawn_blocking(move || listing::json(&proxy.streams(), limit)).await;
    listed.map_or_else(|_| broken(), |json| whole(StatusCode::OK, "application/json", json))
}

fn events(desk: &Arc<Desk>, method: &Method) -> Response<Body> {
    if method == Method::HEAD {
        return whole(StatusCode::OK, EVENT_STREAM, "");
    }
    match desk.feed.subscribe() {
        Some(body) => {
            let mut response = Response::new(Either::Right(body));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
            response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
            response
        }
        None => {
            let mut response = text(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open: close one\n");
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
            response
        }
    }
}

/// Whether the request names this machine as the one it means, by `localhost` or by an address.
fn is_local(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST) else { return true }; // no browser leaves it out
    let Ok(authority) = host.to_str().unwrap_or_default().parse::<http::uri::Authority>() else { return false };
    let name = authority.host();
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::IpAddr>().is_ok()
}

fn asset(content_type: &'static str, content: &'static str) -> Response<Body> {
    whole(StatusCode::OK, content_type, content)
}

fn text(status: StatusCode, line: &'static str) -> Response<Body> {
    whole(status, "text/plain; charset=utf-8", line)
}

fn broken() -> Response<Body> {
    text(StatusCode::INTERNAL_SERVER_ERROR, "the figures could not be gathered\n")
}

fn whole(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::new(body.into())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

const EVENT_STREAM: &str = "text/event-stream";

/// On every answer. The page loads its own three files and reads `/events`; nothing else, and nothing may frame it.
const SAFETY: [(HeaderName, &str); 5] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (CACHE_CONTROL, "no-store"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rebound_name_is_not_local() {
        let local = |host: &'static str| {
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
            is_local(&headers)
        };
        assert!(local("localhost:9900") && local("127.0.0.1:9900") && local("[::1]:9900") && local("LOCALHOST"));
        assert!(!local("evil.example:9900") && !local("localhost.evil.example") && !local("") && !local("a b"));
        assert!(is_local(&HeaderMap::new()));
    }
}

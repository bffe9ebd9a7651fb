//! From a request to its response: read, understand, plan, decide when the headers go.
//!
//! Called by the server for each request; dropped with its connection, also while it waits for the first token.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full, Limited};

use super::body::ScriptBody;
use super::call::{Ask, Call, Refusal};
use super::choices::{Heartbeat, WaitMode};
use super::queue::Queue;
use super::script::plan;
use super::settings::Settings;
use super::stats::{Stats, Ticket};
use heartline::BoxError;
use heartline::Form;
use heartline::Format;
use heartline::Heartline;
use heartline::KeepAlive;
use heartline::api::Api;

/// What all requests of one engine share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) queue: Arc<Queue>,
    pub(crate) stats: Stats,
    /// Keeps streams alive; `None` when heartbeats are off.
    pub(crate) heart: Option<Heartline>,
}

impl Shared {
    /// The broadcaster, for an answer that may carry heartbeats.
    fn heart_for(&self, call: &Call) -> Option<&Heartline> {
        self.heart.as_ref().filter(|_| call.is_streamed() || self.settings.heartbeat_json)
    }
}

/// The body of any response of the engine.
#[derive(Debug)]
pub(crate) enum AnswerBody {
    Whole(Full<Bytes>),
    Bare(ScriptBody),
    Kept(KeepAlive<ScriptBody>),
}

/// Answers one request; a bad one is answered with an error in the shape of its API.
pub(crate) async fn answer<B>(shared: Arc<Shared>, request: Request<B>) -> Result<Response<AnswerBody>, Infallible>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let index = shared.stats.request();
    let (parts, body) = request.into_parts();
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let ask = match read(&shared.settings, &parts.headers, target, body).await {
        Ok(body) => Ask::read(&shared.settings, Some(&parts.method), target, &body),
        Err(refusal) => Err(refusal),
    };
    Ok(match ask {
        Ok(Ask::Models(json)) => json_response(StatusCode::OK, json.into()),
        Ok(Ask::Generate(call)) if parts.method == Method::HEAD => response(&call, StatusCode::OK, AnswerBody::empty()),
        Ok(Ask::Generate(call)) => generate(&shared, &parts, call, index).await,
        Err(refusal) => {
            shared.stats.refuse();
            refused(refusal)
        }
    })
}

/// Reads the request's body.
async fn read<B>(settings: &Settings, headers: &HeaderMap, target: &str, body: B) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let api = if path == "/" { settings.api } else { Api::nearest(path, Some(query)) };
    let refuse = |status, message: &str| Refusal::new(api, status, message, None);
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        let message = "an encoded body is not understood; send it as it is";
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    match Limited::new(body, REQUEST_BYTES_MAX).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            let message = format!("the body is longer than {REQUEST_BYTES_MAX} bytes");
            Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, &message))
        }
        Err(error) => Err(refuse(StatusCode::BAD_REQUEST, &format!("the body cannot be read: {error}"))),
    }
}

/// Plans the answer and sends its headers when the terms say so.
async fn generate(shared: &Shared, parts: &Parts, call: Box<Call>, index: u64) -> Response<AnswerBody> {
    let ticket = Ticket::new(&shared.stats);
    let plan = plan(call.clone(), index);
    let fails = plan.fails_as_document();
    let mut body = ScriptBody::new(plan, Arc::clone(&shared.queue), ticket);
    let at_once = match call.terms.wait_headers {
        // A heartbeat cannot go before the headers.
        WaitMode::Usual => shared.heart_for(&call).is_some() || call.is_streamed(),
        WaitMode::AtOnce => true,
        WaitMode::FirstToken => false,
    };
    if at_once {
        return response(&call, StatusCode::OK, keep_alive(shared, parts, &call, body));
    }
    body.first_chunk().await;
    let status = if fails { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK };
    let body = match body.document() {
        Some(document) => AnswerBody::Whole(Full::new(document)),
        None => keep_alive(shared, parts, &call, body),
    };
    response(&call, status, body)
}

/// Embeds the library: this is all that a server does for its heartbeats.
fn keep_alive(shared: &Shared, parts: &Parts, call: &Call, body: ScriptBody) -> AnswerBody {
    let Some(heart) = shared.heart_for(call) else {
        return AnswerBody::Bare(body);
    };
    let format = match call.is_streamed() {
        true => call.api.format(),
        false => Format::Json,
    };
    let mut stream = heart.stream().format(format).label(call.api.label()).error_shape(call.api.error_shape(format));
    if shared.settings.heartbeat == Heartbeat::Auto {
        stream = stream.form(Form::auto(parts));
    }
    AnswerBody::Kept(stream.wrap(body))
}

fn response(call: &Call, status: StatusCode, body: AnswerBody) -> Response<AnswerBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if !call.is_streamed() {
        headers.insert(CONTENT_TYPE, JSON);
        return response;
    }
    headers.insert(CONTENT_TYPE, if call.api.format() == Format::Ndjson { NDJSON } else { EVENT_STREAM });
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

fn refused(refusal: Refusal) -> Response<AnswerBody> {
    let mut response = json_response(refusal.status, refusal.json.into());
    if let Some(allow) = refusal.allow {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    }
    response
}

fn json_response(status: StatusCode, json: Bytes) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::Whole(Full::new(json)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

impl AnswerBody {
    fn empty() -> Self {
        Self::Whole(Full::new(Bytes::new()))
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Self::Whole(body) => Pin::new(body).poll_frame(cx).map_err(BoxError::from),
            Self::Bare(body) => Pin::new(body).poll_frame(cx).map_err(BoxError::from),
            Self::Kept(body) => Pin::new(body).poll_frame(cx).map_err(BoxError::from),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_end_stream(),
            Self::Bare(body) => body.is_end_stream(),
            Self::Kept(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Bare(body) => body.size_hint(),
            Self::Kept(body) => body.size_hint(),
        }
    }
}

/// Longer prompts than any test needs, and short enough that a thousand of them fit in memory.
const REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream; charset=utf-8");
const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

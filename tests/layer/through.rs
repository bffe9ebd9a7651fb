//! A response sent through the layer, and what was counted meanwhile; for the tests of the layer.
#![allow(dead_code, unreachable_pub)] // each test binary uses its own part

use crate::common::Silent;
use bytes::Bytes;
use heartline::{HeartlineLayer, KeepAlive};
use http::header::HeaderMap;
use http::{Method, Request, Response};
use http_body::Body;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use std::convert::Infallible;
use std::future::ready;
use tower::{Layer, ServiceExt, service_fn};

pub type Fields<'a> = &'a [(&'static str, &'a str)];

pub const EVENTS: (&str, &str) = ("content-type", "text/event-stream");

pub fn response<B>(status: u16, fields: Fields<'_>, body: B) -> Response<B> {
    let mut response = Response::builder().status(status);
    for (name, value) in fields {
        response = response.header(*name, *value);
    }
    response.body(body).unwrap()
}

/// What `layer` makes of `response` to a request of `method` for `/`.
pub async fn through<B>(layer: &HeartlineLayer, method: Method, response: Response<B>) -> Response<KeepAlive<B>>
where
    B: Body<Data = Bytes>,
    B::Error: Into<heartline::BoxError>,
{
    let mut response = Some(response);
    let handler = service_fn(move |_: Request<()>| ready(Ok::<_, Infallible>(response.take().expect("called once"))));
    let request = Request::builder().method(method).uri("/").body(()).unwrap();
    layer.layer(handler).oneshot(request).await.unwrap()
}

/// As [`through`], for GET and a silent body.
pub async fn silent(layer: &HeartlineLayer, fields: Fields<'_>) -> Response<KeepAlive<Silent>> {
    through(layer, Method::GET, response(200, fields, Silent)).await
}

pub fn lines(headers: &HeaderMap, name: &str) -> Vec<String> {
    headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
}

/// The counter `name{key=value}`, from the records since the last call.
pub fn counted(snapshotter: &Snapshotter, name: &str, value: &str) -> u64 {
    let metrics = snapshotter.snapshot().into_vec();
    let found = metrics
        .into_iter()
        .find(|(key, ..)| key.key().name() == name && key.key().labels().any(|label| label.value() == value));
    match found {
        Some((.., DebugValue::Counter(count))) => count,
        _ => 0,
    }
}

/// Runs `test` with paused time and a recorder of its own.
pub fn recorded<F: Future>(test: impl FnOnce(Snapshotter) -> F) -> F::Output {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    metrics::with_local_recorder(&recorder, || runtime.block_on(test(snapshotter)))
}

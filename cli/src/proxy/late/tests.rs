//! One test for each row of `docs/waiting-for-headers.md`, through the wrapper that a committed answer goes out with: an engine
//! and a client for them, both driven by hand.

mod answers;
mod ends;
mod plan;

use std::io;
use std::task::Waker;

use futures::FutureExt;
use futures::channel::{mpsc, oneshot};
use futures::future::BoxFuture;
use http::{HeaderMap, Method};
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use serde_json::{Value, json};

use super::*;
use heartline::{Failures, Heartline, KeepAlive, StreamError};

type EngineBody = UnsyncBoxBody<Bytes, io::Error>;
type Committed = KeepAlive<LateBody<BoxFuture<'static, Result<Response<EngineBody>, BoxError>>, EngineBody>>;

/// The engine's side of one request.
struct Engine {
    answer: Option<oneshot::Sender<Result<Response<EngineBody>, BoxError>>>,
    body: Option<mpsc::UnboundedSender<io::Result<Frame<Bytes>>>>,
}

impl Engine {
    /// Answers with a body that goes on.
    fn begin(&mut self, status: u16, fields: &[(&str, &str)], bytes: &'static str) {
        let (sender, receiver) = mpsc::unbounded();
        let mut response = Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        let body = StreamBody::new(receiver);
        let response = response.body(EngineBody::new(body)).unwrap();
        assert!(self.answer.take().unwrap().send(Ok(response)).is_ok(), "the request is still there");
        self.body = Some(sender);
        if !bytes.is_empty() {
            self.write(bytes);
        }
    }

    /// Answers whole.
    fn answer(&mut self, status: u16, fields: &[(&str, &str)], bytes: &'static str) {
        self.begin(status, fields, bytes);
        self.body = None;
    }

    fn write(&self, bytes: &'static str) {
        self.body.as_ref().unwrap().unbounded_send(Ok(Frame::data(Bytes::from_static(bytes.as_bytes())))).unwrap();
    }

    /// Breaks off.
    fn tear(&mut self) {
        let body = self.body.take().unwrap();
        body.unbounded_send(Err(io::Error::from(io::ErrorKind::ConnectionReset))).unwrap();
    }

    /// Never answers.
    fn fail(&mut self, kind: io::ErrorKind) {
        assert!(self.answer.take().unwrap().send(Err(Box::new(io::Error::from(kind)))).is_ok());
    }

    fn is_dropped(&self) -> bool {
        self.answer.as_ref().is_none_or(oneshot::Sender::is_canceled)
            && self.body.as_ref().is_none_or(mpsc::UnboundedSender::is_closed)
    }
}

const CHAT: &str = "/v1/chat/completions";
const EVENTS: (&str, &str) = ("content-type", "text/event-stream; charset=utf-8");
const LINES: (&str, &str) = ("content-type", "application/x-ndjson");
const JSON: (&str, &str) = ("content-type", "application/json");

fn endpoint(path: &str) -> Endpoint {
    Endpoint::of_request(&Method::POST, &path.parse().unwrap(), &HeaderMap::new()).expect("on the list")
}

fn api(path: &str) -> Api {
    endpoint(path).api()
}

fn heart() -> Heartline {
    Heartline::builder().interval(Duration::from_secs(10)).build().unwrap()
}

fn commit_as(path: &str, format: Format) -> (Engine, Committed) {
    let (sender, receiver) = oneshot::channel();
    let pending = receiver.map(|answer| answer.unwrap_or_else(|_| Err("gone".into()))).boxed();
    let late = LateBody::new(pending, api(path), format);
    let shape = late.error_shape();
    let stream = heart().stream().format(format).error_shape(shape).failures(Failures::ReportThenAbort);
    (Engine { answer: Some(sender), body: None }, stream.wrap(late))
}

/// A stream that was committed.
fn commit(path: &str) -> (Engine, Committed) {
    commit_as(path, api(path).format())
}

/// One poll: `None` is pending.
fn poll(body: &mut Committed) -> Option<Option<Result<Bytes, StreamError>>> {
    match Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => None,
        Poll::Ready(frame) => Some(frame.map(|frame| frame.map(|frame| frame.into_data().unwrap_or_default()))),
    }
}

fn ready(body: &mut Committed) -> String {
    let mut text = String::new();
    while let Some(Some(Ok(data))) = poll(body) {
        text.push_str(std::str::from_utf8(&data).unwrap());
    }
    text
}

async fn pass(seconds: u64) {
    for _ in 0..512 {
        tokio::task::yield_now().await;
    }
    tokio::time::advance(Duration::from_secs(seconds)).await;
    for _ in 0..512 {
        tokio::task::yield_now().await;
    }
}

/// Everything until the end, and that it is a clean one.
fn to_clean_end(body: &mut Committed) -> String {
    let text = ready(body);
    assert!(matches!(poll(body), Some(None)), "a clean end");
    assert!(body.is_end_stream());
    text
}

/// Everything until the abort; `Pending` once before it, so that the connection writes what it has.
fn to_abort(body: &mut Committed) -> String {
    let mut text = String::new();
    let mut flushes = 0;
    loop {
        match poll(body) {
            Some(Some(Ok(data))) => text.push_str(std::str::from_utf8(&data).unwrap()),
            Some(Some(Err(_))) => break,
            Some(None) => panic!("a clean end after {text:?}"),
            None => {
                flushes += 1;
                assert!(flushes < 3, "silent after {text:?}");
            }
        }
    }
    assert!(text.is_empty() || flushes == 1, "not flushed: {text:?}");
    assert!(matches!(poll(body), Some(None)), "nothing follows an abort");
    text
}

/// The JSON of the first `data:` line, or of the line or document.
fn first(text: &str) -> Value {
    let line = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(text);
    serde_json::from_str(line.trim()).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

#[test]
fn every_row_of_the_page_names_a_test() {
    let tests = [include_str!("tests/answers.rs"), include_str!("tests/ends.rs")].concat();
    let page = include_str!("../../../../docs/waiting-for-headers.md");
    let table = page.split("\n## ").find(|section| section.starts_with("What becomes")).unwrap();
    let rows: Vec<_> = table.lines().filter(|line| line.starts_with("| ") && !line.ends_with(" test |")).collect();
    assert!(rows.len() >= 10, "{rows:?}");
    for row in rows {
        let test = row.rsplit('`').nth(1).unwrap();
        assert!(tests.contains(&format!("fn {test}(")), "no test {test}");
    }
}

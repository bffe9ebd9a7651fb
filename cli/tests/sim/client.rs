//! An engine on a free port, a client for one request, and readers of what came. Used by every test of the engine.

use bytes::Bytes;
use heartline::{BoxError, Heartline};
use heartline_cli::sim::{Delay, Engine, Settings, Stats, expected_body};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{sleep, timeout};

/// An engine that serves.
pub(crate) struct Served {
    pub(crate) settings: Settings,
    pub(crate) address: SocketAddr,
    pub(crate) stats: Stats,
    pub(crate) heart: Option<Heartline>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// All of one answer.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The frames as they came, up to the end or the break.
    pub(crate) frames: Vec<Bytes>,
    /// The body ended with an error.
    pub(crate) broken: bool,
}

/// Settings without delays, on any free port.
pub(crate) fn quick() -> Settings {
    Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        ttft: Delay::ZERO,
        itl: Delay::ZERO,
        tokens: 12,
        ..Settings::default()
    }
}

/// A request's body that asks for a stream.
pub(crate) const STREAM: &str = r#"{"stream":true}"#;

impl Served {
    pub(crate) async fn start(settings: Settings) -> Self {
        let engine = Engine::bind(settings.clone()).await.unwrap();
        let (address, stats, heart) = (engine.local_addr(), engine.stats(), engine.heart().cloned());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(engine.run_until(async move {
            // A test that ended without a word stops its engine too.
            let _ = stopped.await;
        }));
        Self { settings, address, stats, heart, stop, task }
    }

    /// Asks the engine to stop; the handle ends when it has.
    pub(crate) fn stop(self) -> JoinHandle<()> {
        self.stop.send(()).unwrap();
        self.task
    }

    /// Sends one request on its own connection; returns when the headers are there.
    pub(crate) async fn send(&self, method: Method, target: &str, body: &str) -> Result<Response<Incoming>, BoxError> {
        let request = Request::builder().method(method).uri(target).header("host", "sim").body(text(body))?;
        self.send_request(request).await
    }

    pub(crate) async fn send_request(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, BoxError> {
        let socket = TcpStream::connect(self.address).await?;
        let (mut sender, connection) = conn::http1::handshake(TokioIo::new(socket)).await?;
        tokio::spawn(connection);
        Ok(sender.send_request(request).await?)
    }

    /// Opens a connection for HTTP/2 requests.
    pub(crate) async fn http2(&self) -> conn::http2::SendRequest<Full<Bytes>> {
        let socket = TcpStream::connect(self.address).await.unwrap();
        let (sender, connection) = conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    /// Posts a request and reads all of its answer.
    pub(crate) async fn post(&self, target: &str, body: &str) -> Answer {
        Answer::read(self.send(Method::POST, target, body).await.unwrap()).await
    }

    pub(crate) fn expected(&self, target: &str, body: &str) -> Bytes {
        expected_body(&self.settings, target, body.as_bytes())
    }
}

impl Answer {
    pub(crate) async fn read(response: Response<Incoming>) -> Self {
        let (parts, mut body) = response.into_parts();
        let (mut frames, mut broken) = (Vec::new(), false);
        while let Some(frame) = soon(body.frame()).await {
            match frame {
                Ok(frame) => frames.extend(frame.into_data().ok()),
                Err(_) => {
                    broken = true;
                    break;
                }
            }
        }
        Self { status: parts.status, headers: parts.headers, frames, broken }
    }

    pub(crate) fn bytes(&self) -> Bytes {
        Bytes::from(self.frames.concat())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.frames.concat()).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.text()).unwrap()
    }
}

pub(crate) fn text(body: &str) -> Full<Bytes> {
    Full::new(Bytes::copy_from_slice(body.as_bytes()))
}

/// The events of an event stream as name and data, by the rules of the HTML standard.
pub(crate) fn events(stream: &str) -> Vec<(String, String)> {
    let stream = stream.strip_prefix('\u{feff}').unwrap_or(stream);
    let (mut events, mut name, mut data) = (Vec::new(), String::new(), Vec::new());
    for line in stream.replace("\r\n", "\n").replace('\r', "\n").split('\n') {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = value.to_owned(),
            "data" => data.push(value.to_owned()),
            "" if line.is_empty() => {
                let name = std::mem::take(&mut name);
                if !data.is_empty() {
                    events.push((name, std::mem::take(&mut data).join("\n")));
                }
            }
            _ => {}
        }
    }
    events
}

/// Waits for something that has to happen; fails the test when it does not.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    timeout(Duration::from_secs(10), future).await.expect("this happens soon")
}

/// Waits until a condition holds.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    soon(async {
        while !condition() {
            yield_now().await;
            sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

/// Whether a future is still pending after a moment that is long for a loopback socket.
pub(crate) async fn is_silent<F: Future + Unpin>(future: &mut F) -> bool {
    timeout(Duration::from_millis(60), future).await.is_err()
}

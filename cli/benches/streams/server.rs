//! The server's process: one of the variants behind a loopback listener; `main` runs it when the role says so.

use std::convert::Infallible;
use std::pin::Pin;
use std::process::ExitCode;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::response::sse;
use axum::serve::ListenerExt;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use heartline::Heartline;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use pin_project_lite::pin_project;
use tokio::net::TcpListener;
use tokio::time::{Instant, Sleep};

use crate::settings::{INTERVAL, TOKEN_INTERVAL, Variant};
use crate::{control, floor};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Serves `VARIANT STREAMS LIVE WORKERS` until the parent goes.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let variant = Variant::of_name(&arguments[0]).expect("the parent passes a known variant");
    let count = |place: usize| arguments[place].parse::<usize>().expect("the parent passes numbers");
    let (streams, live, workers) = (count(1), count(2), count(3));

    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
    let port = listener.local_addr().expect("a bound listener has an address").port();
    // What comes after this line (runtime, registry) counts as memory of the streams.
    control::say(&format!("{port} {}", figures()));
    std::thread::spawn(|| control::answer(|_| figures()));

    if variant == Variant::Floor {
        // A client that goes first is how every run ends.
        let _ = floor::serve(&listener, streams);
        loop {
            std::thread::park();
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .expect("a runtime starts");
    runtime.block_on(async move {
        listener.set_nonblocking(true).expect("a listener can be made non-blocking");
        let listener = TcpListener::from_std(listener).expect("the listener is registered");
        // In a task, so that accepting takes part in the workers' life as in any server.
        let served = tokio::spawn(async move {
            match variant {
                Variant::Floor => unreachable!("served above"),
                Variant::Axum => axum(listener).await,
                Variant::Sleep => hyper(listener, |_| boxed(Beating::new())).await,
                Variant::Bare if live > 0 => hyper(listener, |is_live| boxed(Mixed::new(is_live))).await,
                Variant::Bare => hyper(listener, |_| boxed(Idle::default())).await,
                Variant::Heartline => heartline(listener, live).await,
            }
        });
        served.await.expect("the server does not panic");
    });
    ExitCode::SUCCESS
}

/// What this process has used so far: µs of CPU, heap bytes, resident bytes, allocations.
fn figures() -> String {
    let (cpu_us, heap_bytes) = (control::cpu().as_micros(), control::heap_bytes());
    format!("{cpu_us} {heap_bytes} {} {}", control::rss_bytes(), control::allocations())
}

/// heartline around every body, live ones included.
async fn heartline(listener: TcpListener, live: usize) {
    let heart = Heartline::builder().interval(INTERVAL).build().expect("the interval is valid");
    if live > 0 {
        hyper(listener, move |is_live| boxed(heart.keep_alive(Mixed::new(is_live)))).await;
    } else {
        hyper(listener, move |_| boxed(heart.keep_alive(Idle::default()))).await;
    }
}

/// A body as servers with more than one kind of response have it, axum among them. It also makes the memory figure
/// plain: hyper has room for the body type twice (in the handler's future and in the dispatcher), so that without a box
/// whatever a body type adds would count twice.
fn boxed<B>(body: B) -> UnsyncBoxBody<Bytes, BoxError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    UnsyncBoxBody::new(body.map_err(Into::into))
}

/// The hyper builder that every variant but the floor and axum uses. Without `writev` hyper lays a chunk's size, bytes and
/// end into one buffer: for frames of a few bytes that is cheaper than a system call that gathers three.
async fn hyper<F>(listener: TcpListener, body_of: F)
where
    F: Fn(bool) -> UnsyncBoxBody<Bytes, BoxError> + Clone + Send + Sync + 'static,
{
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            continue;
        };
        let _ = socket.set_nodelay(true);
        let body_of = body_of.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let response = hyper::Response::builder()
                    .header(hyper::header::CONTENT_TYPE, "text/event-stream")
                    .body(body_of(request.uri().path() == "/live"))
                    .expect("a static header is valid");
                async move { Ok::<_, Infallible>(response) }
            });
            // An error is the client's going, which ends every run.
            let mut builder = hyper::server::conn::http1::Builder::new();
            let _ = builder.writev(false).serve_connection(TokioIo::new(socket), service).await;
        });
    }
}

/// axum as its documentation shows it. `Event::default()` as the keep-alive event is finalised to exactly `\n`, so the
/// bytes on the wire are those of the other servers.
async fn axum(listener: TcpListener) {
    let router = axum::Router::new().route("/idle", axum::routing::get(axum_events));
    let listener = listener.tap_io(|socket| {
        let _ = socket.set_nodelay(true);
    });
    axum::serve(listener, router).await.expect("axum serves until the process ends");
}

async fn axum_events() -> sse::Sse<sse::KeepAliveStream<impl Stream<Item = Result<sse::Event, Infallible>>>> {
    let events = futures::stream::iter([Ok(sse::Event::default())]).chain(futures::stream::pending());
    sse::Sse::new(events).keep_alive(sse::KeepAlive::new().interval(INTERVAL).event(sse::Event::default()))
}

/// Sends one byte, then waits forever: an engine in prefill. Aligned as bodies usually are, so that what a wrapper adds is
/// what it adds to those.
struct Idle {
    byte: Bytes,
    begun: bool,
}

impl Default for Idle {
    fn default() -> Self {
        Self { byte: Bytes::from_static(b"\n"), begun: false }
    }
}

impl Body for Idle {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if std::mem::replace(&mut self.begun, true) {
            return Poll::Pending;
        }
        Poll::Ready(Some(Ok(Frame::data(self.byte.clone()))))
    }
}

pin_project! {
    // `Idle` with a timer of its own: the first sketch of a heartbeat. It is rearmed from its own deadline, without a
    // look at the clock, which is the least a timer per stream can cost.
    struct Beating {
        idle: Idle,
        #[pin]
        sleep: Sleep,
    }
}

impl Beating {
    fn new() -> Self {
        Self { idle: Idle::default(), sleep: tokio::time::sleep(INTERVAL) }
    }
}

impl Body for Beating {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut this = self.project();
        if let Poll::Ready(frame) = Pin::new(this.idle).poll_frame(context) {
            return Poll::Ready(frame);
        }
        std::task::ready!(this.sleep.as_mut().poll(context));
        let due = this.sleep.deadline() + INTERVAL;
        this.sleep.reset(due);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"\n")))))
    }
}

pin_project! {
    // An idle body, or one that sends a token every `TOKEN_INTERVAL`.
    #[project = MixedProjection]
    enum Mixed {
        Idle { idle: Idle },
        Live { due_ns: u64, #[pin] sleep: Sleep },
    }
}

impl Mixed {
    fn new(live: bool) -> Self {
        if !live {
            return Self::Idle { idle: Idle::default() };
        }
        // The first token comes after a time that differs from stream to stream, so that tokens are spread over the interval.
        let (now, now_ns) = (Instant::now(), control::monotonic_ns());
        let phase = TOKEN_INTERVAL + Duration::from_nanos(now_ns % 20_000_000);
        Self::Live { due_ns: now_ns + phase.as_nanos() as u64, sleep: tokio::time::sleep_until(now + phase) }
    }
}

impl Body for Mixed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.project() {
            MixedProjection::Idle { idle } => Pin::new(idle).poll_frame(context),
            MixedProjection::Live { due_ns, mut sleep } => {
                std::task::ready!(sleep.as_mut().poll(context));
                let token = Bytes::from(format!("data: {due_ns:016x}\n\n"));
                *due_ns += TOKEN_INTERVAL.as_nanos() as u64;
                let due = sleep.deadline() + TOKEN_INTERVAL;
                sleep.reset(due);
                Poll::Ready(Some(Ok(Frame::data(token))))
            }
        }
    }
}

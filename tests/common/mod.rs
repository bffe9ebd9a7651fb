//! What the tests of the library share: a body that a test drives, and a reader that polls without a server.
#![allow(dead_code)] // each test binary uses its own part

use bytes::Bytes;
use heartline::{Heartline, KeepAlive};
use http_body::{Body, Frame};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// A broadcaster with `seconds` of interval.
pub(crate) fn heart(seconds: u64) -> Heartline {
    Heartline::builder().interval(Duration::from_secs(seconds)).build().expect("valid settings")
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[derive(Default)]
struct Script {
    frames: VecDeque<Result<Frame<Bytes>, std::io::Error>>,
    ended: bool,
    waker: Option<Waker>,
    polls: usize,
    dropped: bool,
}

/// A body that sends what its [`Engine`] is told to.
pub(crate) struct Scripted(Arc<Mutex<Script>>);

/// The hand that drives a [`Scripted`] body.
#[derive(Clone)]
pub(crate) struct Engine(Arc<Mutex<Script>>);

/// A silent body and the hand that drives it.
pub(crate) fn engine() -> (Engine, Scripted) {
    let script = Arc::new(Mutex::new(Script::default()));
    (Engine(Arc::clone(&script)), Scripted(script))
}

impl Engine {
    fn change(&self, change: impl FnOnce(&mut Script)) {
        let waker = {
            let mut script = self.0.lock().expect("not poisoned");
            change(&mut script);
            script.waker.take()
        };
        waker.inspect(|waker| waker.wake_by_ref());
    }

    pub(crate) fn send(&self, bytes: &'static str) {
        self.change(|script| script.frames.push_back(Ok(Frame::data(Bytes::from_static(bytes.as_bytes())))));
    }

    pub(crate) fn send_trailers(&self, trailers: http::HeaderMap) {
        self.change(|script| script.frames.push_back(Ok(Frame::trailers(trailers))));
    }

    pub(crate) fn fail(&self, message: &'static str) {
        self.change(|script| script.frames.push_back(Err(std::io::Error::other(message))));
    }

    pub(crate) fn end(&self) {
        self.change(|script| script.ended = true);
    }

    pub(crate) fn polls(&self) -> usize {
        self.0.lock().expect("not poisoned").polls
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.0.lock().expect("not poisoned").dropped
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.0.lock().expect("not poisoned").dropped = true;
    }
}

impl Body for Scripted {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let mut script = self.0.lock().expect("not poisoned");
        script.polls += 1;
        match script.frames.pop_front() {
            Some(frame) => Poll::Ready(Some(frame)),
            None if script.ended => Poll::Ready(None),
            None => {
                script.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// A body that never sends anything and never fails.
pub(crate) struct Silent;

impl Body for Silent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

/// Polls once without waiting; `None` is pending.
pub(crate) fn poll_once<B>(body: &mut KeepAlive<B>) -> Option<Option<Result<Frame<Bytes>, heartline::StreamError>>>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<heartline::BoxError>,
{
    match pin!(body).poll_frame(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => None,
        Poll::Ready(frame) => Some(frame),
    }
}

/// Every data byte that is ready now.
pub(crate) fn read_ready<B>(body: &mut KeepAlive<B>) -> String
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<heartline::BoxError>,
{
    let mut text = String::new();
    while let Some(Some(Ok(frame))) = poll_once(body) {
        text.push_str(std::str::from_utf8(&frame.into_data().unwrap_or_default()).expect("UTF-8"));
    }
    text
}

/// Lets the interval task do everything that is due now.
pub(crate) async fn settle() {
    // A sweep yields between slices: at least three for 256 lanes, 625 for 10,000 heartbeats.
    for _ in 0..1_024 {
        tokio::task::yield_now().await;
    }
}

/// Moves paused time on and lets the interval task run.
pub(crate) async fn pass(duration: Duration) {
    settle().await;
    tokio::time::advance(duration).await;
    settle().await;
}

/// Moves paused time on in steps of a quarter of a second.
pub(crate) async fn pass_slowly(duration: Duration) {
    let step = Duration::from_millis(250);
    let mut left = duration;
    while !left.is_zero() {
        let now = step.min(left);
        pass(now).await;
        left -= now;
    }
}

/// A waker that runs a closure.
pub(crate) struct Hook<F: Fn() + Send + Sync>(pub(crate) F);

impl<F: Fn() + Send + Sync + 'static> Hook<F> {
    pub(crate) fn waker(run: F) -> Waker {
        Waker::from(Arc::new(Self(run)))
    }
}

impl<F: Fn() + Send + Sync> Wake for Hook<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

//! A response body that is cut when it stays silent, and the count of cuts; used by the gateway for every response.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};

use heartline::BoxError;

pin_project! {
    /// Passes `inner` on and ends with an error once no byte of it came for `cut_after`.
    ///
    /// The server that sends it aborts the connection at the error, as a hop does that loses its patience.
    #[derive(Debug)]
    pub(crate) struct CutBody<B> {
        #[pin]
        inner: B,
        #[pin]
        deadline: Sleep,
        cut_after: Duration,
        cuts: Cuts,
        // The task that drives the connection `inner` comes from; it must not outlive this body.
        connection: JoinSet<()>,
    }
}

impl<B> CutBody<B> {
    /// Starts the patience now; dropping the body ends `connection`.
    pub(crate) fn new(inner: B, cut_after: Duration, cuts: Cuts, connection: JoinSet<()>) -> Self {
        Self { inner, deadline: tokio::time::sleep(cut_after), cut_after, cuts, connection }
    }
}

impl<B> Body for CutBody<B>
where
    B: Body,
    B::Data: bytes::Buf,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let mut this = self.project();
        let Poll::Ready(frame) = this.inner.poll_frame(cx) else {
            ready!(this.deadline.poll(cx));
            this.cuts.add();
            return Poll::Ready(Some(Err(Box::new(Silent(*this.cut_after)))));
        };
        if let Some(Ok(frame)) = &frame
            && frame.data_ref().is_some_and(bytes::Buf::has_remaining)
        {
            this.deadline.as_mut().reset(Instant::now() + *this.cut_after);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// How many responses a gateway has cut; clones share one count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cuts(Arc<AtomicUsize>);

impl Cuts {
    /// Counts one more.
    pub(crate) fn add(&self) {
        // A count on its own: nothing is published with it, so no ordering is needed.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Responses cut so far.
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why a body was cut.
#[derive(Debug)]
struct Silent(Duration);

impl std::fmt::Display for Silent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cut after {:?} of silence", self.0)
    }
}

impl std::error::Error for Silent {}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;
    use futures::StreamExt;
    use http_body_util::{BodyExt, StreamBody};

    use super::*;

    /// A body whose chunks come at the given times after the start, in milliseconds.
    fn timed(chunks: &'static [(u64, &'static str)]) -> impl Body<Data = Bytes, Error = Infallible> {
        let start = Instant::now();
        StreamBody::new(futures::stream::iter(chunks).then(move |(at_ms, text)| async move {
            tokio::time::sleep_until(start + Duration::from_millis(*at_ms)).await;
            Ok(Frame::data(Bytes::from_static(text.as_bytes())))
        }))
    }

    fn cut<B>(inner: B, cuts: &Cuts) -> CutBody<B> {
        CutBody::new(inner, Duration::from_millis(100), cuts.clone(), JoinSet::new())
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_never_silent_for_long_passes_whole() {
        let cuts = Cuts::default();
        let body = cut(timed(&[(90, "a"), (180, "b"), (270, "c"), (360, "d")]), &cuts);
        let whole = body.collect().await.expect("no silence of 100 ms").to_bytes();
        assert_eq!(whole, "abcd");
        assert_eq!(cuts.count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_body_is_cut_when_the_patience_ends() {
        let cuts = Cuts::default();
        let start = Instant::now();
        let mut body = Box::pin(cut(timed(&[(50, "a"), (151, "b")]), &cuts));
        let first = body.frame().await.expect("a frame").expect("no error");
        assert_eq!(first.into_data().expect("data"), "a");
        let error = body.frame().await.expect("a frame").expect_err("silent for 101 ms");
        assert_eq!(error.to_string(), "cut after 100ms of silence");
        assert_eq!(start.elapsed(), Duration::from_millis(150));
        assert_eq!(cuts.count(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_empty_frame_is_silence() {
        let cuts = Cuts::default();
        let body = cut(timed(&[(60, ""), (120, "late")]), &cuts);
        assert!(body.collect().await.is_err());
        assert_eq!(cuts.count(), 1);
    }
}

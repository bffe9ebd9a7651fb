//! One stream's life: connect, send the request, read the body to its end. One task a stream; a timer only where a hop
//! that cuts is played.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

use super::plan::Begin;
use super::record::Record;
use super::worker::Worker;
use super::{Failure, Protocol, http1, http2};

/// Lives the life of one stream and closes its record.
pub(super) async fn live(worker: Arc<Worker>, begin: Begin) {
    let mut record = Record::begin(Arc::clone(&worker), begin);
    match drive(&worker, begin.index, &mut record).await {
        Ok(()) => record.completed(),
        Err(failure) => record.failed(failure),
    }
}

async fn drive(worker: &Arc<Worker>, index: usize, record: &mut Record) -> Result<(), Failure> {
    let mut hop = Hop::new(worker.plan.cut_after);
    match worker.plan.protocol {
        Protocol::Http1 => {
            // Boxed: what opening needs is given back once the stream is open, which is most of its life.
            let opening = Box::pin(async {
                let target = worker.targets.of(index);
                record.expect(target.expected);
                http1::Body::open(worker, index, target, record).await
            });
            let (mut body, rest) = hop.opened(worker, opening).await?;
            if let Poll::Ready(ended) = body.begin(&rest, worker, record) {
                return ended;
            }
            drop(rest);
            poll_fn(|cx| {
                let polled = body.poll(cx, worker, record);
                hop.cut(cx, worker, record, polled)
            })
            .await
        }
        Protocol::Http2 { .. } => {
            let opening = Box::pin(async {
                let target = worker.targets.of(index);
                record.expect(target.expected);
                http2::Body::open(worker, target, record).await
            });
            let mut body = hop.opened(worker, opening).await?;
            poll_fn(|cx| {
                let polled = body.poll(cx, worker, record);
                hop.cut(cx, worker, record, polled)
            })
            .await
        }
    }
}

/// A hop that cuts what has been silent for too long, played by this client.
///
/// Its timer is set again only when it fires, to what is left then: bytes that arrive cost nothing.
struct Hop {
    cut_after: Option<Duration>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Hop {
    fn new(cut_after: Option<Duration>) -> Self {
        Self { cut_after, timer: cut_after.map(|_| Box::pin(tokio::time::sleep(Duration::ZERO))) }
    }

    /// Waits for a response; a hop's patience counts from the request.
    async fn opened<T>(
        &mut self,
        worker: &Worker,
        mut opening: Pin<Box<impl Future<Output = Result<T, Failure>>>>,
    ) -> Result<T, Failure> {
        let since_ns = worker.phases.now_ns();
        poll_fn(|cx| match opening.as_mut().poll(cx) {
            Poll::Ready(opened) => Poll::Ready(opened),
            Poll::Pending if self.is_over(cx, worker, since_ns) => Poll::Ready(Err(Failure::CutBeforeHeaders)),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Cuts an open stream that is pending and has been silent for too long.
    fn cut(
        &mut self,
        cx: &mut Context<'_>,
        worker: &Worker,
        record: &Record,
        polled: Poll<Result<(), Failure>>,
    ) -> Poll<Result<(), Failure>> {
        if polled.is_pending() && self.timer.is_some() && self.is_over(cx, worker, record.last_byte_ns()) {
            return Poll::Ready(Err(Failure::CutAfter));
        }
        polled
    }

    fn is_over(&mut self, cx: &mut Context<'_>, worker: &Worker, since_ns: u64) -> bool {
        let (Some(cut_after), Some(timer)) = (self.cut_after, &mut self.timer) else {
            return false;
        };
        while timer.as_mut().poll(cx).is_ready() {
            let due = worker.phases.started() + Duration::from_nanos(since_ns) + cut_after;
            if tokio::time::Instant::now() >= due {
                return true;
            }
            timer.as_mut().reset(due);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Settings;

    #[test]
    fn a_stream_takes_fixed_memory_of_a_few_kilobytes() {
        let settings = Settings::new("http://127.0.0.1:1/".parse().unwrap());
        let worker = Worker::for_test(&settings);
        let task_bytes = size_of_val(&live(worker, Begin { index: 0, due: Duration::ZERO }));
        assert!(task_bytes <= TASK_BYTES_MAX, "{task_bytes}");
    }

    /// The state of an open stream; a decoder's buffers come on top once an event is torn, the connection's own state in
    /// tokio or the HTTP/2 library always.
    const TASK_BYTES_MAX: usize = 1_024;
}

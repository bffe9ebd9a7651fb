//! How a connection, or one stream of it, is told to end. Held by `server`, `relay` and `stalled`.

use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use futures::task::AtomicWaker;
use hyper::rt::Executor;
use tokio::task::AbortHandle;

/// One connection's orders. Costs a relaxed load a poll: every event passes there.
#[derive(Debug, Default)]
pub(super) struct Signal {
    order: AtomicU8,
    waker: AtomicWaker,
}

/// What a connection is ordered to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    /// Serve on.
    Serve,
    /// Take no new request, end with the last answer.
    Finish,
    /// End now.
    Abort,
}

impl Signal {
    /// Orders, unless something stricter was ordered before.
    pub(super) fn order(&self, order: Order) {
        if self.order.fetch_max(order as u8, Ordering::Release) < order as u8 {
            self.waker.wake(); // the store above pairs with the load in `ordered`
        }
    }

    /// What is ordered.
    pub(super) fn ordered(&self) -> Order {
        match self.order.load(Ordering::Acquire) {
            0 => Order::Serve,
            1 => Order::Finish,
            _ => Order::Abort,
        }
    }

    /// Waits for `order` or a stricter one. One task at a time may wait, and none while the connection's own task runs.
    pub(super) async fn reached(&self, order: Order) {
        std::future::poll_fn(|cx| {
            self.register(cx); // before the look, so that an order in between wakes
            if self.ordered() >= order { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Wakes this task at the next order, once.
    pub(super) fn register(&self, cx: &Context<'_>) {
        self.waker.register(cx.waker());
    }
}

/// How one response can be ended from outside, without its client's help.
#[derive(Clone, Debug)]
pub(super) enum Kill {
    /// It has the connection for itself.
    Connection(Arc<Signal>),
    /// It is one stream of many: the task that writes it, once it is known.
    Stream(Arc<OnceLock<AbortHandle>>),
}

impl Kill {
    /// Ends it.
    pub(super) fn now(&self) {
        match self {
            Self::Connection(signal) => signal.order(Order::Abort),
            Self::Stream(task) => {
                if let Some(task) = task.get() {
                    task.abort(); // the stream is reset as its task is dropped
                }
            }
        }
    }
}

tokio::task_local! {
    static STREAM: Arc<OnceLock<AbortHandle>>;
}

/// The executor of HTTP/2 connections: each stream in a task that can be ended alone, since hyper does not poll the body of
/// a stream whose window is closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams;

impl Streams {
    /// The kill switch of the stream in whose task this is called.
    pub(super) fn current() -> Option<Kill> {
        STREAM.try_with(|task| Kill::Stream(Arc::clone(task))).ok()
    }
}

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let switch = Arc::new(OnceLock::new());
        let task = tokio::spawn(STREAM.scope(Arc::clone(&switch), stream));
        let _ = switch.set(task.abort_handle()); // set once, here
    }
}

/// A future that obeys a signal: `finish` is called once when it is ordered to finish, and it is dropped when ordered to
/// abort.
pub(super) struct Obeying<F, G> {
    future: Pin<Box<F>>,
    finish: G,
    signal: Arc<Signal>,
    last: Order,
    is_registered: bool,
}

impl<F, G> Obeying<F, G> {
    /// `future` under `signal`.
    pub(super) fn new(future: F, signal: Arc<Signal>, finish: G) -> Self {
        Self { future: Box::pin(future), finish, signal, last: Order::Serve, is_registered: false }
    }
}

impl<F: Future, G: FnMut(Pin<&mut F>) + Unpin> Future for Obeying<F, G> {
    /// `None` when it was aborted.
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let mut order = this.signal.ordered();
        // An order takes the waker out when it wakes, which may be after it was seen here.
        if order != Order::Serve || !this.is_registered {
            this.signal.register(cx);
            this.is_registered = true;
            order = this.signal.ordered(); // after registering, so that an order in between wakes
        }
        if order != this.last {
            this.last = order;
            match order {
                Order::Serve => {}
                Order::Finish => (this.finish)(this.future.as_mut()),
                Order::Abort => return Poll::Ready(None),
            }
        }
        this.future.as_mut().poll(cx).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A drain orders both, one after the other, and a silent connection is polled for nothing else.
    #[tokio::test(start_paused = true)]
    async fn an_abort_reaches_a_silent_connection_that_was_told_to_finish() {
        let (signal, told) = (Arc::new(Signal::default()), Arc::new(AtomicU8::new(0)));
        let (ordered, finished) = (Arc::clone(&signal), Arc::clone(&told));
        let task = tokio::spawn(Obeying::new(std::future::pending::<()>(), ordered, move |_: Pin<&mut _>| {
            finished.fetch_add(1, Ordering::Relaxed);
        }));
        for order in [Order::Finish, Order::Abort] {
            tokio::time::sleep(Duration::from_secs(1)).await;
            signal.order(order);
        }
        let ended = tokio::time::timeout(Duration::from_secs(1), task).await.expect("woken").expect("no panic");
        assert_eq!((ended, told.load(Ordering::Relaxed)), (None, 1));
    }
}

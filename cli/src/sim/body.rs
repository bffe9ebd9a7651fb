//! Plays a plan as an HTTP body: sleeps, sends, queues, hangs, breaks.
//!
//! Made by the server for each answer; dropped with its connection, which frees its place and its timer at once.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep, sleep_until};

use super::queue::Queue;
use super::script::{Act, Plan};
use super::stats::{End, Ticket};

/// An answer under way.
pub(crate) struct ScriptBody {
    plan: Option<Box<Plan>>,
    queue: Arc<Queue>,
    ticket: Ticket,
    doing: Doing,
    /// When the step under way is due; the base of the next one, so that lateness does not add up.
    due: Instant,
    /// Kept from one wait to the next: a timer costs an allocation.
    timer: Option<Pin<Box<Sleep>>>,
    first: Option<Option<Result<Bytes, Broken>>>,
}

/// What the body is at.
enum Doing {
    /// To `Waiting`, or to `Over` after the last step.
    Deciding,
    /// To whatever the act is, when its time has come.
    Waiting(Act),
    /// To `Deciding`, with the engine's turn over.
    Queued(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// No exit.
    Hung,
    /// No exit.
    Over,
}

/// The script breaks the connection here.
#[derive(Debug)]
pub(crate) struct Broken;

impl ScriptBody {
    pub(crate) fn new(plan: Plan, queue: Arc<Queue>, ticket: Ticket) -> Self {
        Self {
            plan: Some(Box::new(plan)),
            queue,
            ticket,
            doing: Doing::Deciding,
            due: Instant::now(),
            timer: None,
            first: None,
        }
    }

    /// Waits until the first chunk is there; the body gives it out when it is polled.
    ///
    /// Cancel safe: nothing is lost, it can be called again.
    pub(crate) async fn first_chunk(&mut self) {
        if self.first.is_none() {
            let first = poll_fn(|cx| self.poll_chunk(cx)).await;
            self.first = Some(first);
        }
    }

    /// Takes the whole answer when the first chunk is all of it.
    pub(crate) fn document(&mut self) -> Option<Bytes> {
        let spent = self.plan.as_ref().is_some_and(|plan| plan.is_spent());
        match &self.first {
            Some(Some(Ok(bytes))) if spent => {
                let bytes = bytes.clone();
                self.over(End::Completed);
                Some(bytes)
            }
            _ => None,
        }
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        loop {
            match &mut self.doing {
                Doing::Deciding => match self.plan.as_mut().and_then(|plan| plan.next()) {
                    None => self.over(End::Completed),
                    Some(step) => {
                        if !step.after.is_zero() {
                            self.wait_for(self.due + step.after);
                        }
                        self.doing = Doing::Waiting(step.act);
                    }
                },
                Doing::Waiting(act) => {
                    if let Some(timer) = &mut self.timer
                        && !timer.is_elapsed()
                    {
                        ready!(timer.as_mut().poll(cx));
                    }
                    let act = std::mem::replace(act, Act::Flush);
                    self.doing = Doing::Deciding;
                    match act {
                        Act::Send(bytes) => return Poll::Ready(Some(Ok(bytes))),
                        Act::Flush => {
                            // A connection writes out what it holds when its body is pending.
                            cx.waker().wake_by_ref();
                            return Poll::Pending;
                        }
                        Act::Prefill(takes) => {
                            self.doing = Doing::Queued(Box::pin(Arc::clone(&self.queue).prefill(takes)));
                        }
                        Act::Hang => {
                            self.plan = None;
                            self.doing = Doing::Hung;
                        }
                        Act::Abort => {
                            self.over(End::Broken);
                            return Poll::Ready(Some(Err(Broken)));
                        }
                    }
                }
                Doing::Queued(turn) => {
                    ready!(turn.as_mut().poll(cx));
                    self.due = Instant::now();
                    self.doing = Doing::Deciding;
                }
                Doing::Hung => return Poll::Pending,
                Doing::Over => return Poll::Ready(None),
            }
        }
    }

    fn over(&mut self, end: End) {
        self.ticket.ended(end);
        self.plan = None;
        self.timer = None;
        self.doing = Doing::Over;
    }

    /// Sets the timer; a moment that has passed becomes now, so that a stall is not followed by a burst.
    fn wait_for(&mut self, due: Instant) {
        self.due = due.max(Instant::now());
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(self.due),
            None => self.timer = Some(Box::pin(sleep_until(self.due))),
        }
    }
}

impl Body for ScriptBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let chunk = match self.first.take() {
            Some(first) => first,
            None => ready!(self.poll_chunk(cx)),
        };
        Poll::Ready(chunk.map(|chunk| chunk.map(Frame::data)))
    }
}

impl fmt::Debug for ScriptBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptBody").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the script breaks the connection here")
    }
}

impl std::error::Error for Broken {}

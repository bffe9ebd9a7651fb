//! Answers for an engine that is late: a committed 200 whose body is heartbeats until the engine answers, and what becomes of
//! that answer. Used by `exchange`; the table is in `docs/waiting-for-headers.md`.
//!
//! 1. [`plan`] says whether, when and as what the answer to a request may be committed; `exchange` waits for the engine that
//!    long, counted from the end of the request's body;
//! 2. then [`Commit::head`] goes out with a [`LateBody`], which `KeepAlive` wraps: heartbeats are its business, not ours;
//! 3. when the engine answers, `fate` says what becomes of the answer and a `Failure` writes what its client is told.

mod failure;
mod fate;

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use self::failure::Failure;
use self::fate::{Fate, Words};
use super::config::{Consent, Upstream};
use super::look::Finding;
use heartline::api::{Api, Closing, Endpoint};
use heartline::{BoxError, Ended, ErrorShape, Format};

/// A decision to answer before the engine does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    /// How long the engine may take from the end of the request's body on.
    pub(super) after: Duration,
    /// The format that is committed.
    pub(super) format: Format,
}

impl Commit {
    /// The head that is committed: 200, the format's content type, and what asks hops not to hold the body back.
    pub(super) fn head(&self) -> Response<()> {
        let mut head = Response::new(());
        let content_type = HeaderValue::from_static(self.format.content_type());
        head.headers_mut().insert(CONTENT_TYPE, content_type);
        self.format.prepare_head(head.headers_mut());
        head
    }
}

/// Whether, when and as what the answer to this request may be committed before the engine has answered.
///
/// Never for a body that was not read to the end of its document: whether it asks for a stream is then not known.
pub(super) fn plan(endpoint: Endpoint, finding: &Finding, upstream: &Upstream) -> Option<Commit> {
    if !finding.is_over || finding.is_unread {
        return None;
    }
    let (after, format) = match endpoint.streams(finding.stream) {
        true => (upstream.commit_after?, endpoint.api().format()),
        false => (upstream.commit_json_after?, Format::Json),
    };
    if format == Format::Ndjson && upstream.heart.ndjson == Consent::Never {
        return None; // a head without heartbeats after it would be a price for nothing
    }
    Some(Commit { after, format })
}

/// A body that is committed before the engine has answered: silent until `pending` is ready, then what its table says.
///
/// `F` is the wait for the engine's response; `B` the response's body. Whichever it holds is dropped with it, and as soon as
/// it is of no more use. It yields frames and errors only; wrap it with its own [`error_shape`](Self::error_shape).
pub(super) struct LateBody<F, B> {
    state: State<F, B>,
    api: Api,
    format: Format,
    note: Arc<Note>,
}

/// Where a committed answer is.
enum State<F, B> {
    /// For the engine's head. Goes to any other.
    Waiting(F),
    /// The engine's body is what was committed. Stays until the body's end.
    Passing(B),
    /// The engine reported an error; its text is read. Goes to `Flushing` or `Over`.
    Reading(Box<Reading<B>>),
    /// An error document is out; one `Pending` lets the connection flush it. Goes to `Aborting`.
    Flushing(StatusCode),
    /// An answer that is no stream never ends well with an error in it. Goes to `Over`.
    Aborting(StatusCode),
    /// Nothing more comes. Stays.
    Over,
}

struct Reading<B> {
    body: B,
    failure: Failure,
    words: Words,
    text: Vec<u8>,
    deadline: Pin<Box<Sleep>>,
}

/// What the error shape must know when the body has failed.
#[derive(Default)]
struct Note {
    /// Why there will be no answer.
    failure: OnceLock<Failure>,
    /// The next `sequence_number`. `Relaxed` everywhere: the body and its shape run in the same poll.
    sequence: AtomicU32,
}

impl<F, B> LateBody<F, B> {
    /// Waits for `pending` in the place of the body; `format` is what was committed.
    pub(super) fn new(pending: F, api: Api, format: Format) -> Self {
        Self { state: State::Waiting(pending), api, format, note: Arc::default() }
    }

    /// The shape of the error when the stream is ended or fails: the API's own, and if the engine never answered it says so
    /// with the status that the client would have seen.
    pub(super) fn error_shape(&self) -> ErrorShape {
        let (note, api, format) = (Arc::clone(&self.note), self.api, self.format);
        ErrorShape::custom(move |ended| {
            let number = note.sequence.load(Ordering::Relaxed);
            match note.failure.get().filter(|_| ended == Ended::Failed) {
                Some(failure) => failure.written(api, format, number, Closing::Abort),
                None => api.error_shape(format).error(ended, number),
            }
        })
    }

    /// The error that the engine reported, as the client is told it; the engine's side is done with.
    fn tell(&mut self, failure: &Failure) -> Frame<Bytes> {
        tracing::info!(status = failure.status.as_u16(), format = ?self.format, "an error came after the commit");
        self.state = if self.format == Format::Json { State::Flushing(failure.status) } else { State::Over };
        Frame::data(failure.written(self.api, self.format, 0, Closing::End))
    }
}

impl<B> Reading<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    /// Reads the error's text as far as it is of use, and gives it to the failure. Never fails: the status alone will do.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..TEXT_FRAMES {
            if self.text.len() == TEXT_MAX {
                break;
            }
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    let data = frame.into_data().unwrap_or_default();
                    self.text.extend_from_slice(&data[..data.len().min(TEXT_MAX - self.text.len())]);
                }
                Poll::Ready(Some(Err(_)) | None) => break,
                Poll::Pending => {
                    ready!(self.deadline.as_mut().poll(cx));
                    break;
                }
            }
        }
        match self.words {
            Words::Json => self.failure.add_json(&self.text),
            Words::Plain => self.failure.add_text(&self.text),
            Words::None => {}
        }
        Poll::Ready(())
    }
}

impl<F, B, E> Body for LateBody<F, B>
where
    F: Future<Output = Result<Response<B>, E>> + Unpin,
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
    E: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        // Bounded: every turn without a return goes on to a state further down the list.
        loop {
            match &mut this.state {
                State::Waiting(pending) => match ready!(Pin::new(pending).poll(cx)) {
                    Ok(response) => {
                        let (head, body) = response.into_parts();
                        match fate::fate(head, this.format) {
                            Fate::Pass => this.state = State::Passing(body),
                            Fate::Report(failure, Words::None) => return Poll::Ready(Some(Ok(this.tell(&failure)))),
                            Fate::Report(failure, words) => {
                                let deadline = Box::pin(tokio::time::sleep(TEXT_WAIT));
                                let reading = Reading { body, failure, words, text: Vec::new(), deadline };
                                this.state = State::Reading(Box::new(reading));
                            }
                        }
                    }
                    Err(error) => {
                        let error = error.into();
                        // Set once: this state is never entered again.
                        let _ = this.note.failure.set(Failure::of_error(&*error));
                        this.state = State::Over;
                        return Poll::Ready(Some(Err(error)));
                    }
                },
                State::Passing(body) => {
                    let frame = ready!(Pin::new(body).poll_frame(cx));
                    match &frame {
                        Some(Ok(frame)) => {
                            let shape = this.api.error_shape(this.format);
                            if let Some(next) = frame.data_ref().and_then(|data| shape.next_sequence(data)) {
                                this.note.sequence.store(next, Ordering::Relaxed);
                            }
                        }
                        Some(Err(_)) | None => this.state = State::Over,
                    }
                    return Poll::Ready(frame.map(|result| result.map_err(Into::into)));
                }
                State::Reading(reading) => {
                    ready!(reading.poll(cx));
                    let State::Reading(reading) = std::mem::replace(&mut this.state, State::Over) else { continue };
                    return Poll::Ready(Some(Ok(this.tell(&reading.failure))));
                }
                &mut State::Flushing(status) => {
                    this.state = State::Aborting(status);
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                &mut State::Aborting(status) => {
                    this.state = State::Over;
                    let error = format!("the answer was {status}, after a 200 had been committed");
                    return Poll::Ready(Some(Err(error.into())));
                }
                State::Over => return Poll::Ready(None),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.state {
            State::Passing(body) => body.is_end_stream(),
            State::Over => true,
            _ => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            State::Passing(body) => body.size_hint(),
            State::Over => SizeHint::with_exact(0),
            _ => SizeHint::default(),
        }
    }
}

/// An error's text beyond this is no message for a client.
const TEXT_MAX: usize = 16 * 1024;
/// One turn of reading takes no longer than so many frames, however small they are; the rest is of no use.
const TEXT_FRAMES: usize = 256;
/// An engine that has sent its error's head sends the text at once; its client need not wait for more.
const TEXT_WAIT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;

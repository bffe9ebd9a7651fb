//! Answers for an engine that is late: a committed 200 whose body is heartbeats until the engine answers, and what becomes of
//! that answer. Used by `exchange`.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame};

use super::api::Api;
use super::config::Upstream;
use super::look::Finding;
use crate::{BoxError, Format};

/// A decision to answer before the engine does.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    /// How long the engine may take from the end of the request's body on.
    pub(super) after: Duration,
    /// The format that is committed.
    pub(super) format: Format,
}

/// Whether, when and as what the answer to this request may be committed before the engine has answered.
pub(super) fn plan(api: &Api, finding: &Finding, upstream: &Upstream) -> Option<Commit> {
    let _ = (api, finding, upstream);
    None
}

/// A body that is committed before the engine has answered: silent until `pending` is ready, then what its table says.
///
/// `F` is the wait for the engine's response; `B` the response's body.
pub(super) struct LateBody<F, B> {
    pending: F,
    body: Option<B>,
}

impl<F, B> LateBody<F, B> {
    /// Waits for `pending` in the place of the body.
    pub(super) fn new(pending: F, api: Api, format: Format) -> Self {
        let _ = (api, format);
        Self { pending, body: None }
    }
}

impl<F, B> Body for LateBody<F, B>
where
    F: Future<Output = Result<Response<B>, BoxError>> + Unpin,
    B: Body<Data = Bytes, Error = BoxError> + Unpin,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        loop {
            if let Some(body) = &mut this.body {
                return Pin::new(body).poll_frame(cx);
            }
            match std::task::ready!(Pin::new(&mut this.pending).poll(cx)) {
                Ok(response) => this.body = Some(response.into_body()),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

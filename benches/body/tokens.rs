//! The body that `body` and `instructions` measure: one token is there at every second poll, as when an engine sends one and
//! the connection asks for more.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};

/// One chunk of a chat completion, 200 bytes long.
pub(crate) const TOKEN: &[u8; 200] = b"data: {\"id\":\"chatcmpl-0123456789abcdef0123456789abcdef\",\
\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"a-model-of-some-size\",\
\"choices\":[{\"index\":0,\"delta\":{\"content\":\" one token\"}}]}\n\n";

/// Ready and pending by turns.
#[derive(Default)]
pub(crate) struct Tokens {
    asked: bool,
}

impl Body for Tokens {
    type Data = Bytes;
    type Error = Infallible;

    #[inline(never)]
    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.asked = !self.asked;
        if self.asked { Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(TOKEN))))) } else { Poll::Pending }
    }
}

/// One ready and one pending poll; returns the bytes that came.
#[inline(never)]
pub(crate) fn poll_twice<B: Body<Data = Bytes>>(mut body: Pin<&mut B>, context: &mut Context<'_>) -> usize {
    let mut count = 0;
    if let Poll::Ready(Some(Ok(frame))) = body.as_mut().poll_frame(context)
        && let Ok(data) = frame.into_data()
    {
        count = data.len();
    }
    count + usize::from(body.poll_frame(context).is_ready())
}

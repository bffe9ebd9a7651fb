//! Which public types are `Send`, `Sync`, `Unpin` and so on: part of the API, though nobody writes it down.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt::Debug;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use heartline::{
    Builder, Cadence, Ended, Error, ErrorShape, Event, EventBody, EventSender, Failures, Form, Format, Heartline,
    KeepAlive, KeepAliveStream, StreamBuilder, StreamError, StreamSnapshot,
};
use http_body_util::{BodyExt, Full, combinators::BoxBody, combinators::UnsyncBoxBody};
use static_assertions::{assert_impl_all, assert_not_impl_any};

type Body = Full<Bytes>;
type Items = futures::stream::Empty<Result<Bytes, Infallible>>;

// The handle is shared freely between tasks and threads.
assert_impl_all!(Heartline: Send, Sync, Unpin, Clone, Debug);
assert_impl_all!(Builder: Send, Sync, Unpin, Clone, Debug);
assert_impl_all!(StreamBuilder: Send, Sync, Unpin, Clone, Debug);

// A wrapped body goes wherever the body inside it went.
assert_impl_all!(KeepAlive<Body>: Send, Unpin, Debug, http_body::Body<Data = Bytes, Error = StreamError>);
assert_impl_all!(KeepAlive<UnsyncBoxBody<Bytes, Infallible>>: Send, Unpin);
assert_impl_all!(KeepAliveStream<Items>: Send, Unpin, Debug);
assert_impl_all!(EventSender: Send, Sync, Unpin, Clone, Debug);
assert_impl_all!(EventBody: Send, Unpin, Debug);

// … and nowhere else.
type Local = Pin<Box<dyn http_body::Body<Data = Bytes, Error = Infallible>>>;
assert_impl_all!(KeepAlive<Local>: Unpin);
assert_not_impl_any!(KeepAlive<Local>: Send, Sync);

// Values.
assert_impl_all!(Cadence: Send, Sync, Unpin, Copy, Debug, PartialEq);
assert_impl_all!(Failures: Send, Sync, Unpin, Copy, Debug, PartialEq);
assert_impl_all!(Ended: Send, Sync, Unpin, Copy, Debug, PartialEq);
assert_impl_all!(ErrorShape: Send, Sync, Unpin, Clone, Debug);
assert_impl_all!(Event: Send, Sync, Unpin, Clone, Debug);
assert_impl_all!(Form: Send, Sync, Unpin, Clone, Debug, PartialEq, Default, std::str::FromStr);
assert_impl_all!(Format: Send, Sync, Unpin, Copy, Debug, PartialEq);
assert_impl_all!(StreamSnapshot: Send, Sync, Unpin, Clone, Debug);

// Errors cross tasks and fit `Box<dyn Error + Send + Sync>`.
assert_impl_all!(Error: Send, Sync, Unpin, Debug, StdError);
assert_impl_all!(StreamError: Send, Sync, Unpin, Debug, StdError);

#[cfg(feature = "tower")]
assert_impl_all!(heartline::HeartlineLayer: Send, Sync, Unpin, Clone, Debug);

/// Wrapped bodies fit the boxes that axum and hyper users keep them in, and the futures can be spawned.
#[test]
fn bodies_can_be_boxed_and_futures_spawned() {
    let heart = Heartline::builder().build().expect("the defaults are valid");
    let unsync: UnsyncBoxBody<Bytes, StreamError> = heart.keep_alive(Full::from("data: 1\n\n")).boxed_unsync();
    let sync: BoxBody<Bytes, StreamError> = heart.keep_alive(Full::from("data: 1\n\n")).boxed();
    drop((unsync, sync));

    let (sender, _body) = heart.channel(1);
    is_send(heart.drain(Duration::ZERO));
    is_send(async move { sender.send(Event::data("1")).await });
}

fn is_send(_: impl Future + Send) {}

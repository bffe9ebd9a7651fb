//! [`StreamBuilder`]: the settings of one stream that needs its own. Ends in `body`, `stream` or `channel`.

use crate::api::ErrorShape;
use crate::body::KeepAlive;
use crate::broadcaster::Heartline;
use crate::config::{Failures, StreamConfig};
use crate::error::BoxError;
use crate::forms::format::Format;
use crate::forms::heartbeat::Form;
use crate::stream::KeepAliveStream;
use bytes::Bytes;
use futures::Stream;
use http_body::Body;
use std::borrow::Cow;
use std::sync::Arc;

impl Heartline {
    /// Starts the settings of one stream: an event stream with this broadcaster's form, unless told otherwise.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), heartline::Error> {
    /// use heartline::{Form, Format, Heartline};
    ///
    /// let heart = Heartline::builder().build()?;
    /// let (parts, _) = http::Request::post("/api/chat").body(()).expect("a request").into_parts();
    /// let answer = http_body_util::Full::new(bytes::Bytes::from("{\"done\":true}\n"));
    /// let body = heart.stream().format(Format::Ndjson).form(Form::auto(&parts)).label("chat").wrap(answer);
    /// # drop(body); Ok(()) }
    /// ```
    pub fn stream(&self) -> StreamBuilder {
        StreamBuilder { heart: self.clone(), config: StreamConfig::clone(&self.core.stream) }
    }
}

/// Settings of one stream; made by [`Heartline::stream`]. Cloning it keeps the settings for the next stream.
#[derive(Clone, Debug)]
#[must_use = "settings do nothing until a body, a stream or a channel is made with them"]
pub struct StreamBuilder {
    pub(crate) heart: Heartline,
    pub(crate) config: StreamConfig,
}

impl StreamBuilder {
    /// What the stream's bytes are; [`Format::EventStream`] by default.
    pub fn format(mut self, format: Format) -> Self {
        self.config.format = format;
        self
    }

    /// The heartbeat's bytes between events. NDJSON and JSON have one form each, which only [`Form::off`] changes.
    pub fn form(mut self, form: Form) -> Self {
        self.config.form = form;
        self
    }

    /// A name for [`Heartline::streams`], such as the route. It is no metric label.
    pub fn label(mut self, label: impl Into<Cow<'static, str>>) -> Self {
        self.config.label = Some(label.into());
        self
    }

    /// The error event, if heartline has to end the stream.
    pub fn error_shape(mut self, shape: ErrorShape) -> Self {
        self.config.error_shape = Some(shape);
        self
    }

    /// What the client is told when the inner body fails; nothing but the abort by default.
    ///
    /// Nothing is ever written into a torn event: inside one, and in a JSON document that has begun, the stream is aborted
    /// whatever is set here.
    pub fn failures(mut self, failures: Failures) -> Self {
        self.config.failures = failures;
        self
    }

    /// Wraps a body; see [`Heartline::keep_alive`].
    pub fn wrap<B: Body<Data = Bytes>>(self, body: B) -> KeepAlive<B> {
        KeepAlive::new(&self.heart, body, Arc::new(self.config))
    }

    /// Wraps a stream of bytes; see [`Heartline::keep_alive_stream`].
    pub fn wrap_stream<S, E>(self, stream: S) -> KeepAliveStream<S>
    where
        S: Stream<Item = Result<Bytes, E>>,
        E: Into<BoxError>,
    {
        KeepAliveStream::new(&self.heart, stream, Arc::new(self.config))
    }
}

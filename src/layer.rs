//! The tower layer: keeps alive every response that is a live stream, and passes all others
//! through. Called by servers that stack tower services, axum among them, once for each route or
//! router.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::{BoxError, Form, Format, Heartline, KeepAlive, Verdict};

/// Keeps the live streams among a service's responses alive; made by [`Heartline::layer`].
///
/// A response is wrapped when its content type is one of the [formats](Self::formats) and
/// heartbeats cannot change what its client decodes: never a response to HEAD or CONNECT, never a
/// status without a body, never a range or a content encoding other than identity and none, never JSON with
/// a `Content-Length`. So put the layer *inside* a compression layer, or exclude streams from
/// compression.
///
/// A wrapped response loses the fields that its heartbeats would make untrue (`Content-Length`,
/// `ETag`, `Accept-Ranges`, `Content-MD5`, `Digest`, `Content-Digest`, `Repr-Digest`). It gains
/// `X-Accel-Buffering: no`, unless it has decided about buffering, and the directive `no-transform`
/// in `Cache-Control`, to which an event stream that has no `Cache-Control` at all also gets
/// `no-cache`. Trailers pass.
///
/// Layered twice, a response is wrapped once. A body that the handler itself has kept alive is
/// registered twice, which costs memory but doubles no heartbeat, since each one takes the other's
/// for life; use either way for a route.
///
/// The layer acts when the head of the response is there. A handler that waits for its first token
/// before it returns leaves the hops in silence until then; return the head at once and wait inside
/// the body.
#[derive(Clone, Debug)]
pub struct HeartlineLayer {
    heart: Heartline,
    formats: Cow<'static, [Format]>,
    form: FormChoice,
    label: Option<Cow<'static, str>>,
}

impl HeartlineLayer {
    /// Keeps responses of these formats alive, instead of event streams only.
    ///
    /// NDJSON and JSON have to be asked for, because heartline cannot know every client of theirs:
    /// some readers refuse whitespace before a line or a document.
    pub fn formats(mut self, formats: &[Format]) -> Self {
        self.formats = Cow::Owned(formats.to_vec());
        self
    }

    /// Writes heartbeats of this form, instead of the form of the [`Heartline`].
    pub fn form(mut self, form: Form) -> Self {
        self.form = FormChoice::Fixed(form);
        self
    }

    /// Chooses the form for each request, by what its head tells about the client ([`Form::auto`]).
    pub fn auto_form(mut self) -> Self {
        self.form = FormChoice::Auto;
        self
    }

    /// Labels the streams in [`Heartline::streams`].
    pub fn label(mut self, label: impl Into<Cow<'static, str>>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// What becomes of a response to a request of `method`.
    fn keep<B>(&self, method: &Method, form: Option<Form>, response: Response<B>) -> Response<KeepAlive<B>>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let (mut head, body) = response.into_parts();
        let verdict = Verdict::of(method, head.status, &head.headers, &self.formats);
        let body = match (verdict, head.extensions.get::<Judged>()) {
            (_, Some(Judged::Wrapped)) | (Verdict::Bypass, Some(Judged::Bypassed)) | (Verdict::Leave, _) => {
                KeepAlive::untouched(body)
            }
            (Verdict::Bypass, None) => {
                head.extensions.insert(Judged::Bypassed);
                KeepAlive::bypass(body)
            }
            (Verdict::Wrap(format), _) => {
                head.extensions.insert(Judged::Wrapped);
                format.prepare_head(&mut head.headers);
                let mut stream = self.heart.stream().format(format);
                if let Some(form) = form {
                    stream = stream.form(form);
                }
                if let Some(label) = &self.label {
                    stream = stream.label(label.clone());
                }
                stream.wrap(body)
            }
        };
        Response::from_parts(head, body)
    }
}

impl Heartline {
    /// A tower layer that keeps the event streams among a service's responses alive.
    ///
    /// ```
    /// # fn main() -> Result<(), heartline::Error> {
    /// use axum::{Router, routing::get};
    ///
    /// let heart = heartline::Heartline::builder().build()?;
    /// let app: Router = Router::new().route("/", get(|| async {})).layer(heart.layer());
    /// # Ok(())
    /// # }
    /// ```
    pub fn layer(&self) -> HeartlineLayer {
        HeartlineLayer {
            heart: self.clone(),
            formats: Cow::Borrowed(&[Format::EventStream]),
            form: FormChoice::OfHeartline,
            label: None,
        }
    }
}

impl<S> Layer<S> for HeartlineLayer {
    type Service = HeartlineService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        HeartlineService { inner, layer: Arc::new(self.clone()) }
    }
}

/// A service whose live streams are kept alive; made by [`HeartlineLayer`].
#[derive(Clone, Debug)]
pub struct HeartlineService<S> {
    inner: S,
    layer: Arc<HeartlineLayer>,
}

impl<S, A, B> Service<Request<A>> for HeartlineService<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Response = Response<KeepAlive<B>>;
    type Error = S::Error;
    type Future = HeartlineFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let (head, body) = request.into_parts();
        let form = match &self.layer.form {
            FormChoice::OfHeartline => None,
            FormChoice::Fixed(form) => Some(form.clone()),
            FormChoice::Auto => Some(Form::auto(&head)),
        };
        HeartlineFuture {
            method: head.method.clone(),
            form,
            layer: Arc::clone(&self.layer),
            inner: self.inner.call(Request::from_parts(head, body)),
        }
    }
}

pin_project! {
    /// The wait for a response of [`HeartlineService`].
    #[derive(Debug)]
    pub struct HeartlineFuture<F> {
        #[pin]
        inner: F,
        layer: Arc<HeartlineLayer>,
        method: Method,
        form: Option<Form>,
    }
}

impl<F, B, E> Future for HeartlineFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Output = Result<Response<KeepAlive<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.inner.poll(cx))?;
        Poll::Ready(Ok(this.layer.keep(this.method, this.form.take(), response)))
    }
}

/// Where the form of a stream comes from.
#[derive(Clone, Debug)]
enum FormChoice {
    /// The form that the [`Heartline`] was built with.
    OfHeartline,
    /// The form given to the layer.
    Fixed(Form),
    /// The request of each stream.
    Auto,
}

/// Left in a response's extensions, so that a layer further out neither wraps nor counts it again.
#[derive(Clone, Copy, Debug)]
enum Judged {
    /// Final: whatever a layer between did to the response, its body has its heartbeats.
    Wrapped,
    /// Counted; a layer between may have decoded the body, so the next one judges again.
    Bypassed,
}

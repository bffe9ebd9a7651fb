//! One stream's connection: connect, send the request, read the body to its end. One task a stream, no timer in it.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body::Body;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpSocket, TcpStream};

use crate::Format;

use super::plan::{Begin, Plan};
use super::record::Record;
use super::worker::Worker;
use super::{Failure, LoadError, Settings, Target};

/// Lives the life of one stream and closes its record.
pub(super) async fn live(worker: Arc<Worker>, begin: Begin) {
    let intended_ns = u64::try_from(begin.due.as_nanos()).unwrap_or(u64::MAX);
    let mut record = Record::begin(Arc::clone(&worker), intended_ns);
    match drive(&worker, begin.index, &mut record).await {
        Ok(()) => record.completed(),
        Err(failure) => record.failed(failure),
    }
}

async fn drive(worker: &Worker, index: usize, record: &mut Record) -> Result<(), Failure> {
    let target = worker.targets.of(index);
    record.expect(target.expected);
    let request = worker.template.request(target);
    let stream = connect(&worker.plan, index).await.map_err(|error| Failure::of_connect(&error))?;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(READ_BUFFER_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| Failure::of_request(&error))?;
    record.connected();

    // The connection and its one response share this task: an arrival wakes it once, and no second task is kept.
    let mut connection = pin!(Running::new(connection));
    let response = {
        let mut response = pin!(sender.send_request(request));
        poll_fn(|cx| {
            connection.as_mut().poll(cx);
            response.as_mut().poll(cx)
        })
        .await
        .map_err(|error| Failure::of_request(&error))?
    };
    if !response.status().is_success() {
        return Err(Failure::Status(response.status().as_u16()));
    }
    record.opened(format_of(&response));

    let mut body = response.into_body();
    poll_fn(|cx| {
        connection.as_mut().poll(cx);
        read(&mut body, cx, worker, record)
    })
    .await
}

/// Reads what has arrived; everything taken in one go has the same time.
fn read(body: &mut Incoming, cx: &mut Context<'_>, worker: &Worker, record: &mut Record) -> Poll<Result<(), Failure>> {
    let mut arrived_ns = None;
    loop {
        match Pin::new(&mut *body).poll_frame(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => return Poll::Ready(Ok(())),
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(Failure::of_body(&error))),
            Poll::Ready(Some(Ok(frame))) => {
                let Some(data) = frame.data_ref() else {
                    continue;
                };
                let now_ns = *arrived_ns.get_or_insert_with(|| worker.phases.now_ns());
                record.arrived(now_ns, data)?;
            }
        }
    }
}

pin_project_lite::pin_project! {
    /// A connection that is polled until it is over and not once more; its error reaches the response or the body.
    struct Running<C> {
        #[pin]
        connection: C,
        over: bool,
    }
}

impl<C: Future> Running<C> {
    fn new(connection: C) -> Self {
        Self { connection, over: false }
    }

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) {
        let this = self.project();
        if !*this.over {
            *this.over = this.connection.poll(cx).is_ready();
        }
    }
}

/// Opens one connection from the planned source address.
async fn connect(plan: &Plan, index: usize) -> io::Result<TcpStream> {
    let socket = match plan.server {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if let Some(source) = plan.sources.address(index) {
        leave_port_to_connect(&socket)?;
        socket.bind(SocketAddr::new(source, 0))?;
    }
    socket.connect(plan.server).await
}

/// Lets the kernel choose the port when it knows the whole connection, so that a port in use elsewhere, or still in
/// `TIME_WAIT`, can serve again.
#[cfg(target_os = "linux")]
fn leave_port_to_connect(socket: &TcpSocket) -> io::Result<()> {
    use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
    setsockopt(socket, IpBindAddressNoPort, &true).map_err(io::Error::from)
}

#[cfg(not(target_os = "linux"))]
fn leave_port_to_connect(_socket: &TcpSocket) -> io::Result<()> {
    Ok(())
}

/// Returns the format to decode; `None` for an unknown or an encoded body.
fn format_of(response: &Response<Incoming>) -> Option<Format> {
    let encoded = response.headers().get(CONTENT_ENCODING).is_some_and(|encoding| encoding.as_bytes() != b"identity");
    if encoded {
        return None;
    }
    Format::of_content_type(response.headers().get(CONTENT_TYPE)?)
}

/// What all requests of a run have in common.
#[derive(Clone, Debug)]
pub(super) struct Template {
    method: Method,
    path: Uri,
    headers: HeaderMap,
}

impl Template {
    /// Takes the method, path and headers of the settings and fills in what they leave out.
    pub(super) fn new(settings: &Settings) -> Result<Self, LoadError> {
        let path = settings.url.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let authority = settings.url.authority().map_or("", http::uri::Authority::as_str);
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let mut headers = settings.headers.clone();
        let host =
            HeaderValue::from_str(host).map_err(|_| LoadError::config("the URL's host is no valid header value"))?;
        headers.entry(HOST).or_insert(host);
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static(ACCEPTED));
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
        Ok(Self {
            method: settings.method.clone(),
            path: path.parse().map_err(|_| LoadError::config(format!("{path} is no valid path")))?,
            headers,
        })
    }

    fn request(&self, target: Target) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(target.body));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = target.path.map_or_else(|| self.path.clone(), Uri::from);
        *request.headers_mut() = self.headers.clone();
        request
    }
}

/// hyper's buffer for one connection, its smallest; response headers must fit.
const READ_BUFFER_BYTES: usize = 8 * 1024;

const ACCEPTED: &str = "text/event-stream, application/x-ndjson, */*;q=0.5";

const AGENT: &str = concat!("heartline-load/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::phases::Phases;

    #[test]
    fn a_stream_takes_fixed_memory_of_a_few_kilobytes() {
        let settings = Settings::new("http://127.0.0.1:1/".parse().unwrap());
        let plan = Plan::new(&settings, "127.0.0.1:1".parse().unwrap(), 1);
        let template = Template::new(&settings).unwrap();
        let worker = Worker::new(0, Arc::new(plan), Arc::new(Phases::start()), template, settings.targets);
        let task_bytes = size_of_val(&live(worker, Begin { index: 0, due: std::time::Duration::ZERO }));
        assert!(task_bytes <= TASK_BYTES_MAX, "{task_bytes}");
    }

    /// What the task took when this was written was 1,744 bytes; hyper's buffers come on top, once each.
    const TASK_BYTES_MAX: usize = 2_048;
}

//! A client on a loopback socket, HTTP/1.1 or HTTP/2, and waits that cannot last for ever.
#![allow(dead_code, unreachable_pub)] // each test binary uses its own part

use bytes::Bytes;
use heartline::Heartline;
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The shortest interval that is allowed.
pub const INTERVAL: Duration = Duration::from_millis(100);

/// What takes longer than this will not happen; no assertion waits for it to pass.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A broadcaster with that interval.
pub fn heart() -> Heartline {
    Heartline::builder().interval(INTERVAL).build().unwrap()
}

/// One connection to a server.
pub struct Client {
    sender: Sender,
    connection: JoinHandle<()>,
}

pub enum Sender {
    Http1(http1::SendRequest<Empty<Bytes>>),
    Http2(http2::SendRequest<Empty<Bytes>>),
}

impl Client {
    pub async fn connect(address: SocketAddr, version: Version) -> Self {
        let io = TokioIo::new(TcpStream::connect(address).await.unwrap());
        if version == Version::HTTP_2 {
            let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
            let connection = tokio::spawn(async { drop(connection.await) });
            Self { sender: Sender::Http2(sender), connection }
        } else {
            let (sender, connection) = http1::handshake(io).await.unwrap();
            let connection = tokio::spawn(async { drop(connection.await) });
            Self { sender: Sender::Http1(sender), connection }
        }
    }

    pub async fn get(&mut self, path: &str) -> Response<Incoming> {
        let request = Request::builder().header("te", "trailers");
        let sent = async {
            match &mut self.sender {
                Sender::Http1(sender) => {
                    let request = request.uri(path).header("host", "test");
                    sender.send_request(request.body(Empty::new()).unwrap()).await
                }
                Sender::Http2(sender) => {
                    let request = request.uri(format!("http://test{path}"));
                    sender.send_request(request.body(Empty::new()).unwrap()).await
                }
            }
        };
        within(sent).await.unwrap()
    }
}

/// The socket closes with the client, whatever the response's state.
impl Drop for Client {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

pub async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// Waits for what another task does.
pub async fn until(mut condition: impl FnMut() -> bool) {
    within(async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Reads data until it holds `wanted`; fails at the body's end, and at anything that is neither
/// data nor a heartbeat before.
pub async fn read_until(body: &mut Incoming, wanted: &str) -> String {
    let mut text = String::new();
    while !text.contains(wanted) {
        let frame = within(body.frame()).await.expect("the body goes on").expect("no error");
        text.push_str(std::str::from_utf8(&frame.into_data().expect("data")).unwrap());
    }
    text
}

/// A listener on a port that was free, and its address.
pub async fn bind() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

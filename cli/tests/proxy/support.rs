//! What the proxy's tests share: a running proxy, an engine of raw sockets, a client of raw sockets.

#[path = "client.rs"]
mod client;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub(crate) use self::client::{Answer, Client, End};
use heartline_cli::proxy::{Config, Handle, Proxy, Upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The shortest interval that heartline takes.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);
/// Far longer than anything here takes, so that a hang fails instead.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Fails the test when `future` hangs.
pub(crate) async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("hangs: {what}"))
}

/// A running proxy; it stops with the test.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) handle: Handle,
    pub(crate) task: JoinSet<usize>,
}

/// Settings for one engine at `address`, with free ports and the shortest interval.
pub(crate) fn config(address: SocketAddr) -> Config {
    let mut config = Config::single(format!("http://{address}").parse().expect("an address"));
    config.listen = "127.0.0.1:0".parse().expect("an address");
    config.admin = None;
    engine_of(&mut config).heart.interval = INTERVAL;
    config
}

pub(crate) fn engine_of(config: &mut Config) -> &mut Upstream {
    &mut config.upstreams[0]
}

pub(crate) async fn start(config: Config) -> Running {
    let proxy = Proxy::bind(config).await.expect("a proxy");
    let (address, handle) = (proxy.local_addr(), proxy.handle());
    let mut task = JoinSet::new();
    task.spawn(proxy.run());
    Running { address, handle, task }
}

impl Running {
    pub(crate) async fn connect(&self) -> Client {
        Client::to(self.address).await
    }

    /// Waits until nothing is left alive in the proxy.
    pub(crate) async fn is_empty(&self) {
        let empty = async {
            loop {
                let state = self.handle.state();
                if state.exchanges + state.streams + state.tunnels + state.connections == 0 {
                    return;
                }
                sleep(Duration::from_millis(2)).await;
            }
        };
        if timeout(PATIENCE, empty).await.is_err() {
            panic!("something is left: {:?} {:?}", self.handle.state(), self.handle.streams());
        }
    }
}

/// What an engine of raw sockets sees of its clients.
#[derive(Debug)]
pub(crate) enum Seen {
    /// A connection was accepted.
    Accepted,
    /// The head of a request, and as much of its body as came with it.
    Request(String),
    /// The other side has closed or reset, so long after the script's last act.
    Gone(SystemTime),
}

/// An engine that answers every request on every connection by the same script.
pub(crate) struct Engine {
    pub(crate) address: SocketAddr,
    pub(crate) seen: mpsc::UnboundedReceiver<Seen>,
    _task: JoinSet<()>,
}

/// One connection as the script of an engine sees it.
pub(crate) struct Peer {
    pub(crate) socket: TcpStream,
    seen: mpsc::UnboundedSender<Seen>,
}

impl Peer {
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.socket.write_all(bytes.as_ref()).await.expect("the proxy reads");
    }

    /// Waits until the proxy has closed, and says so.
    pub(crate) async fn until_gone(mut self) {
        let mut byte = [0; 1024];
        while self.socket.read(&mut byte).await.is_ok_and(|length| length > 0) {}
        let _ = self.seen.send(Seen::Gone(SystemTime::now()));
    }

    /// Closes by a reset.
    pub(crate) fn reset(self) {
        socket2::SockRef::from(&self.socket).set_linger(Some(Duration::ZERO)).expect("a socket");
    }
}

impl Engine {
    /// `script` is run for each request, with its head; it may keep the connection or let it go.
    pub(crate) async fn start<F, R>(script: F) -> Self
    where
        F: Fn(Peer, String) -> R + Send + Sync + 'static,
        R: Future<Output = Option<Peer>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (sender, seen) = mpsc::unbounded_channel();
        let script = Arc::new(script);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let _ = sender.send(Seen::Accepted);
                let (script, seen) = (Arc::clone(&script), sender.clone());
                connections.spawn(async move {
                    socket.set_nodelay(true).expect("a socket");
                    let mut peer = Some(Peer { socket, seen });
                    while let Some(mut open) = peer.take() {
                        let Some(head) = read_head(&mut open.socket).await else { return };
                        let _ = open.seen.send(Seen::Request(head.clone()));
                        peer = script(open, head).await;
                    }
                });
            }
        });
        Self { address, seen, _task: task }
    }

    /// Answers every request with these bytes and keeps the connection.
    pub(crate) async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer: Vec<u8> = answer.into();
        Self::start(move |mut peer, _| {
            let answer = answer.clone();
            async move {
                peer.send(answer).await;
                Some(peer)
            }
        })
        .await
    }

    /// The next request's head.
    pub(crate) async fn request(&mut self) -> String {
        loop {
            if let Seen::Request(head) = soon("a request at the engine", self.seen.recv()).await.expect("alive") {
                return head;
            }
        }
    }

    /// Waits until the proxy has let go of a request; returns when.
    pub(crate) async fn gone(&mut self) -> SystemTime {
        loop {
            if let Seen::Gone(when) = soon("the proxy lets go", self.seen.recv()).await.expect("alive") {
                return when;
            }
        }
    }
}

async fn read_head(socket: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        match socket.read(&mut buffer).await {
            Ok(1..) | Err(_) if head.len() > 1 << 20 => return None,
            Ok(0) | Err(_) => return None,
            Ok(length) => head.extend_from_slice(&buffer[..length]),
        }
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// The head of an event stream in chunks.
pub(crate) const EVENTS: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// One chunk.
pub(crate) fn chunk(bytes: &str) -> String {
    format!("{:x}\r\n{bytes}\r\n", bytes.len())
}

/// A whole answer with a length.
pub(crate) fn plain(content_type: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

//! The engine as a server: listen, accept, serve HTTP/1.1 and HTTP/2 without TLS, shut down gracefully.
//!
//! Started by the command, the demo and tests; hands each request to [`answer`].

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::answer::{Shared, answer};
use super::error::Error;
use super::queue::Queue;
use super::settings::Settings;
use super::stats::Stats;
use heartline::Heartline;

/// A scripted inference engine that is bound to its address.
///
/// It serves HTTP/1.1 and HTTP/2 (with prior knowledge) on one port. A client that closes its side of an HTTP/1.1
/// connection counts as gone, even if it only closed for writing; its request is freed at once.
///
/// # Examples
///
/// ```
/// use heartline_cli::sim::{Engine, Settings};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let settings = Settings { listen: "127.0.0.1:0".parse().unwrap(), ..Settings::default() };
/// let engine = Engine::bind(settings).await?;
/// let stats = engine.stats();
/// println!("listening on http://{}", engine.local_addr());
/// engine.run_until(std::future::ready(())).await;
/// assert_eq!(stats.live(), 0);
/// # Ok::<(), heartline_cli::sim::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Engine {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// How far the server is with its end; every connection watches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    /// Finish what is under way, take nothing new.
    Closing,
    /// End now.
    Aborting,
}

impl Engine {
    /// Checks the settings and binds the address; connections queue from now on.
    ///
    /// # Errors
    ///
    /// An error with [`Error::is_settings`] when a setting is refused; one about the address when it cannot be bound,
    /// with [`Error::is_address_in_use`] when something else listens there.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with I/O enabled.
    pub async fn bind(settings: Settings) -> Result<Self, Error> {
        settings.validate()?;
        let heart = settings.broadcaster()?;
        let wanted = settings.listen;
        let refused = |error| Error::listen(wanted, error);
        let listener = listen(wanted).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let shared = Shared { settings, queue: Queue::new(), stats: Stats::default(), heart };
        Ok(Self { listener, address, shared: Arc::new(shared) })
    }

    /// Returns the address with its real port.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns a handle to the engine's counters.
    pub fn stats(&self) -> Stats {
        self.shared.stats.clone()
    }

    /// Returns the broadcaster of the engine's heartbeats; `None` when they are off.
    pub fn heart(&self) -> Option<&Heartline> {
        self.shared.heart.as_ref()
    }

    /// Serves until `shutdown` is ready, then lets streams go on for the settings' grace, then ends them.
    ///
    /// Not cancel safe: dropped before its end, connections go on without a server.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) {
        let (phase, _) = watch::channel(Phase::Serving);
        let mut shutdown = pin!(shutdown);
        tokio::select! {
            () = &mut shutdown => {}
            () = accept(&self.listener, &self.shared, &phase) => {}
        }
        drop(self.listener);
        let grace = self.shared.settings.grace;
        phase.send_replace(Phase::Closing);
        // Ready as soon as the last connection has dropped its receiver.
        let _ = match &self.shared.heart {
            None => timeout(grace, phase.closed()).await,
            Some(heart) => {
                tokio::select! {
                    () = phase.closed() => {}
                    _ = heart.drain(grace) => {}
                }
                // Streams that drain has ended still have to leave.
                timeout(LEAVING, phase.closed()).await
            }
        };
        phase.send_replace(Phase::Aborting);
        phase.closed().await;
    }
}

/// Accepts connections for ever.
async fn accept(listener: &TcpListener, shared: &Arc<Shared>, phase: &watch::Sender<Phase>) {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().max_buf_size(READ_BUFFER_BYTES);
    builder.http2().max_concurrent_streams(HTTP2_STREAMS_MAX);
    let builder = Arc::new(builder);
    let mut pause = PAUSE_MIN;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                pause = PAUSE_MIN;
                let connection = serve(stream, Arc::clone(&builder), Arc::clone(shared), phase.subscribe());
                tokio::spawn(connection);
            }
            // The client gave up while it was queued; the next one is not affected.
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                if pause == PAUSE_MIN {
                    tracing::warn!(%error, "cannot accept connections, trying again; if files are the limit, raise 'ulimit -n'");
                }
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

/// Serves one connection to its end.
async fn serve(
    stream: TcpStream,
    builder: Arc<auto::Builder<TokioExecutor>>,
    shared: Arc<Shared>,
    mut phase: watch::Receiver<Phase>,
) {
    // A socket that refuses it is gone already; serving it will say so.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(Arc::clone(&shared), request));
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return;
            }
            changed = phase.changed() => {
                if changed.is_err() || *phase.borrow() == Phase::Aborting {
                    return;
                }
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Makes a listener whose queue takes a burst of thousands of connects.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    // Accepted sockets inherit it: the kernel ends peers that stopped reading, without a timer for each stream.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNREAD_MAX))?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket.into())
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// How long the last bytes of ended streams may take to a client that reads.
const LEAVING: Duration = Duration::from_millis(500);

/// More than any kernel grants; each cuts it down to its own limit (Linux: `net.core.somaxconn`).
const BACKLOG: i32 = 65_535;

/// The least that hyper allows for a connection: requests here are short.
const READ_BUFFER_BYTES: usize = 8_192;

/// Enough for every stream of a large run on one connection.
const HTTP2_STREAMS_MAX: u32 = 20_000;

/// The first and the longest pause after the host refused to accept, usually for want of files.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// How long bytes may stay unacknowledged before the kernel ends a connection.
#[cfg(target_os = "linux")]
const UNREAD_MAX: Duration = Duration::from_secs(120);

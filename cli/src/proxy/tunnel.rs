//! A WebSocket: bytes both ways after a 101 that both sides agreed to, until one side ends or the drain's deadline closes it
//! with 1001. Started by `exchange`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::time::timeout;

use super::exchange::Client;
use super::frames::Frames;
use super::shared::Shared;
use super::signal::Order;
use super::state::Phase;
use super::table::Seat;

type Io = TokioIo<Upgraded>;

/// Runs the tunnel to its end. `kept` is what must live as long: the connection's place and the exchange's.
pub(super) async fn run(shared: Arc<Shared>, client: OnUpgrade, engine: OnUpgrade, kept: (Arc<Client>, Seat)) {
    let _counted = Counted::new(Arc::clone(&shared));
    let (client, engine) = match tokio::try_join!(client, engine) {
        Ok((client, engine)) => (TokioIo::new(client), TokioIo::new(engine)),
        Err(error) => {
            tracing::debug!(%error, "an upgrade broke off");
            return;
        }
    };
    let ((mut from_client, mut to_client), (mut from_engine, mut to_engine)) = (split(client), split(engine));
    let (mut down, mut up) = (Frames::default(), Frames::default());
    let live = &kept.1.live;
    let ended = {
        let downward = copy(&mut from_engine, &mut to_client, &mut down, |bytes| live.count(bytes));
        let upward = copy(&mut from_client, &mut to_engine, &mut up, |_| {});
        tokio::select! {
            result = async { tokio::try_join!(downward, upward) } => End::Over(result.map(drop)),
            () = shared.reached(Phase::Ending) => End::Deadline,
            () = kept.0.place.signal.reached(Order::Abort) => End::Over(Ok(())),
        }
    };
    match ended {
        End::Over(Ok(())) => {}
        End::Over(Err(error)) => tracing::debug!(%error, "a tunnel broke off"),
        End::Deadline => {
            // Inside a frame a close frame would be payload: then the connection just ends.
            let farewell = async {
                if down.is_at_boundary() {
                    let _ = to_client.write_all(&GOING_AWAY).await;
                }
                if up.is_at_boundary() {
                    let _ = to_engine.write_all(&GOING_AWAY_MASKED).await;
                }
                let _ = tokio::join!(to_client.shutdown(), to_engine.shutdown());
            };
            let _ = timeout(FAREWELL, farewell).await;
        }
    }
}

enum End {
    Over(io::Result<()>),
    Deadline,
}

/// Copies until the end of `from`, then closes `to` for writing.
async fn copy(
    from: &mut ReadHalf<Io>,
    to: &mut WriteHalf<Io>,
    frames: &mut Frames,
    count: impl Fn(usize),
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return to.shutdown().await;
        }
        frames.pass(&buffer[..length]);
        to.write_all(&buffer[..length]).await?;
        to.flush().await?;
        count(length);
    }
}

/// Counts a tunnel as long as it lives.
struct Counted(Arc<Shared>);

impl Counted {
    fn new(shared: Arc<Shared>) -> Self {
        shared.tunnels.fetch_add(1, Ordering::Relaxed); // a count
        Self(shared)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.tunnels.fetch_sub(1, Ordering::Relaxed); // a count
    }
}

/// A close frame with the code 1001, "going away" (RFC 6455 §7.4.1), from a server.
const GOING_AWAY: [u8; 4] = [0x88, 0x02, 0x03, 0xE9];
/// The same from a client: masked, with a mask of zeros.
const GOING_AWAY_MASKED: [u8; 8] = [0x88, 0x82, 0, 0, 0, 0, 0x03, 0xE9];
/// What is under way in one direction of a tunnel.
const BUFFER: usize = 16 * 1024;
/// How long a peer may take to take its farewell.
const FAREWELL: Duration = Duration::from_millis(500);

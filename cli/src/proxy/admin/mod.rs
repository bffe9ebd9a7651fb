//! The admin listener: health, metrics, live streams, the live page. Run by [`Proxy::run`](super::Proxy::run) as long as the
//! proxy lives, a drain included.
//!
//! `answer` chooses what a path shows; `feed` sends `snapshot`s of the proxy to open pages, `listing` writes `/streams`,
//! `metrics` what Prometheus reads, `hops` what heartbeats were worth. Whoever can connect can read it all and change nothing.

mod answer;
mod feed;
mod hops;
mod listing;
mod metrics;
mod snapshot;

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use self::answer::{Desk, Reach, answer};
use self::feed::Feed;
use super::{Handle, socket};

/// Serves operators until it is dropped, and their connections with it.
pub(super) async fn run(listener: TcpListener, proxy: Handle) {
    let reach = match listener.local_addr() {
        Ok(address) if address.ip().to_canonical().is_loopback() => Reach::Loopback,
        _ => Reach::Network,
    };
    let feed = match Feed::new(proxy.clone()) {
        Ok(feed) => feed,
        Err(error) => {
            tracing::error!(%error, "the admin listener cannot serve");
            return std::future::pending().await;
        }
    };
    let recorder = metrics::install();
    let desk = Arc::new(Desk { proxy, feed, recorder, reach });
    let upkeep = async {
        let mut due = interval(UPKEEP);
        loop {
            due.tick().await;
            if let Some(recorder) = recorder {
                recorder.run_upkeep();
            }
        }
    };
    tokio::select! {
        () = accept(&listener, &desk) => {}
        () = desk.feed.run() => {}
        () = upkeep => {}
    }
}

async fn accept(listener: &TcpListener, desk: &Arc<Desk>) {
    let mut connections = JoinSet::new(); // aborts them when it is dropped
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= CONNECTIONS {
            connections.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                let Ok((io, _)) = socket::prepare(stream, USER_TIMEOUT) else { continue };
                let desk = Arc::clone(desk);
                let service = service_fn(move |request| answer(Arc::clone(&desk), request));
                let mut builder = http1::Builder::new();
                builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(BUFFER);
                // How a connection of an operator ends is nobody's concern.
                connections.spawn(async move { drop(builder.serve_connection(TokioIo::new(io), service).await) });
            }
            Err(error) => {
                tracing::warn!(%error, "the admin listener could not accept a connection");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

/// Between two upkeeps of the recorder: its histograms gather every sample until then.
const UPKEEP: Duration = Duration::from_secs(5);
/// Connections at once; further ones wait in the listener's queue.
const CONNECTIONS: usize = 128;
/// How long an operator's browser may acknowledge nothing.
const USER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a request's head may take.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// A request's head at most, and what is read at once.
const BUFFER: usize = 16 * 1024;
/// How long a failed accept is left alone, so that a host without free files is not spun on.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::state::{IntervalTotals, LiveStream};
    use heartline::{Format, Totals};

    pub(super) fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A live event stream that has just begun.
    pub(super) fn live(id: u64) -> LiveStream {
        LiveStream {
            id,
            path: "/v1/chat/completions".to_owned(),
            upstream: Arc::from("engine"),
            format: Some(Format::EventStream),
            form: "newline".to_owned(),
            bytes: 0,
            age: Duration::ZERO,
            silence: Duration::ZERO,
            content_silence: Duration::ZERO,
            bridged: Duration::ZERO,
            heartbeats: 0,
            interval: seconds(30),
        }
    }

    /// An interval in use, with which no stream has ended.
    pub(super) fn used(interval: Duration) -> IntervalTotals {
        IntervalTotals { interval, is_in_use: true, totals: Totals::default() }
    }

    /// The same after the settings have changed.
    pub(super) fn forgotten(interval: Duration) -> IntervalTotals {
        IntervalTotals { is_in_use: false, ..used(interval) }
    }
}

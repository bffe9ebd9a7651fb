//! `heartline_cli::load` against a server that nobody here wrote, axum's own event streams: what it reports is what a plain
//! socket sees.
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use axum::routing::get;
use futures::StreamExt;
use heartline_cli::load::{self, Protocol, Settings, Shape};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout_at};

const PERIOD: Duration = Duration::from_millis(120);

/// An axum server with its own keep-alive, and one event at the beginning of each stream.
async fn serve() -> SocketAddr {
    let stream = || async {
        let first = futures::stream::iter([Ok::<_, Infallible>(Event::default().data("hello"))]);
        Sse::new(first.chain(futures::stream::pending())).keep_alive(KeepAlive::new().interval(PERIOD).text("alive"))
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/events", get(stream))).await });
    address
}

/// Reads a stream for so long with nothing but a socket; the longest time without a byte, and how often any came.
async fn plain_silence(address: SocketAddr, length: Duration) -> (Duration, u64) {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(b"GET /events HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut buffer = [0; 1_024];
    assert!(socket.read(&mut buffer).await.unwrap() > 0);
    let mut last = Instant::now();
    let end = last + length;
    let (mut longest, mut times) = (Duration::ZERO, 0);
    while let Ok(read) = timeout_at(end, socket.read(&mut buffer)).await {
        assert!(read.unwrap() > 0, "the server keeps it open");
        longest = longest.max(last.elapsed());
        times += 1;
        last = Instant::now();
    }
    (longest.max(last.elapsed()), times)
}

#[tokio::test]
async fn the_silence_reported_is_the_silence_a_plain_socket_sees() {
    let address = serve().await;
    for protocol in [Protocol::Http1, Protocol::Http2 { streams_per_connection: 10 }] {
        let length = Duration::from_millis(1_500);
        let mut settings = Settings::new(format!("http://{address}/events").parse().unwrap());
        settings.streams = 20;
        settings.protocol = protocol;
        settings.shape = Shape::Hold(length);
        let (report, samples) = tokio::join!(
            load::run(settings, |_| {}),
            futures::future::join_all((0..5).map(|_| plain_silence(address, length)))
        );
        let report = report.unwrap();
        assert_eq!(report.streams.held_min, 20, "{protocol:?}: {:?}", report.streams);
        assert_eq!(report.heartbeats.kinds.keys().collect::<Vec<_>>(), [": alive\\n\\n"], "{protocol:?}");

        let plain_ms = samples.iter().map(|(longest, _)| longest.as_secs_f64() * 1e3).fold(0.0, f64::max);
        let silence = report.silence_ms.unwrap();
        assert!((silence.p50 - plain_ms).abs() < 60.0, "{protocol:?}: {plain_ms} ms by socket, {silence:?}");
        let plain_times = samples.iter().map(|(_, times)| times).sum::<u64>() as f64 / samples.len() as f64;
        let reported = report.heartbeats.per_stream;
        assert!((reported - plain_times).abs() <= 2.0, "{protocol:?}: {plain_times} by socket, {reported}");
    }
}

//! WebSockets: a tunnel after a matching 101 only, counted, closed with 1001 at the deadline of a drain.

use std::time::Duration;

use heartline_cli::proxy::Phase;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::support::{Client, End, Engine, Running, config, plain, soon, start};

const ASK: &str = "GET /v1/realtime HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: WebSocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const AGREE: &str = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                     sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// An engine that agrees and sends back what it is sent.
async fn echo() -> Engine {
    Engine::start(|mut peer, head| async move {
        assert!(head.to_ascii_lowercase().contains("\r\nupgrade: websocket\r\n"), "{head}");
        assert!(head.to_ascii_lowercase().contains("\r\nconnection: upgrade\r\n"), "{head}");
        peer.send(AGREE).await;
        let mut buffer = [0; 1024];
        loop {
            match peer.socket.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(length) => peer.send(&buffer[..length]).await,
            }
        }
        peer.until_gone().await;
        None
    })
    .await
}

async fn open(proxy: &Running) -> Client {
    let mut client = proxy.connect().await;
    client.send(ASK).await;
    let head = client.head().await;
    assert_eq!((head.status, head.field("upgrade")), (101, Some("websocket")));
    assert_eq!(head.field("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    client
}

#[tokio::test]
async fn a_tunnel_carries_frames_both_ways_and_is_counted() {
    let mut engine = echo().await;
    let proxy = start(config(engine.address)).await;
    let mut client = open(&proxy).await;
    for frame in ["\u{1}\u{5}hello", "\u{2}\u{0}"] {
        client.send(frame).await;
        client.until(frame.as_bytes()).await.expect("the echo");
    }
    let state = proxy.handle.state();
    assert_eq!((state.tunnels, state.connections), (1, 1), "{state:?}");
    assert_eq!(proxy.handle.streams()[0].path, "/v1/realtime");
    drop(client);
    engine.gone().await;
    proxy.is_empty().await;
}

#[tokio::test]
async fn no_tunnel_without_a_matching_101() {
    for (answer, expected) in [
        (plain("text/plain", "no"), 200),
        ("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n".to_owned(), 403),
        ("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n".to_owned(), 502),
    ] {
        let engine = Engine::answering(answer).await;
        let proxy = start(config(engine.address)).await;
        let mut client = proxy.connect().await;
        client.send(ASK).await;
        assert_eq!(client.answer().await.status, expected);
        drop(client);
        proxy.is_empty().await;
    }
    // A 101 that nobody asked for.
    let engine = Engine::answering(AGREE).await;
    let proxy = start(config(engine.address)).await;
    assert_eq!(proxy.connect().await.get("/").await.status, 502);
}

#[tokio::test]
async fn a_tunnel_is_closed_with_1001_at_the_deadline() {
    let engine = echo().await;
    let mut config = config(engine.address);
    config.drain_timeout = Duration::from_millis(100);
    let mut proxy = start(config).await;
    let mut client = open(&proxy).await;
    proxy.handle.drain();
    // It goes on until then.
    client.send("\u{1}\u{2}ok").await;
    client.until(b"\x01\x02ok").await.expect("the echo");
    assert_eq!(client.until(&[0x88, 0x02, 0x03, 0xE9]).await.expect("a close frame"), [0x88, 0x02, 0x03, 0xE9]);
    soon("the proxy ends", proxy.task.join_next()).await;
    assert_eq!(proxy.handle.state().phase, Phase::Stopped);
    assert_eq!(client.until(b"never").await, Err(End::Closed));
}

/// Inside a frame a close frame would be read as payload.
#[tokio::test]
async fn a_tunnel_inside_a_frame_is_closed_without_a_word() {
    let engine = echo().await;
    let mut config = config(engine.address);
    config.drain_timeout = Duration::from_millis(50);
    let proxy = start(config).await;
    let mut client = open(&proxy).await;
    client.send("\u{1}\u{9}half").await;
    client.until(b"half").await.expect("the echo");
    proxy.handle.drain();
    let mut rest = Vec::new();
    let _ = soon("the end", client.socket.read_to_end(&mut rest)).await;
    assert!(rest.is_empty(), "{rest:?}");
    let _ = client.socket.shutdown().await;
}

#[tokio::test]
async fn an_upgrade_to_anything_else_is_an_ordinary_request() {
    let mut engine = Engine::answering(plain("text/plain", "ok")).await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n\r\n").await;
    assert_eq!(client.answer().await.text(), "ok");
    let head = engine.request().await;
    assert!(!head.contains("upgrade") && !head.contains("http2-settings"), "{head}");
}

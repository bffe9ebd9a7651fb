//! Floods of HTTP/2 frames, and requests pipelined behind others: bounded, answered, and the next client served.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::support::{Engine, Running, config, plain, soon, start};

async fn ready() -> (Engine, Running) {
    let engine = Engine::answering(plain("text/plain", "fine")).await;
    let proxy = start(config(engine.address)).await;
    (engine, proxy)
}

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).expect("small").to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A GET of `/` in HPACK: three indexed fields, and an authority of one letter.
const GET: [u8; 6] = [0x82, 0x86, 0x84, 0x41, 0x01, b'a'];

fn preface() -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    bytes
}

/// Sends `flood` until the proxy ends the connection; returns what it said.
async fn answer_to(proxy: &Running, mut flood: impl FnMut(u32) -> Vec<u8>) -> Vec<u8> {
    let mut client = proxy.connect().await;
    client.send(preface()).await;
    let (mut reading, mut writing) = client.socket.split();
    let mut said = Vec::new();
    let sending = async {
        for round in 0..200_000 {
            if writing.write_all(&flood(round)).await.is_err() {
                return;
            }
        }
        panic!("the flood was never stopped");
    };
    let listening = async {
        let _ = reading.read_to_end(&mut said).await;
    };
    soon("the flood is stopped", async { tokio::join!(sending, listening) }).await;
    said
}

async fn still_serves(proxy: &Running) {
    assert_eq!(proxy.connect().await.get("/next").await.text(), "fine");
    proxy.is_empty().await;
}

/// CVE-2023-44487: streams that are reset as soon as they are opened.
#[tokio::test]
async fn a_rapid_reset_ends_its_connection() {
    let (_engine, proxy) = ready().await;
    answer_to(&proxy, |round| {
        let mut bytes = Vec::new();
        for n in 0..100 {
            let stream = (round * 100 + n) * 2 + 1;
            bytes.extend(frame(HEADERS, END_STREAM | END_HEADERS, stream, &GET));
            bytes.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
        }
        bytes
    })
    .await;
    still_serves(&proxy).await;
}

/// A head that never ends.
#[tokio::test]
async fn a_flood_of_continuations_ends_its_connection() {
    let (_engine, proxy) = ready().await;
    // A field without indexing: a name of one letter, a value of 1,000.
    let mut field = vec![0x00, 0x01, b'x', 0x7F, 0xE9, 0x06];
    field.extend([b'a'; 1_000]);
    answer_to(&proxy, |round| match round {
        0 => frame(HEADERS, END_STREAM, 1, &GET),
        _ => frame(CONTINUATION, 0, 1, &field),
    })
    .await;
    still_serves(&proxy).await;
}

/// A tunnel over HTTP/2 (RFC 8441) would reach past what the proxy counts and closes: it is neither offered nor taken.
#[tokio::test]
async fn extended_connect_is_not_offered_and_not_taken() {
    const ENABLE_CONNECT_PROTOCOL: [u8; 2] = [0, 8];
    let (mut engine, proxy) = ready().await;
    let mut client = proxy.connect().await;
    client.send(preface()).await;
    let mut head = [0; 9];
    client.socket.read_exact(&mut head).await.expect("a frame");
    assert_eq!(head[3], SETTINGS);
    let mut settings = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
    client.socket.read_exact(&mut settings).await.expect("its payload");
    assert!(!settings.is_empty() && settings.chunks(6).all(|setting| setting[..2] != ENABLE_CONNECT_PROTOCOL));
    let mut fields = vec![0x86, 0x84, 0x41, 0x01, b'a'];
    for (name, value) in [(":method", "CONNECT"), (":protocol", "websocket")] {
        fields.extend([&[0, name.len() as u8], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat());
    }
    client.send(frame(HEADERS, END_STREAM | END_HEADERS, 1, &fields)).await;
    let refused = async {
        loop {
            client.socket.read_exact(&mut head).await.expect("a frame");
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            client.socket.read_exact(&mut vec![0; length]).await.expect("its payload");
            if head[3] == RST_STREAM || head[3] == HEADERS {
                return head[3];
            }
        }
    };
    assert_eq!(soon("an answer", refused).await, RST_STREAM);
    assert!(engine.seen.try_recv().is_err(), "nothing reaches the engine");
    drop(client);
    still_serves(&proxy).await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let engine = Engine::start(|mut peer, head| async move {
        let path = head.split(' ').nth(1).expect("a path").to_owned();
        peer.send(plain("text/plain", &path)).await;
        Some(peer)
    })
    .await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    let requests: String = (0..20).map(|n| format!("GET /{n} HTTP/1.1\r\nhost: a\r\n\r\n")).collect();
    client.send(requests).await;
    for n in 0..20 {
        assert_eq!(client.answer().await.text(), format!("/{n}"));
    }
}

/// What was read together with a request before it was not looked at, and passed with the chunks only.
#[tokio::test]
async fn a_second_way_to_read_a_pipelined_bodys_end_is_refused_like_a_first() {
    let (mut engine, proxy) = ready().await;
    let smuggled = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";
    for first in [
        "GET /first HTTP/1.1\r\nhost: a\r\n\r\n",
        "\r\nPOST /first HTTP/1.1\r\nhost: a\r\ncontent-length: 21\r\n\r\n\r\n\r\ncontent-length: 5\r\n\r\n",
        "POST /first HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\n\r\n\r\r\n2\r\n\n\r\r\n0\r\nx: 1\r\n\r\n",
    ] {
        for fields in [
            "content-length: 44\r\ntransfer-encoding: chunked",
            "Transfer-Encoding: chunked\r\nContent-Length: 44",
            "content-length: 5\r\ncontent-length: 5",
        ] {
            for step in [1, 7, usize::MAX] {
                let second = format!("POST /second HTTP/1.1\r\nhost: a\r\n{fields}\r\n\r\n{smuggled}");
                let mut client = proxy.connect().await;
                for piece in format!("{first}{second}").as_bytes().chunks(step) {
                    client.send(piece).await;
                }
                assert_eq!(client.answer().await.text(), "fine", "{first:?}");
                let second = client.answer().await;
                assert_eq!((second.status, second.field("connection")), (400, Some("close")), "{first:?} {fields:?}");
                assert!(client.until(b"HTTP").await.is_err(), "nothing more is answered");
                while !engine.request().await.contains("/first") {}
            }
        }
    }
    while let Ok(seen) = engine.seen.try_recv() {
        let seen = format!("{seen:?}");
        assert!(!seen.contains("second") && !seen.contains("smuggled"), "{seen}");
    }
    still_serves(&proxy).await;
}

/// What looks like a length in a body is none, and one length in each of many heads is one.
#[tokio::test]
async fn pipelined_requests_with_bodies_that_look_like_heads_are_served() {
    let (_engine, proxy) = ready().await;
    let body = "content-length: 5\r\ncontent-length: 6\r\ntransfer-encoding: chunked\r\n\r\n";
    let length = body.len();
    let plain = format!("POST /p HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{body}");
    let chunked =
        format!("POST /c HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n");
    for step in [1, 100, usize::MAX] {
        let mut client = proxy.connect().await;
        let all = format!("{plain}{chunked}{plain}{chunked}GET /g HTTP/1.1\r\nhost: a\r\n\r\n");
        for piece in all.as_bytes().chunks(step) {
            client.send(piece).await;
        }
        for at in 0..5 {
            assert_eq!(client.answer().await.text(), "fine", "{at}");
        }
    }
}

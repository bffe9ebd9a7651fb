//! The proxy's own HTTP/1.1 towards engines: answers cut anywhere, chunks that are none, requests and answers that pass each
//! other.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::sleep;

use super::support::{End, Engine, config, start};

#[tokio::test]
async fn chunks_that_are_none_break_the_answer_off_behind_what_was_right() {
    for wrong in ["5\nhello\r\n", "5\r\nhello!\r\n", "x\r\n", "0\r\n\n"] {
        let engine = Engine::start(move |mut peer, _| async move {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n";
            peer.send(format!("{head}4\r\nwell\r\n")).await;
            sleep(Duration::from_millis(5)).await; // hyper keeps what an error follows at once to itself
            peer.send(wrong).await;
            Some(peer)
        })
        .await;
        let proxy = start(config(engine.address)).await;
        let answer = proxy.connect().await.get("/").await;
        assert_ne!(answer.end, End::Whole, "{wrong:?}");
        assert!(answer.text().starts_with("well"), "{wrong:?}: {answer:?}");
    }
}

#[tokio::test]
async fn an_answer_is_the_same_wherever_it_is_cut() {
    let text = "HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.1 200 Fine\r\ncontent-type: text/plain\r\ntrailer: x-sum\r\n\
                transfer-encoding: chunked\r\n\r\n3;a=b\r\none\r\n04\r\n two\r\n0\r\nx-sum: 9\r\n\r\n";
    let engine = Engine::start(move |mut peer, head| async move {
        let cut: usize = head.split(['/', ' ']).nth(2).and_then(|cut| cut.parse().ok()).expect("a number");
        let (front, back) = text.as_bytes().split_at(cut);
        peer.send(front).await;
        sleep(Duration::from_millis(2)).await; // long enough to be read alone
        peer.send(back).await;
        Some(peer)
    })
    .await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    for cut in 1..text.len() {
        client.send(format!("GET /{cut} HTTP/1.1\r\nhost: a\r\nte: trailers\r\nconnection: te\r\n\r\n")).await;
        let answer = client.answer().await;
        assert_eq!((answer.text(), answer.trailers.as_str()), ("one two", "x-sum: 9\r\n"), "{cut}");
        assert!(answer.head.starts_with("HTTP/1.1 200 Fine\r\n"), "{cut}: {}", answer.head);
    }
}

/// An engine may answer while the request is still being sent; the rest of the request still reaches it.
#[tokio::test]
async fn an_answer_that_begins_before_its_request_ends_passes_and_so_does_the_rest_of_the_request() {
    let engine = Engine::start(|mut peer, head| async move {
        peer.send("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n5\r\nearly\r\n")
            .await;
        let mut body = head.split_once("\r\n\r\n").expect("a head").1.as_bytes().to_vec();
        while body.len() < LONG {
            let mut more = [0; 4096];
            let length = peer.socket.read(&mut more).await.expect("the rest");
            body.extend_from_slice(&more[..length]);
        }
        let end = String::from_utf8_lossy(&body[LONG - 4..]).into_owned();
        peer.send(format!("4\r\n{end}\r\n0\r\n\r\n")).await;
        Some(peer)
    })
    .await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    for _ in 0..2 {
        client.send(format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {LONG}\r\n\r\n")).await;
        client.send("x".repeat(LONG - 4)).await;
        let mut answer = client.head().await;
        assert_eq!(answer.status, 200);
        client.send("last").await;
        client.body(&mut answer).await;
        assert_eq!((answer.text(), answer.end), ("earlylast", End::Whole));
    }
}

/// An engine that refuses a body closes without reading it; its words reach the client.
#[tokio::test]
async fn a_refusal_in_the_middle_of_a_long_body_reaches_the_client() {
    let engine = Engine::start(|mut peer, _| async move {
        peer.send("HTTP/1.1 413 Content Too Large\r\ncontent-length: 8\r\nconnection: close\r\n\r\ntoo long").await;
        sleep(Duration::from_millis(50)).await; // long enough for its words to be read before the reset
        None
    })
    .await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000000\r\n\r\n").await;
    client.send("x".repeat(LONG)).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.text()), (413, "too long"));
}

/// Bytes of a body that is too long to be whole before its engine hears of it.
const LONG: usize = 200_000;

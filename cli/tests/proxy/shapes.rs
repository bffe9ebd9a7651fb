//! Answers of every kind of engine: in whose shape errors are told, which encodings are none, and what is written into
//! streams of which nobody knows the API.

use std::time::Duration;

use tokio::time::sleep;

use super::support::{EVENTS, End, Engine, Peer, chunk, config, engine_of, soon, start};

/// What a dead engine's clients are told at paths whose API is told by more than the beginning.
#[tokio::test]
async fn engine_down_is_told_in_the_shape_of_the_api_at_the_paths_end() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let proxy = start(config(address)).await;
    for (path, pointer, expected) in [
        ("/api/v1/chat/completions", "/error/code", "engine_down"),
        ("/v1beta/models/g:streamGenerateContent?alt=sse", "/error/status", "UNAVAILABLE"),
        ("/v1beta/models", "/error/status", "UNAVAILABLE"),
        ("/openai/deployments/d/chat/completions", "/error/code", "engine_down"),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/c:streamRawPredict", "/error/type", "api_error"),
        ("/generate_stream", "/error_type", "generation"),
        ("/nobodys/path", "/error/code", "engine_down"),
    ] {
        let mut client = proxy.connect().await;
        client.send(format!("POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{{}}")).await;
        let answer = soon(path, client.answer()).await;
        assert_eq!((answer.status, answer.field("content-type")), (502, Some("application/json")));
        let json: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert_eq!(json.pointer(pointer).and_then(serde_json::Value::as_str), Some(expected), "{path}: {json}");
    }
    proxy.is_empty().await;
}

/// Node and Next.js servers switch compression off by `Content-Encoding: none`; such an answer was thrown away after a commit.
#[tokio::test]
async fn a_late_answer_whose_encoding_is_none_passes() {
    let events = "data: {\"choices\":[]}\n\ndata: [DONE]\n\n";
    for encoding in ["none", "None", "IDENTITY", ""] {
        let head = EVENTS.replace("\r\n\r\n", &format!("\r\ncontent-encoding: {encoding}\r\n\r\n"));
        let engine = Engine::start(move |mut peer: Peer, _| {
            let answer = head.clone() + &chunk(events) + "0\r\n\r\n";
            async move {
                sleep(Duration::from_millis(450)).await;
                peer.send(answer).await;
                Some(peer)
            }
        })
        .await;
        let mut config = config(engine.address);
        engine_of(&mut config).commit_after = Some(Duration::from_millis(100));
        let proxy = start(config).await;
        let mut client = proxy.connect().await;
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: 15";
        client.send(format!("{head}\r\n\r\n{{\"stream\":true}}")).await;
        let answer = soon(encoding, client.answer()).await;
        assert_eq!((answer.status, answer.end), (200, End::Whole));
        let heartbeats = answer.text().strip_suffix(events).unwrap_or_else(|| panic!("{encoding}: {answer:?}"));
        assert!(!heartbeats.is_empty() && heartbeats.chars().all(|beat| beat == '\n'), "{heartbeats:?}");
    }
}

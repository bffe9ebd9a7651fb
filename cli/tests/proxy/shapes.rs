//! In whose shape errors are told: the API's at the end of the path, and nobody's where the API is not known.

use super::support::{config, soon, start};

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

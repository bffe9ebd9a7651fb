//! The bytes through the proxy, heartbeats aside, are the engine's: every script, API, line end and chunking.

use std::net::SocketAddr;

use futures::future::join_all;
use heartline::{Form, Heartline};
use heartline_cli::proxy::{Consent, FormChoice};
use heartline_cli::sim::{Engine, LineEnd, Script, Settings, expected_body};
use tokio::task::JoinSet;

use super::support::{Answer, Client, End, INTERVAL, config, engine_of, soon, start};

async fn engine() -> (SocketAddr, Settings, JoinSet<()>) {
    let settings = Settings { listen: "127.0.0.1:0".parse().expect("an address"), ..Settings::default() };
    let engine = Engine::bind(settings.clone()).await.expect("an engine");
    let address = engine.local_addr();
    let mut task = JoinSet::new();
    task.spawn(engine.run_until(std::future::pending()));
    (address, settings, task)
}

/// Takes heartbeats out of `sent` so that `expected` is left; returns what follows it, and how many there were.
fn without_heartbeats(sent: &[u8], expected: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut at, mut heartbeats) = (0, 0);
    for &byte in expected {
        loop {
            match sent.get(at) {
                Some(&found) if found == byte => break,
                Some(b':') if sent[at..].starts_with(b":\n") => at += 2,
                // Inside an event of a stream with such line ends.
                Some(b':') if sent[at..].starts_with(b":\r\n") => at += 3,
                Some(b'\n' | b' ') => at += 1,
                _ => return None,
            }
            heartbeats += 1;
        }
        at += 1;
    }
    let mut rest = &sent[at..];
    loop {
        match rest {
            [b':', b'\n', more @ ..] | [b'\n' | b' ', more @ ..] => rest = more,
            _ => return Some((rest.to_vec(), heartbeats)),
        }
        heartbeats += 1;
    }
}

const TARGETS: [&str; 12] = [
    "/v1/chat/completions?",
    "/openai/deployments/d/chat/completions?api-version=1&",
    "/v1/completions?",
    "/v1/responses?",
    "/v1/messages?",
    "/api/chat?",
    "/api/generate?",
    "/v1beta/models/g:streamGenerateContent?alt=sse&",
    "/completion?",
    "/generate_stream?",
    "/v2/models/m/generate_stream?",
    "/events?",
];

/// Long enough for a heartbeat before the first token and in a stall, short between two tokens.
const DELAYS: &str = "ttft=230ms&itl=2ms&stall=230ms&prefill=1ms&tokens=6&seed=7";

async fn post(proxy: SocketAddr, target: &str, body: &str) -> Answer {
    let mut client = Client::to(proxy).await;
    let length = body.len();
    let head = "content-type: application/json\r\nhost: chat.example";
    client.send(format!("POST {target} HTTP/1.1\r\n{head}\r\ncontent-length: {length}\r\n\r\n{body}")).await;
    soon(target, client.answer()).await
}

#[tokio::test]
async fn bytes_minus_heartbeats_are_the_engines_for_every_script_and_api() {
    let (engine, settings, _task) = engine().await;
    for form in [Form::newline(), Form::comment()] {
        let mut config = config(engine);
        engine_of(&mut config).heart.form = FormChoice::Form(form.clone());
        engine_of(&mut config).heart.ndjson = Consent::Always;
        let proxy = start(config).await;
        let mut cases = Vec::new();
        for target in TARGETS {
            for script in Script::ALL.iter().filter(|script| **script != Script::Hang) {
                for line_end in LineEnd::ALL {
                    cases.push(format!("{target}script={script}&line_end={line_end}&{DELAYS}"));
                }
            }
        }
        let body = r#"{"model":"m","stream":true,"messages":[]}"#;
        let answers = join_all(cases.iter().map(|target| post(proxy.address, target, body))).await;
        let mut heartbeats = 0;
        for (target, answer) in cases.iter().zip(answers) {
            let expected = expected_body(&settings, target, body.as_bytes());
            assert_eq!(answer.status, 200, "{target}");
            let Some((rest, count)) = without_heartbeats(&answer.body, &expected) else {
                panic!("{target} {form}: {:?} is not {expected:?}", String::from_utf8_lossy(&answer.body));
            };
            heartbeats += count;
            if target.contains("script=disconnect") {
                // A torn event ends in a reset; after an error event there is a close in the middle of chunks.
                let torn = target.contains("script=disconnect-inside");
                assert_eq!(
                    answer.end,
                    if torn { End::Reset } else { End::Closed },
                    "{target}: an abort is no clean end"
                );
            } else {
                assert_eq!((answer.end, rest.len()), (End::Whole, 0), "{target}");
            }
            if target.contains("script=disconnect-inside") {
                assert!(rest.is_empty(), "{target}: nothing is written into a torn event: {rest:?}");
            }
        }
        assert!(heartbeats > 0, "{heartbeats} heartbeats in {} streams", cases.len());
        proxy.is_empty().await;
    }
}

#[tokio::test]
async fn an_engine_that_hangs_is_kept_alive_and_nothing_is_made_up() {
    let (engine, _, _task) = engine().await;
    let proxy = start(config(engine)).await;
    let mut client = proxy.connect().await;
    client
        .send(
            "POST /v1/chat/completions?script=hang HTTP/1.1\r\nhost: a\r\ncontent-length: 15\r\n\r\n{\"stream\":true}",
        )
        .await;
    let head = client.head().await;
    assert_eq!(head.status, 200);
    for _ in 0..3 {
        assert_eq!(client.until(b"\r\n").await.expect("a chunk"), b"1\r\n");
        assert_eq!(client.until(b"\r\n").await.expect("a heartbeat"), b"\n\r\n");
    }
    drop(client);
    proxy.is_empty().await;
}

/// Answers that carry no heartbeats pass byte for byte, with their head.
#[tokio::test]
async fn answers_without_heartbeats_pass_untouched() {
    let (engine, settings, _task) = engine().await;
    let proxy = start(config(engine)).await;
    let body = r#"{"stream":false}"#;
    for target in
        ["/v1/chat/completions?ttft=1ms&tokens=3", "/v1/messages?ttft=1ms&tokens=3", "/api/chat?ttft=1ms&tokens=3"]
    {
        let answer = post(proxy.address, target, body).await;
        let direct = post(engine, target, body).await;
        assert_eq!(answer.body, expected_body(&settings, target, body.as_bytes()), "{target}");
        let fields = |answer: &Answer| {
            let lines = answer.head.lines().map(str::to_ascii_lowercase);
            let mut lines: Vec<_> =
                lines.filter(|line| !line.starts_with("date:") && !line.starts_with("via:")).collect();
            lines.sort();
            lines
        };
        assert_eq!(fields(&answer), fields(&direct), "{target}");
    }
}

#[test]
fn the_interval_of_these_tests_is_the_shortest_there_is() {
    assert!(Heartline::builder().interval(INTERVAL).build().is_ok());
    assert!(Heartline::builder().interval(INTERVAL / 2).build().is_err());
}

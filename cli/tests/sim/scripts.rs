//! What each script does to a stream, seen by a client.

use crate::client::{Answer, STREAM, Served, events, is_silent, quick, soon, until};
use heartline_cli::sim::{Delay, Script, Settings};
use http::Method;
use http_body_util::BodyExt;
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test]
async fn every_script_that_ends_gives_its_expected_bytes_in_every_api() {
    let served = Served::start(Settings { stall: Delay::ZERO, prefill: Delay::ZERO, tokens: 5, ..quick() }).await;
    for script in Script::ALL.iter().filter(|script| **script != Script::Hang) {
        let breaks = [Script::Disconnect, Script::DisconnectInside].contains(script);
        for path in ["/v1/chat/completions", "/v1/completions", "/v1/messages", "/api/chat", "/api/generate", "/events"]
        {
            for body in [STREAM, r#"{"stream":false}"#] {
                let target = format!("{path}?script={script}");
                let answer = served.post(&target, body).await;
                assert_eq!(answer.bytes(), served.expected(&target, body), "{target} {body}");
                assert_eq!(answer.broken, breaks, "{target} {body}");
            }
        }
    }
    until(|| served.stats.live() == 0).await;
    assert_eq!((served.stats.broken(), served.stats.completed(), served.stats.dropped()), (24, 60, 0));
}

#[tokio::test]
async fn cliff_answers_in_the_order_of_arrival_one_prefill_apart() {
    let served = Served::start(Settings { script: Script::Cliff, prefill: "15ms".parse().unwrap(), ..quick() }).await;
    let begun = Instant::now();
    let mut streams = Vec::new();
    for place in 1..=6 {
        // The headers come at once, so the next request arrives later than this one.
        let response = soon(served.send(Method::GET, "/", "")).await.unwrap();
        streams.push(async move {
            let mut body = response.into_body();
            body.frame().await.unwrap().unwrap();
            let first = begun.elapsed();
            while body.frame().await.is_some() {}
            (place, first)
        });
    }
    let firsts = soon(futures::future::join_all(streams)).await;
    for (place, first) in &firsts {
        assert!(*first >= Duration::from_millis(15) * *place, "place {place} after {first:?}");
    }
    assert!(firsts.is_sorted_by_key(|(_, first)| *first));
}

#[tokio::test]
async fn a_client_that_leaves_the_queue_holds_nobody_up() {
    let served = Served::start(Settings { script: Script::Cliff, ..quick() }).await;
    let prefilling = served.send(Method::GET, "/?prefill=1h", "").await.unwrap();
    let queued = served.send(Method::GET, "/?prefill=1h", "").await.unwrap();
    let waiting = served.send(Method::GET, "/?prefill=1ms", "").await.unwrap();
    let mut waiting = Box::pin(Answer::read(waiting));
    assert!(is_silent(&mut waiting).await);
    assert_eq!(served.stats.live(), 3);
    drop(queued);
    drop(prefilling);
    assert!(!soon(waiting).await.broken);
    until(|| served.stats.dropped() == 2 && served.stats.live() == 0).await;
}

#[tokio::test]
async fn stall_is_silent_in_the_middle() {
    let served = Served::start(quick()).await;
    let target = "/events?script=stall&stall=300ms&tokens=6";
    let mut body = served.send(Method::GET, target, "").await.unwrap().into_body();
    let (mut largest, mut before, mut seen) = (Duration::ZERO, 0, Vec::new());
    let mut last = Instant::now();
    while let Some(frame) = soon(body.frame()).await {
        if last.elapsed() > largest {
            (largest, before) = (last.elapsed(), seen.len());
        }
        last = Instant::now();
        seen.extend_from_slice(frame.unwrap().data_ref().unwrap());
    }
    assert!(largest >= Duration::from_millis(290), "{largest:?}");
    assert_eq!(events(std::str::from_utf8(&seen[..before]).unwrap()).len(), 3);
}

#[tokio::test]
async fn torn_arrives_in_awkward_pieces() {
    let served = Served::start(quick()).await;
    let answer = served.post("/events?script=torn&tokens=60&line_end=crlf&bom=on&seed=2", "").await;
    let pieces = &answer.frames;
    assert!(pieces.len() > 400, "{}", pieces.len());
    assert!(pieces.iter().any(|piece| std::str::from_utf8(piece).is_err()), "inside a character");
    assert!(pieces.windows(2).any(|pair| pair[0].ends_with(b"\r") && pair[1].starts_with(b"\n")), "between CR and LF");
    assert!(answer.text().starts_with('\u{feff}'));
    let plain = served.post("/events?tokens=60&seed=2", "").await;
    assert_eq!(events(&answer.text()), events(&plain.text()));
}

#[tokio::test]
async fn torn_draws_line_ends_and_byte_order_marks_from_the_seed() {
    let served = Served::start(Settings { script: Script::Torn, ..quick() }).await;
    let (mut marked, mut ends) = (0, [0; 3]);
    for seed in 0..24 {
        let text = served.post(&format!("/events?seed={seed}&tokens=2"), "").await.text();
        marked += usize::from(text.starts_with('\u{feff}'));
        ends[0] += usize::from(text.contains("\r\n"));
        ends[1] += usize::from(text.contains('\r') && !text.contains('\n'));
        ends[2] += usize::from(!text.contains('\r'));
    }
    assert!((1..24).contains(&marked) && ends.iter().all(|&count| count > 0), "{marked} {ends:?}");
}

#[tokio::test]
async fn a_late_error_has_the_shape_of_its_api() {
    let served = Served::start(Settings { script: Script::LateError, ..quick() }).await;
    let text = served.post("/v1/chat/completions", STREAM).await.text();
    let openai = events(&text);
    assert_eq!((openai.len(), openai.last().unwrap().1.as_str()), (1 + 6 + 1 + 1, "[DONE]"));
    let error: serde_json::Value = serde_json::from_str(&openai[7].1).unwrap();
    assert_eq!((&error["error"]["code"], &error["error"]["param"]), (&"500".into(), &serde_json::Value::Null));

    let text = served.post("/v1/messages", STREAM).await.text();
    assert_eq!(events(&text).last().unwrap().0, "error");
    assert!(!text.contains("\nevent: message_stop\n"));

    let text = served.post("/api/chat", "").await.text();
    assert!(text.lines().last().unwrap().starts_with(r#"{"error":""#));

    for (wait, status) in [("usual", 500), ("at-once", 200)] {
        let answer = served.post(&format!("/v1/messages?wait={wait}"), "{}").await;
        assert_eq!((answer.status.as_u16(), &answer.json()["type"]), (status, &"error".into()));
    }
}

#[tokio::test]
async fn hang_sends_headers_then_nothing_until_its_client_goes() {
    let served = Served::start(Settings { script: Script::Hang, ..quick() }).await;
    let mut body = served.send(Method::POST, "/v1/chat/completions", STREAM).await.unwrap().into_body();
    assert!(is_silent(&mut body.frame()).await);
    assert_eq!((served.stats.requests(), served.stats.live()), (1, 1));
    drop(body);
    until(|| served.stats.live() == 0).await;
    assert_eq!(served.stats.dropped(), 1);
    assert!(served.expected("/v1/chat/completions", STREAM).is_empty());
}

//! The channel and its events, from outside: what is sent arrives, in order, within the bound, and
//! each end learns when the other goes.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use heartline::{Event, EventBody, EventSender, Heartline, KeepAlive, SendError};
use http_body_util::BodyExt;
use proptest::prelude::*;
use static_assertions::assert_impl_all;

assert_impl_all!(Event: Send, Sync, Unpin, Clone);
assert_impl_all!(EventSender: Send, Sync, Unpin, Clone);
assert_impl_all!(KeepAlive<EventBody>: Send);
assert_impl_all!(SendError<Event>: std::error::Error, Send, Sync);

const INTERVAL: Duration = Duration::from_secs(30);

fn heart() -> Heartline {
    Heartline::builder().interval(INTERVAL).build().unwrap()
}

/// Fails where the test would wait for ever.
async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(INTERVAL * 100, future).await.expect("it takes too long")
}

/// The next data frame; none at the body's end.
async fn next(body: &mut KeepAlive<EventBody>) -> Option<Bytes> {
    let frame = within(body.frame()).await?.expect("a channel has no errors");
    Some(frame.into_data().expect("a channel has no trailers"))
}

#[tokio::test(start_paused = true)]
async fn events_arrive_whole_and_in_order() {
    let (events, mut body) = heart().channel(4);
    events.send(Event::data("1\n2")).await.unwrap();
    events.clone().send(Event::comment("c")).await.unwrap();
    events.try_send(Event::data("3")).unwrap();
    assert_eq!(next(&mut body).await.unwrap(), "data: 1\ndata: 2\n\n");
    assert_eq!(next(&mut body).await.unwrap(), ": c\n");
    assert_eq!(next(&mut body).await.unwrap(), "data: 3\n\n");
}

#[tokio::test(start_paused = true)]
async fn the_bound_is_exact_for_any_number_of_senders() {
    let (events, mut body) = heart().channel(3);
    let senders: Vec<_> = (0..100).map(|_| events.clone()).collect();
    let accepted = senders.iter().filter(|events| events.try_send(Event::data("x")).is_ok()).count();
    assert_eq!(accepted, 3);

    let mut waiting = Box::pin(events.send(Event::data("4")));
    assert!((&mut waiting).now_or_never().is_none(), "no room yet");
    next(&mut body).await.unwrap();
    within(waiting).await.unwrap();
    assert!(events.try_send(Event::data("5")).unwrap_err().is_full());
}

#[tokio::test(start_paused = true)]
async fn absurd_capacities_are_taken_for_the_nearest_possible() {
    let (events, _body) = heart().channel(0);
    events.try_send(Event::data("1")).unwrap();
    assert!(events.try_send(Event::data("2")).unwrap_err().is_full());

    let (events, _body) = heart().channel(usize::MAX);
    events.try_send(Event::data("1")).unwrap();
}

/// Case 9 of the reports: a full channel was taken for a gone client.
#[tokio::test(start_paused = true)]
async fn full_and_closed_are_told_apart() {
    let (events, body) = heart().channel(1);
    events.try_send(Event::data("1")).unwrap();
    let full = events.try_send(Event::data("2")).unwrap_err();
    assert!(full.is_full() && !full.is_closed());
    assert!(!events.is_closed());

    drop(body);
    let closed = events.try_send(Event::data("3")).unwrap_err();
    assert!(closed.is_closed() && !closed.is_full());
    assert_eq!(closed.into_inner(), Event::data("3"));
    let closed = within(events.send(Event::data("4"))).await.unwrap_err();
    assert!(closed.is_closed());
    assert!(events.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_send_dropped_while_it_waits_sends_nothing() {
    let (events, mut body) = heart().channel(1);
    events.send(Event::data("1")).await.unwrap();
    let mut waiting = Box::pin(events.send(Event::data("lost")));
    assert!((&mut waiting).now_or_never().is_none());
    drop(waiting);
    next(&mut body).await.unwrap();
    events.try_send(Event::data("2")).expect("its place is free");
    assert_eq!(next(&mut body).await.unwrap(), "data: 2\n\n");
}

#[tokio::test(start_paused = true)]
async fn the_body_ends_after_the_last_sender_and_the_last_event() {
    let heart = heart();
    let (events, mut body) = heart.channel(2);
    let clone = events.clone();
    events.send(Event::data("1")).await.unwrap();
    drop(events);
    clone.send(Event::data("2")).await.unwrap();
    drop(clone);
    assert!(next(&mut body).await.is_some());
    assert!(next(&mut body).await.is_some());
    assert!(next(&mut body).await.is_none());
    drop(body);
    assert_eq!(heart.active(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_gone_client_frees_waiting_senders_and_tells_the_handler() {
    let heart = heart();
    let (events, body) = heart.channel(1);
    events.send(Event::data("1")).await.unwrap();
    let waiting = tokio::spawn({
        let events = events.clone();
        async move { events.send(Event::data("2")).await }
    });
    let told = tokio::spawn({
        let events = events.clone();
        async move { events.closed().await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished() && !told.is_finished());

    drop(body);
    assert_eq!(within(waiting).await.unwrap().unwrap_err().into_inner(), Event::data("2"));
    within(told).await.unwrap();
    within(events.closed()).await;
    assert_eq!(heart.active(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_body_dropped_before_its_first_poll_closes_the_channel() {
    let heart = heart();
    let (events, body) = heart.channel(1);
    drop(body);
    assert!(events.is_closed());
    assert_eq!(heart.active(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn senders_on_many_threads_lose_nothing_and_each_keeps_its_order() {
    const SENDERS: usize = 8;
    const EVENTS: usize = 500;
    let (events, body) = heart().channel(3);
    for sender in 0..SENDERS {
        let events = events.clone();
        tokio::spawn(async move {
            for number in 0..EVENTS {
                events.send(Event::data(format!("{sender} {number}"))).await.unwrap();
            }
        });
    }
    drop(events);
    let bytes = within(body.collect()).await.unwrap().to_bytes();
    let mut expected = [0; SENDERS];
    for line in std::str::from_utf8(&bytes).unwrap().split_terminator("\n\n") {
        let (sender, number) = line.strip_prefix("data: ").unwrap().split_once(' ').unwrap();
        let next = &mut expected[sender.parse::<usize>().unwrap()];
        assert_eq!(number.parse(), Ok(*next));
        *next += 1;
    }
    assert_eq!(expected, [EVENTS; SENDERS]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_channel_has_heartbeats_which_need_no_room() {
    let heart = heart();
    let (events, mut body) = heart.channel(1);
    let start = tokio::time::Instant::now();
    assert_eq!(next(&mut body).await.unwrap(), "\n");
    assert!(start.elapsed() <= INTERVAL * 2);
    assert_eq!(next(&mut body).await.unwrap(), "\n");
    events.try_send(Event::data("1")).expect("heartbeats took no room");
    assert_eq!(next(&mut body).await.unwrap(), "data: 1\n\n");
}

/// Case 2 of the reports: a blank line after an `id:` makes clients dispatch an empty event.
#[tokio::test(start_paused = true)]
async fn heartbeats_after_an_id_have_no_blank_line() {
    let (events, mut body) = heart().channel(1);
    events.send(Event::data("1").id("7").unwrap()).await.unwrap();
    assert_eq!(next(&mut body).await.unwrap(), "id: 7\ndata: 1\n\n");
    assert_eq!(next(&mut body).await.unwrap(), ":\n");
}

/// Case 12 of the reports: dropped from the registry, and the handler was never told.
#[tokio::test(start_paused = true)]
async fn a_stream_ended_for_its_silence_tells_the_handler() {
    let heart = Heartline::builder().interval(INTERVAL).max_silence(INTERVAL * 3).build().unwrap();
    let (events, mut body) = heart.channel(1);
    while next(&mut body).await.is_some() {}
    within(events.closed()).await;
    assert_eq!(heart.active(), 0);
}

/// A format given to the builder would put that format's heartbeats between events.
#[tokio::test(start_paused = true)]
async fn a_channel_is_an_event_stream_whatever_the_builder_says() {
    let heart = heart();
    let stream = heart.stream().format(heartline::Format::Ndjson);
    let (_events, mut body) = stream.label("chat").channel(1);
    assert_eq!(next(&mut body).await.unwrap(), "\n");
    assert_eq!(heart.streams()[0].label.as_deref(), Some("chat"));
}

/// What a client has after the stream: every event as (name, data, last id), and the wait.
#[derive(Debug, Default, PartialEq)]
struct Decoded {
    events: Vec<(String, String, String)>,
    retry_ms: Option<u64>,
}

/// Decodes as the WHATWG HTML standard says in section 9.2.6, written for these tests alone.
fn decode(bytes: &[u8]) -> Decoded {
    let text = std::str::from_utf8(bytes).expect("an event stream is UTF-8");
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut decoded = Decoded::default();
    let (mut name, mut data, mut id) = (String::new(), String::new(), String::new());
    let unified = text.replace("\r\n", "\n").replace('\r', "\n");
    let whole_lines = unified.rsplit_once('\n').map_or("", |(lines, _)| lines);
    for line in whole_lines.split('\n') {
        if line.is_empty() {
            if !data.is_empty() {
                data.pop();
                let event_name = if name.is_empty() { "message" } else { &name };
                decoded.events.push((event_name.to_owned(), data.clone(), id.clone()));
            }
            name.clear();
            data.clear();
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = value.to_owned(),
            "data" => {
                data.push_str(value);
                data.push('\n');
            }
            "id" if !value.contains('\0') => id = value.to_owned(),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                decoded.retry_ms = Some(value.parse().unwrap());
            }
            _ => {}
        }
    }
    decoded
}

/// Texts made mostly of what could break the format.
fn text() -> impl Strategy<Value = String> {
    let awkward =
        prop::sample::select(vec!['\r', '\n', ' ', ':', '\0', '\u{feff}', '\u{2028}', '\u{85}', 'd', 'é', '😀']);
    let character = prop_oneof![3 => awkward, 1 => any::<char>()];
    prop::collection::vec(character, 0..24).prop_map(String::from_iter)
}

/// What one event is made of.
#[derive(Clone, Debug)]
struct Parts {
    is_comment: bool,
    text: String,
    name: Option<String>,
    id: Option<String>,
    retry_ms: Option<u32>,
}

fn parts() -> impl Strategy<Value = Parts> {
    let option = prop::option::of::<_>;
    let retry = prop::option::of(any::<u32>());
    (any::<bool>(), text(), option(text()), option(text()), retry)
        .prop_map(|(is_comment, text, name, id, retry_ms)| Parts { is_comment, text, name, id, retry_ms })
}

proptest! {
    #[test]
    fn a_conformant_client_decodes_what_the_event_was_made_of(all in prop::collection::vec(parts(), 0..6)) {
        let mut bytes = Vec::new();
        let mut expected = Decoded::default();
        let mut last_id = String::new();
        for parts in all {
            let mut event = if parts.is_comment {
                Event::comment(parts.text.clone())
            } else {
                Event::data(parts.text.clone())
            };
            let mut event_name = "message".to_owned();
            if let Some(name) = parts.name {
                match event.clone().event(name.clone()) {
                    Ok(named) => {
                        event = named;
                        if !name.is_empty() {
                            event_name = name;
                        }
                    }
                    Err(_) => prop_assert!(name.contains(['\r', '\n'])),
                }
            }
            if let Some(id) = parts.id {
                match event.clone().id(id.clone()) {
                    Ok(identified) => {
                        event = identified;
                        last_id = id;
                    }
                    Err(_) => prop_assert!(id.contains(['\0', '\r', '\n'])),
                }
            }
            if let Some(retry_ms) = parts.retry_ms {
                event = event.retry(Duration::from_millis(retry_ms.into()));
                expected.retry_ms = Some(retry_ms.into());
            }
            if !parts.is_comment {
                let data = parts.text.replace("\r\n", "\n").replace('\r', "\n");
                expected.events.push((event_name, data, last_id.clone()));
            }
            bytes.extend_from_slice(&event.encode());
        }
        prop_assert_eq!(decode(&bytes), expected);
    }
}

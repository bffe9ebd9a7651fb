//! The event stream and NDJSON decoders against a plain reference that sees the whole body at once.

use heartline::decode::{Arrival, DecodeError, EventDecoder, NdjsonDecoder};
use proptest::prelude::*;

/// One event: type, data, id.
type Event = (String, String, String);

/// Decodes in pieces that end at the given places; returns the events and every arrival.
fn decode_at(body: &[u8], cuts: &[usize]) -> Result<(Vec<Event>, Vec<Arrival>), DecodeError> {
    let mut decoder = EventDecoder::with_bytes_max(1 << 16);
    let (mut events, mut arrivals) = (Vec::new(), Vec::new());
    let mut from = 0;
    for to in cuts.iter().copied().chain([body.len()]) {
        arrivals.push(decoder.push(&body[from..to], |event| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            events.push((text(event.name), event.data_text().into_owned(), text(event.id)));
        })?);
        from = to;
    }
    Ok((events, arrivals))
}

fn decode(body: &str) -> Vec<Event> {
    decode_at(body.as_bytes(), &[]).unwrap().0
}

fn bytewise(body: &[u8]) -> (Vec<Event>, Vec<Arrival>) {
    decode_at(body, &(1..body.len()).collect::<Vec<_>>()).unwrap()
}

/// The standard's algorithm over a finished text, without any state between lines but what it names.
fn reference(body: &[u8]) -> Vec<Event> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let text = String::from_utf8_lossy(body).replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = text.split('\n').collect();
    lines.pop(); // What follows the last line end is no line.
    let (mut events, mut name, mut data, mut id) = (Vec::new(), String::new(), String::new(), String::new());
    for line in lines {
        if line.is_empty() {
            if let Some(data) = data.strip_suffix('\n') {
                let name = if name.is_empty() { "message" } else { &name };
                events.push((name.to_owned(), data.to_owned(), id.clone()));
            }
            data.clear();
            name.clear();
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => data = format!("{data}{value}\n"),
            "event" => name = value.to_owned(),
            "id" if !value.contains('\0') => id = value.to_owned(),
            _ => {}
        }
    }
    events
}

fn event(name: &str, data: &str, id: &str) -> Event {
    (name.to_owned(), data.to_owned(), id.to_owned())
}

#[test]
fn the_standards_examples_decode_as_it_says() {
    assert_eq!(decode("data: YHOO\ndata: +2\ndata: 10\n\n"), [event("message", "YHOO\n+2\n10", "")]);
    let second = ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n";
    assert_eq!(
        decode(second),
        [
            event("message", "first event", "1"),
            event("message", "second event", ""),
            event("message", " third event", "")
        ]
    );
    assert_eq!(decode("data\n\ndata\ndata\n\ndata:"), [event("message", "", ""), event("message", "\n", "")]);
    assert_eq!(decode("data:test\n\ndata: test\n\n"), vec![event("message", "test", ""); 2]);
}

#[test]
fn odd_corners_follow_the_standard() {
    assert_eq!(decode("event: x\n\ndata: y\n\n"), [event("message", "y", "")], "a type without data is forgotten");
    assert_eq!(decode("id: 5\n\ndata: y\n\n"), [event("message", "y", "5")], "an id without data is kept");
    assert_eq!(decode("id: a\0b\ndata: y\n\n"), [event("message", "y", "")], "an id with NUL is ignored");
    assert_eq!(decode("Data: x\n data: x\n\n"), [], "field names are exact");
    assert_eq!(decode("data: x\n"), [], "an unfinished event is never handed out");
    assert_eq!(decode("retry: 10\nnonsense\ndata: x\n\n"), [event("message", "x", "")]);
    assert_eq!(
        decode("\u{feff}data: x\n\n\u{feff}data: y\n\n"),
        [event("message", "x", "")],
        "only one byte order mark, only at the beginning"
    );
}

#[test]
fn a_line_end_of_two_bytes_is_one_wherever_it_is_cut() {
    let body = b"data: x\r\n\r\ndata: y\r\rdata: z\n\r\n";
    let expected = ["x", "y", "z"].map(|data| event("message", data, ""));
    assert_eq!(decode_at(body, &[]).unwrap().0, expected);
    assert_eq!(bytewise(body).0, expected);
}

#[test]
fn an_event_that_ends_in_two_carriage_returns_is_handed_out_at_once() {
    assert_eq!(decode("data: x\r\r"), [event("message", "x", "")]);
}

#[test]
fn heartbeats_are_neutral_and_the_blank_line_of_an_event_is_not() {
    let arrival = |before: &str, heartbeat: &str| {
        let body = format!("{before}{heartbeat}");
        *decode_at(body.as_bytes(), &[before.len()]).unwrap().1.last().unwrap()
    };
    for before in ["", "data: x\n\n", "data: x\r\n\r\n", "\n", ": c\n", "\u{feff}"] {
        for heartbeat in ["\n", ":\n", ": keep-alive\n\n", "\n\n", "\r\n", ":\r\n", ": torn"] {
            let arrival = arrival(before, heartbeat);
            assert!(arrival.is_heartbeat(), "{before:?} {heartbeat:?} {arrival:?}");
            assert_eq!(arrival.neutral_bytes, heartbeat.len());
        }
    }
    assert!(arrival("data: x\n", ":\n").is_heartbeat(), "a comment inside an event");
    assert!(!arrival("data: x\n", "\n").is_heartbeat(), "the end of an event");
    assert!(!arrival("retry: 1\n", "\n").is_heartbeat(), "the end of a block");
    assert!(!arrival("da", "ta: x").is_heartbeat());
    assert!(!arrival("", ":\ndata: x\n\n").is_heartbeat(), "content went along");
    assert!(!arrival("data: x\n\r", "").is_heartbeat(), "nothing arrived");
}

#[test]
fn the_second_byte_of_a_line_end_belongs_to_its_line() {
    let (_, arrivals) = bytewise(b":\r\n");
    assert!(arrivals.iter().all(Arrival::is_heartbeat), "{arrivals:?}");
    let (_, arrivals) = bytewise(b"data\r\n\r\n");
    assert!(!arrivals.iter().any(Arrival::is_heartbeat), "{arrivals:?}");
}

#[test]
fn an_endless_line_is_refused_and_an_endless_comment_is_not_kept() {
    let mut decoder = EventDecoder::with_bytes_max(100);
    let mut events = 0;
    for _ in 0..10 {
        decoder.push(b": a comment without an end ", |_| events += 1).unwrap();
    }
    decoder.push(b"\ndata: x\n\n", |_| events += 1).unwrap();
    decoder.push(&[b'd'; 100], |_| events += 1).unwrap();
    let error = decoder.push(b"d", |_| events += 1).unwrap_err();
    assert!(error.to_string().contains("100 bytes"), "{error}");
    assert_eq!(decoder.push(b"\n\ndata: x\n\n", |_| ()), Err(error), "it stays failed");
    assert_eq!(events, 1);
}

#[test]
fn an_event_of_endless_lines_is_refused() {
    let mut decoder = EventDecoder::with_bytes_max(100);
    let refused = (0..100).any(|_| decoder.push(b"data: 0123456789\n", |_| ()).is_err());
    assert!(refused);
}

#[test]
fn ndjson_lines_lose_the_space_of_a_heartbeat() {
    let body = " {\"a\": 1}\n\n \r\n  {\"b\":2} \r\n{\"c\":3}";
    for cuts in [vec![], (1..body.len()).collect::<Vec<_>>()] {
        let mut decoder = NdjsonDecoder::new();
        let mut lines = Vec::new();
        let mut from = 0;
        for to in cuts.into_iter().chain([body.len()]) {
            decoder.push(&body.as_bytes()[from..to], |line| lines.push(line.data_text().into_owned())).unwrap();
            from = to;
        }
        assert_eq!(lines, ["{\"a\": 1}", "{\"b\":2}"]);
        decoder.finish(|line| lines.push(line.data_text().into_owned()));
        assert_eq!(lines[2], "{\"c\":3}");
    }
}

#[test]
fn an_ndjson_heartbeat_is_whitespace_before_a_line() {
    let mut decoder = NdjsonDecoder::new();
    let mut push = |bytes: &[u8]| decoder.push(bytes, |_| ()).unwrap();
    assert!(push(b" ").is_heartbeat());
    assert!(!push(b"{\"a\":").is_heartbeat());
    assert!(!push(b" ").is_heartbeat(), "inside a line");
    assert!(!push(b"1}\n").is_heartbeat());
    assert!(push(b"\n").is_heartbeat());
}

#[test]
fn an_endless_ndjson_line_is_refused() {
    let mut decoder = NdjsonDecoder::with_bytes_max(8);
    assert!(decoder.push(b"12345678\n", |_| ()).is_ok());
    assert!(decoder.push(b"123456789\n", |_| ()).is_err());
    assert!(decoder.push(b"1\n", |_| ()).is_err());
}

/// Text that hits the grammar often: fields, line ends, comments, ids, and bytes that are no UTF-8.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(&b"data: x"[..]),
        2 => Just(&b"data"[..]),
        2 => Just(&b"event: token"[..]),
        1 => Just(&b"id: 7"[..]),
        1 => Just(&b"id"[..]),
        1 => Just(&b"retry: 5"[..]),
        2 => Just(&b": comment"[..]),
        1 => Just(&b"\xEF\xBB\xBF"[..]),
        1 => Just(&b"\xEF\xBB"[..]),
        1 => Just(&b"\xFF\0"[..]),
        1 => Just(&b": "[..]),
        6 => Just(&b"\n"[..]),
        4 => Just(&b"\n\n"[..]),
        3 => Just(&b"\r"[..]),
        3 => Just(&b"\r\n"[..]),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_body_decodes_like_the_reference_however_it_is_cut(
        body in body(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        cuts.sort_unstable();
        let expected = reference(&body);
        for cuts in [cuts, Vec::new(), (1..body.len()).collect()] {
            let (events, arrivals) = decode_at(&body, &cuts).unwrap();
            prop_assert_eq!(&events, &expected);
            let counted: u32 = arrivals.iter().map(|arrival| arrival.events).sum();
            prop_assert_eq!(counted as usize, expected.len());
        }
    }

    #[test]
    fn every_byte_is_either_content_or_neutral(body in body()) {
        let (_, whole) = decode_at(&body, &[]).unwrap();
        let (_, pieces) = bytewise(&body);
        let neutral: usize = pieces.iter().map(|arrival| arrival.neutral_bytes).sum();
        prop_assert_eq!(whole[0].neutral_bytes, neutral);
        // A torn byte order mark at the end is neither yet.
        let torn = if b"\xEF\xBB\xBF".starts_with(&body) && body.len() < 3 { body.len() } else { 0 };
        prop_assert_eq!(whole[0].neutral_bytes + whole[0].content_bytes + torn, body.len());
    }
}

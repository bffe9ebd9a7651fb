//! Every API, from its path to its last byte: what `heartline::api` says of it is held against an answer of a real engine
//! (`tests/api`) and against the byte machine.

use bytes::Bytes;
use heartline::__private::Machine;
use heartline::api::{Api, Closing, Endpoint, Fault, Question, Sign};
use heartline::decode::{EventDecoder, NdjsonDecoder};
use heartline::{Form, Format};
use http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::Value;

/// The known APIs; of any other event stream nothing is to be shown.
fn known() -> impl Iterator<Item = Api> {
    Api::ALL.iter().copied().filter(|api| *api != Api::EVENTS)
}

/// An answer of the real engine.
fn fixture(api: Api) -> String {
    let ending = if api.format() == Format::Ndjson { "ndjson" } else { "sse" };
    let path = format!("{}/tests/api/{api}.{ending}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The events of a stream: name and data.
fn events(format: Format, stream: &str) -> Vec<(String, String)> {
    let mut events = Vec::new();
    let mut see = |event: heartline::decode::DecodedEvent<'_>| {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        events.push((text(event.name), text(event.data)));
    };
    match format {
        Format::Ndjson => NdjsonDecoder::new().push(stream.as_bytes(), &mut see).unwrap(),
        _ => EventDecoder::new().push(stream.as_bytes(), &mut see).unwrap(),
    };
    events
}

fn shows(sign: Sign, (name, data): &(String, String)) -> bool {
    let json = || serde_json::from_str::<Value>(data).unwrap_or_default();
    match sign {
        Sign::Data(text) => data == text,
        Sign::Event(kind) => name == kind || json()["type"] == kind,
        Sign::Field(place) => {
            json().pointer(place).is_some_and(|value| !value.is_null() && *value != Value::Bool(false))
        }
    }
}

/// Passes a stream on by frames of `size` bytes; what a heartbeat is at its end, nothing if none may be written.
fn beat_after(format: Format, stream: &str, size: usize) -> Option<Bytes> {
    let mut machine = Machine::new(format);
    for frame in stream.as_bytes().chunks(size) {
        machine.pass(Bytes::copy_from_slice(frame));
    }
    machine.beat(&Form::newline())
}

#[test]
fn each_path_leads_to_its_api_and_its_format() {
    for api in known() {
        let uri: Uri = api.request_path(&Question::new("llama", "")).parse().unwrap();
        let endpoint = Endpoint::of_request(&Method::POST, &uri, &HeaderMap::new()).expect("on the list");
        assert_eq!((endpoint.api(), endpoint.streams(Some(true))), (api, true));
        assert_eq!(Api::nearest(uri.path(), uri.query()), api);
        assert!(matches!(api.format(), Format::EventStream | Format::Ndjson));
    }
}

#[test]
fn a_real_answer_ends_as_its_api_says_and_not_before() {
    for api in known() {
        let events = events(api.format(), &fixture(api));
        let (last, rest) = events.split_last().expect("events");
        let ends = |event| api.ends().iter().any(|sign| shows(*sign, event));
        assert_eq!(ends(last), !api.ends().is_empty(), "{api}: {last:?}");
        assert!(!rest.iter().any(ends), "{api}");
        let fails = |event| api.errors().iter().chain(api.failed_ends()).any(|sign| shows(*sign, event));
        assert!(!events.iter().any(fails), "{api}");
        let pings = events.iter().filter(|event| api.pings().iter().any(|sign| shows(*sign, event)));
        assert_eq!(pings.count(), usize::from(api == Api::ANTHROPIC), "{api}");
    }
}

#[test]
fn the_byte_machine_sees_each_end_however_the_stream_is_cut() {
    for api in known() {
        let stream = fixture(api);
        let (format, is_seen) = (api.format(), !api.ends().iter().all(|sign| matches!(sign, Sign::Field(_))));
        let blocks = if format == Format::Ndjson { "\n" } else { "\n\n" };
        let all_but_last = &stream[..stream.trim_end().rfind(blocks).unwrap() + blocks.len()];
        for size in [1, 7, stream.len()] {
            let (before, after) = (beat_after(format, all_but_last, size), beat_after(format, &stream, size));
            let free = Bytes::from_static(if format == Format::Ndjson { b" " } else { b"\n" });
            assert_eq!(before, Some(free.clone()), "{api}");
            let expected = match format {
                Format::Ndjson => None,
                // A comment is neutral where the client may have stopped to read.
                _ if is_seen => Some(Bytes::from_static(b":\n")),
                _ => Some(free),
            };
            assert_eq!(after, expected, "{api} by {size}");
        }
    }
}

#[test]
fn each_error_is_one_event_that_its_api_knows_and_its_end_is_seen() {
    let mut fault = Fault::new(StatusCode::BAD_GATEWAY, "the engine is \"gone\"");
    fault.number = 7;
    for api in known() {
        let (format, error) = (api.format(), |closing| api.error(&fault, api.format(), closing));
        let reported = events(format, &error(Closing::Abort));
        assert_eq!(reported.len(), 1, "{api}");
        assert!(api.errors().iter().any(|sign| shows(*sign, &reported[0])), "{api}: {reported:?}");
        assert!(!api.ends().iter().any(|sign| shows(*sign, &reported[0])), "{api}");
        let whole = events(format, &error(Closing::End));
        let ends = [api.ends(), api.failed_ends()].concat();
        let closes = whole.len() > 1 && ends.iter().any(|sign| shows(*sign, whole.last().unwrap()));
        assert_eq!(closes, whole.len() > 1, "{api}: what follows an error is a known end");
        if closes {
            assert_eq!(beat_after(format, &error(Closing::End), 5), Some(Bytes::from_static(b":\n")), "{api}");
        }
        let document: Value = serde_json::from_str(&api.error(&fault, Format::Json, Closing::End)).unwrap();
        assert!(document["error"].to_string().contains("gone"), "{api}");
    }
}

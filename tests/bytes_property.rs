//! Properties of the bytes: no heartbeat changes what a client decodes (invariant I1).
//!
//! Streams are made of hostile pieces, cut anywhere, with heartbeats due anywhere; `common/neutral.rs` judges. The
//! corpus of the fuzz target is replayed here too.

mod common;
#[path = "common/neutral.rs"]
mod neutral;
#[path = "common/oracle.rs"]
mod oracle;
#[path = "common/pieces.rs"]
mod pieces;
#[path = "common/reference.rs"]
mod reference;
#[path = "common/wrapped.rs"]
mod wrapped;

use bytes::Bytes;
use heartline::__private::Machine;
use heartline::Format;
use neutral::{Scenario, check, compare, parse, shapes};
use pieces::{DOCUMENT_PIECES, EVENT_PIECES, LINE_PIECES, scenario, stream};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use reference::{decode, decode_strict};

fn config() -> ProptestConfig {
    ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn heartbeats_in_event_streams_are_neutral(scenario in scenario(Format::EventStream, stream(EVENT_PIECES, 2))) {
        check(&scenario).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn heartbeats_in_json_lines_are_neutral(scenario in scenario(Format::Ndjson, stream(LINE_PIECES, 0))) {
        check(&scenario).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn heartbeats_before_json_are_neutral(scenario in scenario(Format::Json, stream(DOCUMENT_PIECES, 2))) {
        check(&scenario).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn any_bytes_at_all_are_some_stream(input in vec(select(b"\x00\x01\x02\x03\x1E\x1Fdata: id\r\n\xEF\xBB\xBF{}\"".to_vec()), 2..60)) {
        if input[0] % 3 != 1 {
            check(&parse(&input).unwrap()).map_err(TestCaseError::fail)?;
        }
    }
}

#[test]
fn the_fuzz_corpus_passes() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/corpus/neutral");
    let (mut files, mut sent) = (0, 0);
    for entry in std::fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        let input = std::fs::read(&path).unwrap();
        let scenario = parse(&input).expect("an input has two bytes at least");
        sent += check(&scenario).unwrap_or_else(|error| panic!("{}: {error}", path.display())).sent;
        files += 1;
    }
    assert!(files >= 20 && sent >= 50, "{files} files, {sent} heartbeats");
}

/// A blank line is nothing to a conformant client at any time between events; to those that never forget an ID it is an
/// event, with no data, which they then fail to parse.
#[test]
fn a_blank_line_after_an_id_is_an_event_to_strict_clients() {
    let stream = b"id: 7\ndata: {}\n\n";
    for (heartbeat, events) in [("", 1), (":\n", 1), ("\n", 2), (": x\n\n", 2)] {
        let wire = [stream, heartbeat.as_bytes()].concat();
        assert_eq!(decode(&wire), decode(stream), "{heartbeat:?}");
        assert_eq!(decode_strict(&wire).len(), events, "{heartbeat:?}");
    }
    for shape in shapes() {
        let mut machine = Machine::new(Format::EventStream);
        machine.pass(Bytes::from_static(stream));
        let heartbeat = machine.beat(&shape.form).unwrap_or_default();
        let wire = [stream, &*heartbeat].concat();
        assert_eq!(decode_strict(&wire), decode_strict(stream), "{heartbeat:?}");
    }
}

/// The judges must see what a careless heartbeat breaks.
#[test]
fn careless_heartbeats_do_not_pass() {
    let event_stream = |before: &str, heartbeat: &str, after: &str| {
        let stream = [before, after].concat();
        let wire = [before, heartbeat, after].concat();
        let scenario = Scenario { format: Format::EventStream, shape: shapes().remove(1), steps: Vec::new() };
        compare(&scenario, stream.as_bytes(), wire.as_bytes())
    };
    event_stream("data: a\n", ":\n", "data: b\n\n").unwrap();
    for (before, heartbeat, after) in [
        ("data: a", ":\n", "\n\n"),
        ("data: a\n", "\n", "data: b\n\n"),
        ("data: a\r", ":\n", "\n\n"),
        ("data: a\r", "\n", "\ndata: b\n\n"),
        ("", ":\n", "\u{feff}data: a\n\n"),
        ("id: 1\n\n", "\n", ""),
        ("data: [DONE]\n\n", "\n", ""),
    ] {
        assert!(event_stream(before, heartbeat, after).is_err(), "{before:?} {heartbeat:?} {after:?}");
    }
}

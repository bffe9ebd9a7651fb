//! Streams made of hostile pieces, cut anywhere, with heartbeats due anywhere: the input of the property tests.

use bytes::Bytes;
use heartline::Format;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::neutral::{Scenario, Step, shapes};

/// Pieces of event streams, the awkward ones first.
pub(crate) const EVENT_PIECES: &[&str] = &[
    "\r",
    "\n",
    "\r\n",
    "\r\r",
    "\n\n",
    "\r\n\r\n",
    "\u{feff}",
    ":",
    ": comment",
    ":\n",
    "data",
    "data:",
    "data: ",
    "data: a",
    "data:  b",
    "data: {\"choices\":[]}",
    "data: [DONE]",
    "data: [DONE]\n\n",
    "data:[DONE]",
    "data: {\"type\":\"message_stop\"}",
    "data: {\"type\": \"response.completed\"",
    "event",
    "event:",
    "event: x",
    "event: ping",
    "event: message_stop",
    "event: message_stop\ndata: {}\n\n",
    "event: message_stopped",
    "event:response.failed",
    "id",
    "id:",
    "id: ",
    "id:  ",
    "id: 1",
    "id: 1\n\n",
    "id:\0",
    "id: a\0b",
    "id: 7\r\rdata: x\r\r",
    "idx: 1",
    "ID: 1",
    " id: 1",
    "retry: 10",
    "retry: x",
    "retry",
    "junk",
    " ",
    "é",
    "data: one\n\n",
    "data: two\r\n\r\n",
    "data: {\"id\":\"a line of some length\"}\n\n",
    "data: {\"id\":\"a line\rof some length\"}\n\n",
    "data: a line long enough to be read in blocks\rid: 1\n\n",
    "data: {\"type\":\"content_block_delta\"}\n\n",
    "data: {\"type\":\"response.completed\",\"x\":[ ]}\n\n",
    "data: {\"a\":[],\"choices\" : [ ]}",
    "data: 3\r\r",
    "event: ping\ndata: {\"type\":\"ping\"}\n\n",
];

/// Pieces of JSON lines. None makes a line of nothing but space: clients disagree about those.
pub(crate) const LINE_PIECES: &[&str] = &[
    "\n",
    "\r\n",
    "{\"a\":1}\n",
    "{\"a\":[{\"done\":true}]}\n",
    "{\"response\":\"\\\"done\\\":true\",\"done\":false}\r\n",
    "{\"done\":true}\n",
    "{\"response\":\"\\\\\\\"done\\\":true\",\"done\":false}\n",
    "{\"x\":\"done\",\"y\":true}\n",
    "{ \"x\" : {} , \"done\" : true }\r\n",
    "{\"done\":\"true\"}\n",
    "[\"done\",true]\n",
    "\"done\"\n",
    "nonsense\n",
    "{\"a\":\"\\\\\"}\n",
    "7",
    "\u{feff}",
    "{\"text\":\"é\"}\n",
];

pub(crate) const DOCUMENT_PIECES: &[&str] =
    &["\u{feff}", " ", "\r\n", "\t", "{\"a\":1}", "[", "]", "1", "\"x\"", "null", "é"];

/// A stream of these pieces, and some raw bytes, as one.
pub(crate) fn stream(pieces: &'static [&'static str], raw: u32) -> impl Strategy<Value = Vec<u8>> {
    let piece = select(pieces).prop_map(|piece| piece.as_bytes().to_vec());
    let bytes = vec(select(b"\r\n:d\xEF\xBB\xBF \xE2".to_vec()), 1..4);
    vec(prop_oneof![20 => piece, raw => bytes], 0..24).prop_map(|pieces| pieces.concat())
}

/// The stream cut into frames, with heartbeats due between them.
pub(crate) fn scenario(format: Format, stream: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Scenario> {
    let cuts = prop_oneof![
        // Every byte by itself.
        1 => Just(Some(vec![1_usize; 300])),
        3 => vec(0_usize..4, 0..300).prop_map(Some),
        2 => vec(0_usize..40, 0..40).prop_map(Some),
        // Whole.
        1 => Just(Some(Vec::new())),
        // Line by line, the blank ones with the line before.
        2 => Just(None),
    ];
    let beats = prop_oneof![Just(vec![1_usize]), vec(0_usize..3, 1..60), Just(vec![0, 0, 0, 1])];
    (stream, cuts, beats, select(shapes())).prop_map(move |(stream, cuts, beats, shape)| {
        let lines = stream.chunk_by(|&byte, &next| byte != b'\n' || next == b'\n');
        let cuts = cuts.unwrap_or_else(|| lines.map(<[u8]>::len).collect());
        let mut rest = Bytes::from(stream);
        let mut steps = Vec::new();
        let mut due = beats.iter().cycle();
        for size in cuts {
            steps.extend(std::iter::repeat_n(Step::Beat, *due.next().unwrap()));
            steps.push(Step::Pass(rest.split_to(size.min(rest.len()))));
        }
        steps.extend([Step::Beat, Step::Pass(rest), Step::Beat, Step::Beat]);
        Scenario { format, shape, steps }
    })
}

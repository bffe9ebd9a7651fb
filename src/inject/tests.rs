//! Tests of the injector, one clause of invariant I1 after the other.

use super::*;

fn event_stream() -> Injector {
    Injector::new(Format::EventStream)
}

fn pass(injector: &mut Injector, data: &'static [u8]) -> Bytes {
    injector.pass(Bytes::from_static(data), Watch::Bytes).data
}

fn send(bytes: &'static [u8]) -> Beat {
    Beat::Send(Bytes::from_static(bytes))
}

fn beat_after(format: Format, stream: &'static [u8], form: &Form) -> Beat {
    let mut injector = Injector::new(format);
    assert_eq!(pass(&mut injector, stream), stream);
    injector.beat(form)
}

#[test]
fn the_state_is_small() {
    assert!(size_of::<Injector>() <= 16, "{}", size_of::<Injector>());
}

#[test]
fn heartbeat_has_the_form_between_events_and_is_a_comment_inside_one() {
    let block = Form::comment_block("hi").unwrap();
    assert_eq!(beat_after(Format::EventStream, b"data: a\n\n", &block), send(b": hi\n\n"));
    assert_eq!(beat_after(Format::EventStream, b"data: a\n", &block), send(b":\n"));
    assert_eq!(beat_after(Format::EventStream, b"event: x\n", &Form::anthropic_ping()), send(b":\n"));
}

#[test]
fn between_only_means_nothing_inside_an_event_nor_after_the_last() {
    let form = Form::newline_between();
    for stream in [&b"data: a\n"[..], b"data: a\r\n", b"data: [DONE]\n\n", b"id: 1\n"] {
        assert_eq!(beat_after(Format::EventStream, stream, &form), Beat::Hold);
    }
    assert_eq!(beat_after(Format::EventStream, b"data: a\n\n", &form), send(b"\n"));
    assert_eq!(beat_after(Format::EventStream, b"data: a\r", &form), send(b"\n"), "a line feed that comes anyway");
    assert_eq!(beat_after(Format::EventStream, b"id: 1\n\n", &form), send(b":\n"));
}

#[test]
fn inside_an_event_a_comment_ends_as_the_streams_lines_do() {
    for stream in [&b"data: a\r\n"[..], b"data: a\r\n\r\ndata: b\n"] {
        assert_eq!(beat_after(Format::EventStream, stream, &Form::newline()), send(b":\r\n"));
    }
    assert_eq!(beat_after(Format::EventStream, b"data: a\r\ndata: b\n\n", &Form::comment()), send(b":\n"));
    let mut injector = event_stream();
    for part in [&b"data: a\r"[..], b"\n"] {
        pass(&mut injector, part);
        injector.beat(&Form::newline());
    }
    assert_eq!(injector.beat(&Form::newline()), send(b":\r\n"), "also where the line feed is ours");
}

#[test]
fn heartbeat_waits_for_the_end_of_the_line() {
    let mut injector = event_stream();
    pass(&mut injector, b"data: a");
    assert_eq!(injector.beat(&Form::newline()), Beat::Hold);
    assert_eq!(injector.end_place(), EndPlace::InsideEvent);
    pass(&mut injector, b"\n\n");
    assert_eq!(injector.beat(&Form::newline()), send(b"\n"));
}

#[test]
fn line_feed_after_a_return_is_swallowed_frames_later() {
    let mut injector = event_stream();
    pass(&mut injector, b"data: a\r");
    assert_eq!(injector.beat(&Form::newline()), send(b"\n"));
    assert_eq!(injector.beat(&Form::newline()), send(b":\n"));
    assert_eq!(pass(&mut injector, b""), "");
    assert_eq!(pass(&mut injector, b"\n"), "");
    assert_eq!(injector.beat(&Form::newline()), send(b":\r\n"));
    assert_eq!(pass(&mut injector, b"\r\n"), "\r\n");
    assert_eq!(injector.beat(&Form::comment()), send(b":\n"));
    assert_eq!(pass(&mut injector, b"\n"), "\n");
}

#[test]
fn after_a_non_empty_id_no_form_has_a_blank_line() {
    let quiet = Form::custom(": a\n").unwrap();
    for form in ["newline", "comment", "block:x", "event:x", "ping"] {
        let form = form.parse().unwrap();
        assert_eq!(beat_after(Format::EventStream, b"id: 1\n\n", &form), send(b":\n"));
    }
    assert_eq!(beat_after(Format::EventStream, b"id: 1\n\n", &Form::custom(":\n\n").unwrap()), send(b":\n"));
    assert_eq!(beat_after(Format::EventStream, b"id: 1\n\n", &quiet), send(b": a\n"));
    assert_eq!(beat_after(Format::EventStream, b"id\n\n", &Form::newline()), send(b"\n"));
}

#[test]
fn after_a_terminator_only_empty_comments() {
    let quiet = Form::custom(": a\n").unwrap();
    assert_eq!(beat_after(Format::EventStream, b"data: [DONE]\n\n", &quiet), send(b":\n"));
    let mut injector = event_stream();
    pass(&mut injector, b"data: [DO");
    pass(&mut injector, b"NE]\n");
    assert_eq!(injector.end_place(), EndPlace::InsideEvent);
    pass(&mut injector, b"\n");
    assert_eq!(injector.end_place(), EndPlace::Terminated);
    assert_eq!(injector.beat(&Form::newline()), send(b":\n"));
}

#[test]
fn a_mark_after_a_heartbeat_is_dropped_also_when_torn() {
    for format in [Format::EventStream, Format::Ndjson, Format::Json] {
        let mut injector = Injector::new(format);
        assert!(matches!(injector.beat(&Form::newline()), Beat::Send(_)));
        assert_eq!(pass(&mut injector, b"\xEF"), "");
        assert!(matches!(injector.beat(&Form::newline()), Beat::Send(_)));
        assert_eq!(pass(&mut injector, b"\xBB"), "");
        assert_eq!(pass(&mut injector, b"\xBF{}"), "{}");
    }
}

#[test]
fn a_torn_mark_that_is_none_goes_out_after_all() {
    let mut injector = event_stream();
    injector.beat(&Form::newline());
    assert_eq!(pass(&mut injector, b"\xEF\xBB"), "");
    assert_eq!(injector.end_place(), EndPlace::AtBoundary);
    assert_eq!(pass(&mut injector, b"x"), &b"\xEF\xBBx"[..]);
    assert_eq!(injector.beat(&Form::newline()), Beat::Hold);
    assert_eq!(injector.flush(), None);

    let mut injector = event_stream();
    injector.beat(&Form::newline());
    pass(&mut injector, b"\xEF\xBB");
    assert_eq!(injector.flush().unwrap(), &b"\xEF\xBB"[..]);
    assert_eq!(injector.flush(), None);
}

#[test]
fn a_mark_without_a_heartbeat_is_left_alone() {
    let mut injector = event_stream();
    assert_eq!(pass(&mut injector, b"\xEF"), &b"\xEF"[..]);
    assert_eq!(injector.beat(&Form::newline()), Beat::Hold);
    assert_eq!(pass(&mut injector, b"\xBB\xBF"), &b"\xBB\xBF"[..]);
    assert_eq!(injector.beat(&Form::newline()), send(b"\n"));
    assert_eq!(pass(&mut injector, b"\xEF\xBB\xBF"), &b"\xEF\xBB\xBF"[..]);
    assert_eq!(injector.beat(&Form::newline()), Beat::Hold);
}

#[test]
fn off_never_writes() {
    for format in [Format::EventStream, Format::Ndjson, Format::Json] {
        assert_eq!(Injector::new(format).beat(&Form::off()), Beat::Never);
    }
}

#[test]
fn json_lines_get_a_space_and_none_after_done() {
    let form = Form::newline();
    assert_eq!(beat_after(Format::Ndjson, b"", &form), send(b" "));
    assert_eq!(beat_after(Format::Ndjson, b"{}\n", &form), send(b" "));
    assert_eq!(beat_after(Format::Ndjson, b"{}", &form), Beat::Hold);
    assert_eq!(beat_after(Format::Ndjson, b"{}\r", &form), Beat::Hold);
    assert_eq!(beat_after(Format::Ndjson, b"{\"done\":true}\n", &form), Beat::Never);
}

#[test]
fn a_blank_line_after_our_space_is_left_out() {
    let mut injector = Injector::new(Format::Ndjson);
    pass(&mut injector, b"{}\n");
    assert_eq!(injector.beat(&Form::newline()), send(b" "));
    assert_eq!(pass(&mut injector, b"\n"), "");
    assert_eq!(injector.beat(&Form::newline()), send(b" "));
    assert_eq!(pass(&mut injector, b"\r\n{}\n\n"), "{}\n\n");
}

#[test]
fn json_gets_line_feeds_before_it_begins_and_none_after() {
    let form = Form::newline();
    assert_eq!(beat_after(Format::Json, b"", &form), send(b"\n"));
    assert_eq!(beat_after(Format::Json, b" \r\n", &form), send(b"\n"));
    assert_eq!(beat_after(Format::Json, b" {", &form), Beat::Never);
    let mut injector = Injector::new(Format::Json);
    assert_eq!(injector.end_place(), EndPlace::JsonUntouched);
    pass(&mut injector, b"1");
    assert_eq!(injector.end_place(), EndPlace::JsonBegun);
}

#[test]
fn content_is_reported_by_the_watch_asked_for() {
    let mut injector = event_stream();
    let mut seen = |data: &'static [u8], watch| injector.pass(Bytes::from_static(data), watch).content;
    assert!(!seen(b": ping\n\n", Watch::Bytes));
    assert!(seen(b"data: {\"choices\":[]}\n\n", Watch::Bytes));
    assert!(!seen(b"data: {\"choices\":[]}\n\n", Watch::Content));
    assert!(!seen(b"event: ping\ndata: {}\n\n", Watch::Content));
    assert!(!seen(b"data: he", Watch::Content));
    assert!(seen(b"llo\n\n", Watch::Content));
}

#[test]
fn a_line_feed_left_out_still_counts_for_content() {
    let mut injector = event_stream();
    let seen =
        |injector: &mut Injector, data: &'static [u8]| injector.pass(Bytes::from_static(data), Watch::Content).content;
    assert!(!seen(&mut injector, b"event: ping\r"));
    assert_eq!(injector.beat(&Form::newline()), send(b"\n"));
    assert!(!seen(&mut injector, b"\n\n"));
    assert!(seen(&mut injector, b"data: hello\n\n"));
}

#[test]
fn only_the_usual_token_between_events_goes_on_unread() {
    let token = b"data: {\"id\":1,\"choices\":[{}]}\n\n";
    let mut injector = event_stream();
    assert!(!injector.is_whole_token(token, Watch::Bytes), "the first frame may bring a byte order mark");
    pass(&mut injector, token);
    assert!(injector.is_whole_token(token, Watch::Bytes) && injector.is_whole_token(token, Watch::Content));
    for other in [
        &b"data: {\"id\":1,\"choices\":[{}]}\n"[..],
        b"data: {\"id\":1,\r\"choices\":[{}]}\n\n",
        b"data: {\"type\":\"message_stop\"}\n\n",
        b"data: [DONE] and so on and on\n\n",
        b"id: 1234567890123456789\n\n",
        b": a comment that is not short\n\n",
        b"",
    ] {
        assert!(!injector.is_whole_token(other, Watch::Bytes), "{other:?}");
    }
    let empty = b"data: {\"id\":1,\"choices\":[]}\n\n";
    assert!(injector.is_whole_token(empty, Watch::Bytes) && !injector.is_whole_token(empty, Watch::Content));
    injector.pass(Bytes::from_static(b"event: ping\n"), Watch::Content);
    assert!(!injector.is_whole_token(token, Watch::Bytes) && !injector.is_whole_token(token, Watch::Content));
}

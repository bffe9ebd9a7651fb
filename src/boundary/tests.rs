//! Tests of the boundary machine: each stream is read at once and byte by byte.

use super::*;

/// The gap after these bytes, the same whether they come at once or one by one.
fn gap_after(stream: &[u8]) -> Gap {
    let mut whole = Boundary::new();
    whole.advance(stream);
    let mut torn = Boundary::new();
    for byte in stream.chunks(1) {
        torn.advance(byte);
    }
    assert_eq!(format!("{whole:?}").split("head").next(), format!("{torn:?}").split("head").next());
    let gap = whole.gap();
    assert_eq!(gap, torn.gap());
    gap
}

#[test]
fn a_blank_line_ends_an_event_whatever_its_line_ends() {
    for stream in ["", "data: a\n\n", "data: a\r\n\n", ":c\n", "\n\n", "data: a\n\n:c\n", "\u{feff}", "\u{feff}:c\n"] {
        assert_eq!(gap_after(stream.as_bytes()), Gap::Free, "{stream:?}");
    }
}

#[test]
fn lines_of_an_event_are_kept_together() {
    for stream in [
        "data: a\n",
        "event: x\n",
        "retry: 1\n",
        "junk\n",
        "id\n",
        "data: a\n:c\n",
        "\u{feff}data:a\n",
        "a\r\rdata: a\n",
    ] {
        assert_eq!(gap_after(stream.as_bytes()), Gap::Comment, "{stream:?}");
    }
    for stream in ["data: a\r\n", "data: a\r\n\r\ndata: b\n", "\r\ndata: a\n"] {
        assert_eq!(gap_after(stream.as_bytes()), Gap::CommentCrlf, "{stream:?}");
    }
}

#[test]
fn inside_a_line_there_is_no_place() {
    for stream in
        [&b"d"[..], b":", b"data: a\n\n:", b"data: a\nd", b"\xEF", b"\xEF\xBB", b"\xEF\xBBx", b"\n\xEF\xBB\xBF"]
    {
        assert_eq!(gap_after(stream), Gap::None, "{stream:?}");
    }
}

#[test]
fn a_return_is_completed_once_and_the_streams_own_line_feed_left_out() {
    let mut boundary = Boundary::new();
    boundary.advance(b"data: a\r");
    assert_eq!(boundary.gap(), Gap::LineFeed);
    assert_eq!(boundary.gap(), Gap::Comment);
    assert!(!boundary.swallows(b""));
    assert!(boundary.swallows(b"\n\n"));
    assert!(!boundary.swallows(b"\n"));
    boundary.advance(b"\n");
    assert_eq!(boundary.gap(), Gap::Free);
}

#[test]
fn after_an_id_blank_lines_are_out() {
    assert_eq!(gap_after(b"id: 7\ndata: a\n\n"), Gap::Quiet);
    assert_eq!(gap_after(b"id: 7\n\ndata: a\n\nid\n\n"), Gap::Quiet);
    assert_eq!(gap_after(b"id: \n\n"), Gap::Free);
    assert_eq!(gap_after(b"id: 7\n"), Gap::Comment);
}

#[test]
fn after_a_terminator_only_comments() {
    for stream in [
        "data: [DONE]\n\n",
        "data:[DONE]\r\n\n",
        "event: message_stop\ndata: {}\n\n",
        "data: {\"type\":\"response.failed\"}\n\n",
        "id: 1\n\ndata: [DONE]\n\n",
    ] {
        assert_eq!(gap_after(stream.as_bytes()), Gap::Terminated, "{stream:?}");
    }
    assert_eq!(gap_after(b"event: message_stopped\n\n"), Gap::Free);
}

#[test]
fn comments_and_blank_lines_are_not_fields() {
    let mut boundary = Boundary::new();
    assert!(!boundary.advance(b"\n\r\n:ping\n\n:to"));
    assert!(!boundary.advance(b"rn\n"));
    assert!(boundary.advance(b":c\nx\n"));
    assert!(boundary.advance(b"dat"));
    assert!(boundary.advance(b"a"));
}

#[test]
fn a_line_read_in_blocks_hides_nothing() {
    let token = b"data: {\"id\":\"a line of more than two blocks\"}\n\n";
    assert!(lone_line(token).is_some());
    for at in 0..token.len() - 2 {
        for hidden in [b'\n', b'\r'] {
            let mut frame = *token;
            frame[at] = hidden;
            assert_eq!(lone_line(&frame), None, "{hidden} at {at}");
        }
    }
    assert_eq!(lone_line(b"data: a\n\n"), None);
    assert_eq!(lone_line(&token[..token.len() - 1]), None);

    let mut boundary = Boundary::new();
    boundary.advance(b"data: {\"id\":\"a line of more than two blocks\"}\n\n");
    assert!(boundary.advance(b"data: [DONE] and so on and on\n\n"));
    assert_eq!(boundary.gap(), Gap::Terminated);
}

#[test]
fn a_data_line_by_itself_ends_the_event_it_belongs_to() {
    let mut boundary = Boundary::new();
    boundary.advance(b"event: x\n");
    assert!(!boundary.is_whole_token(b"data: {\"id\":\"the last line of an event\"}\n\n"));
    assert!(boundary.advance(b"data: {\"id\":\"the last line of an event\"}\n\n"));
    assert_eq!(boundary.gap(), Gap::Free);
}

#[test]
fn a_token_is_whole_at_the_start_of_a_line_only() {
    let token = b"data: {\"id\":\"the whole of an event\"}\n\n";
    for (before, is_whole) in [(&b":c\n"[..], true), (b":c", false), (b"\r", false), (b"\xEF\xBB", false), (b"", false)]
    {
        let mut boundary = Boundary::new();
        boundary.advance(before);
        assert_eq!(boundary.is_whole_token(token), is_whole, "{before:?}");
    }
}

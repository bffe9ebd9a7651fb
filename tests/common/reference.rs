//! Reference readers for the tests: what a client decodes from the bytes of a stream.
//!
//! Written from the standards and from what clients were seen to do, without a look at the product, and for clearness
//! only: each takes the whole of a stream at once.

#![allow(dead_code, reason = "each test binary uses some of the readers")]

use serde_json::Value;

/// What a conformant client has got from an event stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// The events dispatched, in order.
    pub(crate) events: Vec<Event>,
    /// The last event ID at the end, which a client sends when it connects again.
    pub(crate) last_id: String,
    /// The reconnection time in milliseconds, if the stream has set one.
    pub(crate) retry_ms: Option<u64>,
}

/// One event dispatched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: String,
    pub(crate) id: String,
}

/// Decodes by the WHATWG HTML standard, sections 9.2.5 and 9.2.6.
pub(crate) fn decode(stream: &[u8]) -> Decoded {
    let mut decoded = Decoded::default();
    let (mut name, mut data, mut id) = (String::new(), String::new(), String::new());
    for line in lines(stream) {
        if line.is_empty() {
            decoded.last_id.clone_from(&id);
            if data.is_empty() {
                name.clear();
                continue;
            }
            data.pop();
            if name.is_empty() {
                name.push_str("message");
            }
            let (name, data) = (std::mem::take(&mut name), std::mem::take(&mut data));
            decoded.events.push(Event { name, data, id: id.clone() });
            continue;
        }
        match field(&line) {
            ("event", value) => name = value.to_owned(),
            ("data", value) => {
                data.push_str(value);
                data.push('\n');
            }
            ("id", value) if !value.contains('\0') => id = value.to_owned(),
            ("retry", value) if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) => {
                decoded.retry_ms = Some(value.parse().unwrap_or(u64::MAX));
            }
            _ => {}
        }
    }
    decoded
}

/// One event as the readers inside openai-python and httpx-sse make it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StrictEvent {
    pub(crate) name: String,
    pub(crate) data: Vec<String>,
    pub(crate) id: String,
    pub(crate) retry_ms: Option<u64>,
}

/// Decodes as those do: a blank line dispatches whatever is set, and a last event ID stays set. So each blank line
/// after an `id:` makes an event, an empty one too.
pub(crate) fn decode_strict(stream: &[u8]) -> Vec<StrictEvent> {
    let mut events = Vec::new();
    let (mut name, mut data, mut id, mut retry_ms) = (String::new(), Vec::new(), String::new(), None);
    for line in lines(stream) {
        if line.is_empty() {
            if !name.is_empty() || !data.is_empty() || !id.is_empty() || retry_ms.is_some() {
                events.push(StrictEvent {
                    name: std::mem::take(&mut name),
                    data: std::mem::take(&mut data),
                    id: id.clone(),
                    retry_ms: retry_ms.take(),
                });
            }
            continue;
        }
        match field(&line) {
            ("event", value) => name = value.to_owned(),
            ("data", value) => data.push(value.to_owned()),
            ("id", value) if !value.contains('\0') => id = value.to_owned(),
            ("retry", value) => retry_ms = value.parse().ok().or(retry_ms),
            _ => {}
        }
    }
    events
}

/// Decodes as fetch-event-source does: every blank line makes an event. Returns the data of each.
pub(crate) fn decode_eager(stream: &[u8]) -> Vec<String> {
    let mut events = Vec::new();
    let mut data = String::new();
    for line in lines(stream) {
        match field(&line) {
            _ if line.is_empty() => events.push(std::mem::take(&mut data)),
            ("data", value) => {
                data.push('\n');
                data.push_str(value);
            }
            _ => {}
        }
    }
    events
}

/// The lines of an event stream that have ended, without their ends and without the byte order mark.
pub(crate) fn lines(stream: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream));
    // CRLF first, then CR: what is left is LF only.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    lines.pop();
    lines
}

/// Name and value of a line; a comment has no name.
pub(crate) fn field(line: &str) -> (&str, &str) {
    match line.split_once(':') {
        Some((name, value)) => (name, value.strip_prefix(' ').unwrap_or(value)),
        None => (line, ""),
    }
}

/// One line of NDJSON: its value, or the text that is none.
pub(crate) type Record = Result<Value, String>;

/// Reads JSON lines as most clients do: empty lines are skipped, all others must be JSON. What follows the last line
/// end is one more line, unless it is blank.
pub(crate) fn records(stream: &[u8]) -> Vec<Record> {
    let text = String::from_utf8_lossy(stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream));
    let (whole, tail) = text.rsplit_once('\n').map_or(("", &*text), |(whole, tail)| (whole, tail));
    let lines = whole.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let lines = lines.filter(|line| !line.is_empty());
    let tail = Some(tail).filter(|tail| !tail.trim_matches(JSON_SPACE).is_empty());
    let read = |line: &str| serde_json::from_str(line).map_err(|_| line.trim_start_matches(JSON_SPACE).to_owned());
    lines.chain(tail).map(read).collect()
}

/// Reads one JSON document: its value, or the text that is none. Space around it does not count.
pub(crate) fn document(stream: &[u8]) -> Record {
    let text = String::from_utf8_lossy(stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream));
    serde_json::from_str(&text).map_err(|_| text.trim_start_matches(JSON_SPACE).to_owned())
}

const JSON_SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(stream: &str) -> Vec<String> {
        let events = decode(stream.as_bytes()).events;
        events.iter().map(|event| format!("{}|{}|{}", event.name, event.data, event.id)).collect()
    }

    #[test]
    fn the_conformant_reader_follows_the_standard() {
        assert_eq!(shown("data: a\ndata:b\ndata:  c\n\n"), ["message|a\nb\n c|"]);
        assert_eq!(shown("\u{feff}event: x\rdata\r\rdata: 2\r\n\r\n"), ["x||", "message|2|"]);
        assert_eq!(
            shown("id: 1\ndata: a\n\nid\ndata: b\n\nid: x\0\ndata: c\n\n"),
            ["message|a|1", "message|b|", "message|c|"]
        );
        assert_eq!(shown("event: x\n\ndata: a\n\n: no\nother: no\n\ndata: unfinished\n"), ["message|a|"]);
        assert_eq!(decode(b"retry: 10\nretry: 1x\nid: 5\n\nid: 6\n").retry_ms, Some(10));
        assert_eq!(decode(b"retry: 10\nretry: 1x\nid: 5\n\nid: 6\n").last_id, "5");
    }

    #[test]
    fn the_other_readers_see_more_events() {
        assert_eq!(decode_strict(b"id: 1\n\n\nretry: 3\n\n").len(), 3);
        assert_eq!(decode_eager(b"data: a\n\n\n:c\n\n"), ["\na", "", ""]);
    }

    #[test]
    fn readers_of_json_take_space_where_it_is_legal() {
        assert_eq!(records(b"{}\n\n  {}\r\n "), [Ok(serde_json::json!({})), Ok(serde_json::json!({}))]);
        assert_eq!(records(b"{}\n \n1"), [Ok(serde_json::json!({})), Err(String::new()), Ok(serde_json::json!(1))]);
        assert_eq!(document(b"\n\n [1]"), Ok(serde_json::json!([1])));
        assert_eq!(document(b" x"), Err("x".to_owned()));
    }
}

//! What an API's events say: the stream's end, an error in it, a heartbeat, an id that came twice or not at all. Asked by
//! `reader` for every decoded event.

use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;

use heartline::decode::DecodedEvent;

use super::Api;

/// Judges the events of one stream.
#[derive(Debug)]
pub(super) struct Judge {
    api: Option<Api>,
    said: Said,
    /// The last event's number, or a fingerprint of its id; `None` before the first.
    last_id: Option<Id>,
}

/// What the stream has said of its own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Nothing yet.
    Nothing,
    /// It is complete.
    End,
    /// It failed.
    Error,
}

/// What the events of one push were, besides events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Remarks {
    /// Events that are heartbeats by the API's definition.
    pub(super) pings: u32,
    /// Events with the id of the one before.
    pub(super) ids_repeated: u32,
    /// Events without an id on a stream that had sent one, and numbers left out.
    pub(super) ids_missing: u32,
    /// The stream said that it is complete, for the first time.
    pub(super) ended: bool,
}

/// What tells one event from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    Number(u64),
    Text(u64),
}

/// The fields of a chunk that say something of the stream.
#[derive(Debug, Deserialize)]
struct Top<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<std::borrow::Cow<'a, str>>,
    #[serde(default)]
    sequence_number: Option<u64>,
    #[serde(default)]
    error: Option<IgnoredAny>,
    #[serde(default)]
    done: Option<bool>,
}

impl Judge {
    /// Creates the judge of one stream; without an API only ids are looked at.
    pub(super) fn new(api: Option<Api>) -> Self {
        Self { api, said: Said::Nothing, last_id: None }
    }

    /// Tells whether the stream's API is known, and with it how it ends.
    pub(super) fn has_api(&self) -> bool {
        self.api.is_some()
    }

    /// Returns what the stream has said of its own end.
    pub(super) fn said(&self) -> Said {
        self.said
    }

    /// Looks at one event.
    pub(super) fn see(&mut self, event: &DecodedEvent<'_>, remarks: &mut Remarks) {
        match self.api {
            Some(Api::Anthropic) if event.name == b"ping" => {
                remarks.pings += 1;
                return;
            }
            Some(Api::Responses) => self.see_response(event, remarks),
            _ => self.compare(Self::id_of(event), event.has_id, remarks),
        }
        match self.api {
            None | Some(Api::Responses) => {}
            Some(Api::OpenaiChat | Api::OpenaiCompletions) => {
                if event.data == b"[DONE]" {
                    self.end(remarks);
                } else if event.name == b"error" || has_error(event.data) {
                    self.said = Said::Error;
                }
            }
            Some(Api::Anthropic) => match event.name {
                b"message_stop" => self.end(remarks),
                b"error" => self.said = Said::Error,
                _ => {}
            },
            Some(Api::Ollama) => {
                let done =
                    mentions(event.data, b"\"done\"") && top(event.data).is_some_and(|top| top.done == Some(true));
                if has_error(event.data) {
                    self.said = Said::Error;
                } else if done {
                    self.end(remarks);
                }
            }
        }
    }

    fn see_response(&mut self, event: &DecodedEvent<'_>, remarks: &mut Remarks) {
        let Some(top) = top(event.data) else { return };
        let id = top.sequence_number.map(Id::Number);
        self.compare(id, id.is_some(), remarks);
        let kind = top.kind.as_deref().map_or(event.name, str::as_bytes);
        match kind {
            b"response.completed" | b"response.incomplete" => self.end(remarks),
            b"response.failed" | b"error" => self.said = Said::Error,
            _ => {}
        }
    }

    fn end(&mut self, remarks: &mut Remarks) {
        if self.said == Said::Nothing {
            self.said = Said::End;
            remarks.ended = true;
        }
    }

    fn id_of(event: &DecodedEvent<'_>) -> Option<Id> {
        if event.id.is_empty() {
            return None;
        }
        let number = std::str::from_utf8(event.id).ok().and_then(|text| text.parse().ok());
        Some(number.map_or_else(|| Id::Text(fingerprint(event.id)), Id::Number))
    }

    fn compare(&mut self, id: Option<Id>, sent: bool, remarks: &mut Remarks) {
        let Some(last) = self.last_id else {
            self.last_id = if sent { id } else { None };
            return;
        };
        match (sent, last, id) {
            (false, ..) | (true, _, None) => remarks.ids_missing += 1,
            (true, last, Some(id)) if id == last => remarks.ids_repeated += 1,
            (true, Id::Number(last), Some(Id::Number(number))) if number > last + 1 => {
                remarks.ids_missing += u32::try_from(number - last - 1).unwrap_or(u32::MAX);
            }
            _ => {}
        }
        if sent && id.is_some() {
            self.last_id = id;
        }
    }
}

/// Tells whether a chunk's own `error` field is there and not `null`; the word within a text does not count.
fn has_error(data: &[u8]) -> bool {
    mentions(data, b"\"error\"") && top(data).is_some_and(|top| top.error.is_some())
}

fn mentions(data: &[u8], word: &[u8]) -> bool {
    memmem::find(data, word).is_some()
}

fn top(data: &[u8]) -> Option<Top<'_>> {
    serde_json::from_slice(data).ok()
}

/// FNV-1a, 64 bits.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use heartline::decode::{EventDecoder, NdjsonDecoder};

    fn judged(api: Api, body: &str) -> (Said, Remarks) {
        let (mut judge, mut remarks) = (Judge::new(Some(api)), Remarks::default());
        let see = |event: DecodedEvent<'_>| judge.see(&event, &mut remarks);
        match api {
            Api::Ollama => NdjsonDecoder::new().push(body.as_bytes(), see).unwrap(),
            _ => EventDecoder::new().push(body.as_bytes(), see).unwrap(),
        };
        (judge.said(), remarks)
    }

    #[test]
    fn each_api_ends_in_its_own_way() {
        for (api, body) in [
            (Api::OpenaiChat, "data: {\"choices\":[]}\n\ndata: [DONE]\n\n"),
            (Api::OpenaiCompletions, "data: [DONE]\n\n"),
            (Api::Anthropic, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"),
            (Api::Responses, "data: {\"type\":\"response.completed\",\"sequence_number\":3}\n\n"),
            (Api::Ollama, "{\"done\":false}\n{\"done\":true}\n"),
        ] {
            let (said, remarks) = judged(api, body);
            assert_eq!((said, remarks.ended), (Said::End, true), "{api:?}");
        }
        assert_eq!(judged(Api::Ollama, "{\"message\":{\"content\":\"\\\"done\\\":true\"}}\n").0, Said::Nothing);
        assert_eq!(judged(Api::OpenaiChat, "data: {\"text\":\"[DONE]\"}\n\n").0, Said::Nothing);
    }

    #[test]
    fn each_api_tells_of_an_error_in_its_own_way() {
        for (api, body) in [
            (Api::OpenaiChat, "data: {\"error\":{\"message\":\"out of memory\"}}\n\ndata: [DONE]\n\n"),
            (Api::OpenaiChat, "data: {\"id\":\"a\",\"error\":{},\"choices\":[{\"finish_reason\":\"error\"}]}\n\n"),
            (Api::Anthropic, "event: error\ndata: {\"type\":\"error\",\"error\":{}}\n\n"),
            (Api::Responses, "event: response.failed\ndata: {\"type\":\"response.failed\"}\n\n"),
            (Api::Ollama, "{\"error\":\"unexpected EOF\"}\n"),
        ] {
            assert_eq!(judged(api, body).0, Said::Error, "{api:?}");
        }
        let talk = "data: {\"error\":null,\"choices\":[{\"delta\":{\"content\":\"say \\\"error\\\"\"}}]}\n\n";
        assert_eq!(judged(Api::OpenaiChat, talk).0, Said::Nothing, "a text about errors is none");
    }

    #[test]
    fn anthropics_pings_are_told_from_events() {
        let (_, remarks) = judged(Api::Anthropic, "event: ping\ndata: {\"type\": \"ping\"}\n\nevent: a\ndata: {}\n\n");
        assert_eq!(remarks.pings, 1);
    }

    #[test]
    fn an_id_that_comes_twice_or_is_left_out_is_noted() {
        let (_, remarks) =
            judged(Api::OpenaiChat, "id: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 2\ndata: c\n\nid: 5\ndata: d\n\n");
        assert_eq!((remarks.ids_repeated, remarks.ids_missing), (1, 2));
        let (_, remarks) = judged(Api::OpenaiChat, "data: a\n\nid: x\ndata: b\n\ndata: c\n\nid: x\ndata: d\n\n");
        assert_eq!((remarks.ids_repeated, remarks.ids_missing), (1, 1), "before the first id none is missing");
        let numbered = |number: u64| format!("data: {{\"type\":\"a\",\"sequence_number\":{number}}}\n\n");
        let (_, remarks) = judged(Api::Responses, &[0, 1, 1, 3].map(numbered).concat());
        assert_eq!((remarks.ids_repeated, remarks.ids_missing), (1, 1));
    }
}

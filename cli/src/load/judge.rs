//! What an API's events say: the stream's end, an error in it, a heartbeat, an id that came twice or not at all. Asked by
//! `reader` for every decoded event.

use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;

use heartline::api::{Api, Sign};
use heartline::decode::DecodedEvent;

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

impl Judge {
    /// Creates the judge of one stream; without an API only ids are looked at.
    pub(super) fn new(api: Option<Api>) -> Self {
        Self { api, said: Said::Nothing, last_id: None }
    }

    /// Looks at one event.
    pub(super) fn see(&mut self, event: &DecodedEvent<'_>, remarks: &mut Remarks) {
        let shows = |signs: &[Sign]| signs.iter().any(|sign| shows(*sign, event));
        let Some(api) = self.api else { return self.compare(Self::id_of(event), event.has_id, remarks) };
        if shows(api.pings()) {
            remarks.pings += 1;
            return;
        }
        if api.is_numbered() {
            let Ok(Numbered { sequence_number }) = serde_json::from_slice(event.data) else { return };
            let id = sequence_number.map(Id::Number);
            self.compare(id, id.is_some(), remarks);
        } else {
            self.compare(Self::id_of(event), event.has_id, remarks);
        }
        if shows(api.errors()) || shows(api.failed_ends()) {
            self.said = Said::Error;
        } else if shows(api.ends()) {
            self.end(remarks);
        }
    }

    /// Returns what the stream has said of its own end; `None` if its API has no way to say it, and nothing was said.
    pub(super) fn verdict(&self) -> Option<Said> {
        let can_say = self.api.is_some_and(|api| !api.ends().is_empty());
        (can_say || self.said == Said::Error).then_some(self.said)
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

/// The field of an event that numbers it.
#[derive(Debug, Deserialize)]
struct Numbered {
    #[serde(default)]
    sequence_number: Option<u64>,
}

/// Tells whether an event has a sign. A document is parsed only where the sign's word stands in it as it would have to: a
/// text about errors is none.
fn shows(sign: Sign, event: &DecodedEvent<'_>) -> bool {
    match sign {
        Sign::Data(text) => event.data == text.as_bytes(),
        Sign::Event(kind) if event.name == kind.as_bytes() => true,
        Sign::Event(kind) => {
            quoted(event.data, kind).next().is_some() && document(event.data)["type"].as_str() == Some(kind)
        }
        Sign::Field(place) => {
            let key = place.rsplit('/').next().unwrap_or_default();
            let is_said = |value: &[u8]| !value.starts_with(b"null") && !value.starts_with(b"false");
            let mut values =
                quoted(event.data, key).filter_map(|after| Some(after.strip_prefix(b":")?.trim_ascii_start()));
            values.any(is_said)
                && document(event.data)
                    .pointer(place)
                    .is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)))
        }
    }
}

/// What follows each place where `word` stands between quotes, spaces left out.
fn quoted<'a>(data: &'a [u8], word: &'a str) -> impl Iterator<Item = &'a [u8]> {
    memmem::find_iter(data, word).filter_map(move |at| {
        let is_begun = data[..at].ends_with(b"\"");
        data[at + word.len()..].strip_prefix(b"\"").filter(|_| is_begun).map(<[u8]>::trim_ascii_start)
    })
}

/// The event's document; `null` if it is none.
fn document(data: &[u8]) -> Value {
    serde_json::from_slice(data).unwrap_or_default()
}

/// FNV-1a, 64 bits.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use heartline::Format;
    use heartline::decode::{EventDecoder, NdjsonDecoder};

    fn judged(api: Api, body: &str) -> (Said, Remarks) {
        let (mut judge, mut remarks) = (Judge::new(Some(api)), Remarks::default());
        let see = |event: DecodedEvent<'_>| judge.see(&event, &mut remarks);
        match api.format() {
            Format::Ndjson => NdjsonDecoder::new().push(body.as_bytes(), see).unwrap(),
            _ => EventDecoder::new().push(body.as_bytes(), see).unwrap(),
        };
        (judge.said, remarks)
    }

    #[test]
    fn each_api_ends_in_its_own_way() {
        for (api, body) in [
            (Api::OPENAI_CHAT, "data: {\"choices\":[]}\n\ndata: [DONE]\n\n"),
            (Api::OPENAI_COMPLETIONS, "data: [DONE]\n\n"),
            (Api::ANTHROPIC, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"),
            (Api::RESPONSES, "data: {\"type\":\"response.completed\",\"sequence_number\":3}\n\n"),
            (Api::OLLAMA, "{\"done\":false}\n{\"done\":true}\n"),
            (Api::GEMINI, "data: {\"candidates\": [{\"finishReason\": \"STOP\"}]}\n\n"),
            (Api::LLAMA_CPP, "data: {\"content\":\"\",\"stop\" : true}\n\n"),
            (Api::SGLANG, "data: [DONE]\n\n"),
            (Api::TGI, "data:{\"generated_text\":null}\n\ndata:{\"generated_text\":\"\"}\n\n"),
        ] {
            let (said, remarks) = judged(api, body);
            assert_eq!((said, remarks.ended), (Said::End, true), "{api:?}");
        }
        assert_eq!(judged(Api::OLLAMA, "{\"message\":{\"content\":\"\\\"done\\\":true\"}}\n").0, Said::Nothing);
        assert_eq!(judged(Api::OPENAI_CHAT, "data: {\"text\":\"[DONE]\"}\n\n").0, Said::Nothing);
    }

    #[test]
    fn each_api_tells_of_an_error_in_its_own_way() {
        for (api, body) in [
            (Api::OPENAI_CHAT, "data: {\"error\":{\"message\":\"out of memory\"}}\n\ndata: [DONE]\n\n"),
            (Api::OPENAI_CHAT, "data: {\"id\":\"a\",\"error\":{},\"choices\":[{\"finish_reason\":\"error\"}]}\n\n"),
            (Api::ANTHROPIC, "event: error\ndata: {\"type\":\"error\",\"error\":{}}\n\n"),
            (Api::RESPONSES, "event: response.failed\ndata: {\"type\":\"response.failed\"}\n\n"),
            (Api::OLLAMA, "{\"error\":\"unexpected EOF\"}\n"),
            (Api::GEMINI, "data: {\"error\": {\"code\": 503}}\n\n"),
            (Api::TGI, "data:{\"error\":\"x\",\"error_type\":\"generation\"}\n\n"),
            (Api::TRITON, "data: {\"error\":\"x\"}\n\n"),
        ] {
            assert_eq!(judged(api, body).0, Said::Error, "{api:?}");
        }
        let talk = "data: {\"error\":null,\"choices\":[{\"delta\":{\"content\":\"say \\\"error\\\"\"}}]}\n\n";
        assert_eq!(judged(Api::OPENAI_CHAT, talk).0, Said::Nothing, "a text about errors is none");
        let talk =
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"finishReason\":1}]},\"finishReason\":null}]}\n\n";
        assert_eq!(judged(Api::GEMINI, talk).0, Said::Nothing, "only at its place");
    }

    #[test]
    fn anthropics_pings_are_told_from_events() {
        let (_, remarks) = judged(Api::ANTHROPIC, "event: ping\ndata: {\"type\": \"ping\"}\n\nevent: a\ndata: {}\n\n");
        assert_eq!(remarks.pings, 1);
    }

    #[test]
    fn an_id_that_comes_twice_or_is_left_out_is_noted() {
        let (_, remarks) =
            judged(Api::OPENAI_CHAT, "id: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 2\ndata: c\n\nid: 5\ndata: d\n\n");
        assert_eq!((remarks.ids_repeated, remarks.ids_missing), (1, 2));
        let (_, remarks) = judged(Api::OPENAI_CHAT, "data: a\n\nid: x\ndata: b\n\ndata: c\n\nid: x\ndata: d\n\n");
        assert_eq!((remarks.ids_repeated, remarks.ids_missing), (1, 1), "before the first id none is missing");
        let numbered = |number: u64| format!("data: {{\"type\":\"a\",\"sequence_number\":{number}}}\n\n");
        let (_, remarks) = judged(Api::RESPONSES, &[0, 1, 1, 3].map(numbered).concat());
        assert_eq!((remarks.ids_repeated, remarks.ids_missing), (1, 1));
    }
}

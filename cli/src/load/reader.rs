//! What reads one stream's body: a decoder for its format and the digest of what it decoded. Owned by `record`.

use heartline::Format;
use heartline::api::Api;
use heartline::decode::{Arrival, DecodeError, DecodedEvent, EventDecoder, NdjsonDecoder};

use super::Digest;
use super::judge::{Judge, Remarks, Said};

/// One stream's decoder and digest.
#[derive(Debug)]
pub(super) struct Reader {
    decoder: Decoder,
    digest: Digest,
    judge: Judge,
}

/// What a push consisted of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Read {
    pub(super) arrival: Arrival,
    pub(super) remarks: Remarks,
}

impl Read {
    /// Tells whether a heartbeat came and nothing else, by its bytes or by the API's definition.
    pub(super) fn is_heartbeat(&self) -> bool {
        self.arrival.is_heartbeat() || (self.remarks.pings > 0 && self.arrival.events == self.remarks.pings)
    }

    /// Returns how many events came, heartbeats left out.
    pub(super) fn events(&self) -> u32 {
        self.arrival.events - self.remarks.pings
    }
}

/// The decoder that suits the response.
#[derive(Debug)]
enum Decoder {
    /// An unknown or encoded body: its bytes are life, and nothing is decoded.
    Opaque,
    EventStream(EventDecoder),
    Ndjson(NdjsonDecoder),
    /// A JSON body of which only whitespace has come.
    JsonUntouched,
    /// A JSON body that has begun: one event, complete when the body ends.
    Json,
}

impl Reader {
    /// Creates the reader for a response's format, `None` for a format that is not decoded, and of an API.
    pub(super) fn new(format: Option<Format>, api: Option<Api>) -> Self {
        Self {
            decoder: match format {
                Some(Format::EventStream) => Decoder::EventStream(EventDecoder::new()),
                Some(Format::Ndjson) => Decoder::Ndjson(NdjsonDecoder::new()),
                Some(Format::Json) => Decoder::JsonUntouched,
                _ => Decoder::Opaque,
            },
            digest: Digest::default(),
            judge: Judge::new(api),
        }
    }

    /// Takes the next bytes of the body.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Read, DecodeError> {
        let Self { decoder, digest, judge } = self;
        let mut remarks = Remarks::default();
        let mut see = |event: DecodedEvent<'_>| {
            digest.add(&event);
            judge.see(&event, &mut remarks);
        };
        let arrival = match decoder {
            Decoder::EventStream(decoder) => decoder.push(bytes, see)?,
            Decoder::Ndjson(decoder) => decoder.push(bytes, &mut see)?,
            Decoder::Opaque => Arrival::content(bytes.len()),
            Decoder::Json => {
                digest.add_bytes(bytes);
                Arrival::content(bytes.len())
            }
            Decoder::JsonUntouched => {
                let json = bytes.trim_ascii_start();
                if json.is_empty() {
                    Arrival::neutral(bytes.len())
                } else {
                    digest.add_bytes(json);
                    *decoder = Decoder::Json;
                    Arrival::content(bytes.len())
                }
            }
        };
        Ok(Read { arrival, remarks })
    }

    /// Tells the decoder that the body ended cleanly; returns how many events that completed.
    pub(super) fn finish(&mut self) -> u64 {
        let before = self.digest.events;
        let digest = &mut self.digest;
        match &mut self.decoder {
            Decoder::Ndjson(decoder) => decoder.finish(|event| {
                digest.add(&event);
                self.judge.see(&event, &mut Remarks::default());
            }),
            Decoder::Json => digest.events += 1,
            _ => {}
        }
        self.digest.events - before
    }

    /// Returns the digest of the events decoded so far.
    pub(super) fn digest(&self) -> Digest {
        self.digest
    }
    /// Returns what a decoded stream has said of its own end; `None` where nobody listened.
    pub(super) fn said(&self) -> Option<Said> {
        let streamed = matches!(self.decoder, Decoder::EventStream(_) | Decoder::Ndjson(_));
        if streamed { self.judge.verdict() } else { None }
    }
}

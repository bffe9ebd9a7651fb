//! What reads one stream's body: a decoder for its format and the digest of what it decoded. Owned by `record`.

use crate::Format;
use crate::decode::{Arrival, DecodeError, EventDecoder, NdjsonDecoder};

use super::Digest;

/// One stream's decoder and digest.
#[derive(Debug)]
pub(super) struct Reader {
    decoder: Decoder,
    digest: Digest,
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
    /// Creates the reader for a response's format; `None` for a format that is not decoded.
    pub(super) fn of(format: Option<Format>) -> Self {
        Self {
            decoder: match format {
                Some(Format::EventStream) => Decoder::EventStream(EventDecoder::new()),
                Some(Format::Ndjson) => Decoder::Ndjson(NdjsonDecoder::new()),
                Some(Format::Json) => Decoder::JsonUntouched,
                _ => Decoder::Opaque,
            },
            digest: Digest::default(),
        }
    }

    /// Takes the next bytes of the body.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Arrival, DecodeError> {
        let digest = &mut self.digest;
        match &mut self.decoder {
            Decoder::EventStream(decoder) => decoder.push(bytes, |event| digest.add(&event)),
            Decoder::Ndjson(decoder) => decoder.push(bytes, |event| digest.add(&event)),
            Decoder::Opaque => Ok(Arrival::content(bytes.len())),
            Decoder::Json => {
                digest.add_bytes(bytes);
                Ok(Arrival::content(bytes.len()))
            }
            Decoder::JsonUntouched => {
                let json = bytes.trim_ascii_start();
                if json.is_empty() {
                    return Ok(Arrival::neutral(bytes.len()));
                }
                digest.add_bytes(json);
                self.decoder = Decoder::Json;
                Ok(Arrival::content(bytes.len()))
            }
        }
    }

    /// Tells the decoder that the body ended cleanly; returns how many events that completed.
    pub(super) fn finish(&mut self) -> u64 {
        let before = self.digest.events;
        let digest = &mut self.digest;
        match &mut self.decoder {
            Decoder::Ndjson(decoder) => decoder.finish(|event| digest.add(&event)),
            Decoder::Json => digest.events += 1,
            _ => {}
        }
        self.digest.events - before
    }

    /// Returns the digest of the events decoded so far.
    pub(super) fn digest(&self) -> Digest {
        self.digest
    }
}

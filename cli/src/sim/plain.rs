//! Plain events: each token's text as it is, several lines as several `data:` fields, no terminator but the end.
//!
//! Called through [`Endpoint`](super::endpoint::Endpoint).

use super::call::Call;
use super::endpoint::{LATE, Part};
use super::wire::Wire;
use super::words::word;

/// Writes one part of a stream.
pub(crate) fn write(call: &Call, part: Part, wire: &mut Wire) {
    match part {
        Part::Open => {}
        Part::Token(index) => {
            if call.terms.ids {
                wire.field("id: ", &index.to_string());
            }
            wire.event(None, word(call.terms.seed, index));
        }
        Part::Close => wire.event(Some("end"), &call.tokens.to_string()),
        Part::Error => wire.event(Some("error"), LATE.message),
    }
}

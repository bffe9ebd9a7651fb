//! What the file of an API says: one `Spec`. Read through [`Api`](super::Api).

use super::answer::Answer;
use super::endpoint::Place;
use super::fault::{Closing, Fault};
use super::question::Ask;
use super::sign::Sign;
use crate::forms::format::Format;
use crate::forms::heartbeat::Form;

/// All that is known of one API. What each field means is said where [`Api`](super::Api) gives it out.
pub(crate) struct Spec {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// Where it is asked for a stream, with `$model` where the path names one.
    pub(super) path: &'static str,
    /// Where it is asked for a document, if that is another place.
    pub(super) document_path: Option<&'static str>,
    pub(super) key_header: Option<&'static str>,
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// Every place where it is asked; the first that matches a request counts.
    pub(super) places: &'static [Place],
    /// Parts of paths that tell whose an endpoint is that is none of the places.
    pub(super) near: &'static [&'static str],
    pub(super) client_header: Option<&'static str>,
    pub(super) format: Format,
    pub(super) form: Option<fn() -> Form>,
    pub(super) ends: &'static [Sign],
    pub(super) failed_ends: &'static [Sign],
    pub(super) errors: &'static [Sign],
    pub(super) pings: &'static [Sign],
    pub(super) is_numbered: bool,
    pub(super) after_error: &'static str,
    /// Writes an error as one JSON document, without a line end.
    pub(super) document: fn(&Fault<'_>) -> String,
    /// Writes an error into an event stream.
    pub(super) event: fn(&Fault<'_>, Closing) -> String,
    pub(super) ask: Ask,
    pub(super) answer: Answer,
}

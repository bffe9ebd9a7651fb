//! Whether a response is a live stream that may carry heartbeats (design I1). Asked by the layer and
//! by the proxy once for each response, with its head only.

use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderName, TRANSFER_ENCODING,
};
use http::{Method, StatusCode};

use crate::format::Format;

/// Whether a response is a live stream that may carry heartbeats, by its head alone.
///
/// `Heartline::layer` asks this for each response; a server without tower asks it before it wraps a body that it did not
/// make itself.
///
/// ```
/// use heartline::{Format, Verdict};
/// use http::{HeaderMap, Method, StatusCode, header};
///
/// let mut headers = HeaderMap::new();
/// headers.insert(header::CONTENT_TYPE, "text/event-stream".parse()?);
/// let verdict = |headers: &HeaderMap| Verdict::of(&Method::POST, StatusCode::OK, headers, &[Format::EventStream]);
/// assert_eq!(verdict(&headers), Verdict::Wrap(Format::EventStream));
/// headers.insert(header::CONTENT_ENCODING, "gzip".parse()?);
/// assert_eq!(verdict(&headers), Verdict::Bypass);
/// # Ok::<(), header::InvalidHeaderValue>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A live stream of this format: keep it alive.
    Wrap(Format),
    /// A live stream that must arrive byte for byte: pass it through and count it.
    Bypass,
    /// No stream that was asked for: pass it through.
    Leave,
}

impl Verdict {
    /// Judges the response to a request of `method` that has this `status` and `headers`. Only `formats` are kept alive; any
    /// other is left alone.
    pub fn of(method: &Method, status: StatusCode, headers: &HeaderMap, formats: &[Format]) -> Self {
        let Some(format) = format(headers).filter(|format| formats.contains(format)) else {
            return Self::Leave;
        };
        if !has_body(method, status) {
            return Self::Leave;
        }
        // A JSON body of known length was complete before its head was sent: its end cannot be late.
        let is_whole = format == Format::Json && headers.contains_key(CONTENT_LENGTH);
        if is_whole || is_range(status, headers) || is_encoded(headers) {
            return Self::Bypass;
        }
        Self::Wrap(format)
    }
}

/// The format that the content type names; none where several content types contradict each other.
fn format(headers: &HeaderMap) -> Option<Format> {
    let mut formats = headers.get_all(CONTENT_TYPE).iter().map(Format::of_content_type);
    let first = formats.next()??;
    formats.all(|format| format == Some(first)).then_some(first)
}

/// Whether bytes after the head belong to a body (RFC 9110, sections 6.4.1 and 15).
fn has_body(method: &Method, status: StatusCode) -> bool {
    let is_bodiless_method = *method == Method::HEAD || *method == Method::CONNECT;
    let is_bodiless_status = status.is_informational()
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::RESET_CONTENT
        || status == StatusCode::NOT_MODIFIED;
    !is_bodiless_method && !is_bodiless_status
}

/// Whether the body is a part whose place was given in bytes.
fn is_range(status: StatusCode, headers: &HeaderMap) -> bool {
    status == StatusCode::PARTIAL_CONTENT || headers.contains_key(CONTENT_RANGE)
}

/// Whether the bytes of the body are not those of its format.
fn is_encoded(headers: &HeaderMap) -> bool {
    let all_are = |name: HeaderName, plain: &[&str]| {
        headers.get_all(name).iter().all(|value| {
            value.to_str().is_ok_and(|value| {
                value
                    .split(',')
                    .map(str::trim)
                    .all(|coding| coding.is_empty() || plain.iter().any(|plain| coding.eq_ignore_ascii_case(plain)))
            })
        })
    };
    !all_are(CONTENT_ENCODING, &["identity"]) || !all_are(TRANSFER_ENCODING, &["chunked", "identity"])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[Format] = &[Format::EventStream, Format::Ndjson, Format::Json];

    fn judge(method: Method, status: u16, fields: &[(&'static str, &'static str)]) -> Verdict {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        Verdict::of(&method, StatusCode::from_u16(status).unwrap(), &headers, ALL)
    }

    const EVENTS: (&str, &str) = ("content-type", "text/event-stream");

    #[test]
    fn recognises_exact_types_in_any_case() {
        for (value, expected) in [
            ("text/event-stream", Verdict::Wrap(Format::EventStream)),
            ("Text/Event-Stream;charset=UTF-8", Verdict::Wrap(Format::EventStream)),
            ("text/event-stream ; charset=utf-8", Verdict::Wrap(Format::EventStream)),
            ("application/x-ndjson", Verdict::Wrap(Format::Ndjson)),
            ("application/json", Verdict::Wrap(Format::Json)),
            ("text/event-streams", Verdict::Leave),
            ("text/event-stream, text/html", Verdict::Leave),
            ("application/problem+json", Verdict::Leave),
            ("text/html", Verdict::Leave),
            ("", Verdict::Leave),
        ] {
            assert_eq!(judge(Method::GET, 200, &[("content-type", value)]), expected, "{value}");
        }
        assert_eq!(judge(Method::GET, 200, &[]), Verdict::Leave);
    }

    #[test]
    fn contradicting_content_types_are_left() {
        let html = ("content-type", "text/html");
        assert_eq!(judge(Method::GET, 200, &[EVENTS, html]), Verdict::Leave);
        assert_eq!(judge(Method::GET, 200, &[html, EVENTS]), Verdict::Leave);
        let twice = judge(Method::GET, 200, &[EVENTS, EVENTS]);
        assert_eq!(twice, Verdict::Wrap(Format::EventStream));
    }

    #[test]
    fn formats_not_asked_for_are_left() {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, "application/x-ndjson".parse().unwrap())]);
        let verdict = Verdict::of(&Method::GET, StatusCode::OK, &headers, &[Format::EventStream]);
        assert_eq!(verdict, Verdict::Leave);
    }

    #[test]
    fn responses_without_a_body_are_left() {
        for status in [100, 101, 102, 103, 204, 205, 304] {
            assert_eq!(judge(Method::GET, status, &[EVENTS]), Verdict::Leave, "{status}");
        }
        assert_eq!(judge(Method::HEAD, 200, &[EVENTS]), Verdict::Leave);
        assert_eq!(judge(Method::CONNECT, 200, &[EVENTS]), Verdict::Leave);
        for status in [200, 201, 404, 503] {
            let expected = Verdict::Wrap(Format::EventStream);
            assert_eq!(judge(Method::POST, status, &[EVENTS]), expected, "{status}");
        }
    }

    #[test]
    fn encoded_and_partial_bodies_are_bypassed() {
        for (name, value) in [
            ("content-encoding", "gzip"),
            ("content-encoding", "identity, br"),
            ("content-encoding", "x-unknown"),
            ("transfer-encoding", "gzip, chunked"),
            ("content-range", "bytes 0-9/100"),
        ] {
            let verdict = judge(Method::GET, 200, &[EVENTS, (name, value)]);
            assert_eq!(verdict, Verdict::Bypass, "{name}: {value}");
        }
        assert_eq!(judge(Method::GET, 206, &[EVENTS]), Verdict::Bypass);
        let second_line = [EVENTS, ("content-encoding", "identity"), ("content-encoding", "gzip")];
        assert_eq!(judge(Method::GET, 200, &second_line), Verdict::Bypass);
    }

    #[test]
    fn unencoded_bodies_are_wrapped_whatever_their_framing() {
        for (name, value) in [
            ("content-encoding", "Identity"),
            ("content-encoding", ""),
            ("transfer-encoding", "chunked"),
            ("content-length", "120"),
        ] {
            let verdict = judge(Method::GET, 200, &[EVENTS, (name, value)]);
            assert_eq!(verdict, Verdict::Wrap(Format::EventStream), "{name}: {value}");
        }
    }

    #[test]
    fn json_of_known_length_is_bypassed() {
        let json = ("content-type", "application/json");
        let length = ("content-length", "2");
        assert_eq!(judge(Method::GET, 200, &[json, length]), Verdict::Bypass);
        let lines = ("content-type", "application/x-ndjson");
        let verdict = judge(Method::GET, 200, &[lines, length]);
        assert_eq!(verdict, Verdict::Wrap(Format::Ndjson));
    }
}

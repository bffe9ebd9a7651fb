//! The head of a response that is kept alive: it makes no promise about bytes that heartbeats
//! change, and asks the hops to pass them on at once. Called by the layer and by the proxy for each
//! response that they wrap.

use http::header::{ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, ETAG, HeaderMap, HeaderName, HeaderValue};

use crate::forms::format::Format;

impl Format {
    /// Makes the head of a response true for a body of this format into which heartbeats are written.
    ///
    /// It loses what heartbeats break (`Content-Length`, `ETag`, `Accept-Ranges`, digests), and asks the hops not to buffer
    /// (`X-Accel-Buffering: no`) and not to transform (`Cache-Control: no-transform`); an event stream that says nothing of
    /// caches is kept out of them (`no-cache`). `Heartline::layer` does this by itself.
    ///
    /// ```
    /// use heartline::Format;
    /// use http::{HeaderMap, header};
    ///
    /// let mut headers = HeaderMap::new();
    /// headers.insert(header::CONTENT_LENGTH, 14.into());
    /// Format::EventStream.prepare_head(&mut headers);
    /// assert!(!headers.contains_key(header::CONTENT_LENGTH));
    /// assert_eq!(headers[header::CACHE_CONTROL], "no-cache, no-transform");
    /// ```
    pub fn prepare_head(self, headers: &mut HeaderMap) {
        for name in BROKEN_PROMISES {
            headers.remove(name);
        }
        headers.entry(X_ACCEL_BUFFERING).or_insert(HeaderValue::from_static("no"));
        forbid_transform(headers, self);
    }
}

/// Asks every hop not to transform, and so not to compress, what passes through it.
fn forbid_transform(headers: &mut HeaderMap, format: Format) {
    if headers.get_all(CACHE_CONTROL).iter().any(forbids_transform) {
        return;
    }
    let Some(first_line) = headers.get_mut(CACHE_CONTROL) else {
        // Where the response has not decided, a live stream is not for a cache; other formats may
        // well be.
        let directives = match format {
            Format::EventStream => "no-cache, no-transform",
            Format::Ndjson | Format::Json => "no-transform",
        };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(directives));
        return;
    };
    let mut directives = first_line.as_bytes().trim_ascii().to_vec();
    if !directives.is_empty() {
        directives.extend_from_slice(b", ");
    }
    directives.extend_from_slice(NO_TRANSFORM);
    // Always legal, for it is a legal value and legal text; an illegal one would be left as it was.
    if let Ok(line) = HeaderValue::from_maybe_shared(bytes::Bytes::from(directives)) {
        *first_line = line;
    }
}

/// Whether `no-transform` is among the directives of one line; one inside a quoted argument is
/// none.
fn forbids_transform(line: &HeaderValue) -> bool {
    let mut is_quoted = false;
    line.as_bytes()
        .split(|byte| {
            is_quoted ^= *byte == b'"';
            *byte == b',' && !is_quoted
        })
        .any(|directive| directive.trim_ascii().eq_ignore_ascii_case(NO_TRANSFORM))
}

const NO_TRANSFORM: &[u8] = b"no-transform";

/// nginx and those who follow it pass each write on at once when this is `no`.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Fields that speak of exact bytes: their number, their hash, their positions.
const BROKEN_PROMISES: [HeaderName; 7] = [
    CONTENT_LENGTH,
    ETAG,
    ACCEPT_RANGES,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(format: Format, fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        format.prepare_head(&mut headers);
        headers
    }

    fn cache_control(lines: &[&'static str]) -> Vec<String> {
        let fields: Vec<_> = lines.iter().map(|line| ("cache-control", *line)).collect();
        prepared(Format::EventStream, &fields)
            .get_all(CACHE_CONTROL)
            .iter()
            .map(|line| line.to_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn promises_about_bytes_are_withdrawn() {
        let promises = BROKEN_PROMISES.map(|name| (name, HeaderValue::from_static("1")));
        let mut headers = HeaderMap::from_iter(promises);
        headers.insert("last-modified", HeaderValue::from_static("kept"));
        Format::EventStream.prepare_head(&mut headers);
        let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["cache-control", "last-modified", "x-accel-buffering"]);
    }

    #[test]
    fn no_transform_is_appended_and_the_rest_kept() {
        assert_eq!(cache_control(&["private"]), ["private, no-transform"]);
        assert_eq!(cache_control(&["private, max-age=0"]), ["private, max-age=0, no-transform"]);
        assert_eq!(cache_control(&["private", "no-store"]), ["private, no-transform", "no-store"]);
        assert_eq!(cache_control(&[" "]), ["no-transform"]);
    }

    #[test]
    fn no_transform_is_not_appended_twice() {
        assert_eq!(cache_control(&["No-Transform,private"]), ["No-Transform,private"]);
        assert_eq!(cache_control(&["private", "no-transform"]), ["private", "no-transform"]);
    }

    #[test]
    fn quoted_no_transform_is_no_directive() {
        let line = "private=\"x, no-transform, y\"";
        assert_eq!(cache_control(&[line]), ["private=\"x, no-transform, y\", no-transform"]);
    }

    #[test]
    fn undecided_caching_is_decided_for_event_streams_only() {
        assert_eq!(cache_control(&[]), ["no-cache, no-transform"]);
        let json = prepared(Format::Json, &[]);
        assert_eq!(json[CACHE_CONTROL], "no-transform");
    }

    #[test]
    fn a_decision_about_buffering_is_respected() {
        let headers = prepared(Format::EventStream, &[("x-accel-buffering", "yes")]);
        assert_eq!(headers["x-accel-buffering"], "yes");
        let headers = prepared(Format::EventStream, &[]);
        assert_eq!(headers["x-accel-buffering"], "no");
    }
}

//! Fields behind a body: which of them a hop passes on, and how they are written. Pure; called by `sending` towards engines
//! and by `live` towards clients.

use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HOST, MAX_FORWARDS,
    SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderName};

use super::headers::tokens;

/// The fields that a message's head promises behind its body.
pub(super) fn promised(head: &HeaderMap) -> Vec<HeaderName> {
    tokens(head, &TRAILER).filter_map(|name| HeaderName::from_bytes(name).ok()).collect()
}

/// Writes the fields that were promised, a line for each.
///
/// Nothing else passes: who reads a field behind the body as one of the head must not be told where the message ends, whom it
/// is for or what may be done with it (RFC 9110 §6.5.1).
pub(super) fn write(trailers: &HeaderMap, promised: &[HeaderName], out: &mut Vec<u8>) {
    for (name, value) in trailers {
        if promised.contains(name) && !FORBIDDEN.contains(name) {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                out.extend_from_slice(part);
            }
        }
    }
}

/// As hyper has them.
const FORBIDDEN: [HeaderName; 12] = [
    AUTHORIZATION,
    CACHE_CONTROL,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_RANGE,
    CONTENT_TYPE,
    HOST,
    MAX_FORWARDS,
    SET_COOKIE,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_promised_and_is_harmless_goes_behind_a_body() {
        let mut head = HeaderMap::new();
        head.append(TRAILER, "x-sum, Content-Length".parse().unwrap());
        head.append(TRAILER, " x-other".parse().unwrap());
        let mut trailers = HeaderMap::new();
        for (name, value) in [("x-sum", "7"), ("content-length", "5"), ("x-secret", "1"), ("x-other", "a")] {
            trailers.append(name, value.parse().unwrap());
        }
        let mut out = Vec::new();
        write(&trailers, &promised(&head), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "x-sum: 7\r\nx-other: a\r\n");
    }
}

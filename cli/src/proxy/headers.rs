//! What a hop changes in the fields of a message, by the book (RFC 9110 §7.6): pure functions over header maps. Called by
//! `exchange`.

use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONNECTION, EXPECT, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::{HeaderMap, HeaderName, HeaderValue, Version};

use heartline::Format;

/// Removes what belongs to one connection only: first everything that any `Connection` line names, then the known fields.
pub(super) fn strip_hop(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        let named: Vec<HeaderName> = tokens(headers, &CONNECTION)
            .filter_map(|token| HeaderName::from_bytes(token).ok())
            .filter(|name| !KEPT.contains(name))
            .collect();
        for name in named {
            headers.remove(name);
        }
    }
    for name in &HOP {
        headers.remove(name);
    }
}

/// The tokens of every line of a field that is a list.
pub(super) fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    let lines = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    lines.flat_map(|line| line.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

/// Whether a list field has `token`, in any case.
pub(super) fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    tokens(headers, name).any(|found| found.eq_ignore_ascii_case(token.as_bytes()))
}

/// Makes a client's fields those of the request to the engine; `Host` is the caller's.
///
/// `TE: trailers` and an upgrade to a WebSocket are said again, as this hop's own.
pub(super) fn forward(headers: &mut HeaderMap) {
    let wants_trailers = has_token(headers, &TE, "trailers");
    strip_hop(headers);
    headers.remove(EXPECT); // answered by this hop, which asks for the body as it forwards it
    headers.remove(HOST);
    if wants_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// Says that this proxy passed the message on.
pub(super) fn add_via(headers: &mut HeaderMap, received: Version, pseudonym: &Pseudonym) {
    let via = match received {
        Version::HTTP_10 => &pseudonym.one_zero,
        Version::HTTP_2 => &pseudonym.two,
        _ => &pseudonym.one_one,
    };
    headers.append(VIA, via.clone());
}

/// The name of this proxy in `Via`, by which it knows a request that it has passed on before.
#[derive(Debug)]
pub(super) struct Pseudonym {
    name: String,
    one_zero: HeaderValue,
    one_one: HeaderValue,
    two: HeaderValue,
}

impl Pseudonym {
    /// A name no other proxy has: `heartline-` and `number` in hexadecimal.
    pub(super) fn new(number: u64) -> Self {
        let name = format!("heartline-{number:016x}");
        let value = |version: &str| {
            HeaderValue::try_from(format!("{version} {name}")).expect("letters, digits, a dot, a dash and a space")
        };
        Self { one_zero: value("1.0"), one_one: value("1.1"), two: value("2.0"), name }
    }

    /// Whether a request went through this proxy before.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        tokens(headers, &VIA).any(|hop| hop.split(|byte| *byte == b' ').any(|part| part == self.name.as_bytes()))
    }
}

/// Asks the engine for bytes as they are: what is encoded cannot carry heartbeats.
pub(super) fn narrow_encoding(headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// What a response that carries heartbeats changes in its head, and nothing else.
pub(super) fn keep_alive(headers: &mut HeaderMap, format: Format) {
    // Whether it may be cached is the engine's to say, so that `no-transform` stands alone where it said nothing.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-transform"));
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    format.prepare_head(headers);
}

const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// Fields of one connection (RFC 9110 §7.6.1), those of its predecessors that are still sent, and those for a proxy itself.
const HOP: [HeaderName; 10] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy"), // read as a variable by CGI programs (httpoxy)
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Fields that no `Connection` line can remove: where the body ends, and where the request came from, are not a matter of
/// one connection's options.
const KEPT: [HeaderName; 7] = [
    http::header::CONTENT_LENGTH,
    HOST,
    http::header::FORWARDED,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-real-ip"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn lines(headers: &HeaderMap) -> Vec<String> {
        let mut lines: Vec<_> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        lines.sort();
        lines
    }

    #[test]
    fn every_connection_line_and_its_tokens_go() {
        let mut headers = map(&[
            ("connection", "close, X-One"),
            ("connection", "x-two , ,keep-alive"),
            ("x-one", "1"),
            ("x-two", "2"),
            ("x-three", "3"),
            ("keep-alive", "timeout=5"),
            ("te", "gzip"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("proxy-connection", "close"),
            ("trailer", "x-sum"),
        ]);
        strip_hop(&mut headers);
        assert_eq!(lines(&headers), ["trailer: x-sum", "x-three: 3"]);
    }

    #[test]
    fn connection_cannot_name_the_framing_or_the_hops_away() {
        let mut headers = map(&[
            ("connection", "content-length, host, X-Forwarded-For"),
            ("content-length", "5"),
            ("host", "a"),
            ("x-forwarded-for", "1.1.1.1"),
        ]);
        strip_hop(&mut headers);
        assert_eq!(lines(&headers), ["content-length: 5", "host: a", "x-forwarded-for: 1.1.1.1"]);
    }

    #[test]
    fn repeated_end_to_end_fields_stay_in_order() {
        let mut headers = map(&[("set-cookie", "a=1"), ("connection", "close"), ("set-cookie", "b=2")]);
        strip_hop(&mut headers);
        let cookies: Vec<_> = headers.get_all("set-cookie").iter().collect();
        assert_eq!(cookies, ["a=1", "b=2"]);
    }

    #[test]
    fn trailers_are_asked_for_again_and_expectations_are_not() {
        let mut headers = map(&[("te", "gzip;q=0.5, Trailers"), ("expect", "100-continue")]);
        forward(&mut headers);
        assert_eq!(headers[TE], "trailers");
        assert!(!headers.contains_key(EXPECT));
    }

    #[test]
    fn a_loop_is_known_by_its_own_name() {
        let (own, other) = (Pseudonym::new(1), Pseudonym::new(2));
        let mut headers = map(&[("via", "1.0 fred, 1.1 p.example")]);
        assert!(!own.is_in(&headers));
        add_via(&mut headers, Version::HTTP_11, &own);
        assert!(own.is_in(&headers) && !other.is_in(&headers));
        assert_eq!(headers.get_all(VIA).iter().count(), 2);
    }

    #[test]
    fn a_kept_response_changes_in_exactly_these_fields() {
        let mut headers = map(&[
            ("content-type", "text/event-stream"),
            ("content-length", "10"),
            ("etag", "\"a\""),
            ("digest", "sha-256=x"),
            ("accept-ranges", "bytes"),
            ("cache-control", "private"),
            ("x-accel-buffering", "yes"),
            ("x-request-id", "7"),
        ]);
        keep_alive(&mut headers, Format::EventStream);
        assert_eq!(
            lines(&headers),
            [
                "cache-control: private, no-transform",
                "content-type: text/event-stream",
                "x-accel-buffering: no",
                "x-request-id: 7"
            ]
        );
        let mut bare = map(&[]);
        keep_alive(&mut bare, Format::EventStream);
        assert_eq!(bare[CACHE_CONTROL], "no-transform");
    }
}

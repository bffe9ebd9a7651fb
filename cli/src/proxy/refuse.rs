//! What no proxy may pass on: a pure judgement of a request's head, asked by `exchange` before anything else, and of the
//! length of an answer, asked by `upstream`.

use std::fmt;

use http::header::{CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Version};

use super::headers::{Pseudonym, tokens};
use super::refusal::Refusal;
use super::sniff::Told;

/// Judges a head; returns the host that the client asked for. `told`: how its body's length stood on the
/// wire, of which `head` may show less.
///
/// # Errors
///
/// The first rule that the head breaks.
pub(super) fn judge(head: &Parts, told: Told, own: &Pseudonym) -> Result<Option<HeaderValue>, Refusal> {
    if head.method == Method::CONNECT || head.method == Method::TRACE {
        return Err(Refusal::Method);
    }
    framing(head, told)?;
    let host = host(head)?;
    if let Some(expected) = head.headers.get(EXPECT)
        && !expected.as_bytes().eq_ignore_ascii_case(b"100-continue")
    {
        return Err(Refusal::Expectation);
    }
    if own.is_in(&head.headers) {
        return Err(Refusal::Loop);
    }
    Ok(host)
}

/// The rules that keep two hops from seeing two different ends of one body (RFC 9112 §6). hyper holds most of them; these
/// stand here too, so that a change there opens nothing.
fn framing(head: &Parts, told: Told) -> Result<(), Refusal> {
    let is_chunked = head.headers.contains_key(TRANSFER_ENCODING);
    if is_chunked && head.version == Version::HTTP_2 {
        return Err(Refusal::Malformed("HTTP/2 knows no Transfer-Encoding"));
    }
    if told == Told::Twice {
        return Err(Refusal::Malformed("it tells its body's length in two ways"));
    }
    if is_chunked && head.headers.contains_key(CONTENT_LENGTH) {
        return Err(Refusal::Malformed("it has both a Content-Length and a Transfer-Encoding"));
    }
    let mut codings = tokens(&head.headers, &TRANSFER_ENCODING);
    if codings.next().is_some_and(|coding| !coding.eq_ignore_ascii_case(b"chunked")) || codings.next().is_some() {
        return Err(Refusal::TransferCoding);
    }
    let mut lengths = head.headers.get_all(CONTENT_LENGTH).iter();
    if lengths.next().is_some_and(|length| !is_number(length)) || lengths.next().is_some() {
        return Err(Refusal::Malformed("its Content-Length is not one number"));
    }
    Ok(())
}

/// Keeps an engine's answer to one way of reading its end: the coding wins over a length beside it, as hyper has read it,
/// and of several lengths, which are equal by then, one stays.
///
/// # Errors
///
/// A coding other than `chunked`: it ends at this hop, and the client would take encoded bytes for the text itself.
pub(super) fn settle_length(headers: &mut HeaderMap) -> Result<(), Unframed> {
    if headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
        let mut codings = tokens(headers, &TRANSFER_ENCODING);
        let is_plain = codings.next().is_none_or(|coding| PLAIN.iter().any(|plain| coding.eq_ignore_ascii_case(plain)));
        return if is_plain && codings.next().is_none() { Ok(()) } else { Err(Unframed) };
    }
    let mut lengths = tokens(headers, &CONTENT_LENGTH);
    let first =
        lengths.next().filter(|_| lengths.next().is_some()).and_then(|length| HeaderValue::from_bytes(length).ok());
    drop(lengths);
    if let Some(length) = first {
        headers.insert(CONTENT_LENGTH, length);
    }
    Ok(())
}

/// The engine's answer is in a transfer coding that cannot be passed on.
#[derive(Debug)]
pub(super) struct Unframed;

impl fmt::Display for Unframed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the answer is in a transfer coding other than chunked")
    }
}

impl std::error::Error for Unframed {}

/// Codings that leave the bytes as they are; the second is a word of RFC 2616 that some servers still send.
const PLAIN: [&[u8]; 2] = [b"chunked", b"identity"];

fn is_number(value: &HeaderValue) -> bool {
    !value.is_empty() && value.as_bytes().iter().all(u8::is_ascii_digit)
}

/// The host: of the target where it names one (absolute-form, HTTP/2), else of the one `Host` line.
fn host(head: &Parts) -> Result<Option<HeaderValue>, Refusal> {
    let mut lines = head.headers.get_all(HOST).iter();
    let line = lines.next();
    if lines.next().is_some() {
        return Err(Refusal::Malformed("it has two Host lines"));
    }
    if let Some(line) = line
        && !line.is_empty()
        && Authority::try_from(line.as_bytes()).is_err()
    {
        return Err(Refusal::Malformed("its Host is none"));
    }
    if let Some(authority) = head.uri.authority() {
        if authority.as_str().contains('@') {
            return Err(Refusal::Malformed("its target names a user"));
        }
        return Ok(HeaderValue::try_from(authority.as_str()).ok());
    }
    if line.is_none() && head.version == Version::HTTP_11 {
        return Err(Refusal::Malformed("it has no Host"));
    }
    Ok(line.cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn judged(request: http::request::Builder) -> Result<Option<HeaderValue>, Refusal> {
        let (head, ()) = request.body(()).unwrap().into_parts();
        judge(&head, Told::Once, &Pseudonym::new(7))
    }

    fn get() -> http::request::Builder {
        Request::get("/").header("host", "a")
    }

    #[test]
    fn a_plain_request_passes_with_its_host() {
        assert_eq!(judged(get()), Ok(Some(HeaderValue::from_static("a"))));
        assert_eq!(judged(Request::get("http://b:81/x").header("host", "a")).unwrap().unwrap(), "b:81");
        assert_eq!(judged(Request::get("/").version(Version::HTTP_10)), Ok(None));
    }

    #[test]
    fn methods_that_reach_past_the_engine_are_refused() {
        for method in [Method::CONNECT, Method::TRACE] {
            assert_eq!(judged(Request::builder().method(method).uri("a:1").header("host", "a")), Err(Refusal::Method));
        }
    }

    #[test]
    fn ambiguous_framing_is_refused() {
        let chunked = || get().header("transfer-encoding", "chunked");
        assert!(judged(chunked()).is_ok());
        assert!(matches!(judged(chunked().header("content-length", "5")), Err(Refusal::Malformed(_))));
        assert!(matches!(judged(chunked().version(Version::HTTP_2)), Err(Refusal::Malformed(_))));
        for coding in ["gzip, chunked", "chunked, chunked", "identity"] {
            assert_eq!(judged(get().header("transfer-encoding", coding)), Err(Refusal::TransferCoding), "{coding}");
        }
        for length in ["+5", "5, 5", "", "-1", "0x5"] {
            let judgement = judged(get().header("content-length", length));
            assert!(matches!(judgement, Err(Refusal::Malformed(_))), "{length}");
        }
        let twice = get().header("content-length", "5").header("content-length", "5");
        assert!(matches!(judged(twice), Err(Refusal::Malformed(_))));
    }

    #[test]
    fn a_request_names_one_host() {
        assert!(matches!(judged(Request::get("/")), Err(Refusal::Malformed(_))));
        assert!(matches!(judged(get().header("host", "b")), Err(Refusal::Malformed(_))));
        for host in ["a b", "a/b", "http://a"] {
            let judgement = judged(Request::get("/").header("host", host));
            assert!(matches!(judgement, Err(Refusal::Malformed(_))), "{host}");
        }
        assert!(matches!(judged(Request::get("http://u@a/").header("host", "a")), Err(Refusal::Malformed(_))));
    }

    #[test]
    fn unknown_expectations_and_loops_are_refused() {
        assert!(judged(get().header("expect", "100-Continue")).is_ok());
        assert_eq!(judged(get().header("expect", "a miracle")), Err(Refusal::Expectation));
        assert_eq!(judged(get().header("via", "1.1 heartline-0000000000000007")), Err(Refusal::Loop));
    }
}

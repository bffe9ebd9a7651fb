//! The head of an engine's HTTP/1.1 answer: what it says, how its body is framed and whether its connection can be used
//! again. Pure; called by `wire`.

use std::error::Error as StdError;
use std::fmt;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Version};
use hyper::ext::ReasonPhrase;

use super::framing::Framing;
use super::headers::{has_token, tokens};

/// The head of a final answer.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) head: Parts,
    pub(super) framing: Framing,
    /// Whether the engine keeps the connection open behind the body.
    pub(super) is_kept: bool,
    /// How many bytes the head took, interim answers before it included.
    pub(super) bytes: usize,
}

/// What came instead of an answer, or of its body, was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotHttp(pub(super) &'static str);

impl fmt::Display for NotHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl StdError for NotHttp {}

impl Reply {
    /// Reads the head of the answer to a request with this method; `None` until all of it is there. Interim answers (1xx) are
    /// skipped, save a 101, which is a last one.
    ///
    /// # Errors
    ///
    /// When it is no answer, or its body has no end that every reader agrees about.
    pub(super) fn parse(bytes: &[u8], method: &Method) -> Result<Option<Self>, NotHttp> {
        let mut skipped = 0;
        loop {
            let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
            let mut parsed = httparse::Response::new(&mut fields);
            let length = match parsed.parse(&bytes[skipped..]) {
                Ok(httparse::Status::Complete(length)) => length,
                Ok(httparse::Status::Partial) => return Ok(None),
                Err(_) => return Err(NotHttp("it is no head of HTTP/1.1")),
            };
            skipped += length;
            let status = parsed.code.and_then(|code| StatusCode::from_u16(code).ok());
            let status = status.ok_or(NotHttp("its status is none"))?;
            if status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS {
                continue;
            }
            let mut head = Response::new(()).into_parts().0;
            head.status = status;
            head.version = if parsed.version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 };
            head.headers = kept(parsed.headers)?;
            if let Some(reason) = parsed.reason.filter(|reason| Some(*reason) != status.canonical_reason())
                && let Ok(reason) = ReasonPhrase::try_from(reason.as_bytes())
            {
                head.extensions.insert(reason); // hyper writes it in the place of the usual one
            }
            let framing = framing(&head, method)?;
            let is_kept = status != StatusCode::SWITCHING_PROTOCOLS && framing != Framing::UntilClose && keeps(&head);
            return Ok(Some(Self { head, framing, is_kept, bytes: skipped }));
        }
    }
}

/// Reads the lines behind a body's last chunk.
///
/// # Errors
///
/// When they are no fields.
pub(super) fn trailers(mut lines: Vec<u8>) -> Result<HeaderMap, NotHttp> {
    const REFUSED: NotHttp = NotHttp("what follows its body is no field");
    lines.extend_from_slice(b"\r\n");
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    match httparse::parse_headers(&lines, &mut fields) {
        Ok(httparse::Status::Complete((length, fields))) if length == lines.len() => kept(fields),
        _ => Err(REFUSED),
    }
}

/// The fields, in one allocation of their own: what is kept must not keep the whole buffer that it was read into.
fn kept(fields: &[httparse::Header<'_>]) -> Result<HeaderMap, NotHttp> {
    let values = Bytes::from(fields.iter().map(|field| field.value).collect::<Vec<_>>().concat());
    let mut headers = HeaderMap::with_capacity(fields.len());
    let mut at = 0;
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| NotHttp("a field has no name"))?;
        let value = values.slice(at..at + field.value.len());
        at += field.value.len();
        headers.append(name, HeaderValue::from_maybe_shared(value).map_err(|_| NotHttp("a field has no value"))?);
    }
    Ok(headers)
}

/// RFC 9112 §6.3, for a client. A coding that is not just `chunked` is left to who decides whether it can be passed on.
fn framing(head: &Parts, method: &Method) -> Result<Framing, NotHttp> {
    let is_bodiless =
        matches!(head.status, StatusCode::SWITCHING_PROTOCOLS | StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if is_bodiless || method == Method::HEAD {
        return Ok(Framing::Length(0));
    }
    if head.headers.contains_key(TRANSFER_ENCODING) {
        let mut codings = tokens(&head.headers, &TRANSFER_ENCODING);
        let is_chunked = codings.next().is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked"));
        return match (is_chunked && codings.next().is_none(), head.version) {
            (_, Version::HTTP_10) => Err(NotHttp("HTTP/1.0 has no transfer codings")),
            (true, _) => Ok(Framing::CHUNKED),
            (false, _) => Ok(Framing::UntilClose),
        };
    }
    let mut length = None;
    for line in head.headers.get_all(CONTENT_LENGTH) {
        for text in line.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
            let said = std::str::from_utf8(text).ok().filter(|_| is_number).and_then(|text| text.parse::<u64>().ok());
            let said = said.ok_or(NotHttp("its length is no number"))?;
            if length.is_some_and(|length| length != said) {
                return Err(NotHttp("it has two lengths"));
            }
            length = Some(said);
        }
    }
    Ok(length.map_or(Framing::UntilClose, Framing::Length))
}

/// Whether the connection stays open behind this answer (RFC 9112 §9.3). Who says twice where the body ends is not trusted
/// to know.
fn keeps(head: &Parts) -> bool {
    let is_doubtful = head.headers.contains_key(TRANSFER_ENCODING) && head.headers.contains_key(CONTENT_LENGTH);
    !is_doubtful
        && !has_token(&head.headers, &CONNECTION, "close")
        && (head.version == Version::HTTP_11 || has_token(&head.headers, &CONNECTION, "keep-alive"))
}

/// The most fields of an answer; hyper's bound is the same.
const FIELDS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<Reply>, NotHttp> {
        Reply::parse(text.as_bytes(), &Method::GET)
    }

    fn reply(fields: &str) -> Reply {
        parse(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).unwrap().unwrap()
    }

    #[test]
    fn a_body_is_framed_as_its_head_says() {
        assert_eq!(reply("content-length: 9\r\nContent-Length: 9\r\n").framing, Framing::Length(9));
        assert_eq!(reply("content-length: 9, 9\r\n").framing, Framing::Length(9));
        assert_eq!(reply("transfer-encoding: gzip, chunked\r\n").framing, Framing::UntilClose);
        assert_eq!(reply("transfer-encoding: Chunked\r\n").framing, Framing::CHUNKED);
        assert_eq!(reply("").framing, Framing::UntilClose);
        let head = Reply::parse(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", &Method::HEAD).unwrap().unwrap();
        assert_eq!((head.framing, &head.head.headers[CONTENT_LENGTH]), (Framing::Length(0), &HeaderValue::from(9)));
        for wrong in [
            "content-length: 9\r\ncontent-length: 8\r\n",
            "content-length: 9, 8\r\n",
            "content-length: -1\r\n",
            "content-length: +1\r\n",
            "content-length: 1,\r\n",
        ] {
            assert!(parse(&format!("HTTP/1.1 200 OK\r\n{wrong}\r\n")).is_err(), "{wrong}");
        }
        assert!(parse("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
    }

    #[test]
    fn who_gives_a_length_beside_a_coding_is_not_asked_again_on_this_connection() {
        let reply = reply("content-length: 5\r\ntransfer-encoding: chunked\r\n");
        assert_eq!((reply.framing, reply.is_kept), (Framing::CHUNKED, false));
    }

    #[test]
    fn a_connection_stays_open_as_its_version_and_its_options_say() {
        for (text, is_kept) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: x, Close\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\ncontent-length: 0\r\nconnection: Keep-Alive\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\n\r\n", false),
            ("HTTP/1.1 101 Switching Protocols\r\n\r\n", false),
        ] {
            assert_eq!(parse(text).unwrap().unwrap().is_kept, is_kept, "{text:?}");
        }
    }

    #[test]
    fn interim_answers_are_skipped_and_half_a_head_is_waited_for() {
        let interim = "HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n";
        assert!(parse(interim).unwrap().is_none());
        assert!(parse("HTTP/1.1 200 O").unwrap().is_none());
        let text = format!("{interim}{interim}HTTP/1.1 299 As You Like\r\nx-a: 1\r\nX-A: 2\r\n\r\nbody");
        let reply = parse(&text).unwrap().unwrap();
        assert_eq!((reply.head.status.as_u16(), reply.bytes), (299, text.len() - 4));
        assert_eq!(reply.head.headers.get_all("x-a").iter().collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(reply.head.extensions.get::<ReasonPhrase>().unwrap().as_bytes(), b"As You Like");
        assert!(parse("SSH-2.0-OpenSSH\r\n\r\n").is_err());
    }

    #[test]
    fn trailers_are_fields_and_nothing_else() {
        assert_eq!(trailers(b"x-sum: 7\r\n".to_vec()).unwrap()["x-sum"], "7");
        assert!(trailers(b"no field\r\n".to_vec()).is_err());
    }
}

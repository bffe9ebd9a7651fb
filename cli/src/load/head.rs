//! The head of an HTTP/1.1 response: status, format of the body, and how it is framed. Pure; called by `http1`.

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use heartline::{Format, Verdict};

use crate::framing::Framing;

/// The head of a final response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    /// The format to decode; `None` for an unknown or an encoded body.
    pub(super) format: Option<Format>,
    pub(super) framing: Framing,
    /// How many bytes the head took, interim responses before it included.
    pub(super) bytes: usize,
}

/// What came instead of a head was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotHttp;

impl Head {
    /// Reads the head of the response to a request with this method; `None` until all of it is there.
    ///
    /// Interim responses (1xx) are skipped.
    ///
    /// # Errors
    ///
    /// When it is no response.
    pub(super) fn parse(bytes: &[u8], method: &Method) -> Result<Option<Self>, NotHttp> {
        let mut skipped = 0;
        loop {
            let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
            let mut response = httparse::Response::new(&mut headers);
            let httparse::Status::Complete(length) = response.parse(&bytes[skipped..]).map_err(|_| NotHttp)? else {
                return Ok(None);
            };
            let status = response.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(NotHttp)?;
            skipped += length;
            if status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS {
                continue;
            }
            let framing = framing(response.headers, status, method)?;
            return Ok(Some(Self { status, format: format(response.headers), framing, bytes: skipped }));
        }
    }
}

/// Returns the format to decode by the headers of a response; `None` for an unknown or an encoded body.
pub(super) fn format_of(headers: &HeaderMap) -> Option<Format> {
    let codings = headers.get_all(CONTENT_ENCODING).iter().map(HeaderValue::as_bytes);
    if Verdict::is_unencoded(codings) { Format::of_content_type(headers.get(CONTENT_TYPE)?) } else { None }
}

fn format(headers: &[httparse::Header<'_>]) -> Option<Format> {
    let values = |name: &'static str| {
        headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
    };
    if !Verdict::is_unencoded(values("content-encoding")) {
        return None;
    }
    Format::of_content_type(&HeaderValue::from_bytes(values("content-type").next()?).ok()?)
}

/// RFC 9112, section 6.3, for a client.
fn framing(headers: &[httparse::Header<'_>], status: StatusCode, method: &Method) -> Result<Framing, NotHttp> {
    if method == Method::HEAD || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED {
        return Ok(Framing::Length(0));
    }
    let named = |name: &'static str| headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
    if let Some(coding) = named("transfer-encoding").next_back() {
        let last = coding.value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
        let chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
        return Ok(if chunked { Framing::CHUNKED } else { Framing::UntilClose });
    }
    let mut length = None;
    for header in named("content-length") {
        let text = std::str::from_utf8(header.value).map_err(|_| NotHttp)?.trim();
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let said: u64 = digits.then(|| text.parse().ok()).flatten().ok_or(NotHttp)?;
        if length.is_some_and(|length| length != said) {
            return Err(NotHttp);
        }
        length = Some(said);
    }
    Ok(length.map_or(Framing::UntilClose, Framing::Length))
}

/// The most headers of a response; hyper's bound is the same.
const HEADERS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<Head>, NotHttp> {
        Head::parse(text.as_bytes(), &Method::GET)
    }

    fn framing(headers: &str) -> Framing {
        parse(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n")).unwrap().unwrap().framing
    }

    #[test]
    fn a_body_is_framed_as_its_headers_say() {
        assert_eq!(framing("Transfer-Encoding: gzip, Chunked\r\ncontent-length: 9\r\n"), Framing::CHUNKED);
        assert_eq!(framing("content-length: 9\r\nContent-Length: 9\r\n"), Framing::Length(9));
        assert_eq!(framing("transfer-encoding: gzip\r\n"), Framing::UntilClose);
        assert_eq!(framing(""), Framing::UntilClose);
        let head = Head::parse(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", &Method::HEAD);
        assert_eq!(head.unwrap().unwrap().framing, Framing::Length(0));
        for wrong in ["content-length: 9\r\ncontent-length: 8\r\n", "content-length: -1\r\n", "content-length: +1\r\n"]
        {
            assert_eq!(parse(&format!("HTTP/1.1 200 OK\r\n{wrong}\r\n")), Err(NotHttp), "{wrong}");
        }
    }

    #[test]
    fn interim_responses_are_skipped() {
        let interim = "HTTP/1.1 102 Processing\r\n\r\n";
        assert_eq!(parse(interim), Ok(None));
        let text =
            format!("{interim}{interim}HTTP/1.1 200 OK\r\ncontent-type: Text/Event-Stream;charset=UTF-8\r\n\r\n:");
        let head = parse(&text).unwrap().unwrap();
        assert_eq!((head.status, head.format), (StatusCode::OK, Some(Format::EventStream)));
        assert_eq!(head.bytes, text.len() - 1);
    }

    #[test]
    fn what_is_no_head_is_told_from_half_of_one() {
        assert_eq!(parse("HTTP/1.1 200 O"), Ok(None));
        assert_eq!(parse("SSH-2.0-OpenSSH\r\n\r\n"), Err(NotHttp));
    }

    #[test]
    fn an_encoded_body_is_not_decoded() {
        let head = parse("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n\r\n");
        assert_eq!(head.unwrap().unwrap().format, None);
    }
}

//! The requests of a run: what all have in common, made once, and each stream's own path and body. Used by `http1` and
//! `http2`.

use bytes::Bytes;
use http::header::{ACCEPT, CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TE, TRANSFER_ENCODING, UPGRADE, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Uri, Version};

use super::{LoadError, Settings, Target};

/// What all requests of a run have in common.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    method: Method,
    url: Uri,
    path: PathAndQuery,
    headers: HeaderMap,
}

impl Requests {
    /// Takes the method, path and headers of the settings and fills in what they leave out.
    pub(super) fn new(settings: &Settings) -> Result<Self, LoadError> {
        let authority = settings.url.authority().map_or("", http::uri::Authority::as_str);
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let host_value =
            HeaderValue::from_str(host).map_err(|_| LoadError::config("the URL's host is no valid header value"))?;
        let mut headers = settings.headers.clone();
        headers.entry(HOST).or_insert(host_value);
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static(ACCEPTED));
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
        // How the body is framed is not the caller's to say.
        headers.remove(CONTENT_LENGTH);
        headers.remove(TRANSFER_ENCODING);
        let path = settings.url.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        let url = Uri::builder()
            .scheme(settings.url.scheme_str().unwrap_or("http"))
            .authority(host)
            .path_and_query(path.clone())
            .build()
            .map_err(|error| LoadError::config(format!("{} cannot be asked: {error}", settings.url)))?;
        Ok(Self { method: settings.method.clone(), url, path, headers })
    }

    /// Returns the method of every request.
    pub(super) fn method(&self) -> &Method {
        &self.method
    }

    /// Returns one request as HTTP/1.1 sends it, body included.
    pub(super) fn http1(&self, target: &Target) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(512 + target.body.len());
        let path = target.path.as_ref().unwrap_or(&self.path);
        for part in [self.method.as_str(), " ", path.as_str(), " HTTP/1.1\r\n"] {
            bytes.extend_from_slice(part.as_bytes());
        }
        for (name, value) in &self.headers {
            header(&mut bytes, name, value.as_bytes());
        }
        if self.tells_length(&target.body) {
            header(&mut bytes, &CONTENT_LENGTH, target.body.len().to_string().as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&target.body);
        bytes
    }

    /// Returns the head of one request as HTTP/2 sends it.
    pub(super) fn http2(&self, target: &Target) -> Request<()> {
        let mut request = Request::new(());
        *request.method_mut() = self.method.clone();
        *request.version_mut() = Version::HTTP_2;
        *request.uri_mut() = match &target.path {
            None => self.url.clone(),
            Some(path) => {
                let mut parts = self.url.clone().into_parts();
                parts.path_and_query = Some(path.clone());
                // Scheme and authority were valid with another path.
                Uri::from_parts(parts).unwrap_or_default()
            }
        };
        let mut headers = self.headers.clone();
        // RFC 9113, section 8.2.2; the host is the authority.
        for name in [HOST, CONNECTION, UPGRADE, TE] {
            headers.remove(name);
        }
        if self.tells_length(&target.body) {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(target.body.len()));
        }
        *request.headers_mut() = headers;
        request
    }

    /// RFC 9110, section 8.6: a method that expects a body says so also when it is empty.
    fn tells_length(&self, body: &Bytes) -> bool {
        !body.is_empty() || [Method::POST, Method::PUT, Method::PATCH].contains(&self.method)
    }
}

fn header(bytes: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    for part in [name.as_str().as_bytes(), b": ", value, b"\r\n"] {
        bytes.extend_from_slice(part);
    }
}

const ACCEPTED: &str = "text/event-stream, application/x-ndjson, */*;q=0.5";

const AGENT: &str = concat!("heartline-load/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_who_is_asked_and_how_long_its_body_is() {
        let mut settings = Settings::new("http://me:secret@example.org:81/a?b=c".parse().unwrap());
        settings.method = Method::POST;
        settings.headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        let requests = Requests::new(&settings).unwrap();
        let target = Target::new(Bytes::from_static(b"{}"));
        let text = String::from_utf8(requests.http1(&target)).unwrap();
        assert!(text.starts_with("POST /a?b=c HTTP/1.1\r\n") && text.ends_with("\r\n\r\n{}"), "{text}");
        assert!(text.contains("host: example.org:81\r\n") && text.contains("content-length: 2\r\n"), "{text}");
        assert!(!text.contains("chunked") && !text.contains("secret"), "{text}");

        let request = requests.http2(&target);
        assert_eq!(request.uri(), "http://example.org:81/a?b=c");
        assert!(!request.headers().contains_key(HOST));
        assert_eq!(request.headers()[CONTENT_LENGTH], "2");
    }
}

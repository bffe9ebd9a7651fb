//! Addresses, networks, URLs and headers.

use std::net::SocketAddr;

use http::{HeaderName, HeaderValue, Uri};

/// Reads an IP address with a port: `127.0.0.1:8080`, `[::]:80`.
///
/// # Errors
///
/// The text is none; names of hosts are not looked up.
pub fn socket(text: &str) -> Result<SocketAddr, String> {
    text.trim().parse().map_err(|_| {
        let port = text.rsplit(':').next().and_then(|port| port.trim().parse::<u16>().ok()).unwrap_or(8080);
        format!("{text:?} is not an IP address with a port: write for example 127.0.0.1:{port} or 0.0.0.0:{port}")
    })
}

/// Reads a network, or an address, which is a network of one: `10.0.0.0/8`, `::1`.
///
/// # Errors
///
/// The text is neither.
pub fn network(text: &str) -> Result<ipnet::IpNet, String> {
    let trimmed = text.trim();
    trimmed
        .parse()
        .or_else(|_| trimmed.parse::<std::net::IpAddr>().map(Into::into))
        .map_err(|_| format!("{text:?} is neither an address nor a network: write for example 127.0.0.1 or 10.0.0.0/8"))
}

/// Reads the name of a header.
///
/// # Errors
///
/// The text is none.
pub fn header(text: &str) -> Result<HeaderName, String> {
    text.trim().parse().map_err(|_| format!("{text:?} is not a header's name: write for example x-heartbeat"))
}

/// Reads a header with its value: `name: value`.
///
/// # Errors
///
/// There is no colon, or what stands at one side of it cannot be sent.
pub fn field(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("a header has a colon: write 'name: value'")?;
    let name = name.trim();
    let read = name.parse().map_err(|_| format!("{name:?} is not a header's name: write 'name: value'"))?;
    // Not repeated: it may be a secret.
    let value =
        value.trim().parse().map_err(|_| format!("the value of {name} holds a control character: take it out"))?;
    Ok((read, value))
}

/// Reads the URL of a server to ask; without a scheme it is `http://`.
///
/// # Errors
///
/// The text is none.
pub fn url(text: &str) -> Result<Uri, String> {
    let text = text.trim();
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let malformed =
        |why: &str| format!("{text:?} is not a URL ({why}): write for example http://127.0.0.1:8900/events");
    let url: Uri = whole.parse().map_err(|error: http::uri::InvalidUri| malformed(&error.to_string()))?;
    let port = url.authority().and_then(|it| it.as_str().strip_prefix(it.host())).unwrap_or_default();
    if !port.is_empty() && url.port_u16().is_none_or(|port| port == 0) {
        return Err(malformed("its port is not a number from 1 to 65535"));
    }
    Ok(url)
}

/// Reads the address of an engine: `http://`, `https://` or `h2c://`, a host, and perhaps a port and a path.
///
/// # Errors
///
/// The scheme is missing or unknown, there is a user name, a query or no usable port, or it is no address at all.
pub fn engine(text: &str) -> Result<Uri, String> {
    let text = text.trim();
    let Some((scheme, rest)) = text.split_once("://") else {
        let host = if text.is_empty() { "127.0.0.1:23333" } else { text.trim_matches('/') };
        return Err(format!("the engine's address {text:?} has no scheme: write http://{host}"));
    };
    if !["http", "https", "h2c"].contains(&scheme) {
        return Err(format!("the engine's scheme {scheme:?} is unknown: write http://, https:// or h2c://"));
    }
    // Not repeated in the message: it may hold a password.
    if rest.split('/').next().is_some_and(|authority| authority.contains('@')) {
        return Err("the engine's address holds a user name: take it out, clients send their own keys".to_owned());
    }
    if rest.contains(['?', '#']) {
        return Err(format!("the engine's address {text:?} holds a query: end it before the ? or #"));
    }
    let malformed =
        || format!("the engine's address {text:?} is malformed: write for example {scheme}://127.0.0.1:23333");
    let parts = text.parse::<Uri>().map_err(|_| malformed())?.into_parts();
    let authority = parts.authority.filter(|it| !it.host().is_empty()).ok_or_else(malformed)?;
    let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    if !port.is_empty() && authority.port_u16().is_none_or(|port| port == 0) {
        return Err(format!("the engine's address {text:?} has no usable port: write a number from 1 to 65535"));
    }
    let path = parts.path_and_query.as_ref().map_or("/", http::uri::PathAndQuery::path).trim_end_matches('/');
    let path = if path.is_empty() { "/" } else { path };
    Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build().map_err(|_| malformed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listeners_address_has_numbers_only() {
        assert_eq!(socket(" 127.0.0.1:80 ").unwrap().port(), 80);
        assert!(socket("[::]:80").is_ok());
        assert!(socket("localhost:81").unwrap_err().contains("write for example 127.0.0.1:81 or 0.0.0.0:81"));
        assert!(socket("").unwrap_err().contains("127.0.0.1:8080"));
    }

    #[test]
    fn headers_are_names_with_values() {
        assert_eq!(header("X-Heartbeat").unwrap(), "x-heartbeat");
        assert!(header("a b").unwrap_err().contains("write for example x-heartbeat"));
        assert_eq!(field("a: b:c").unwrap().1, "b:c");
        assert!(field("authorization").unwrap_err().contains("'name: value'"));
        assert!(field("a b: c").unwrap_err().contains("\"a b\""));
        let message = field("authorization: sec\u{1}ret").unwrap_err();
        assert!(message.contains("control character") && !message.contains("ret\""), "{message}");
    }

    #[test]
    fn a_url_may_leave_out_its_scheme() {
        assert_eq!(url("127.0.0.1:80/v1").unwrap(), "http://127.0.0.1:80/v1");
        for port in ["0", "99999", "http"] {
            assert!(url(&format!("http://127.0.0.1:{port}/")).unwrap_err().contains("from 1 to 65535"), "{port}");
        }
        assert!(url("http://[").unwrap_err().contains("http://127.0.0.1:8900/events"));
    }

    #[test]
    fn a_network_may_be_one_address() {
        assert_eq!(network("::1").unwrap().to_string(), "::1/128");
        assert_eq!(network("10.0.0.0/8").unwrap().prefix_len(), 8);
        assert!(network("ten").unwrap_err().contains("10.0.0.0/8"));
    }

    #[test]
    fn an_engines_address_is_read_with_its_path() {
        for (text, read) in [
            ("http://127.0.0.1:23333", "http://127.0.0.1:23333/"),
            ("https://engine.example/", "https://engine.example/"),
            ("h2c://[::1]:8000/llm/", "h2c://[::1]:8000/llm"),
        ] {
            assert_eq!(engine(text).unwrap().to_string(), read);
        }
    }

    #[test]
    fn a_bad_engines_address_says_what_to_write() {
        for (text, fix) in [
            ("127.0.0.1:23333", "write http://127.0.0.1:23333"),
            ("localhost", "write http://localhost"),
            ("", "write http://"),
            ("ftp://host", "https:// or h2c://"),
            ("http://", "write for example http://"),
            ("http://:80", "write for example http://"),
            ("http://host:99999", "from 1 to 65535"),
            ("http://host:0", "from 1 to 65535"),
            ("http://host:", "from 1 to 65535"),
            ("http://ho st/", "write for example http://"),
            ("http://host/?key=1", "before the ?"),
        ] {
            let message = engine(text).unwrap_err();
            assert!(message.contains(fix) && !message.contains('\n'), "{text}: {message}");
        }
        let message = engine("http://user:secret@host").unwrap_err();
        assert!(message.contains("take it out") && !message.contains("secret"), "{message}");
    }
}

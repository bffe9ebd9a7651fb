//! What a request's fields say of the hops before this one: `X-Forwarded-*`, `Forwarded` and `X-Real-IP`. Pure; called by
//! `exchange`.

use std::fmt::Write;
use std::net::IpAddr;

use http::header::FORWARDED;
use http::{HeaderMap, HeaderName, HeaderValue};

/// What the proxy knows about where a request came from.
pub(super) struct Origin {
    /// The address of the peer.
    pub(super) peer: IpAddr,
    /// Whether what the peer says about earlier hops is believed.
    pub(super) trust: Trust,
    /// `http` or `https`, as the peer spoke to this proxy.
    pub(super) scheme: &'static str,
    /// The host that the client asked for.
    pub(super) host: Option<HeaderValue>,
}

/// Whether a peer's `X-Forwarded-*` are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// They are appended to.
    Trusted,
    /// They are overwritten.
    Untrusted,
}

/// `X-Forwarded-For`, `-Proto` and `-Host`: appended for a trusted peer, overwritten for any other.
pub(super) fn write(headers: &mut HeaderMap, origin: &Origin) {
    if origin.trust == Trust::Untrusted {
        let spoofable = |name: &HeaderName| name.as_str().starts_with("x-forwarded-");
        if headers.keys().any(spoofable) {
            let names: Vec<HeaderName> = headers.keys().filter(|name| spoofable(name)).cloned().collect();
            for name in names {
                headers.remove(name);
            }
        }
        headers.remove(FORWARDED);
        headers.remove(X_REAL_IP);
    }
    let mut hops = String::with_capacity(FOR_LENGTH);
    for hop in headers.get_all(X_FORWARDED_FOR) {
        hops.push_str(&String::from_utf8_lossy(hop.as_bytes()));
        hops.push_str(", ");
    }
    let _ = write!(hops, "{}", origin.peer.to_canonical()); // to a string: cannot fail
    if let Ok(value) = HeaderValue::try_from(hops) {
        headers.insert(X_FORWARDED_FOR, value);
    }
    headers.entry(X_FORWARDED_PROTO).or_insert(HeaderValue::from_static(origin.scheme));
    if let Some(host) = &origin.host {
        headers.entry(X_FORWARDED_HOST).or_insert_with(|| host.clone());
    }
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
/// Three addresses of the longest kind fit.
const FOR_LENGTH: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

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

    fn origin(trust: Trust) -> Origin {
        Origin {
            peer: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 9)),
            trust,
            scheme: "http",
            host: Some(HeaderValue::from_static("chat.example")),
        }
    }

    #[test]
    fn an_untrusted_peer_cannot_say_where_it_comes_from() {
        let mut headers = map(&[
            ("x-forwarded-for", "1.1.1.1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-server", "evil"),
            ("x-real-ip", "1.1.1.1"),
            ("forwarded", "for=1.1.1.1"),
        ]);
        write(&mut headers, &origin(Trust::Untrusted));
        assert_eq!(
            lines(&headers),
            ["x-forwarded-for: 10.0.0.9", "x-forwarded-host: chat.example", "x-forwarded-proto: http"]
        );
    }

    #[test]
    fn a_trusted_peer_is_appended() {
        let mut headers = map(&[
            ("x-forwarded-for", "1.1.1.1"),
            ("x-forwarded-for", "2.2.2.2"),
            ("x-forwarded-proto", "https"),
            ("forwarded", "for=1.1.1.1"),
        ]);
        write(&mut headers, &origin(Trust::Trusted));
        assert_eq!(
            lines(&headers),
            [
                "forwarded: for=1.1.1.1",
                "x-forwarded-for: 1.1.1.1, 2.2.2.2, 10.0.0.9",
                "x-forwarded-host: chat.example",
                "x-forwarded-proto: https"
            ]
        );
    }
}

//! What a request's fields say of the hops before this one: `X-Forwarded-*`, `Forwarded` and `X-Real-IP`. Pure; called by
//! `exchange`.

mod syntax;

use std::fmt::Write;
use std::net::IpAddr;

use http::header::FORWARDED;
use http::{HeaderMap, HeaderName, HeaderValue};

use self::syntax::{Check, are_hosts, are_ports, are_schemes, is_address, is_forwarded, is_one_address, is_path};

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

/// `X-Forwarded-For`, `-Proto` and `-Host`: appended for a trusted peer, overwritten for any other. A trusted peer's own
/// client may have written some of them, so that what is malformed goes; returns the first such field.
pub(super) fn write(headers: &mut HeaderMap, origin: &Origin) -> Option<HeaderName> {
    let dropped = match origin.trust {
        Trust::Trusted => drop_malformed(headers),
        Trust::Untrusted => {
            drop_all(headers);
            None
        }
    };
    let mut hops = String::with_capacity(FOR_LENGTH);
    let (kept, is_cut) = addresses(headers);
    for hop in kept {
        hops.push_str(hop);
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
    dropped.or(is_cut.then_some(X_FORWARDED_FOR))
}

fn drop_all(headers: &mut HeaderMap) {
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

/// Drops each field that has a malformed value; returns the first.
fn drop_malformed(headers: &mut HeaderMap) -> Option<HeaderName> {
    let mut dropped = None;
    for (name, is_well_formed) in &CHECKED {
        let is_malformed = |value: &HeaderValue| !value.to_str().is_ok_and(is_well_formed);
        if headers.get_all(name).iter().any(is_malformed) {
            headers.remove(name);
            dropped.get_or_insert_with(|| name.clone());
        }
    }
    dropped
}

/// The addresses of the hops so far, and whether some are left out: one that is none, and all before it, so that none of
/// those that count from the right moves to another's place.
fn addresses(headers: &HeaderMap) -> (Vec<&str>, bool) {
    let (mut kept, mut is_cut) = (Vec::new(), false);
    for line in headers.get_all(X_FORWARDED_FOR) {
        let Ok(line) = line.to_str() else {
            (kept, is_cut) = (Vec::new(), true);
            continue;
        };
        for hop in line.split(',').map(str::trim).filter(|hop| !hop.is_empty()) {
            match is_address(hop) {
                true => kept.push(hop),
                false => (kept, is_cut) = (Vec::new(), true),
            }
        }
    }
    (kept, is_cut)
}

/// The fields that are looked at. Others of a trusted peer, such as the user that it has found out, are its own matter.
const CHECKED: [(HeaderName, Check); 8] = [
    (X_FORWARDED_PROTO, are_schemes),
    (HeaderName::from_static("x-forwarded-scheme"), are_schemes),
    (X_FORWARDED_HOST, are_hosts),
    (HeaderName::from_static("x-forwarded-server"), are_hosts),
    (HeaderName::from_static("x-forwarded-port"), are_ports),
    (HeaderName::from_static("x-forwarded-prefix"), is_path),
    (X_REAL_IP, is_one_address),
    (FORWARDED, is_forwarded),
];
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

    /// What becomes of a trusted peer's fields, this proxy's own aside.
    fn kept(fields: &[(&'static str, &'static str)]) -> (Vec<String>, Option<HeaderName>) {
        let mut headers = map(fields);
        let dropped = write(&mut headers, &origin(Trust::Trusted));
        let own = ["x-forwarded-for: 10.0.0.9", "x-forwarded-host: chat.example", "x-forwarded-proto: http"];
        (lines(&headers).into_iter().filter(|line| !own.contains(&line.as_str())).collect(), dropped)
    }

    /// A client's own text reached the engine through a trusted balancer that passes it on.
    #[test]
    fn a_trusted_peers_fields_pass_only_where_they_are_well_formed() {
        for (name, value) in [
            ("x-forwarded-proto", "https, javascript"),
            ("x-forwarded-proto", "file"),
            ("x-forwarded-proto", ""),
            ("x-forwarded-host", "a b"),
            ("x-forwarded-host", "evil@chat.example"),
            ("x-forwarded-host", "a/../b"),
            ("x-forwarded-host", "chat.example:99999"),
            ("x-forwarded-host", ""),
            ("x-forwarded-server", "<script>"),
            ("x-forwarded-port", "0"),
            ("x-forwarded-port", "65536"),
            ("x-forwarded-port", "80a"),
            ("x-forwarded-scheme", "gopher"),
            ("x-forwarded-prefix", "//evil.example"),
            ("x-forwarded-prefix", "v1"),
            ("x-real-ip", "1.2.3"),
            ("x-real-ip", "1.2.3.4, 5.6.7.8"),
            ("x-forwarded-for", "<script>"),
            ("x-forwarded-for", "1.2.3.4.5"),
            ("x-forwarded-for", "1.1.1.1; DROP TABLE"),
            ("forwarded", "for=1.1.1.1; DROP TABLE"),
            ("forwarded", "for=\"1.1.1.1"),
            ("forwarded", "for=1.2.3.4.5"),
            ("forwarded", "for=::1"),
            ("forwarded", "proto=javascript"),
            ("forwarded", "host=\"a b\""),
            ("forwarded", "for=1.1.1.1;for=2.2.2.2"),
            ("forwarded", "1.1.1.1"),
        ] {
            let (lines, dropped) = kept(&[(name, value)]);
            assert_eq!(lines, [""; 0], "{name}: {value}");
            assert_eq!(dropped.expect(value), name);
        }
        for (name, value) in [
            ("x-forwarded-proto", "https"),
            ("x-forwarded-proto", "HTTPS, http"),
            ("x-forwarded-proto", "wss"),
            ("x-forwarded-host", "chat.example:8443, [::1]:80"),
            ("x-forwarded-server", "edge-1.example"),
            ("x-forwarded-port", "8443"),
            ("x-forwarded-scheme", "https"),
            ("x-forwarded-prefix", "/v1"),
            ("x-forwarded-user", "anything at all"),
            ("x-real-ip", "2001:db8::1"),
            ("forwarded", "for=1.1.1.1"),
            (
                "forwarded",
                "For=\"[2001:db8::1]:4711\";proto=https;host=\"chat.example:81\";by=_edge, for=unknown;secret=\"a\\\"b\"",
            ),
        ] {
            let (lines, dropped) = kept(&[(name, value)]);
            assert_eq!((lines, dropped), (vec![format!("{name}: {value}")], None));
        }
    }

    /// What counts from the right must not move.
    #[test]
    fn addresses_before_a_malformed_one_go_with_it() {
        for (lines, expected) in [
            (vec!["1.1.1.1, evil, 2.2.2.2"], "2.2.2.2, 10.0.0.9"),
            (vec!["1.1.1.1, evil"], "10.0.0.9"),
            (vec!["evil", "2.2.2.2, , 3.3.3.3"], "2.2.2.2, 3.3.3.3, 10.0.0.9"),
            (
                vec!["1.1.1.1:4711, [::1]:80, [::2], ::3, unknown"],
                "1.1.1.1:4711, [::1]:80, [::2], ::3, unknown, 10.0.0.9",
            ),
        ] {
            let fields: Vec<_> = lines.iter().map(|line| ("x-forwarded-for", *line)).collect();
            let mut headers = map(&fields);
            let dropped = write(&mut headers, &origin(Trust::Trusted));
            assert_eq!(headers[X_FORWARDED_FOR], expected);
            assert_eq!(dropped.is_some(), lines.concat().contains("evil"));
        }
    }
}

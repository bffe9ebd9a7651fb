//! What a well-formed value is in the fields that tell of earlier hops. Asked by `forwarded`.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;

use http::uri::Authority;

/// Whether a value is well-formed.
pub(super) type Check = fn(&str) -> bool;

/// An address, perhaps with a port, or the word that some proxies write where they know none.
pub(super) fn is_address(text: &str) -> bool {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    text.parse::<IpAddr>().is_ok()
        || text.parse::<SocketAddr>().is_ok()
        || bare.is_some_and(|text| text.parse::<Ipv6Addr>().is_ok())
        || text.eq_ignore_ascii_case("unknown")
}

pub(super) fn is_one_address(text: &str) -> bool {
    is_address(text.trim())
}

fn all(text: &str, is_well_formed: impl Fn(&str) -> bool) -> bool {
    text.split(',').map(str::trim).all(is_well_formed)
}

fn is_scheme(text: &str) -> bool {
    SCHEMES.iter().any(|scheme| text.eq_ignore_ascii_case(scheme))
}

pub(super) fn are_schemes(text: &str) -> bool {
    all(text, is_scheme)
}

fn is_host(text: &str) -> bool {
    // Behind the host stands nothing, or a port that fits.
    let port_fits = |host: &Authority| match &text[host.host().len()..] {
        "" => true,
        port => port[1..].parse::<u16>().is_ok(),
    };
    !text.contains('@') && text.parse().is_ok_and(|host| port_fits(&host))
}

pub(super) fn are_hosts(text: &str) -> bool {
    all(text, is_host)
}

pub(super) fn are_ports(text: &str) -> bool {
    all(text, |text| text.parse::<NonZeroU16>().is_ok())
}

/// An absolute path that no client takes for a host.
pub(super) fn is_path(text: &str) -> bool {
    text.starts_with('/') && !text.starts_with("//") && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The elements of a `Forwarded` (RFC 7239 §4), the known parameters with values of their kind and once each.
pub(super) fn is_forwarded(text: &str) -> bool {
    let mut rest = text.trim();
    let mut seen = [false; PARAMETERS.len()];
    // Bounded: every turn takes a parameter.
    loop {
        let Some((name, after)) = rest.split_once('=') else { return false };
        let Some((value, after)) = value(after) else { return false };
        match PARAMETERS.iter().position(|(known, _)| name.eq_ignore_ascii_case(known)) {
            Some(at) if seen[at] || !PARAMETERS[at].1(&value) => return false,
            Some(at) => seen[at] = true,
            None if !is_token(name) => return false,
            None => {}
        }
        let after = after.trim_start();
        match after.split_at_checked(1) {
            None => return true,
            Some((";", after)) => rest = after.trim_start(),
            Some((",", after)) => (rest, seen) = (after.trim_start(), [false; PARAMETERS.len()]),
            Some(_) => return false,
        }
    }
}

/// The token or quoted string at the front of `text`, and what follows it.
fn value(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([';', ',', ' ', '\t']).unwrap_or(text.len());
        let (token, after) = text.split_at(end);
        return is_token(token).then_some((Cow::Borrowed(token), after));
    };
    let (mut value, mut letters) = (String::new(), quoted.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((Cow::Owned(value), &quoted[at + 1..])),
            '\\' => value.push(letters.next()?.1),
            letter => value.push(letter),
        }
    }
    None
}

/// A token of RFC 9110 §5.6.2.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// A node (RFC 7239 §6): an address, `unknown`, or a name that hides one; IPv6 in brackets only.
fn is_node(text: &str) -> bool {
    let hidden = text.strip_prefix('_');
    let is_bare_v6 = text.parse::<Ipv6Addr>().is_ok();
    hidden.is_some_and(is_token) || (is_address(text) && !is_bare_v6)
}

const PARAMETERS: [(&str, Check); 4] = [("for", is_node), ("by", is_node), ("host", is_host), ("proto", is_scheme)];
/// The last two are said of WebSockets.
const SCHEMES: [&str; 4] = ["http", "https", "ws", "wss"];

//! What settings must be, alone and together. Pure: opens no file, asks no network. Asked by `Config`.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http::Uri;

use super::place::{Problem, Step};
use super::units::Written;
use super::{Config, Fallback, FormChoice, HeartSettings, Limits, Upstream};
use heartline::Heartline;

/// Refuses the first setting that cannot work.
pub(super) fn check(config: &Config) -> Result<(), Problem> {
    if config.upstreams.is_empty() {
        return Err(Problem::nowhere("no engine is given: add --upstream http://127.0.0.1:23333"));
    }
    if config.admin == Some(config.listen) && config.listen.port() != 0 {
        let message = format!("admin and listen are both {}: give admin another port, or off", config.listen);
        return Err(Problem::at(["admin"], message));
    }
    at_most("drain_timeout", config.drain_timeout, DAY).map_err(|message| Problem::at(["drain_timeout"], message))?;
    limits(&config.limits)?;
    for index in 0..config.upstreams.len() {
        upstream(config, index)?;
    }
    for (key, fallback) in [("unknown_models", &config.unknown_models), ("no_model", &config.no_model)] {
        if let Fallback::Engine(name) = fallback
            && !config.upstreams.iter().any(|upstream| upstream.name == *name)
        {
            let names: Vec<&str> = config.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
            let message =
                format!("{key} is {name:?}, which no upstream is named: write first, refuse or {}", names.join(", "));
            return Err(Problem::at([key], message));
        }
    }
    Ok(())
}

fn limits(limits: &Limits) -> Result<(), Problem> {
    let refuse = |key: &'static str, message: String| Err(Problem::at(["limits", key], message));
    let streams = limits.streams_per_connection as usize;
    for (key, value, least, most) in [
        ("connections", limits.connections, 1, CONNECTIONS_MAX),
        ("connections_per_address", limits.connections_per_address, 1, CONNECTIONS_MAX),
        ("streams_per_connection", streams, 1, STREAMS_MAX),
        ("header_bytes", limits.header_bytes, HEADER_BYTES_MIN, HEADER_BYTES_MAX),
        ("headers", limits.headers, HEADERS_MIN, HEADERS_MAX),
        ("body_rate", limits.body_rate.unwrap_or(1), 1, BODY_RATE_MAX),
        ("look_bytes", limits.look_bytes, LOOK_BYTES_MIN, LOOK_BYTES_MAX),
    ] {
        if value < least || value > most {
            return refuse(key, format!("{key} is {value}: write a number from {least} to {most}"));
        }
    }
    for (key, value, least, most) in [
        ("header_timeout", limits.header_timeout, HEADER_TIMEOUT_MIN, HOUR),
        ("user_timeout", limits.user_timeout, SECOND, DAY),
        ("stalled_after", limits.stalled_after, SECOND, DAY),
    ] {
        if value < least || value > most {
            return refuse(key, format!("{key} is {value:?}: write a time from {least:?} to {}", hours(most)));
        }
    }
    Ok(())
}

/// Checks one engine, alone and against those before it.
fn upstream(config: &Config, index: usize) -> Result<(), Problem> {
    let upstream = &config.upstreams[index];
    let refuse = |key: &'static str, message: &str| {
        Err(Problem::at(Step::upstream(index, Some(key)), format!("upstream {:?}: {message}", upstream.name)))
    };
    if upstream.name.is_empty() || upstream.name.chars().any(char::is_control) || upstream.name.len() > NAME_MAX {
        return refuse("name", &format!("its name must have 1 to {NAME_MAX} printable characters: write another"));
    }
    let others = &config.upstreams[..index];
    if others.iter().any(|other| other.name == upstream.name) {
        return refuse("name", "an upstream before it has the same name: give each its own");
    }
    // An address that was not read from text is held to the same.
    if let Err(message) = Uri::read(&upstream.url.to_string()) {
        return refuse("url", &message);
    }
    if let Some(own) = own_listener(config, upstream) {
        return refuse("url", &format!("its url leads to the proxy's own listener {own}: write the engine's address"));
    }
    if upstream.ca.is_some() && upstream.url.scheme_str() != Some("https") {
        return refuse("ca", "ca is set, but its url is not https://: change the url, or leave ca out");
    }
    for path in &upstream.paths {
        let plain = path.starts_with('/') && !path.ends_with('/') && !path.contains("//");
        let dots = path.split('/').any(|part| part == "." || part == "..");
        if !plain || dots || path.contains(|c: char| c.is_whitespace() || c.is_control() || "?#%*".contains(c)) {
            return refuse(
                "paths",
                &format!("{path:?} is no path prefix: write for example /v1 (no dots, %, ?, # or *)"),
            );
        }
    }
    for model in &upstream.models {
        if model.is_empty() || model.strip_suffix('*').unwrap_or(model).contains('*') {
            return refuse("models", &format!("{model:?} is no model: write its whole name, or a beginning and one *"));
        }
    }
    if let Some(other) = others.iter().find(|other| other.paths == upstream.paths && other.models == upstream.models) {
        let message =
            format!("it serves the same paths and models as {:?}: tell them apart, or remove one", other.name);
        return refuse("paths", &message);
    }
    heart(&upstream.heart).or_else(|(key, message)| refuse(key, &message))?;
    times(upstream).or_else(|(key, message)| refuse(key, &message))
}

/// The intervals and caps, by the library's own check, one after another so that the one at fault is known.
fn heart(heart: &HeartSettings) -> Result<(), (&'static str, String)> {
    let mut builder = Heartline::builder().interval(heart.interval).cadence(heart.cadence);
    let in_words = |error: heartline::Error| error.to_string().replace("Form::off() to", "heartbeat off to");
    builder.check().map_err(|error| ("interval", in_words(error)))?;
    if let Some(max_silence) = heart.max_silence {
        builder = builder.max_silence(max_silence);
        builder.check().map_err(|error| ("max_silence", or_off(&error.to_string())))?;
    }
    if let Some(max_lifetime) = heart.max_lifetime {
        builder = builder.max_lifetime(max_lifetime);
        builder.check().map_err(|error| ("max_lifetime", or_off(&error.to_string())))?;
    }
    if let Some(header) = &heart.form_header
        && RESERVED.contains(&header.as_str())
    {
        let message = format!("the header {header} has a meaning of its own: name another, such as x-heartbeat");
        return Err(("heartbeat_header", message));
    }
    Ok(())
}

/// A limit is left out by saying so.
fn or_off(message: &str) -> String {
    message.replace("leave it out", "write off")
}

/// The times of one engine, and what they mean together.
fn times(upstream: &Upstream) -> Result<(), (&'static str, String)> {
    for (key, value) in [
        ("commit_after", upstream.commit_after),
        ("commit_json_after", upstream.commit_json_after),
        ("response_timeout", upstream.response_timeout),
        ("body_idle", upstream.body_idle),
    ] {
        let Some(value) = value else { continue };
        if value < TIME_MIN {
            return Err((
                key,
                format!("{key} is {value:?}, which no engine can meet: write {TIME_MIN:?} or more, or off"),
            ));
        }
        at_most(key, value, DAY).map_err(|message| (key, message))?;
    }
    at_most("pool_idle", upstream.pool_idle, HOUR).map_err(|message| ("pool_idle", message))?;
    if upstream.connect_timeout < CONNECT_TIMEOUT_MIN {
        let message =
            format!("connect_timeout is {:?}: write {CONNECT_TIMEOUT_MIN:?} or more", upstream.connect_timeout);
        return Err(("connect_timeout", message));
    }
    at_most("connect_timeout", upstream.connect_timeout, HOUR).map_err(|message| ("connect_timeout", message))?;
    for (key, commit) in [("commit_after", upstream.commit_after), ("commit_json_after", upstream.commit_json_after)] {
        let Some(commit) = commit else { continue };
        if upstream.response_timeout.is_some_and(|timeout| timeout <= commit) {
            let message = format!("{key} {commit:?} never comes, since response_timeout is no longer: swap them");
            return Err((key, message));
        }
        if upstream.heart.max_silence.is_some_and(|silence| silence <= commit) {
            return Err((key, format!("{key} {commit:?} is not below max_silence: make it shorter")));
        }
        if upstream.heart.form == FormChoice::Form(heartline::Form::off()) {
            let message =
                format!("{key} is set, but heartbeat is off: nothing would follow the 200; choose a heartbeat, or off");
            return Err((key, message));
        }
    }
    Ok(())
}

fn at_most(key: &str, value: Duration, most: Duration) -> Result<(), String> {
    if value <= most { Ok(()) } else { Err(format!("{key} is {value:?}: write {} or less", hours(most))) }
}

fn hours(time: Duration) -> String {
    format!("{}h", time.as_secs() / HOUR.as_secs())
}

/// The listener that the engine's address leads to, as far as the address tells it; `Via` tells the rest.
fn own_listener(config: &Config, upstream: &Upstream) -> Option<SocketAddr> {
    let host = upstream.url.host()?.trim_matches(['[', ']']);
    let port = upstream.url.port_u16().unwrap_or(if upstream.url.scheme_str() == Some("https") { 443 } else { 80 });
    let address: Option<IpAddr> = match host {
        host if host.eq_ignore_ascii_case("localhost") => Some(IpAddr::from([127, 0, 0, 1])),
        host => host.parse().ok(),
    };
    let here = |listener: &SocketAddr| {
        let Some(address) = address else { return false };
        let local = address.is_loopback() || address.is_unspecified();
        listener.port() == port && (listener.ip() == address || listener.ip().is_unspecified() && local)
    };
    [Some(config.listen), config.admin].into_iter().flatten().find(here)
}

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// A label of metrics and of a table's column.
const NAME_MAX: usize = 64;
/// Below this a wait is a slip of units: a healthy engine's first byte takes longer.
const TIME_MIN: Duration = Duration::from_millis(100);
/// A connect within one host takes less than a millisecond, within a region some.
const CONNECT_TIMEOUT_MIN: Duration = Duration::from_millis(10);
/// A head in one packet needs a round trip, also by satellite.
const HEADER_TIMEOUT_MIN: Duration = Duration::from_millis(100);
/// More than one process can hold open.
const CONNECTIONS_MAX: usize = 10_000_000;
/// The protocol's own limit is 2^31; nobody's browser opens so many.
const STREAMS_MAX: usize = 100_000;
/// hyper reads a head into a buffer of no less.
const HEADER_BYTES_MIN: usize = 8 * 1024;
/// Each connection may hold so much.
const HEADER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What a browser sends.
const HEADERS_MIN: usize = 16;
/// A map of headers holds 32,768 at most.
const HEADERS_MAX: usize = 10_000;
/// More than any network gives.
const BODY_RATE_MAX: usize = 1024 * 1024 * 1024;
/// Below this no real request could be looked at.
const LOOK_BYTES_MIN: usize = 1024;
/// Each request in flight may be looked at so far.
const LOOK_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// Headers that must never choose a heartbeat's form: they frame messages, or hold secrets that would be compared and logged.
const RESERVED: &[&str] = &[
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-api-key",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_made_by_hand_are_held_to_the_same() {
        let checked =
            |url: &'static str| Config::single(Uri::from_static(url)).check().map_err(|error| error.to_string());
        assert_eq!(checked("http://127.0.0.1:23333"), Ok(()));
        assert!(checked("127.0.0.1:23333").unwrap_err().contains("write http://127.0.0.1:23333"));
        assert!(checked("/v1").unwrap_err().contains("has no scheme"));
        let mut none = Config::single(Uri::from_static("http://127.0.0.1:1"));
        none.upstreams.clear();
        assert!(none.check().unwrap_err().is_config());
    }
}

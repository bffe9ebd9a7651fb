//! The access log: one `tracing` event for each exchange, when it is over, and its metrics. Written by `relay` and `tunnel`.
//!
//! Neither queries nor header values are logged, since either may hold keys; the trace id of a `traceparent` is.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};

use super::meter;
use super::table::Live;
use heartline::StreamError;

/// What is known of an exchange when its answer begins.
#[derive(Debug)]
pub(super) struct Entry {
    live: Arc<Live>,
    status: StatusCode,
    /// What the proxy did in the engine's place, if it did.
    reason: Option<&'static str>,
    trace: Option<Box<str>>,
}

impl Entry {
    /// For the answer to `live` with `status`.
    pub(super) fn new(live: Arc<Live>, status: StatusCode, trace: Option<Box<str>>) -> Self {
        Self { live, status, reason: None, trace }
    }

    /// The proxy answered itself.
    pub(super) fn because(mut self, reason: &'static str) -> Self {
        self.reason = Some(reason);
        self
    }

    /// The answer broke off.
    pub(super) fn failed(&mut self, error: &StreamError) {
        self.reason.get_or_insert(match error {
            error if error.is_max_silence() => "max_silence",
            error if error.is_max_lifetime() => "max_lifetime",
            error if error.is_drained() => "drained",
            _ => "body_failed",
        });
        tracing::debug!(id = self.live.id, error = %Chain(error), "a response broke off");
    }

    /// Writes the line.
    pub(super) fn write(&self, bytes: u64, end: &'static str) {
        let live = &self.live;
        meter::exchange_over(self.status, bytes);
        tracing::info!(
            target: "heartline::access",
            id = live.id,
            method = %live.method,
            path = %live.path,
            status = self.status.as_u16(),
            upstream = live.upstream.get().map(|name| &**name),
            bytes,
            milliseconds = u64::try_from(live.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            end,
            reason = self.reason,
            trace = self.trace.as_deref(),
            "exchange"
        );
    }
}

/// Writes the line of an exchange that nobody is left to answer; dropped when the client goes, told off when there is an
/// answer.
#[derive(Debug)]
pub(super) struct Unanswered(Option<Entry>);

impl Unanswered {
    pub(super) fn new(live: Arc<Live>, trace: Option<Box<str>>) -> Self {
        let status = StatusCode::from_u16(CLIENT_GONE).unwrap_or(StatusCode::REQUEST_TIMEOUT);
        Self(Some(Entry::new(live, status, trace).because("client_gone")))
    }

    /// There is an answer, with an entry of its own.
    pub(super) fn answered(mut self, status: StatusCode) -> Entry {
        let entry = self.0.take().expect("it is taken here only, by value");
        Entry { status, reason: None, ..entry }
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(entry) = &self.0 {
            entry.write(entry.live.bytes(), "broken_off");
        }
    }
}

/// As nginx logs a client that went before its answer came; never sent.
const CLIENT_GONE: u16 = 499;

/// An error with everything that caused it.
pub(super) struct Chain<'a>(pub(super) &'a dyn std::error::Error);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

/// The trace id of a W3C `traceparent`; the header itself passes on untouched.
pub(super) fn trace_id(headers: &HeaderMap) -> Option<Box<str>> {
    let parent = headers.get("traceparent")?.to_str().ok()?;
    let id = parent.split('-').nth(1)?;
    (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| id.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_id_is_read_and_nothing_else() {
        let mut headers = HeaderMap::new();
        assert_eq!(trace_id(&headers), None);
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        headers.insert("traceparent", parent.parse().unwrap());
        assert_eq!(trace_id(&headers).as_deref(), Some("0af7651916cd43dd8448eb211c80319c"));
        headers.insert("traceparent", "00-secret-1".parse().unwrap());
        assert_eq!(trace_id(&headers), None);
    }
}

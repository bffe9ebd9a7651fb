//! The proxy's own metrics: their names and descriptions, and one function for each thing that happens. Called by `log`
//! and, for what is a figure of the moment, by `admin`. `docs/admin.md` explains each name.

use std::time::Duration;

use http::StatusCode;
use metrics::{Unit, counter, gauge};

use super::state::{Phase, State};

/// Whether new requests are taken: 1 or 0 (gauge).
pub(super) const READY: &str = "heartline_proxy_ready";
/// Open client connections (gauge).
pub(super) const CONNECTIONS: &str = "heartline_proxy_connections";
/// Requests whose answer is not complete (gauge).
pub(super) const EXCHANGES: &str = "heartline_proxy_exchanges";
/// Open WebSocket tunnels (gauge).
pub(super) const TUNNELS: &str = "heartline_proxy_tunnels";
/// Reloads of the settings (counter).
pub(super) const RELOADS_TOTAL: &str = "heartline_proxy_reloads_total";
/// Requests that are over, by `status` (counter).
pub(super) const EXCHANGES_TOTAL: &str = "heartline_proxy_exchanges_total";
/// Bytes that came from engines in exchanges that are over (counter).
pub(super) const BYTES_TOTAL: &str = "heartline_proxy_bytes_total";
/// Streams that a hop with the limit `limit_seconds` would have cut without heartbeats (counter).
pub(super) const CUTS_AVOIDED_TOTAL: &str = "heartline_proxy_cuts_avoided_total";

/// Gives the installed recorder a unit and a description of each.
pub(super) fn describe() {
    metrics::describe_gauge!(READY, Unit::Count, "1 while new requests are taken, 0 while draining");
    metrics::describe_gauge!(CONNECTIONS, Unit::Count, "Open client connections");
    metrics::describe_gauge!(EXCHANGES, Unit::Count, "Requests whose answer is not complete");
    metrics::describe_gauge!(TUNNELS, Unit::Count, "Open WebSocket tunnels");
    metrics::describe_counter!(RELOADS_TOTAL, Unit::Count, "Reloads of the settings");
    metrics::describe_counter!(EXCHANGES_TOTAL, Unit::Count, "Requests that are over, by class of status");
    metrics::describe_counter!(BYTES_TOTAL, Unit::Bytes, "Bytes from engines in exchanges that are over");
    metrics::describe_counter!(
        CUTS_AVOIDED_TOTAL,
        Unit::Count,
        "Streams that a hop with this limit would have cut without heartbeats"
    );
}

/// An exchange is over: its answer had `status`, and so many bytes came from its engine.
pub(super) fn exchange_over(status: StatusCode, bytes: u64) {
    counter!(EXCHANGES_TOTAL, "status" => class(status)).increment(1);
    counter!(BYTES_TOTAL).increment(bytes);
}

/// The figures of this moment.
pub(super) fn state(state: &State) {
    gauge!(READY).set(if state.phase == Phase::Serving { 1.0 } else { 0.0 });
    gauge!(CONNECTIONS).set(state.connections as f64);
    gauge!(EXCHANGES).set(state.exchanges as f64);
    gauge!(TUNNELS).set(state.tunnels as f64);
    counter!(RELOADS_TOTAL).absolute(state.reloads);
}

/// So many streams outlived a hop that cuts after `limit`.
pub(super) fn cuts_avoided(limit: Duration, streams: u64) {
    counter!(CUTS_AVOIDED_TOTAL, "limit_seconds" => limit.as_secs().to_string()).absolute(streams);
}

fn class(status: StatusCode) -> &'static str {
    match status.as_u16() {
        100..200 => "1xx",
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        _ => "5xx",
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_metric_is_documented() {
        let page = include_str!("../../../docs/admin.md");
        let documented = page.lines().filter(|line| line.starts_with("| `heartline_proxy_")).count();
        let names = [
            super::READY,
            super::CONNECTIONS,
            super::EXCHANGES,
            super::TUNNELS,
            super::RELOADS_TOTAL,
            super::EXCHANGES_TOTAL,
            super::BYTES_TOTAL,
            super::CUTS_AVOIDED_TOTAL,
        ];
        for name in names {
            assert!(page.contains(&format!("| `{name}` |")), "docs/admin.md: no row for {name}");
        }
        assert_eq!(documented, names.len());
    }
}

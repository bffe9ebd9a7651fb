//! What one client, or all of them, may take: bounds with defaults. Part of `Config`.

use std::time::Duration;

/// Bounds, each with a default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Connections at once from one address, or from one network of 64 bits in IPv6.
    pub connections_per_address: usize,
    /// Requests at once on one HTTP/2 connection.
    pub streams_per_connection: u32,
    /// Bytes of one request's head.
    pub header_bytes: usize,
    /// Fields in one request's head.
    pub headers: usize,
    /// How long a client may take to send a head (an idle connection waits for one), and be silent in a request's body.
    pub header_timeout: Duration,
    /// The least bytes a second at which a client may send a request's body, counted over all of it beyond the first
    /// `header_timeout`, and only while the proxy waits for it; `None` for any.
    pub body_rate: Option<usize>,
    /// How long written bytes may stay unacknowledged (`TCP_USER_TIMEOUT`).
    pub user_timeout: Duration,
    /// How long a client may leave bytes that are ready for it untaken.
    pub stalled_after: Duration,
    /// Bytes of a request's body that are looked at for `stream` and `model`.
    pub look_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: CONNECTIONS,
            connections_per_address: CONNECTIONS_PER_ADDRESS,
            streams_per_connection: STREAMS_PER_CONNECTION,
            header_bytes: HEADER_BYTES,
            headers: HEADERS,
            header_timeout: HEADER_TIMEOUT,
            body_rate: Some(BODY_RATE),
            user_timeout: USER_TIMEOUT,
            stalled_after: STALLED_AFTER,
            look_bytes: LOOK_BYTES,
        }
    }
}

/// Two descriptors a stream; fits the 65,536 that service managers give.
const CONNECTIONS: usize = 30_000;
/// A balancer or a campus behind one address opens thousands.
const CONNECTIONS_PER_ADDRESS: usize = 10_000;
/// What h2 servers usually allow.
const STREAMS_PER_CONNECTION: u32 = 200;
/// What most servers allow for a whole head.
const HEADER_BYTES: usize = 64 * 1024;
/// Far above what clients and hops add.
const HEADERS: usize = 100;
/// An idle connection must outlive the 60 s after which balancers give theirs up: one that closes first makes sporadic 502s
/// there. A slowloris is held by the caps on connections.
const HEADER_TIMEOUT: Duration = Duration::from_secs(75);
/// What the worst links give, as Apache's httpd has it; a slow writer must send 40 kB for each 80 s that it holds a place.
const BODY_RATE: usize = 500;
/// A peer that has not acknowledged for so long has gone without a word.
const USER_TIMEOUT: Duration = Duration::from_secs(60);
/// Two intervals and some: a reader that takes nothing for so long will not.
const STALLED_AFTER: Duration = Duration::from_secs(120);
/// `model` and `stream` usually stand in the first kilobyte, or after the messages.
const LOOK_BYTES: usize = 1024 * 1024;

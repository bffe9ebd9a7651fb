//! What one client, or all of them, may take: bounds with defaults. Part of `Config`; `[limits]` in a file.

use std::time::Duration;

use clap::Args;

use super::OrOff;
use crate::values::{self, or_off};

/// Bounds, each with a default.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(next_help_heading = "Limits")]
pub struct Limits {
    /// Client connections at once; by itself the limit on open files may allow fewer.
    // Two descriptors a stream; fits the 65,536 that service managers give.
    #[arg(long, value_name = "COUNT", default_value = "30k", value_parser = values::count)]
    pub connections: usize,
    /// Client connections at once from one address, or from one network of 64 bits in IPv6.
    // A balancer or a campus behind one address opens thousands.
    #[arg(long, value_name = "COUNT", default_value = "10k", value_parser = values::count)]
    pub connections_per_address: usize,
    /// Requests at once on one HTTP/2 connection.
    // What h2 servers usually allow.
    #[arg(long, value_name = "COUNT", default_value = "200", value_parser = values::number)]
    pub streams_per_connection: u32,
    /// Bytes of one request's head; one byte more is a 431.
    // What most servers allow for a whole head.
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = values::size)]
    pub header_bytes: usize,
    /// Fields in one request's head.
    // Far above what clients and hops add.
    #[arg(long, value_name = "COUNT", default_value = "100", value_parser = values::count)]
    pub headers: usize,
    /// How long a client may take to send a request's head or be silent in its body, and a connection idle.
    // An idle connection must outlive the 60 s after which balancers give theirs up: one that closes first makes sporadic
    // 502s there. A slowloris is held by the caps on connections.
    #[arg(long, value_name = "DURATION", default_value = "75s", value_parser = values::duration)]
    pub header_timeout: Duration,
    /// The least bytes a second at which a client may send a request's body, counted over all of it beyond the first
    /// header timeout, and only while the proxy waits for it.
    // What the worst links give, as Apache's httpd has it; a slow writer must send 40 kB for each 80 s that it holds a place.
    #[arg(long, value_name = "SIZE|off", default_value = "500", value_parser = or_off(values::size))]
    pub body_rate: OrOff<usize>,
    /// How long a client's system may leave bytes unacknowledged (TCP_USER_TIMEOUT).
    // A peer that has not acknowledged for so long has gone without a word.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = values::duration)]
    pub user_timeout: Duration,
    /// How long a client may leave bytes untaken that are ready for it.
    // Two intervals and some: a reader that takes nothing for so long will not.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = values::duration)]
    pub stalled_after: Duration,
    /// Bytes of a request's body that are looked at for 'stream' and 'model'.
    // Both usually stand in the first kilobyte, or after the messages.
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = values::size)]
    pub look_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        values::defaults()
    }
}

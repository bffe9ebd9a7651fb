//! Who cuts a silent response, and after how long: the one table that reports, pages and `docs/hops.md` read.
//!
//! A hop counts the time without a byte, whatever the bytes mean, so a heartbeat starts its clock again. Total caps on a
//! response (Envoy's route timeout, Cloud Run) are not here: no heartbeat helps against those.
//!
//! ```
//! use std::time::Duration;
//!
//! let interval = Duration::from_secs(25);
//! let cutting: Vec<_> = heartline::hops::HOPS.iter().filter(|hop| hop.limit <= interval).map(|hop| hop.name).collect();
//! assert!(cutting.contains(&"Azure Application Gateway") && !cutting.contains(&"nginx"));
//! ```

use std::time::Duration;

/// A hop between server and client, or a client, that gives up on a silent response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hop {
    /// What its users call it.
    pub name: &'static str,
    /// How long a silence it allows unless configured otherwise.
    pub limit: Duration,
    /// Which of its settings says so, and who says that: the vendor's documentation, unless it is called second-hand.
    pub source: &'static str,
}

/// All hops that allow the same silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limit {
    /// How long a silence they allow.
    pub after: Duration,
    /// The hops; never empty.
    pub hops: &'static [Hop],
}

impl Limit {
    /// Returns the limit in whole seconds.
    pub const fn seconds(&self) -> u64 {
        self.after.as_secs()
    }

    /// Returns the hops' names, with commas between them.
    pub fn names(&self) -> String {
        self.hops.iter().map(|hop| hop.name).collect::<Vec<_>>().join(", ")
    }
}

/// Returns the limits of [`HOPS`], the strictest first, each with the hops that share it.
pub fn limits() -> impl ExactSizeIterator<Item = Limit> {
    LIMITS.iter().map(|after| Limit {
        after: *after,
        // Sorted, so those of one limit stand together.
        hops: {
            let from = HOPS.partition_point(|hop| hop.limit < *after);
            let to = HOPS.partition_point(|hop| hop.limit <= *after);
            &HOPS[from..to]
        },
    })
}

/// The known hops, the strictest first.
pub const HOPS: &[Hop] = &[
    hop(5, "httpx", "`read` of its default `Timeout`, in a Python client that sets none"),
    hop(10, "Fastly", "second-hand: about 10 s between bytes, 15 s to the first"),
    hop(
        20,
        "Azure Application Gateway",
        "second-hand: request timeout of the backend setting; response buffering must be off",
    ),
    hop(30, "CloudFront", "response timeout of the origin, 1 to 120 s"),
    hop(30, "Azure Front Door", "response timeout of the origin, 16 to 240 s"),
    hop(30, "API Gateway", "idle timeout of response streaming at the edge; regional 5 min, 15 min in all"),
    hop(50, "HAProxy", "`timeout server`, which has no default: 50 s in the examples of its manual"),
    hop(55, "Heroku", "rolling window of the router, after 30 s to the first byte"),
    hop(60, "nginx", "`proxy_read_timeout`"),
    hop(60, "ingress-nginx", "`proxy-read-timeout`"),
    hop(60, "AWS ALB", "`idle_timeout.timeout_seconds`"),
    hop(60, "Apache", "`ProxyTimeout`, which is `Timeout` unless set"),
    hop(60, "Fly.io", "idle timeout of its proxy"),
    hop(100, "Cloudflare", "older documents; 524 before the headers, a reset after them"),
    hop(100, "cloudflared", "as Cloudflare; event streams are flushed, NDJSON and JSON by some versions only"),
    hop(100, "RunPod", "its proxy is Cloudflare's"),
    hop(120, "Cloudflare by newer documents", "proxy read timeout, 120 to 125 s"),
    hop(240, "Azure Load Balancer", "idle timeout"),
    hop(240, "Azure Container Apps", "request timeout of its ingress"),
    hop(300, "Envoy", "`stream_idle_timeout`; a route's `timeout`, 15 s, is a total cap"),
    hop(300, "fetch in Node.js", "undici: `bodyTimeout`, and `headersTimeout` before it"),
    hop(350, "AWS NLB", "idle timeout of a TCP connection"),
    hop(600, "openai-python", "its own `timeout`, for httpx between two bytes"),
];

/// The distinct limits of [`HOPS`], the strictest first.
pub const LIMITS: [Duration; distinct()] = {
    let mut limits = [Duration::ZERO; distinct()];
    let (mut at, mut found) = (0, 0);
    while at < HOPS.len() {
        if at == 0 || HOPS[at].limit.as_secs() != HOPS[at - 1].limit.as_secs() {
            limits[found] = HOPS[at].limit;
            found += 1;
        }
        at += 1;
    }
    limits
};

const fn distinct() -> usize {
    let (mut at, mut found) = (0, 0);
    while at < HOPS.len() {
        if at == 0 || HOPS[at].limit.as_secs() != HOPS[at - 1].limit.as_secs() {
            found += 1;
        }
        at += 1;
    }
    found
}

const fn hop(limit_s: u64, name: &'static str, source: &'static str) -> Hop {
    Hop { name, limit: Duration::from_secs(limit_s), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_names_each_hop_once() {
        assert!(HOPS.is_sorted_by_key(|hop| hop.limit));
        assert!(LIMITS.iter().is_sorted_by(|one, next| one < next), "{LIMITS:?}");
        assert_eq!(limits().map(|limit| limit.hops.len()).sum::<usize>(), HOPS.len());
        for (at, hop) in HOPS.iter().enumerate() {
            assert!(HOPS[..at].iter().all(|other| other.name != hop.name), "{} stands here twice", hop.name);
        }
    }

    #[test]
    fn the_documentation_has_the_same_table() {
        let page = include_str!("../docs/hops.md");
        let told: Vec<_> = page.lines().filter(|line| line.starts_with("| ") && line.contains(" s |")).collect();
        let table: Vec<_> =
            HOPS.iter().map(|hop| format!("| {} s | {} | {} |", hop.limit.as_secs(), hop.name, hop.source)).collect();
        assert_eq!(told, table, "docs/hops.md");
    }
}

//! Which well-known hop cuts a stream after how long a silence. Read by the summary and the page.

use super::tally::CUT_AFTER_SECONDS;

/// Hops that allow the same silence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    pub(super) names: &'static str,
}

/// The hops of each limit, in the order of [`CUT_AFTER_SECONDS`].
pub(super) const HOPS: [Hop; CUT_AFTER_SECONDS.len()] = [
    Hop { names: "Fastly" },
    Hop { names: "Azure Application Gateway" },
    Hop { names: "CloudFront, Azure Front Door, API Gateway" },
    Hop { names: "Heroku" },
    Hop { names: "nginx, AWS ALB" },
    Hop { names: "Cloudflare" },
    Hop { names: "Cloudflare, by its newer documents" },
];

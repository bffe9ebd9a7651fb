//! How slow a client may be with a request's body: silent for so long at a time, and all in all no slower than a least rate.
//! Asked by `forward` whenever it has to wait.
//!
//! Only what the proxy waits for the client counts: an engine that reads late is none of its client's fault.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// The pace of one body.
#[derive(Debug)]
pub(super) struct Pace {
    /// The longest silence, and the time that a body may take beside what its bytes are good for.
    grace: Duration,
    /// Bytes a second.
    rate: Option<usize>,
    bytes: u64,
    /// Time spent waiting, the present wait aside.
    waited: Duration,
    since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Pace {
    /// A client that may be silent for `grace` at a time, and take `grace` and a second for each `rate` bytes in all.
    pub(super) fn new(grace: Duration, rate: Option<usize>) -> Self {
        Self { grace, rate, bytes: 0, waited: Duration::ZERO, since: None, timer: None }
    }

    /// Nothing is there: ready when the client is too slow.
    pub(super) fn poll_slow(&mut self, cx: &mut Context<'_>) -> Poll<Slow> {
        if self.since.is_none() {
            let now = Instant::now();
            self.since = Some(now);
            let until = now + self.patience();
            match &mut self.timer {
                Some(timer) => timer.as_mut().reset(until),
                None => self.timer = Some(Box::pin(sleep_until(until))),
            }
        }
        let Some(timer) = &mut self.timer else { return Poll::Pending };
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(if self.patience() < self.grace { Slow::Dripping } else { Slow::Silent })
    }

    /// So many bytes have come.
    pub(super) fn came(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if let Some(since) = self.since.take() {
            self.waited = self.waited.saturating_add(since.elapsed());
        }
    }

    /// How long the present wait may be.
    fn patience(&self) -> Duration {
        let Some(rate) = self.rate else { return self.grace };
        let earned = Duration::from_secs(self.bytes / rate as u64); // whole seconds: the grace covers the rest
        self.grace.saturating_add(earned).saturating_sub(self.waited).min(self.grace)
    }
}

/// How a client was too slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slow {
    /// It sent nothing for too long.
    Silent,
    /// It sent too little.
    Dripping,
}

impl std::fmt::Display for Slow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Silent => "the client fell silent",
            Self::Dripping => "the client sends its body too slowly",
        })
    }
}

impl std::error::Error for Slow {}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{advance, sleep, timeout};

    const GRACE: Duration = Duration::from_secs(10);

    async fn slow(pace: &mut Pace) -> Slow {
        std::future::poll_fn(|cx| pace.poll_slow(cx)).await
    }

    /// The time until a client is too slow that sends `bytes` every `step`.
    async fn lasts(mut pace: Pace, bytes: usize, step: Duration) -> (Duration, Slow) {
        let began = Instant::now();
        for _ in 0..10_000 {
            match timeout(step, slow(&mut pace)).await {
                Ok(how) => return (began.elapsed(), how),
                Err(_) => pace.came(bytes),
            }
        }
        panic!("it was never too slow");
    }

    #[tokio::test(start_paused = true)]
    async fn a_silence_ends_it_after_the_grace_whatever_came_before() {
        let mut pace = Pace::new(GRACE, Some(500));
        pace.came(1 << 20);
        assert_eq!(lasts(pace, 1, GRACE * 2).await, (GRACE, Slow::Silent));
        assert_eq!(lasts(Pace::new(GRACE, None), 1, GRACE * 2).await, (GRACE, Slow::Silent));
    }

    #[tokio::test(start_paused = true)]
    async fn a_drip_ends_with_the_grace_and_what_its_bytes_are_good_for() {
        let second = Duration::from_secs(1);
        assert_eq!(lasts(Pace::new(GRACE, Some(500)), 2, second).await, (GRACE, Slow::Dripping));
        // Half the rate: 20 s for 10 s of grace and the 10 s that 5,000 bytes are good for.
        let (took, how) = lasts(Pace::new(GRACE, Some(500)), 250, second).await;
        assert!(took.abs_diff(2 * GRACE) <= 2 * second, "{took:?}");
        assert_eq!(how, Slow::Dripping);
    }

    #[tokio::test(start_paused = true)]
    async fn at_the_rate_or_without_one_it_lasts() {
        for (rate, bytes) in [(Some(500), 500), (None, 1)] {
            let lasting = lasts(Pace::new(GRACE, rate), bytes, Duration::from_secs(1));
            assert!(timeout(Duration::from_secs(5_000), lasting).await.is_err());
        }
    }

    /// Time passes, but nobody waits for the client.
    #[tokio::test(start_paused = true)]
    async fn what_the_engine_takes_is_not_counted() {
        let mut pace = Pace::new(GRACE, Some(500));
        for _ in 0..100 {
            pace.came(1);
            sleep(GRACE).await;
        }
        advance(GRACE).await;
        assert_eq!(lasts(pace, 1, GRACE * 2).await, (GRACE, Slow::Silent));
    }
}

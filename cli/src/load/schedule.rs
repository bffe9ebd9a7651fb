//! When each stream of a plan is meant to begin. Pure: the same settings and seed give the same times in every process,
//! so that shards are parts of one plan.

use std::time::Duration;

use super::Arrivals;
use super::seed::Seed;

/// Walks over the beginnings of an open loop, in order: one a unit of work, and work comes at the rate.
///
/// During the ramp the rate rises in a straight line, so after `t` of a ramp `R` the work done is `rate·t²/2R`; after it
/// work grows by `rate` a second. Solved for `t` that is when a stream begins, whether work is counted in whole units
/// (constant) or in exponential steps (Poisson).
#[derive(Clone, Debug)]
pub(super) struct Beginnings {
    rate: f64,
    ramp: f64,
    end: f64,
    work: f64,
    drawn: Option<Seed>,
}

impl Beginnings {
    /// Begins the walk over arrivals at `rate_per_second` during `ramp` and `length`.
    pub(super) fn new(arrivals: Arrivals, rate_per_second: u32, ramp: Duration, length: Duration, seed: u64) -> Self {
        Self {
            rate: f64::from(rate_per_second),
            ramp: ramp.as_secs_f64(),
            end: (ramp + length).as_secs_f64(),
            work: 0.0,
            drawn: matches!(arrivals, Arrivals::Poisson).then(|| Seed::new(seed, ARRIVALS)),
        }
    }

    fn seconds(&self, work: f64) -> f64 {
        let ramped = self.rate * self.ramp / 2.0;
        if work < ramped { (2.0 * self.ramp * work / self.rate).sqrt() } else { work / self.rate + self.ramp / 2.0 }
    }
}

impl Iterator for Beginnings {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let work = match &mut self.drawn {
            None => {
                let work = self.work;
                self.work += 1.0;
                work
            }
            Some(seed) => {
                self.work += seed.exponential();
                self.work
            }
        };
        let seconds = self.seconds(work);
        (seconds < self.end).then(|| Duration::from_secs_f64(seconds))
    }
}

/// What the seed is mixed with, so that arrivals and prompts are drawn apart.
const ARRIVALS: u64 = 0x6172_7269_7661_6c73;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn beginnings(arrivals: Arrivals, ramp: Duration, seed: u64) -> Vec<Duration> {
        Beginnings::new(arrivals, 100, ramp, 10 * SECOND, seed).collect()
    }

    #[test]
    fn constant_arrivals_are_evenly_spread() {
        let all = beginnings(Arrivals::Constant, Duration::ZERO, 0);
        assert_eq!(all.len(), 1_000);
        assert_eq!((all[0], all[1], all[999]), (Duration::ZERO, SECOND / 100, SECOND * 999 / 100));
    }

    #[test]
    fn a_ramp_rises_in_a_straight_line_to_the_rate() {
        let all = beginnings(Arrivals::Constant, 4 * SECOND, 0);
        assert_eq!(all.len(), 1_200, "half the rate, on average, during the ramp");
        let between = |from: u64, to: u64| all.iter().filter(|due| (from..to).contains(&due.as_secs())).count();
        assert_eq!((between(0, 2), between(2, 4), between(4, 6)), (50, 150, 200));
        assert!(all.is_sorted());
    }

    #[test]
    fn poisson_arrivals_follow_the_seed_and_vary_as_users_do() {
        let all = beginnings(Arrivals::Poisson, Duration::ZERO, 7);
        assert_eq!(all, beginnings(Arrivals::Poisson, Duration::ZERO, 7));
        assert_ne!(all, beginnings(Arrivals::Poisson, Duration::ZERO, 8));
        assert!((880..1_120).contains(&all.len()), "{}", all.len());
        let gaps: Vec<_> = all.windows(2).map(|two| (two[1] - two[0]).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((0.85..1.15).contains(&(deviation / mean)), "exponential: deviation = mean; {deviation} {mean}");
    }
}

//! A length of time that is fixed or drawn from a distribution, as written on the command line or in a query.
//!
//! Used by [`Settings`](crate::sim::Settings); drawn by the script.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rand_distr::{Distribution, Exp1, StandardNormal};

use super::dice::Dice;
use super::error::Error;
use crate::values;

/// How long something takes: always the same, or drawn anew each time.
///
/// Parsed from `2s`, `uniform:1s..3s`, `exp:20ms` (the mean) and `lognormal:20ms,0.5` (the median, and the standard
/// deviation of the logarithm).
///
/// # Examples
///
/// ```
/// use heartline_cli::sim::Delay;
/// use std::time::Duration;
///
/// let delay: Delay = "uniform:1s..3s".parse()?;
/// assert_eq!(delay.to_string(), "uniform:1s..3s");
/// assert_eq!("2s".parse::<Delay>()?, Delay::from(Duration::from_secs(2)));
/// # Ok::<(), heartline_cli::sim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay(Kind);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Fixed(Duration),
    Uniform(Duration, Duration),
    Exponential(Duration),
    Lognormal(Duration, f64),
}

impl Delay {
    /// No time at all.
    pub const ZERO: Self = Self(Kind::Fixed(Duration::ZERO));

    /// Makes a delay that always takes `length`, an hour at most.
    pub const fn fixed(length: Duration) -> Self {
        let longest = DELAY_MAX.as_nanos();
        Self(Kind::Fixed(if length.as_nanos() > longest { DELAY_MAX } else { length }))
    }

    /// Draws one length, an hour at most.
    pub(crate) fn draw(&self, dice: &mut Dice) -> Duration {
        let drawn = match self.0 {
            Kind::Fixed(length) => return length,
            Kind::Uniform(low, high) => low + (high - low).mul_f64(fraction(dice)),
            Kind::Exponential(mean) => {
                let unit: f64 = Exp1.sample(dice);
                scale(mean, unit)
            }
            Kind::Lognormal(median, sigma) => {
                let unit: f64 = StandardNormal.sample(dice);
                scale(median, (unit * sigma).exp())
            }
        };
        drawn.min(DELAY_MAX)
    }
}

impl From<Duration> for Delay {
    fn from(length: Duration) -> Self {
        Self::fixed(length)
    }
}

impl FromStr for Delay {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let refused = || {
            Error::settings(format!(
                "'{text}' is no delay; write 2s, uniform:1s..3s, exp:20ms or lognormal:20ms,0.5 (an hour at most)"
            ))
        };
        let parsed = match text.split_once(':') {
            None => length(text).map(Kind::Fixed),
            Some(("uniform", range)) => range.split_once("..").and_then(|(low, high)| {
                let (low, high) = (length(low)?, length(high)?);
                (low <= high).then_some(Kind::Uniform(low, high))
            }),
            Some(("exp", mean)) => length(mean).map(Kind::Exponential),
            Some(("lognormal", shape)) => shape.split_once(',').and_then(|(median, sigma)| {
                let sigma: f64 = sigma.trim().parse().ok()?;
                (0.0..=SIGMA_MAX).contains(&sigma).then_some(Kind::Lognormal(length(median)?, sigma))
            }),
            Some(_) => None,
        };
        parsed.map(Self).ok_or_else(refused)
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Fixed(length) => write!(f, "{length:?}"),
            Kind::Uniform(low, high) => write!(f, "uniform:{low:?}..{high:?}"),
            Kind::Exponential(mean) => write!(f, "exp:{mean:?}"),
            Kind::Lognormal(median, sigma) => write!(f, "lognormal:{median:?},{sigma}"),
        }
    }
}

/// Reads one length; `None` when it is none, or longer than [`DELAY_MAX`].
fn length(text: &str) -> Option<Duration> {
    values::duration(text).ok().filter(|length| *length <= DELAY_MAX)
}

/// Draws a number from 0 up to but not including 1.
fn fraction(dice: &mut Dice) -> f64 {
    // 53 bits are what an f64 holds exactly.
    (dice.draw() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Multiplies without the panic of `mul_f64` on overflow.
fn scale(length: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(length.as_secs_f64() * factor).unwrap_or(DELAY_MAX)
}

/// Longer than any silence worth testing, and far from every overflow of timer arithmetic.
const DELAY_MAX: Duration = Duration::from_secs(3_600);

/// A lognormal wider than this only ever draws 0 or [`DELAY_MAX`].
const SIGMA_MAX: f64 = 10.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Delay {
        text.parse().unwrap()
    }

    #[test]
    fn every_written_delay_comes_back_as_written() {
        for text in ["2s", "20ms", "1.5s", "500µs", "uniform:1s..3s", "exp:20ms", "lognormal:20ms,0.5"] {
            assert_eq!(parse(text).to_string(), text);
        }
        assert_eq!(parse("0"), Delay::ZERO);
        assert_eq!(parse("2m"), Delay::fixed(Duration::from_secs(120)));
        assert_eq!(parse("500us").to_string(), "500µs");
    }

    #[test]
    fn a_bad_delay_says_what_to_write() {
        for text in [
            "",
            "2",
            "-2s",
            "soon",
            "2 parsecs",
            "uniform:3s..1s",
            "uniform:1s",
            "exp:",
            "lognormal:20ms",
            "lognormal:20ms,-1",
            "lognormal:20ms,NaN",
            "2h",
            "1e3s",
            "infs",
            "normal:1s",
        ] {
            let message = text.parse::<Delay>().unwrap_err().to_string();
            assert!(message.contains("uniform:1s..3s"), "{text}: {message}");
        }
    }

    #[test]
    fn draws_have_the_distribution_that_was_asked_for() {
        let mut dice = Dice::new(3, 0);
        let mut draws = |text: &str| -> Vec<f64> {
            let delay = parse(text);
            (0..20_000).map(|_| delay.draw(&mut dice).as_secs_f64()).collect()
        };
        let mean = |draws: &[f64]| draws.iter().sum::<f64>() / draws.len() as f64;
        assert!(draws("2s").iter().all(|&seconds| seconds == 2.0));
        let uniform = draws("uniform:1s..3s");
        assert!(uniform.iter().all(|&seconds| (1.0..3.0).contains(&seconds)));
        assert!((mean(&uniform) - 2.0).abs() < 0.02);
        assert!((mean(&draws("exp:20ms")) - 0.02).abs() < 0.001);
        let mut lognormal = draws("lognormal:20ms,0.5");
        lognormal.sort_by(f64::total_cmp);
        assert!((lognormal[10_000] - 0.02).abs() < 0.001);
        assert!(draws("lognormal:1h,10").iter().all(|&seconds| seconds <= 3_600.0));
    }
}

//! The arguments of `heartline load` that say how many streams there are, when each begins and how long it may live.

use std::time::Duration;

use clap::{Args, ValueEnum};
use heartline_cli::load::{Arrivals, Settings, Shape};
use heartline_cli::values;

/// How many streams there are, when each begins, how long they live.
#[derive(Debug, Args)]
#[command(next_help_heading = "Shape")]
pub(crate) struct ShapeArgs {
    /// Streams to hold.
    #[arg(long, value_name = "COUNT", default_value = "10k", value_parser = values::count)]
    pub(crate) streams: usize,
    /// Streams to begin each second.
    #[arg(long, value_name = "RATE", default_value = "2k/s", value_parser = values::rate)]
    pub(crate) rate: u32,
    /// How long all are held, or an open loop goes on at its full rate [default: 60s], or a closed loop may take in all
    /// [default: 10m].
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) hold: Option<Duration>,
    /// Closed loop: so many streams at a time, the next one when one ends.
    #[arg(long, value_name = "COUNT", value_parser = values::count, conflicts_with = "arrivals")]
    pub(crate) concurrency: Option<usize>,
    /// Closed loop: so many streams in all [default: ten times --concurrency].
    #[arg(long, value_name = "COUNT", value_parser = values::count, requires = "concurrency")]
    pub(crate) requests: Option<usize>,
    /// Open loop: streams begin at --rate whatever becomes of them, evenly or as independent users come; latencies count
    /// from the time each was meant to begin.
    #[arg(long, value_name = "KIND")]
    pub(crate) arrivals: Option<ArrivalsArg>,
    /// How long a loop takes to come up; what begins meanwhile is not judged.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = values::duration)]
    pub(crate) ramp: Duration,
    /// How long the last streams of an open loop may take to end.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = values::duration)]
    pub(crate) drain: Duration,
    /// How long the last held streams may take to open before the hold phase begins.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = values::duration)]
    pub(crate) open_within: Duration,
    /// Time between heartbeats: the started engine's own, or what the URL is expected to send.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = values::duration)]
    pub(crate) interval: Duration,
    /// Cut a stream that is silent for so long, as a hop on the way would.
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) cut_after: Option<Duration>,
    /// What arrivals and prompts are drawn from; the same seed is the same plan.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) seed: u64,
}

/// How the beginnings of an open loop are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArrivalsArg {
    /// One every so often.
    Const,
    /// Exponential times between, as independent users come.
    Poisson,
}

impl ShapeArgs {
    /// Puts the arguments into settings.
    pub(crate) fn apply(&self, settings: &mut Settings) {
        settings.streams = self.streams;
        settings.rate_per_second = self.rate;
        settings.shape = self.shape();
        if let Some(concurrency) = self.concurrency {
            settings.streams = self.requests.unwrap_or(concurrency.saturating_mul(REQUESTS_PER_LANE));
        }
        settings.ramp = self.ramp;
        settings.drain = self.drain;
        settings.open_within = self.open_within;
        settings.interval = self.interval;
        settings.cut_after = self.cut_after;
        settings.seed = self.seed;
    }

    /// Returns the shape asked for.
    pub(crate) fn shape(&self) -> Shape {
        let length = self.hold.unwrap_or(HOLD);
        match (self.concurrency, self.arrivals) {
            (Some(concurrency), _) => Shape::Closed { concurrency, within: self.hold.unwrap_or(CLOSED_WITHIN) },
            (None, Some(ArrivalsArg::Const)) => Shape::Open { arrivals: Arrivals::Constant, length },
            (None, Some(ArrivalsArg::Poisson)) => Shape::Open { arrivals: Arrivals::Poisson, length },
            (None, None) => Shape::Hold(length),
        }
    }
}

/// Long enough to see heartbeats of the default interval twice.
const HOLD: Duration = Duration::from_secs(60);

/// A closed loop ends by itself; this is for a server that does not let it.
const CLOSED_WITHIN: Duration = Duration::from_secs(600);

/// So many streams follow one another in each lane when nobody says how many there are in all.
const REQUESTS_PER_LANE: usize = 10;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        shapes: ShapeArgs,
    }

    fn parsed(line: &str) -> Settings {
        let words: Vec<_> = std::iter::once("load").chain(line.split_whitespace()).collect();
        let mut settings = Settings::new("http://x/".parse().unwrap());
        Cli::try_parse_from(words).unwrap().shapes.apply(&mut settings);
        settings
    }

    #[test]
    fn the_defaults_are_ten_thousand_streams_for_a_minute() {
        let settings = parsed("");
        assert_eq!((settings.streams, settings.rate_per_second), (10_000, 2_000));
        assert_eq!(settings.shape, Shape::Hold(Duration::from_secs(60)));
        assert_eq!(settings.interval, Duration::from_secs(30));
    }

    #[test]
    fn loops_are_asked_for_by_their_own_arguments() {
        let settings = parsed("--concurrency 8 --requests 100 --hold 5s --ramp 1s");
        assert_eq!(settings.shape, Shape::Closed { concurrency: 8, within: Duration::from_secs(5) });
        assert_eq!((settings.streams, settings.ramp), (100, Duration::from_secs(1)));
        assert_eq!(parsed("--concurrency 8").streams, 80);
        let settings = parsed("--arrivals poisson --rate 50/s --seed 7 --cut-after 100s");
        assert_eq!(settings.shape, Shape::Open { arrivals: Arrivals::Poisson, length: Duration::from_secs(60) });
        assert_eq!((settings.seed, settings.cut_after), (7, Some(Duration::from_secs(100))));
    }
}

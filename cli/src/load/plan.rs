//! Which stream begins when, on which worker and from which address. Pure; made once a run, asked by every worker.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::schedule::Beginnings;
use super::settings::WORKERS_MAX;
use super::{Protocol, Settings, Shape, Shard};

/// The plan of one run: everything that follows from the settings, the server's address and the number of cores.
///
/// Streams are numbered through all shards; a shard and a worker take theirs from the one sequence, so that the same
/// streams begin at the same times with the same bodies, however many processes share them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) server: SocketAddr,
    /// Streams of all shards.
    pub(super) total: usize,
    /// Streams of this shard.
    pub(super) streams: usize,
    pub(super) shard: Shard,
    pub(super) rate_per_second: u32,
    pub(super) workers: usize,
    pub(super) sources: Sources,
    pub(super) protocol: Protocol,
    pub(super) shape: Shape,
    pub(super) ramp: Duration,
    pub(super) drain: Duration,
    pub(super) cut_after: Option<Duration>,
    pub(super) interval: Duration,
    pub(super) open_within: Duration,
    pub(super) seed: u64,
    /// The hold phase begins when the plan says and not when all streams are open, so that it is the same one for all
    /// who start together.
    pub(super) holds_on_time: bool,
}

/// One stream and when it is meant to begin, counted from the run's start.
///
/// Latencies count from there, so that a client that falls behind does not hide what its users would have waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Begin {
    pub(super) index: usize,
    pub(super) due: Duration,
}

impl Plan {
    /// Makes the plan.
    pub(super) fn new(settings: &Settings, server: SocketAddr, cores: usize) -> Self {
        let mut plan = Self {
            server,
            total: settings.streams,
            streams: 0,
            shard: settings.shard,
            rate_per_second: settings.rate_per_second,
            workers: 1,
            sources: Sources::Kernel,
            protocol: settings.protocol,
            shape: settings.shape,
            ramp: settings.ramp,
            drain: settings.drain,
            cut_after: settings.cut_after,
            interval: settings.interval,
            open_within: settings.open_within,
            seed: settings.seed,
            holds_on_time: settings.start_at.is_some(),
        };
        if let Shape::Open { .. } = plan.shape {
            plan.total = plan.beginnings().count();
        }
        plan.streams = share(plan.total, plan.shard.index as usize, plan.shard.of as usize);
        let at_once = plan.at_once();
        let wanted =
            settings.workers.unwrap_or_else(|| cores.min(WORKERS_MAX).min(at_once.div_ceil(STREAMS_PER_WORKER_MIN)));
        plan.workers = wanted.clamp(1, at_once.max(1));
        plan.sources = Sources::of(settings, server.ip(), plan.connections(plan.total));
        plan
    }

    /// Returns when each stream of one worker is meant to begin, in that order; a closed loop's follow one another, and
    /// only the first of each lane has a time of its own.
    pub(super) fn begins(&self, worker: usize) -> Box<dyn Iterator<Item = Begin> + Send> {
        let shard = (self.shard.index as usize, self.shard.of as usize);
        let workers = self.workers;
        let own = move |index: usize| index % shard.1 == shard.0 && (index / shard.1) % workers == worker;
        match self.shape {
            Shape::Open { .. } => {
                let all = self.beginnings().enumerate();
                Box::new(all.filter(move |(index, _)| own(*index)).map(|(index, due)| Begin { index, due }))
            }
            Shape::Closed { .. } => Box::new(
                (0..self.total).filter(move |index| own(*index)).map(|index| Begin { index, due: Duration::ZERO }),
            ),
            Shape::Hold(_) | Shape::Complete(_) => {
                let rate = self.rate_per_second;
                let all = (0..self.total).skip(shard.0 + shard.1 * worker).step_by(shard.1 * workers);
                Box::new(all.map(move |index| Begin { index, due: spaced(index, rate) }))
            }
        }
    }

    /// Returns when each lane of one worker's closed loop is meant to begin.
    pub(super) fn lanes(&self, worker: usize) -> Vec<Duration> {
        let Shape::Closed { concurrency, .. } = self.shape else {
            return Vec::new();
        };
        let step = self.shard.of as usize * self.workers;
        let first = self.shard.index as usize + self.shard.of as usize * worker;
        let begin = |lane: usize| self.ramp.mul_f64(lane as f64 / concurrency as f64);
        (first..concurrency).step_by(step).map(begin).collect()
    }

    /// Tells whether other processes run the rest of the plan, so that the result is made to be merged.
    pub(super) fn is_part(&self) -> bool {
        self.shard.of > 1
    }

    /// Returns how long beginning all connections, or coming up to the full rate, takes.
    pub(super) fn ramp(&self) -> Duration {
        match self.shape {
            Shape::Hold(_) | Shape::Complete(_) => spaced(self.total, self.rate_per_second),
            Shape::Closed { .. } | Shape::Open { .. } => self.ramp,
        }
    }

    /// Returns from when on a beginning is judged, counted from the run's start.
    pub(super) fn judged_from(&self) -> Duration {
        match self.shape {
            Shape::Hold(_) | Shape::Complete(_) => Duration::ZERO,
            Shape::Closed { .. } | Shape::Open { .. } => self.ramp,
        }
    }

    /// Returns the most streams of this shard that are there at once, as far as the plan says.
    pub(super) fn at_once(&self) -> usize {
        match self.shape {
            Shape::Closed { concurrency, .. } => {
                share(concurrency, self.shard.index as usize, self.shard.of as usize).min(self.streams)
            }
            // Unknown, since the server says how long a stream lives: what begins in so long a time.
            Shape::Open { .. } => {
                let begun = f64::from(self.rate_per_second) / f64::from(self.shard.of) * OPEN_LIVES.as_secs_f64();
                self.streams.min(begun as usize)
            }
            Shape::Hold(_) | Shape::Complete(_) => self.streams,
        }
    }

    /// Returns how many connections so many streams need.
    pub(super) fn connections(&self, streams: usize) -> usize {
        match self.protocol {
            Protocol::Http1 => streams,
            Protocol::Http2 { streams_per_connection } => streams.div_ceil(streams_per_connection),
        }
    }

    fn beginnings(&self) -> Beginnings {
        let arrivals = match self.shape {
            Shape::Open { arrivals, .. } => arrivals,
            _ => super::Arrivals::Constant,
        };
        Beginnings::new(arrivals, self.rate_per_second, self.ramp, self.shape.length(), self.seed)
    }
}

/// The local addresses that connections come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sources {
    /// The kernel chooses.
    Kernel,
    /// So many addresses of 127/8, in turn.
    Loopback(u32),
    /// These, in turn.
    Named(Vec<IpAddr>),
}

impl Sources {
    /// Spreads `connections` to `server`. Only Linux answers to all of 127/8 without being told.
    fn of(settings: &Settings, server: IpAddr, connections: usize) -> Self {
        if !settings.source_ips.is_empty() {
            return Self::Named(settings.source_ips.clone());
        }
        let spread = cfg!(target_os = "linux") && matches!(server, IpAddr::V4(address) if address.is_loopback());
        if !spread {
            return Self::Kernel;
        }
        let wanted = u32::try_from(connections.div_ceil(STREAMS_PER_SOURCE)).unwrap_or(SOURCES_MAX);
        Self::Loopback(wanted.clamp(1, SOURCES_MAX))
    }

    /// Returns how many addresses there are.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Kernel => 1,
            Self::Loopback(count) => *count as usize,
            Self::Named(addresses) => addresses.len(),
        }
    }

    /// Returns the address that connection `index` comes from; `None` leaves it to the kernel.
    pub(super) fn address(&self, index: usize) -> Option<IpAddr> {
        match self {
            Self::Kernel => None,
            Self::Loopback(count) => {
                // Fits: the remainder is below `count`, which is a u32.
                let place = (index % *count as usize) as u32;
                Some(Ipv4Addr::from(u32::from(SOURCE_FIRST) + place).into())
            }
            Self::Named(addresses) => Some(addresses[index % addresses.len()]),
        }
    }
}

/// Returns how many of `total` fall to part `index` of `of`, dealt out in turn.
fn share(total: usize, index: usize, of: usize) -> usize {
    total.saturating_sub(index).div_ceil(of)
}

/// Returns when the stream of this number begins at an even rate.
fn spaced(index: usize, rate_per_second: u32) -> Duration {
    let nanos = index as u128 * 1_000_000_000 / u128::from(rate_per_second);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// So many streams are little for one thread: at a heartbeat a second each, some 2 % of a core by the `cpu_percent` of
/// `heartline load --streams 9k --interval 1s --hold 20s`.
const STREAMS_PER_WORKER_MIN: usize = 2_000;

/// How long a stream of an open loop is taken to live, where files and ports are counted beforehand; a run that needs more
/// than there are then says so in its report.
const OPEN_LIVES: Duration = Duration::from_secs(10);

/// Streams from one source address: a fifth of the 28,232 ports Linux gives out by default, because ports of earlier
/// runs stay in `TIME_WAIT` for a minute and looking for a free one slows down as they fill.
const STREAMS_PER_SOURCE: usize = 5_000;

/// The first source address. 127.0.0.1 is left to everything else on the machine.
const SOURCE_FIRST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// The most source addresses: they stay within 127.0.0.2 to 127.0.3.233.
const SOURCES_MAX: u32 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Arrivals;

    fn settings(streams: usize) -> Settings {
        let mut settings = Settings::new("http://x/".parse().unwrap());
        settings.streams = streams;
        settings
    }

    fn plan(streams: usize, server: &str) -> Plan {
        Plan::new(&settings(streams), server.parse().unwrap(), 2)
    }

    fn all(plan: &Plan) -> Vec<Begin> {
        (0..plan.workers).flat_map(|worker| plan.begins(worker)).collect()
    }

    #[test]
    fn streams_begin_at_the_rate() {
        let plan = plan(9_000, "127.0.0.1:80");
        let first: Vec<_> = plan.begins(0).take(2).map(|begin| begin.due).collect();
        assert_eq!(first, [Duration::ZERO, Duration::from_micros(1_000)], "every second one is the other worker's");
        assert_eq!(plan.ramp(), Duration::from_millis(4_500));
    }

    #[test]
    fn every_stream_belongs_to_one_worker() {
        let plan = plan(9_001, "127.0.0.1:80");
        let mut all: Vec<_> = all(&plan).into_iter().map(|begin| begin.index).collect();
        all.sort_unstable();
        assert_eq!(plan.workers, 2);
        assert!(all.into_iter().eq(0..9_001));
    }

    #[test]
    fn the_plan_is_the_same_however_many_shards_share_it() {
        let length = Duration::from_secs(20);
        let closed = Shape::Closed { concurrency: 10, within: length };
        let open = |arrivals| Shape::Open { arrivals, length };
        for shape in [Shape::Hold(length), closed, open(Arrivals::Constant), open(Arrivals::Poisson)] {
            let mut settings = settings(5_003);
            settings.shape = shape;
            settings.ramp = Duration::from_secs(2);
            settings.seed = 42;
            let planned = |settings: &Settings| Plan::new(settings, "127.0.0.1:80".parse().unwrap(), 2);
            let whole = planned(&settings);
            let mut begins = Vec::new();
            let mut lanes = 0;
            for index in 0..4 {
                settings.shard = Shard { index, of: 4 };
                let part = planned(&settings);
                let own = all(&part);
                assert_eq!(own.len(), part.streams);
                assert_eq!((part.total, part.ramp()), (whole.total, whole.ramp()));
                begins.extend(own);
                lanes += (0..part.workers).map(|worker| part.lanes(worker).len()).sum::<usize>();
            }
            begins.sort_by_key(|begin| begin.index);
            let mut single = all(&whole);
            single.sort_by_key(|begin| begin.index);
            assert_eq!(begins, single, "{shape:?}");
            assert_eq!(lanes, if shape == closed { 10 } else { 0 });
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn ports_of_one_address_are_never_exhausted() {
        for streams in [1, 5_000, 28_232, 100_000, 2_000_000] {
            let plan = plan(streams, "127.0.0.1:80");
            let per_source = streams.div_ceil(plan.sources.count());
            assert!(per_source <= STREAMS_PER_SOURCE, "{streams}: {per_source}");
            assert!(plan.sources.address(streams - 1).unwrap().is_loopback());
        }
    }

    #[test]
    fn another_machine_is_reached_from_the_kernels_choice() {
        assert_eq!(plan(9_000, "192.0.2.1:80").sources.address(3), None);
        assert_eq!(plan(9_000, "[::1]:80").sources.address(3), None);
    }

    #[test]
    fn a_small_run_takes_one_worker() {
        assert_eq!(plan(200, "127.0.0.1:80").workers, 1);
    }
}
